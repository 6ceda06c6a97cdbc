from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workbench.config import SLO
from workbench.metrics import CAUSES, explained, preemptions, stalls
from workbench.metrics.stall_parts import GapParts

COLUMNS = ["request", "class", "at_s", "gap_ms", "cause", "step", "because", "detail"]
SLO_100 = SLO(gap_ms=100)


def test_a_long_prompt_is_named(chat_and_long):
    found = stalls(chat_and_long, SLO_100)
    assert list(found.columns) == COLUMNS
    assert found["request"].tolist() == ["chat-0", "chat-1", "chat-0", "chat-1"]
    assert found["class"].tolist() == ["chat"] * 4
    assert found["at_s"].tolist() == pytest.approx([1.542, 1.542, 1.792, 1.792])
    assert found["gap_ms"].tolist() == pytest.approx([500, 500, 250, 250])
    assert set(found["cause"]) == {"prefill"}
    assert found["step"].tolist() == [5, 5, 6, 6]
    assert set(found["because"]) == {"doc"}
    assert explained(found) == 1
    assert found["detail"].tolist() == ["prefill of doc, 1,000 tokens"] * 2 + ["prefill of doc, 500 tokens"] * 2


def test_a_gap_as_long_as_the_slo_is_no_stall(trace, build):
    stream, _, _ = build
    assert not len(stalls(trace(tokens=stream("a", 1.0, 1.25)), SLO(gap_ms=250)))
    assert len(stalls(trace(tokens=stream("a", 1.0, 1.25)), SLO(gap_ms=249.9))) == 1


def one(trace, **rows):
    found = stalls(trace(requests=[{"request": "a", "class": "chat", "status": "ok"}], **rows), SLO_100)
    assert len(found) == 1
    assert found["cause"][0] in CAUSES
    return found["cause"][0], found["detail"][0]


def step(number, start, end, **more):
    return {"step": number, "start_s": start, "end_s": end, **more}


def blamed(trace, **rows):
    found = stalls(trace(requests=[{"request": "a", "class": "chat", "status": "ok"}], **rows), SLO_100)
    assert len(found) == 1
    return found["cause"][0], None if found["step"].isna()[0] else found["step"][0], found["because"][0]


@pytest.fixture
def held(build):
    """The engine had the second token at 1.1, the client at 1.4; in step 2 a document was computed."""
    stream, decodes, prefill = build
    steps = [step(1, 0, 1.0), step(2, 1.0, 1.1)]
    return {"tokens": stream("a", 1.0, 1.4), "batch": [*decodes("a", 1, 2), prefill("doc", 2, 900)], "steps": steps}


ON_TIME = {"t_s": 0.0, "late_s": 0.0}


def test_what_the_engine_had_in_time_is_the_front_end(trace, held):
    assert one(trace, **held, client=[ON_TIME]) == ("front end", "300 ms after the engine had the token")
    assert blamed(trace, **held, client=[ON_TIME]) == ("front end", None, None)


def test_unless_the_client_was_late(trace, held):
    late = {"t_s": 1.41, "late_s": 0.26}  # from 1.15 on, of which 250 ms went by before the token was read
    assert one(trace, **held, client=[ON_TIME, late]) == (
        "client",
        "300 ms after the engine had the token, the client's loop was late for 250 ms of it",
    )
    twice = [{"t_s": 1.2, "late_s": 0.08}, {"t_s": 1.39, "late_s": 0.08}]
    assert one(trace, **held, client=[*twice, ON_TIME])[0] == "client"  # 160 of 300 ms, in any order of rows
    assert one(trace, **held, client=[ON_TIME, *twice[:1]])[0] == "front end"  # 80 of 300 ms
    before = {"t_s": 1.09, "late_s": 0.9}  # while the engine still computed
    after = {"t_s": 2.4, "late_s": 0.9}
    assert one(trace, **held, client=[before, after])[0] == "front end"


def test_without_a_meter_nobody_knows_which_of_the_two_it_was(trace, held):
    cause, detail = one(trace, **held)
    assert cause == "unknown"
    assert detail.endswith("front end or client, whose lateness was not measured")


