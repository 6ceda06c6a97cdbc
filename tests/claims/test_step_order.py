"""C13: the order inside a step, on runs of which each step is known."""

import pytest

from workbench.claims import step_order
from workbench.claims.step_order import Order
from workbench.errors import InputError
from workbench.trace import Trace, table_of

REQUESTS = {"chat": {"prompt_tokens": 10}, "doc": {"priority": 2, "prompt_tokens": 150}}


def decode(context):
    return (1, context, False, 1)


def mixed(*, budget=64):
    """A chat that decodes while a prompt of 150 tokens is computed in three steps, each full to the budget of 64."""
    return [
        {"chat": (10, 0, True, 1)},
        {"chat": decode(10), "doc": (budget - 1, 0, True, 0)},
        {"chat": decode(11), "doc": (budget - 1, 63, True, 0)},
        {"chat": decode(12), "doc": (24, 126, True, 1)},
        {"chat": decode(13), "doc": decode(150)},
    ]


def test_decodes_first_and_a_full_step_hold(play):
    run = play(mixed(), REQUESTS)
    assert Order.of(run) == Order(("chunked",), 5, 3, 0, 0, 0, 0, 0, 2, 2)
    verdict = step_order(run)
    assert (verdict.claim, verdict.outcome) == ("C13", "holds")
    assert "Of 5 steps 3 computed prefill while decodes ran: in 3 of them each decode had its token" in str(verdict)
    assert "none exceeded the budget; 2 of 2 steps that left a prompt unfinished were full" in str(verdict)
    assert "where preemption comes in the order" in verdict.untested
    assert verdict.origin == "live CPU, smollm2"


def test_a_decode_that_is_left_out_is_found(play):
    steps = mixed()
    steps[2] = {"doc": (64, 63, True, 0)}
    steps[3] = {"chat": decode(11), "doc": (23, 127, True, 1)}
    verdict = step_order(play(steps, REQUESTS))
    assert verdict.outcome == "does not hold here"
    assert "in 2 of them each decode had its token (left out in 1 under chunked)" in verdict.sentence


def test_a_step_without_prefill_that_leaves_a_decode_out_is_not_of_this_order(play):
    steps = [*mixed(), {"chat": decode(14)}, {"chat": decode(15), "doc": decode(151)}]
    assert Order.of(play(steps, REQUESTS)).left_out == 0


def test_who_was_preempted_is_not_left_out(play):
    steps = [
        {"chat": (10, 0, True, 1)},
        {"chat": decode(10), "doc": (63, 0, True, 0)},
        ({"doc": (64, 63, True, 0)}, {"preempted": ["chat"]}),
        {"doc": (23, 127, True, 1), "chat": (12, 0, True, 1)},
        {"chat": decode(12), "doc": decode(150)},
    ]
    found = Order.of(play(steps, REQUESTS))
    assert (found.left_out, found.victims, found.preempting, found.served) == (0, 1, 1, 0)
    assert "; 1 preempted 1 request, none with a token in that step;" in step_order(play(steps, REQUESTS)).sentence


def test_a_decode_waits_only_until_it_is_preempted(play):
    steps = [
        {"chat": (10, 0, True, 1)},
        {"doc": (64, 0, True, 0)},  # left out here
        ({"doc": (64, 64, True, 0)}, {"preempted": ["chat"]}),  # and preempted here
        {"doc": (22, 128, True, 1), "chat": (11, 0, True, 1)},
    ]
    found = Order.of(play(steps, REQUESTS))
    assert (found.mixed, found.left_out) == (1, 1)


def test_a_victim_with_a_token_in_the_same_step_is_not_in_order(play):
    steps = mixed()
    steps[4] = (steps[4], {"preempted": ["doc"]})
    verdict = step_order(play(steps, REQUESTS))
    assert verdict.outcome == "holds in part"
    assert "; 1 preempted 1 request, 1 with a token in that step;" in verdict.sentence


def test_more_than_the_budget_is_not_in_order(play):
    verdict = step_order(play(mixed(), REQUESTS, knobs={"budget": 63}))
    assert verdict.outcome == "holds in part"
    assert "; 2 exceeded the budget;" in verdict.sentence


@pytest.mark.parametrize(("policy", "full", "outcome"), [("chunked", "0 of 2", "holds in part"), ("qos", "", "holds")])
def test_room_that_is_left_counts_where_the_policy_fills(play, policy, full, outcome):
    verdict = step_order(play(mixed(), REQUESTS, knobs={"budget": 100, "policy": policy}))
    assert verdict.outcome == outcome
    if full:
        assert f"{full} steps that left a prompt unfinished were full" in verdict.sentence
    else:
        assert "the filling of a step" in verdict.untested


def test_a_whole_chunk_is_enough(play):
    assert step_order(play(mixed(), REQUESTS, knobs={"budget": 100, "chunk": 63})).outcome == "holds"


def test_runs_are_added_up(play):
    verdict = step_order(play(mixed(), REQUESTS), play(mixed(), REQUESTS, knobs={"policy": "priority"}))
    assert "Of 10 steps 6 computed prefill" in verdict.sentence
    assert "4 of 4 steps that left" in verdict.sentence


def test_what_cannot_be_judged_is_refused(play):
    with pytest.raises(InputError, match="expected at least one run"):
        step_order()
    with pytest.raises(InputError, match="no step with prefill beside a decode"):
        step_order(play([{"chat": (10, 0, True, 1)}, {"chat": decode(10)}], REQUESTS))
    run = play(mixed(), REQUESTS)
    for name, said in (("batch", "no step records"), ("knobs", "knobs that are not on record")):
        run.trace, kept = Trace({**run.trace.tables, name: table_of(name, [])}, run.trace.meta), run.trace
        with pytest.raises(InputError, match=said):
            step_order(run)
        run.trace = kept
