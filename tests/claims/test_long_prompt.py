"""What a run says of its long prompt, against runs of which it is known."""

import pytest

from workbench.claims import LongPrompt, long_prompts
from workbench.errors import InputError
from workbench.trace import Trace, table_of


def test_every_figure_of_a_known_run(make):
    long = LongPrompt.of(make([1000, 1000, 500], [0.4, 0.5, 0.3], budget=1004, planned=-0.1))
    assert (long.request, long.tokens, long.chunks, long.beside) == ("doc", 2500, (1000, 1000, 500), (4, 4, 4))
    assert long.step_s == pytest.approx((0.4, 0.5, 0.3))
    assert (long.start_s, long.end_s) == (pytest.approx(1.1), pytest.approx(2.3))
    assert long.ttft_s == pytest.approx(1.3)
    assert long.tokens_per_s == pytest.approx(2500 / 1.2)
    assert (long.budget, long.chunk, long.policy, long.setting) == (1004, 0, "chunked", "budget 1,004")
    assert long.streams == ("chat-0", "chat-1", "chat-2", "chat-3")
    assert long.usual_ms == pytest.approx(10)
    assert len(long.before_ms) == 4 * 9
    assert sorted(long.during_ms) == pytest.approx([300] * 4 + [400] * 4 + [500] * 4)
    assert list(long.worst_ms) == pytest.approx([500] * 4)
    assert long.during(100) == pytest.approx(500)


def test_the_table_has_a_row_a_run(make):
    table = long_prompts(make([2000], [1.0]), make([1000, 1000], [0.5, 0.5], chunk=1000))
    assert list(table.index) == ["one step", "chunk 1,000"]
    assert list(table["steps"]) == [1, 2]
    assert list(table["prefill tokens/s"]) == [2000, 2000]
    assert list(table["gap during max ms"]) == [1000, 500]


def test_what_cannot_be_judged_is_refused(make):
    with pytest.raises(InputError, match=r"no long prompt.*1000 tokens or more"):
        LongPrompt.of(make([500], [1.0]))
    run = make([2000], [1.0])
    for name, expected in (("batch", "no records of the steps"), ("steps", "no records"), ("knobs", "no knobs")):
        run.trace, kept = Trace({**run.trace.tables, name: table_of(name, [])}, run.trace.meta), run.trace
        with pytest.raises(InputError, match=expected):
            LongPrompt.of(run)
        run.trace = kept


def test_a_knob_that_moved_during_the_prefill_is_refused(make):
    run = make([1000, 1000], [0.5, 0.5])
    rows = run.trace.tables["steps"].to_pylist()
    rows[11]["revision"] = 4
    run.trace = Trace({**run.trace.tables, "steps": table_of("steps", rows)}, run.trace.meta)
    with pytest.raises(InputError, match="2 knob revisions"):
        LongPrompt.of(run)


def _without(run, table, drop):
    rows = [row for row in run.trace.tables[table].to_pylist() if not drop(row)]
    run.trace = Trace({**run.trace.tables, table: table_of(table, rows)}, run.trace.meta)
    return run


@pytest.mark.parametrize(
    ("step", "why"),
    [
        (11, "2,000 tokens of prefill for doc with 3,000: step records are missing"),
        (10, "2,000 tokens of prefill for doc with 3,000: its beginning came from the prefix cache, or its first step"),
    ],
)
def test_a_prefill_with_a_hole_is_refused(make, step, why):
    run = _without(make([1000] * 3, [0.5] * 3), "steps", lambda row: row["step"] == step)
    with pytest.raises(InputError, match=why):
        LongPrompt.of(run)


def test_a_prefill_that_was_computed_again_is_refused(make):
    run = make([1000] * 3, [0.5] * 3)
    rows = run.trace.tables["requests"].to_pylist()
    for row in rows:
        if row["request"] == "doc":
            row["prompt_tokens"] = 2000
    run.trace = Trace({**run.trace.tables, "requests": table_of("requests", rows)}, run.trace.meta)
    with pytest.raises(InputError, match=r"3,000 tokens of prefill for doc with 2,000: .* again after a preemption"):
        LongPrompt.of(run)