def test_a_preempted_request_stalls_by_preemption_whatever_else_went_on(trace, build):
    stream, decodes, prefill = build
    steps = [step(1, 0, 1.0), step(2, 1.0, 1.3, preempted=["a"]), step(3, 1.3, 1.5)]
    batch = [*decodes("a", 1), prefill("doc", 2, 900), prefill("a", 3, 40, emitted=1)]
    tokens = stream("a", 1.0, 1.5)
    expected = ("preemption", "40 tokens computed again, after 300 ms without KV blocks")
    assert one(trace, tokens=tokens, batch=batch, steps=steps) == expected
    assert blamed(trace, tokens=tokens, batch=batch, steps=steps) == ("preemption", 2, "doc")
    steps[1]["preempted"] = None  # not recorded: the second prefill gives it away
    assert one(trace, tokens=tokens, batch=batch, steps=steps) == expected
    assert blamed(trace, tokens=tokens, batch=batch, steps=steps) == ("preemption", None, None)


def test_a_preempted_request_that_computes_nothing_again_waited_for_blocks(trace, build):
    stream, decodes, _ = build
    steps = [step(1, 0, 1.0), step(2, 1.0, 1.3, preempted=["a"]), step(3, 1.3, 1.5)]
    batch = [*decodes("a", 1, 3), *decodes("b", 2)]  # it came back from the prefix cache
    rows = {"tokens": stream("a", 1.0, 1.5), "batch": batch, "steps": steps}
    assert one(trace, **rows) == ("kv wait", "300 ms without KV blocks, preempted, nothing computed again")
    assert blamed(trace, **rows) == ("kv wait", 2, None)


def test_a_preemption_that_takes_less_than_half_of_the_gap_is_not_its_cause(trace, build):
    stream, decodes, prefill = build
    # a long prompt for 700 ms, then a is preempted for 50 ms and computed again in 150
    steps = [step(1, 0, 1.0), step(2, 1.0, 1.7), step(3, 1.7, 1.75, preempted=["a"]), step(4, 1.75, 1.9)]
    batch = [*decodes("a", 1), prefill("doc", 2, 900), prefill("doc", 3, 50), prefill("a", 4, 40, emitted=1)]
    rows = {"tokens": stream("a", 1.0, 1.9), "batch": batch, "steps": steps}
    assert one(trace, **rows) == ("prefill", "prefill of doc, 900 tokens")
    steps[1], steps[2] = step(2, 1.0, 1.4), step(3, 1.4, 1.6, preempted=["a"])
    steps[3] = step(4, 1.6, 1.9)  # 400 of 900 ms with the prompt, 500 by the preemption
    assert one(trace, **rows)[0] == "preemption"
    steps[1:] = [step(2, 1.0, 1.4), step(3, 1.5, 1.7, preempted=["a"]), step(4, 1.7, 1.9)]  # 400, 100 between, 400
    assert one(trace, **rows) == (
        "several",
        "prefill of doc (900), 40 tokens computed again, after 200 ms without KV blocks",
    )


def test_a_preemption_in_flight_leaves_the_token_that_was_on_its_way_alone(trace, build):
    stream, decodes, prefill = build
    # step 3 is planned at 1.1 and preempts a, while step 2 makes a's token until 1.4
    steps = [step(1, 0, 1.0), step(2, 1.0, 1.4), step(3, 1.1, 1.45, preempted=["a"], scheduled_s=1.1), step(4, 1.45, 2)]
    batch = [*decodes("a", 1, 2), prefill("doc", 2, 900), *decodes("b", 3), prefill("a", 4, 40, emitted=1)]
    found = stalls(trace(tokens=stream("a", 1.0, 1.4, 2.0), batch=batch, steps=steps), SLO_100)
    assert found["cause"].tolist() == ["prefill", "preemption"]
    assert found["detail"][1] == "40 tokens computed again, after 50 ms without KV blocks"
    assert found["step"].tolist() == [2, 3]


def test_a_running_request_that_steps_leave_out_for_want_of_blocks_waits_for_them(trace, build):
    stream, decodes, prefill = build
    steps = [step(1, 0, 1.0), step(2, 1.0, 1.3, preempted=["b"]), step(3, 1.3, 1.6, kv_use=1.0), step(4, 1.6, 1.7)]
    batch = [*decodes("a", 1, 4), prefill("doc", 2, 900), *decodes("c", 3)]
    rows = {"tokens": stream("a", 1.0, 1.7), "batch": batch, "steps": steps}
    assert one(trace, **rows) == ("kv wait", "600 ms without KV blocks")
    assert blamed(trace, **rows) == ("kv wait", 2, "doc")
    steps[1]["preempted"], steps[2]["kv_use"] = (
        [],
        0.5,
    )  # there was room: it is the prompt, and a step that nobody asked
    steps[1]["end_s"] = steps[2]["start_s"] = 1.4
    assert one(trace, **rows) == ("prefill", "prefill of doc, 900 tokens")


