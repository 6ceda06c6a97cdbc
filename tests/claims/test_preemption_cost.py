"""C10: what preemption costs, on runs of which each figure is known."""

import pytest

from workbench.claims import preemption_cost
from workbench.claims.preemption_cost import Cost
from workbench.errors import InputError

REQUESTS = {"chat": {"priority": 1, "prompt_tokens": 20}, "doc": {"priority": 2, "prompt_tokens": 60}}
# SmolLM2-135M, as its config.json says
ARCHITECTURE = {
    "name": "smollm2",
    "layers": 30,
    "hidden": 576,
    "heads": 9,
    "kv_heads": 3,
    "head_dim": 64,
    "value_dim": 64,
    "intermediate": 1536,
    "vocab": 49152,
    "tied": True,
}


def decode(context):
    return (1, context, False, 1)


def played(use=(0.6, 0.98, 0.96, 0.7), again=61):
    """A request loses 61 tokens with KV, waits for a step, and has ``again`` of them computed anew."""
    before, at = use[1], use[2]
    return [
        ({"chat": (20, 0, True, 1), "doc": (40, 0, True, 0)}, {"kv_use": use[0]}),
        ({"chat": decode(20), "doc": (20, 40, True, 1)}, {"kv_use": 0.7}),
        ({"chat": decode(21), "doc": decode(60)}, {"kv_use": before}),
        ({"chat": decode(22)}, {"preempted": ["doc"], "kv_use": at}),
        ({"chat": decode(23)}, {"kv_use": use[3]}),
        ({"chat": decode(24), "doc": (again, 61 - again, True, 0)}, {"kv_use": 0.7}),
        ({"chat": decode(25), "doc": decode(61)}, {"kv_use": 0.7}),
    ]


def test_every_figure_of_a_known_run(play):
    run = play(played(use=(0.6, 0.98, 0.9, 0.7)), REQUESTS)
    cost = Cost.of(run)
    assert cost.kv_use == pytest.approx([0.98])  # of the step before: the larger one
    assert (cost.full, cost.quiet) == (1, 0)
    assert cost.prefill == 20 + 60 + 61
    verdict = preemption_cost(run)
    assert (verdict.claim, verdict.outcome) == ("C10", "holds")
    assert "1 preemption (offline 1), 1 of 1 with ≥ 95% of the KV blocks in use (lowest 98%)" in verdict.sentence
    assert "61 tokens lost their KV and 61 were computed again, 43% of all prefill" in verdict.sentence
    # preempted when step 3 is planned (1.3 s), scheduled again with step 5 (1.5 s), whole at its end (1.6 s)
    assert "waited 0.2 s (at most 0.2 s) for its next turn and was where it had been after 0.3 s" in verdict.sentence
    assert "vLLM V1 preempts by recompute only" in verdict.untested
    assert verdict.arithmetic == ""


def test_a_full_pool_that_preempts_nobody_is_no_must(play):
    verdict = preemption_cost(play(played(), REQUESTS))  # the step of the preemption leaves 96 % in use, and then none
    assert verdict.outcome == "holds in part"
    assert "1 of 2 steps at ≥ 95% were followed by none: a missing block forces it" in verdict.sentence


@pytest.mark.parametrize(
    "steps",
    [played(use=(0.6, 0.5, 0.5, 0.5)), played(use=(0.6, 0.98, 0.9, 0.7), again=0)],
    ids=["half of the pool was free", "nothing was computed again"],
)
def test_a_cheap_or_early_preemption_contradicts(play, steps):
    if steps[5][0]["doc"][0] == 0:  # all of it came back from the prefix cache
        steps[5][0]["doc"] = decode(61)
        steps[6][0]["doc"] = decode(62)
    assert preemption_cost(play(steps, REQUESTS)).outcome == "does not hold here"


def test_a_victim_that_never_comes_back_is_told(play):
    verdict = preemption_cost(play(played()[:4], REQUESTS))
    assert "No victim came back." in verdict.sentence


def test_swap_is_an_estimate_from_the_size_of_the_kv(play):
    """61 tokens of 23,040 bytes are 1.34 MiB; out and in over 64 GB/s each way takes 0.044 ms."""
    verdict = preemption_cost(play(played(), REQUESTS, meta={"compute": {"architecture": ARCHITECTURE}}))
    assert "swap would move 1.3 MiB out and in, 0.04 ms (estimate: published 64 GB/s each way of H100" in str(verdict)


def test_a_preemption_for_a_slot_is_left_out(play):
    run = play(played(use=(0.1, 0.1, 0.1, 0.1)), REQUESTS, knobs={"policy": "qos"})
    assert Cost.of(run).table.empty
    assert len(Cost.of(play(played(), REQUESTS, knobs={"policy": "qos"})).table) == 1


def test_what_cannot_be_judged_is_refused(play):
    with pytest.raises(InputError, match="no preemption"):
        preemption_cost(play(played()[:3], REQUESTS))
    with pytest.raises(InputError, match="no preemption"):
        preemption_cost()
    with pytest.raises(InputError, match="without the KV use"):
        preemption_cost(play(played(use=(None, None, None, None)), REQUESTS))
    with pytest.raises(InputError, match="no preemption for KV blocks"):
        preemption_cost(play(played(use=(0.1, 0.1, 0.1, 0.1)), REQUESTS, knobs={"policy": "qos"}))
