"""C12: classes and victims, on runs of which each preemption is known."""

import pytest

from workbench.claims import qos_classes
from workbench.claims.qos_classes import Victims
from workbench.errors import InputError

REQUESTS = {
    "vip": {"priority": 0, "prompt_tokens": 20},
    "chat": {"priority": 1, "prompt_tokens": 20},
    "small": {"priority": 2, "prompt_tokens": 60},
    "large": {"priority": 2, "prompt_tokens": 90},
    "fresh": {"priority": 2, "prompt_tokens": 10},
}
QOS = {"policy": "qos"}


def decode(context):
    return (1, context, False, 1)


def played(victims=("small",), back=("small", "fresh"), kv_use=0.97):
    """Three requests run when a VIP comes: a chat with 20 tokens done, an offline one with 40 and one with 60."""
    first, second = ({name: (REQUESTS[name]["prompt_tokens"], 0, True, 1)} for name in back)
    return [
        {"chat": (20, 0, True, 1), "small": (40, 0, True, 0)},
        {"chat": decode(20), "large": (60, 0, True, 0)},
        ({"chat": decode(21), "vip": (20, 0, True, 1)}, {"preempted": list(victims), "kv_use": kv_use}),
        {"chat": decode(22), "vip": decode(20), "large": (30, 60, True, 1)},
        {"chat": decode(23), "vip": decode(21), **first},
        {"chat": decode(24), "vip": decode(22), "large": decode(90), **second},
    ]


def test_the_lowest_class_and_its_least_work_and_first_in_line_hold(play):
    run = play(played(), REQUESTS, knobs=QOS)
    (victim,) = Victims.of(run).victims
    assert (victim.request, victim.priority, victim.kv_use) == ("small", 2, pytest.approx(0.97))
    assert (victim.lowest, victim.least, victim.alone, victim.first_again) == (True, True, False, True)
    verdict = qos_classes(run)
    assert (verdict.claim, verdict.outcome) == ("C12", "holds")
    assert "1 preemption under qos (VIP 0, normal 0, offline 1; VIP requests: 1)" in verdict.sentence
    assert "1 of 1 victims were of the lowest class that ran, 1 had the least done" in verdict.sentence
    assert "1 of 1 came back before any of their class that had not begun" in verdict.sentence
    # sent at 0.5 s: the VIP's first token comes with the third step, at 1.3 s
    assert "vip TTFT 0.80 s" in verdict.sentence
    assert verdict.untested.startswith("preemption for a slot")


@pytest.mark.parametrize(
    ("victims", "expected"),
    [
        (["large"], (True, False)),  # 60 done, and the other one 40
        (["chat"], (False, True)),  # offline ones were running
        (["chat", "small"], (False, True)),
    ],
)
def test_another_victim_is_not_the_right_one(play, victims, expected):
    run = play(played(victims), REQUESTS, knobs=QOS)
    found = Victims.of(run).victims[0]
    assert (found.lowest, found.least) == expected
    assert qos_classes(run).outcome == "holds in part"


def test_a_second_victim_is_not_compared_with_the_first(play):
    found = Victims.of(play(played(["small", "large"]), REQUESTS, knobs=QOS)).victims
    assert [(one.request, one.lowest, one.least, one.alone) for one in found] == [
        ("small", True, True, False),
        ("large", True, True, True),
    ]


def test_who_comes_later_is_not_compared(play):
    """In the step of the preemption a small offline request begins: it was not running when the victim was chosen."""
    steps = played()
    steps[2][0]["fresh"] = (10, 0, True, 1)
    steps[5].pop("fresh")
    found = Victims.of(play(steps, REQUESTS, knobs=QOS)).victims[0]
    assert (found.lowest, found.least) == (True, True)


def test_who_goes_before_a_victim_is_told(play):
    run = play(played(back=("fresh", "small")), REQUESTS, knobs=QOS)
    assert Victims.of(run).victims[0].first_again is False
    verdict = qos_classes(run)
    assert verdict.outcome == "holds in part"
    assert "0 of 1 came back before any of their class" in verdict.sentence


def test_who_was_sent_later_goes_before_nobody(play):
    late = {**REQUESTS, "fresh": {**REQUESTS["fresh"], "sent_s": 1.35}}
    assert Victims.of(play(played(back=("fresh", "small")), late, knobs=QOS)).victims[0].first_again is None


def test_an_aged_offline_request_counts_as_normal(play):
    """Sent at 0.5 s, the preemption is planned at 1.2 s: with aging after 0.6 s all of them are normal, chat too."""
    run = play(played(["chat"]), REQUESTS, knobs={**QOS, "aging_s": 0.6})
    assert Victims.of(run).victims[0].lowest is True
    assert Victims.of(run).victims[0].least is True  # 21 tokens, and the others 40 and 60


def test_a_preempted_vip_is_the_end_of_it(play):
    steps = played()
    steps[4] = (steps[4], {"preempted": ["vip"]})
    steps[4][0].pop("vip")
    steps[5]["vip"] = (22, 0, True, 1)
    verdict = qos_classes(play(steps, REQUESTS, knobs=QOS))
    assert verdict.outcome == "does not hold here"
    assert "VIP 1" in verdict.sentence


def test_the_vips_are_compared_with_another_policy(play):
    """Elsewhere the VIP's first token comes with the last step, 1.1 s after it was sent."""
    other = play(
        [*played()[:2], {"chat": decode(21)}, {"chat": decode(22)}, {"chat": decode(23)}, {"vip": (20, 0, True, 1)}],
        REQUESTS,
        knobs={"policy": "priority"},
    )
    verdict = qos_classes(play(played(), REQUESTS, knobs=QOS), against=other)
    assert "Under priority the VIPs' TTFT was 1.10 s: qos needs 0.73 of it." in verdict.sentence


def test_slots_are_told_from_blocks(play):
    steps = played(kv_use=0.4)
    verdict = qos_classes(play(steps, REQUESTS, knobs=QOS))
    assert "preemption for KV blocks (each of these was for a slot)" in verdict.untested


def test_what_cannot_be_judged_is_refused(play):
    with pytest.raises(InputError, match="no step under policy qos"):
        qos_classes(play(played(), REQUESTS))
    with pytest.raises(InputError, match="no preemption under qos"):
        qos_classes(play(played(victims=()), REQUESTS, knobs=QOS))
    with pytest.raises(InputError, match="no VIP"):
        qos_classes(play(played(), {**REQUESTS, "vip": {"priority": 1, "prompt_tokens": 20}}, knobs=QOS))
    with pytest.raises(InputError, match="a request without a priority"):
        qos_classes(play(played(), {**REQUESTS, "vip": {"priority": None, "prompt_tokens": 20}}, knobs=QOS))