def test_a_prompt_that_takes_the_whole_budget_is_to_blame_even_when_blocks_are_few(trace, build):
    stream, decodes, prefill = build
    steps = [step(1, 0, 1.0), step(2, 1.0, 1.5, kv_use=0.97, preempted=[]), step(3, 1.5, 1.6)]
    batch = [*decodes("a", 1, 3), prefill("doc", 2, 900)]
    assert blamed(trace, tokens=stream("a", 1.0, 1.6), batch=batch, steps=steps) == ("prefill", 2, "doc")


def test_the_recompute_of_another_request_says_so(trace, build):
    stream, decodes, prefill = build
    steps = [step(1, 0, 1.0), step(2, 1.0, 1.01, preempted=["x"]), step(3, 1.01, 1.5)]
    batch = [*decodes("a", 1, 3), *decodes("x", 1), prefill("x", 3, 300)]
    assert one(trace, tokens=stream("a", 1.0, 1.5), batch=batch, steps=steps) == (
        "prefill",
        "prefill of x, 300 tokens, 300 of them again after its preemption",
    )


def test_a_simulated_run_has_no_client(trace, build):
    stream, decodes, prefill = build
    steps = [step(1, 0, 1.0), step(2, 1.0, 1.5)]
    batch = [*decodes("a", 1, 2), prefill("doc", 2, 900)]
    for arrivals in ((1.0, 1.5), (None, None)):
        rows = stream("a", *arrivals)
        for row, made, number in zip(rows, (1.0, 1.5), (1, 2), strict=True):
            row |= {"engine_s": made, "step": number}
        assert blamed(trace, tokens=rows, batch=batch, steps=steps) == ("prefill", 2, "doc")


def test_the_share_explained():
    causes = ["prefill", "unknown", "client", "preemption"]
    assert explained(pd.DataFrame({"cause": causes})) == 0.75
    assert explained(pd.DataFrame({"cause": []})) is None


@st.composite
def thrashing(draw):
    """Steps in which requests decode, prefill, are preempted, are left out and come back, at random."""
    steps, batch, tokens = [], [], []
    names, context, made = "abcd", dict.fromkeys("abcd", 0), dict.fromkeys("abcd", 0)
    now = 0.0
    for number in range(draw(st.integers(2, 14))):
        victims = [n for n in names if context[n] and draw(st.integers(0, 6)) == 0]
        context |= dict.fromkeys(victims, 0)
        end = now + draw(st.sampled_from([0.02, 0.09, 0.3]))
        for name in names:
            if name in victims or draw(st.integers(0, 3)) == 0:
                continue
            goal = 50 + made[name]
            size = min(draw(st.sampled_from([20, 60])), goal - context[name]) if context[name] < goal else 1
            emitted = int(context[name] + size >= goal)
            prefill = size > 1 or context[name] < 50
            batch.append(
                {"step": number, "request": name, "tokens": size, "context": context[name], "prefill": prefill}
                | {"emitted": emitted}
            )
            context[name] += size
            if emitted:
                late = draw(st.sampled_from([0.0, 0.0, 0.2]))
                tokens.append({"request": name, "index": made[name], "n": 1, "client_s": end + late})
                made[name] += 1
        kv = draw(st.sampled_from([0.5, 1.0]))
        steps.append(step(number, now, end, preempted=victims, kv_use=kv))
        now = end
    return {"steps": steps, "batch": batch, "tokens": tokens, "client": [ON_TIME]}


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=thrashing())
def test_the_short_way_and_the_long_way_agree(trace, rows):
    run = trace(**rows)
    found = stalls(run, SLO_100)
    assert set(found["cause"]) <= set(CAUSES)
    assert explained(found) is None or 0 <= explained(found) <= 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GapParts, "special", lambda _self, code, _low, _high: np.ones(len(code), bool))
        pd.testing.assert_frame_equal(stalls(run, SLO_100), found)
    lost = preemptions(run)
    assert len(lost) == sum(len(row["preempted"]) for row in rows["steps"])
    computed = sum(row["tokens"] for row in rows["batch"])
    once = sum(max((r["context"] + r["tokens"] for r in rows["batch"] if r["request"] == n), default=0) for n in "abcd")
    assert computed - once == lost["recomputed_tokens"].sum()


