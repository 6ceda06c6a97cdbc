"""C2: counts are exact, and a difference is explained only by what the records show."""

import pytest

from workbench.claims import chunk_steps, step_counts
from workbench.errors import InputError
from workbench.trace import Trace, table_of


def steps_of(tokens, size):
    return [size] * (tokens // size) + ([tokens % size] if tokens % size else [])


def played(make, tokens, size, **fields):
    chunks = steps_of(tokens, size)
    return make(chunks, [0.1] * len(chunks), **fields)


def test_holds_at_the_articles_own_size(make):
    verdict = chunk_steps(played(make, 32_768, 1024, chunk=1024, budget=40_000))
    assert verdict.outcome == "holds"
    assert verdict.sentence == "32,768 tokens at chunk 1,024: 32 steps (as the formula says)."
    assert verdict.untested == ""


def test_in_part_when_decodes_take_their_share_of_the_budget(make):
    right = played(make, 4000, 1000, chunk=1000)
    shared = played(make, 4000, 996, budget=1000)
    verdict = chunk_steps(right, shared)
    assert verdict.outcome == "holds in part"
    assert "4,000 tokens at budget 1,000: 5 steps (the formula says 4; decodes take 4 of the budget" in verdict.sentence
    assert "⌈4,000 / 996⌉ = 5" in verdict.sentence
    assert verdict.untested == "32,768 tokens at C = 1,024."


def test_does_not_hold_when_no_count_is_right(make):
    verdict = chunk_steps(played(make, 4000, 996, budget=1000))
    assert verdict.outcome == "does not hold here"


def test_the_cap_is_not_applied_to_who_is_alone(make):
    alone = make([4000], [1.0], streams=0, chunk=500, budget=4096)
    table = step_counts(alone)
    assert list(table["⌈L/C⌉"]) == [8]
    assert list(table["counted"]) == [1]
    assert "alone in the engine" in chunk_steps(alone).sentence


def test_what_the_budget_does_not_explain_is_not_explained(make):
    assert "not explained" in str(chunk_steps(played(make, 4000, 500, budget=1000)))


def test_no_run_is_refused():
    with pytest.raises(InputError, match="at least one run"):
        chunk_steps()


def test_a_cap_above_the_budget_is_none(make):
    verdict = chunk_steps(played(make, 4000, 500, chunk=1000, budget=500, streams=0))
    assert verdict.outcome == "holds"
    assert verdict.sentence == "4,000 tokens at budget 500: 8 steps (as the formula says)."


def test_decodes_explain_only_the_count_that_they_lead_to(make):
    # Steps are filled to the budget, but there were four decodes in only three of five: 4,000 / 996 is 5, counted is 6.
    run = make([996, 996, 996, 504, 504, 4], [0.1] * 6, budget=1000)
    rows = run.trace.tables["steps"].to_pylist()
    for row in rows:
        if row["prefill_tokens"] == 504:
            row["decode_tokens"] = 496
    run.trace = Trace({**run.trace.tables, "steps": table_of("steps", rows)}, run.trace.meta)
    assert "6 steps (the formula says 4; not explained by the budget)" in chunk_steps(run).sentence
