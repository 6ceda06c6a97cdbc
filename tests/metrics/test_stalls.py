from __future__ import annotations

import pytest

from workbench.config import SLO
from workbench.metrics import CAUSES, stalls

COLUMNS = ["request", "class", "at_s", "gap_ms", "cause", "detail"]
SLO_100 = SLO(gap_ms=100)


def test_a_long_prompt_is_named(chat_and_long):
    found = stalls(chat_and_long, SLO_100)
    assert list(found.columns) == COLUMNS
    assert found["request"].tolist() == ["chat-0", "chat-1", "chat-0", "chat-1"]
    assert found["class"].tolist() == ["chat"] * 4
    assert found["at_s"].tolist() == pytest.approx([1.542, 1.542, 1.792, 1.792])
    assert found["gap_ms"].tolist() == pytest.approx([500, 500, 250, 250])
    assert set(found["cause"]) == {"prefill"}
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


def test_what_the_engine_had_in_time_is_the_front_end_or_the_client(trace, build):
    stream, decodes, prefill = build
    steps = [step(1, 0, 1.0), step(2, 1.0, 1.1)]
    batch = [*decodes("a", 1, 2), prefill("doc", 2, 900)]
    assert one(trace, tokens=stream("a", 1.0, 1.4), batch=batch, steps=steps) == (
        "front end or client",
        "300 ms after the engine had the token",
    )


def test_a_preempted_request_stalls_by_preemption_whatever_else_went_on(trace, build):
    stream, decodes, prefill = build
    steps = [step(1, 0, 1.0), step(2, 1.0, 1.3, preempted=["a"]), step(3, 1.3, 1.5)]
    batch = [*decodes("a", 1), prefill("doc", 2, 900), prefill("a", 3, 40, emitted=1)]
    tokens = stream("a", 1.0, 1.5)
    assert one(trace, tokens=tokens, batch=batch, steps=steps) == ("preemption", "40 tokens computed again")
    steps[1]["preempted"] = None  # not recorded: the second prefill gives it away
    assert one(trace, tokens=tokens, batch=batch, steps=steps)[0] == "preemption"
    steps[1]["preempted"], batch[2]["prefill"] = ["a"], False  # it came back from a cache
    assert one(trace, tokens=tokens, batch=batch, steps=steps) == ("preemption", "lost its KV blocks")


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
