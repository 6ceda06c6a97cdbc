"""C11 on runs whose prefill follows a known law, against a link of known speed."""

import pytest

from workbench.architecture import Architecture
from workbench.claims import recompute_or_swap
from workbench.errors import InputError
from workbench.trace import Trace

MODEL = Architecture("tiny", 10, 25, 5, 5, 5, 5, 50, 100)  # 1,000 bytes of KV a token


def run(make, token_s, pair_s, link=None, model=MODEL, **fields):
    """32 chunks of 64 to 1,088 tokens of one prompt, timed by the law; no streams."""
    sizes = [64 + 33 * n for n in range(32)]
    before = [sum(sizes[:n]) for n in range(32)]
    took = [token_s * s + pair_s * sum(b + i + 1 for i in range(s)) for s, b in zip(sizes, before, strict=True)]
    made = make(sizes, took, streams=0, **fields)
    rates = {"to_host": link, "to_device": link, "source": "measured, pinned host memory"} if link else None
    compute = {"architecture": model.as_dict() if model else None, "host_bytes_per_s": rates}
    made.trace = Trace(made.trace.tables, {**made.trace.meta, "compute": compute})
    return made


@pytest.mark.parametrize(
    ("token_s", "pair_s", "outcome", "words"),
    [
        # Swap at 1e6 bytes/s each way: 2 ms a token. Crossing at 2 (2 ms - token) / pair - 1 tokens.
        (1e-3, 4e-7, "holds", "recompute is cheaper below 4,99"),
        (1e-3, 2.5e-6, "holds in part", "recompute is cheaper below 79"),
        (1e-3, 5e-8, "holds in part", "recompute is cheaper below 39,"),
        (3e-3, 1e-7, "does not hold here", "swap is cheaper at every length"),
        (1e-3, 0.0, "does not hold here", "recompute is cheaper at every length"),
    ],
)
def test_where_they_cross(make, token_s, pair_s, outcome, words):
    verdict = recompute_or_swap(run(make, token_s, pair_s, link=1e6))
    assert verdict.outcome == outcome
    assert words in verdict.sentence
    assert "measured, pinned host memory, out and in" in verdict.origin
    assert "live CPU, tiny-long, fitted" in verdict.origin
    assert "published figure" not in verdict.untested


def test_the_two_named_lengths_stand_in_the_sentence(make):
    verdict = recompute_or_swap(run(make, 1e-3, 0.0, link=1e6))
    assert "at 2,048 tokens 2.05 s against 4.1 s" in verdict.sentence
    assert "at 16,384 tokens 16.4 s against 32.8 s" in verdict.sentence
    fast = recompute_or_swap(run(make, 1e-6, 0.0, link=1e12))
    assert "at 2,048 tokens 2.05 ms against 4.1 µs" in fast.sentence


def test_a_published_link_is_called_an_estimate_and_untested(make):
    verdict = recompute_or_swap(run(make, 1e-3, 4e-7))
    assert "swap: estimate: published 64 GB/s each way of H100 SXM, out and in" in verdict.origin
    assert "the link, which is a published figure" in verdict.untested
    assert "a swap inside vLLM" in verdict.untested
    assert "L40S" in recompute_or_swap(run(make, 1e-3, 4e-7), device="l40s").origin


def test_what_the_fit_extrapolates_is_said(make):
    short = run(make, 1e-3, 4e-7, link=1e6)
    assert "prefill beyond" not in recompute_or_swap(short).untested  # 18,480 tokens were measured
    rows = [row for row in short.trace.tables["steps"].to_pylist() if row["step"] < 18]
    steps = short.trace.tables["steps"].from_pylist(rows, short.trace.tables["steps"].schema)
    short.trace = Trace({**short.trace.tables, "steps": steps}, short.trace.meta)
    assert "prefill beyond 1,436 tokens, which the fit extrapolates" in recompute_or_swap(short).untested


def test_other_models_cross_elsewhere(make):
    arithmetic = recompute_or_swap(run(make, 1e-3, 4e-7, link=1e6)).arithmetic
    assert "Llama-3.1-70B on 8 × H100 SXM: swap is cheaper at every length" in arithmetic
    assert "SmolLM2-135M on 1 × H100 SXM: recompute is cheaper below 6,6" in arithmetic


def test_what_cannot_be_judged_is_refused(make):
    with pytest.raises(InputError, match="does not say which model"):
        recompute_or_swap(run(make, 1e-3, 4e-7, model=None))
    few = make([100] * 3, [0.1] * 3)
    few.trace = Trace(few.trace.tables, {"compute": {"architecture": MODEL.as_dict()}})
    with pytest.raises(InputError, match="too few prefill steps"):
        recompute_or_swap(few)
