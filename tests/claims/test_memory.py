"""C4 and C5 on peaks that follow a known law."""

import pytest

from workbench.claims import memory_exponent, peak_drop
from workbench.errors import InputError
from workbench.trace import Trace, table_of

SPLIT = {"memory_split": {"weights_bytes": 100 << 20, "kv_bytes": 512 << 20}}


def run(make, size, pieces, law, **fields):
    peaks = [law(size, size * n) for n in range(pieces)]
    return make([size] * pieces, [0.1] * pieces, peaks=peaks, budget=40_000, floor=0.001, streams=2, **fields)


def straight(tokens, _context):
    return tokens / 100


def square(tokens, _context):
    return (tokens + 2) ** 2 / 100_000  # of all tokens in the step: two are decodes


@pytest.mark.parametrize(
    ("after", "outcome"), [(20, "holds"), (21, "holds in part"), (60, "holds in part"), (61, "does not hold here")]
)
def test_the_fall_of_the_peak(make, after, outcome):
    verdict = peak_drop(
        make([8000], [1.0], peaks=[100.0], engine=SPLIT), make([1000] * 8, [0.1] * 8, peaks=[*[5.0] * 7, after])
    )
    assert verdict.outcome == outcome
    assert f"needed 100.0 MiB of activation, in steps of up to 1,000 {after}.0 MiB: {100 - after}.0% less" in str(
        verdict
    )
    assert "Weights (100 MiB) and KV pool (512 MiB) stay as they are." in verdict.sentence
    assert "fall by 87.5%, with their square by 98.44%" in verdict.arithmetic
    assert "32,768 tokens against chunks of 1,024" in verdict.untested


def test_at_the_articles_own_size_only_the_gpu_is_untested(make):
    whole, parts = make([32_768], [1.0], peaks=[256.0]), make([1024] * 32, [0.1] * 32, peaks=[8.0] * 32)
    verdict = peak_drop(whole, parts)
    assert verdict.untested == "a GPU and a model of the article's size."
    assert "96.9% less" in verdict.sentence


def test_the_fall_needs_the_same_prompt_whole_and_in_parts(make):
    whole, parts = make([8000], [1.0], peaks=[100.0]), make([1000] * 8, [0.1] * 8, peaks=[5.0] * 8)
    for pair in ((parts, whole), (whole, whole), (make([4000], [1.0], peaks=[9.0]), parts)):
        with pytest.raises(InputError, match="the same prompt in one step, then in several"):
            peak_drop(*pair)
    with pytest.raises(InputError, match="no memory peak"):
        peak_drop(make([8000], [1.0]), parts)


def test_a_straight_line_that_the_prompt_plays_no_part_in_holds_in_part(make):
    verdict = memory_exponent(*(run(make, size, 4, straight) for size in (500, 1000, 2000, 4000)))
    assert verdict.outcome == "holds in part"
    assert (
        "goes with C, not L: equal chunks of one prompt needed 5.0 MiB at its beginning and 5.0 MiB" in verdict.sentence
    )
    assert "The exponent of C is 1.00" in verdict.sentence


def test_a_square_of_the_chunk_holds(make):
    verdict = memory_exponent(*(run(make, size, 4, square) for size in (500, 1000, 2000, 4000)))
    assert verdict.outcome == "holds"
    assert "The exponent of C is 2.00" in verdict.sentence
    assert "a square" in verdict.sentence


def test_a_table_of_scores_goes_with_the_prompt_and_does_not_hold(make):
    verdict = memory_exponent(
        *(run(make, size, 4, lambda c, before: c + before / 2) for size in (500, 1000, 2000, 4000))
    )
    assert verdict.outcome == "does not hold here"
    assert "goes with L as well as C" in verdict.sentence


def test_steps_that_only_the_streams_explain_are_left_out(make):
    runs = [run(make, size, 4, straight) for size in (1000, 2000, 4000)]
    flat = make([300] * 4, [0.1] * 4, peaks=[8.0] * 4, floor=8.0, streams=2)  # as much as without a chunk
    assert "steps of 2,002 to 4,002" in memory_exponent(runs[0], *runs[1:], flat, run(make, 3000, 4, straight)).sentence


def test_too_little_to_fit_is_refused(make):
    with pytest.raises(InputError, match="too few step sizes"):
        memory_exponent(run(make, 1000, 8, straight))
    sizes = [run(make, size, 4, straight) for size in (500, 2000, 4000)]
    with pytest.raises(InputError, match="1 equal chunks"):
        memory_exponent(run(make, 1000, 1, straight), *sizes)


def test_an_interval_that_has_a_line_and_a_square_in_it_is_refused(make):
    sizes = {1000: 6.2, 2000: 10.0, 4000: 21.0}
    runs = [make([n] * 4, [0.1] * 4, peaks=[mib] * 4, floor=0.001, budget=40_000) for n, mib in sizes.items()]
    expected = r"exponent 0\.88 with an interval of -0\.5\d to 2\.2\d from 3 step sizes.*less than 1 wide"
    with pytest.raises(InputError, match=expected):
        memory_exponent(*runs)


def test_one_outlier_among_steps_without_prefill_does_not_empty_the_fit(make):
    runs = [run(make, size, 4, straight) for size in (500, 1000, 2000, 4000)]
    rows = runs[0].trace.tables["steps"].to_pylist()
    rows[0]["activation_bytes"] = 1 << 30
    runs[0].trace = Trace({**runs[0].trace.tables, "steps": table_of("steps", rows)}, runs[0].trace.meta)
    assert "The exponent of C is 1.00" in memory_exponent(*runs).sentence
    assert "steps of 502 to 4,002" in memory_exponent(*runs).sentence


def test_peaks_that_a_simulator_was_told_are_no_evidence(make):
    whole = make([4096], [1.0], peaks=[80], label="simulated")
    chunked = make([512] * 8, [0.2] * 8, peaks=[10] * 8, label="simulated")
    for judge in (peak_drop, memory_exponent):
        with pytest.raises(InputError, match="got 'simulated memory peaks', expected measured ones"):
            judge(whole, chunked) if judge is peak_drop else judge(chunked, whole)


@pytest.mark.parametrize(
    ("power", "law"),
    [
        (1.0, "a straight line"),
        (1.01, "a straight line"),  # its interval does not have 1 in it, and is far from any other law
        (1.2, "neither straight nor square, nearest 1"),
        (1.8, "neither straight nor square, nearest 2"),
        (1.98, "a square"),
    ],
)
def test_a_narrow_interval_beside_a_power_is_that_power(make, power, law):
    runs = (run(make, size, 4, lambda c, _: ((c + 2) / 100) ** power) for size in (500, 1000, 2000, 4000))
    verdict = memory_exponent(*runs)
    assert f"exponent of C is {power:.2f}" in verdict.sentence
    assert verdict.sentence.endswith(f": {law}.")
    assert verdict.outcome == ("holds" if law == "a square" else "holds in part")