def test_a_preemption_outside_the_gap_is_not_its_cause(trace, build):
    stream, decodes, prefill = build
    steps = [
        step(1, 0, 1.0, preempted=["a"]),
        step(2, 1.0, 1.3, preempted=["b"]),
        step(3, 1.3, 1.31, preempted=["a"]),
    ]
    batch = [*decodes("a", 1, 2), prefill("doc", 2, 900)]
    tokens = stream("a", 1.0, 1.3)
    assert one(trace, tokens=tokens, batch=batch, steps=steps) == ("prefill", "prefill of doc, 900 tokens")


def test_several_prompts_share_the_time_by_their_tokens(trace, build):
    stream, decodes, prefill = build
    steps = [step(1, 0, 1.0), step(2, 1.0, 1.3)]
    thirds = [prefill(name, 2, 300) for name in ("x", "y", "z")]
    cause, detail = one(trace, tokens=stream("a", 1.0, 1.3), batch=[*decodes("a", 1, 2), *thirds], steps=steps)
    assert cause == "several"
    assert sorted(detail.removeprefix("prefill of ").split(", ")) == ["x (300)", "y (300)", "z (300)"]
    most = [prefill("x", 2, 600), prefill("y", 2, 300)]
    assert one(trace, tokens=stream("a", 1.0, 1.3), batch=[*decodes("a", 1, 2), *most], steps=steps) == (
        "prefill",
        "prefill of x, 600 tokens",
    )
    five = [prefill(name, 2, 100 + i) for i, name in enumerate("vwxyz")]
    _, detail = one(trace, tokens=stream("a", 1.0, 1.3), batch=[*decodes("a", 1, 2), *five], steps=steps)
    assert detail == "prefill of z (104), y (103), x (102) and 2 more"


def test_a_prompt_and_the_front_end_together_are_several(trace, build):
    stream, decodes, prefill = build
    # of 400 ms the engine took 250, of which 160 with the prompt; 150 are behind the engine
    steps = [step(1, 0, 1.0), step(2, 1.0, 1.09), step(3, 1.09, 1.25)]
    batch = [*decodes("a", 1, 3), prefill("x", 3, 300)]
    assert one(trace, tokens=stream("a", 1.0, 1.4), batch=batch, steps=steps) == (
        "several",
        "prefill of x (300), 150 ms behind the engine",
    )


def test_two_steps_in_flight_do_not_count_the_same_time_twice(trace, build):
    stream, decodes, prefill = build
    # step 3 was started while step 2 ran, so it has 100 ms of its own, not 390
    steps = [step(1, 0, 1.0), step(2, 1.0, 1.3), step(3, 1.01, 1.4)]
    batch = [*decodes("a", 1, 3), prefill("x", 3, 300)]
    cause, _ = one(trace, tokens=stream("a", 1.0, 1.4), batch=batch, steps=steps)
    assert cause == "unknown"


def test_what_cannot_be_told_is_unknown(trace, build):
    stream, decodes, prefill = build
    tokens = stream("a", 1.0, 1.5)
    assert one(trace, tokens=tokens) == ("unknown", "no step records")
    far = [step(1, 0, 0.5)]
    assert one(trace, tokens=tokens, steps=far) == ("unknown", "no step ended in the gap")
    steps = [step(1, 0, 1.0), step(2, 1.0, 1.02), step(3, 1.02, 1.5)]
    assert one(trace, tokens=tokens, batch=decodes("a", 1, 3), steps=steps) == (
        "unknown",
        "2 steps in the gap, the longest 480 ms",
    )
    batch = [*decodes("a", 1, 3), prefill("x", 2, 300)]  # a prompt, but in a step of 20 ms
    assert one(trace, tokens=tokens, batch=batch, steps=steps)[0] == "unknown"


def test_without_token_stamps_the_clients_clock_finds_the_steps(trace, build):
    stream, _, prefill = build
    steps = [step(1, 0, 0.99), step(2, 0.99, 1.49)]
    assert one(trace, tokens=stream("a", 1.0, 1.5), batch=[prefill("doc", 2, 900)], steps=steps) == (
        "prefill",
        "prefill of doc, 900 tokens",
    )


def test_steps_may_come_in_any_order(chat_and_long, trace):
    rows = {name: table.to_pylist()[::-1] for name, table in chat_and_long.tables.items()}
    found, expected = stalls(trace(**rows), SLO_100), stalls(chat_and_long, SLO_100)
    order = ["at_s", "request"]
    assert found.sort_values(order).values.tolist() == expected.sort_values(order).values.tolist()


def test_no_stalls(trace):
    found = stalls(trace(), SLO_100)
    assert list(found.columns) == COLUMNS
    assert not len(found)
