"""C3: known gaps and TTFTs, one case for each way to an outcome."""

import pyarrow.compute as pc
import pytest

from workbench.claims import flat_gaps
from workbench.errors import InputError
from workbench.trace import Trace


def whole(make, **fields):
    return make([4000], [2.0], policy="monolithic", **fields)


def test_holds_when_gaps_stay_as_they_were_and_the_prompt_waits_longer(make):
    verdict = flat_gaps(whole(make), make([40] * 100, [0.022] * 100, chunk=40, usual=0.012))
    assert verdict.outcome == "holds"  # 22 ms is less than twice 12 ms; 2.2 s is 10 % more than 2.0 s
    assert "falls from 2,000 ms in one step to 22 ms at chunk 40; no stall is left" in verdict.sentence
    assert "1.8 times the usual 12 ms: flat" in verdict.sentence
    assert "from 2.0 s to 2.2 s: it grows by 10%" in verdict.sentence


@pytest.mark.parametrize(
    ("pieces", "seconds", "said"),
    [
        (100, 0.025, "2.5 times the usual 10 ms: bounded by the time of a chunk, not flat"),
        (4, 0.6, "stalls are left above the SLO of 200 ms"),
        (100, 0.0199, "hardly changes (-1%)"),
    ],
)
def test_in_part(make, pieces, seconds, said):
    verdict = flat_gaps(whole(make), make([4000 // pieces] * pieces, [seconds] * pieces, chunk=4000 // pieces))
    assert verdict.outcome == "holds in part"
    assert said in verdict.sentence


def test_does_not_hold_when_the_longest_gap_is_not_even_halved(make):
    verdict = flat_gaps(whole(make), make([2000, 2000], [1.1, 1.1], chunk=2000))
    assert verdict.outcome == "does not hold here"


def test_the_chunked_run_with_the_shortest_longest_gap_is_judged(make):
    runs = whole(make), make([2000, 2000], [1.1, 1.1], chunk=2000), make([100] * 40, [0.055] * 40, chunk=100)
    verdict = flat_gaps(*runs)
    assert "to 55 ms at chunk 100" in verdict.sentence
    assert "chunk 2,000 1,100 ms / 2.2 s" in verdict.sentence


def test_both_kinds_of_run_are_needed(make):
    for runs in ([whole(make)], [make([2000, 2000], [1.0, 1.0])], []):
        with pytest.raises(InputError, match="one with the prompt in one step and one chunked"):
            flat_gaps(*runs)
    with pytest.raises(InputError, match="without a stream"):
        flat_gaps(whole(make, streams=0), make([2000, 2000], [1.0, 1.0]))


@pytest.mark.parametrize(
    ("seconds", "pieces", "said"),
    [
        (0.15, 0.05, "falls from 150 ms in one step to 50 ms at chunk 1,000; there was no stall before either above"),
        (
            0.15,
            0.3,
            "does not fall: it goes from 150 ms in one step to 300 ms at chunk 1,000; there was no stall before,",
        ),
        (0.5, 0.3, "falls from 500 ms in one step to 300 ms at chunk 1,000; stalls are left above"),
    ],
)
def test_what_is_left_is_told_from_what_was_there(make, seconds, pieces, said):
    verdict = flat_gaps(make([4000], [seconds]), make([1000] * 4, [pieces] * 4, chunk=1000))
    assert verdict.outcome == ("holds in part" if pieces < 0.1 else "does not hold here")
    assert said in verdict.sentence


def test_without_a_gap_before_the_prefill_there_is_no_usual_one(make):
    run = make([1000] * 4, [0.3] * 4, chunk=1000)
    # Of each stream's outputs before the prefill, which begins at 1.1 s, only the one at 1.09 s is left.
    tokens = run.trace.tables["tokens"]
    kept = pc.or_(pc.greater(tokens["client_s"], 1.105), pc.less(pc.abs(pc.subtract(tokens["client_s"], 1.09)), 0.005))
    run.trace = Trace({**run.trace.tables, "tokens": tokens.filter(kept)}, run.trace.meta)
    with pytest.raises(InputError, match="no gap before the prefill at chunk 1,000"):
        flat_gaps(whole(make), run)
