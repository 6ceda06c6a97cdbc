from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from workbench.metrics import memory_fit, prefill_steps


def peaks(sizes, **more):
    return [
        {"step": i, "prefill_tokens": t, "decode_tokens": 0, "activation_bytes": b} for i, (t, b) in enumerate(sizes)
    ]


@pytest.mark.parametrize(("exponent", "factor"), [(1, 16_000), (2, 3)])
def test_an_exact_power_is_found(trace, exponent, factor):
    fit = memory_fit(trace(steps=peaks((t, factor * t**exponent) for t in (128, 256, 512, 1024, 2048))))
    assert fit.exponent == pytest.approx(exponent)
    assert (fit.low, fit.high) == (pytest.approx(exponent), pytest.approx(exponent))
    assert np.exp(fit.intercept) == pytest.approx(factor)
    assert fit.bytes_at(4096) == pytest.approx(factor * 4096**exponent)
    assert (fit.n, fit.steps, fit.min_tokens, fit.max_tokens) == (5, 5, 128, 2048)


def test_the_interval_is_that_of_a_regression(trace):
    sizes, mib = [128, 256, 512, 1024, 2048, 2502], [1.9, 4.0, 8.0, 16.9, 33.6, 41.4]
    fit = memory_fit(trace(steps=peaks(zip(sizes, (int(m * 2**20) for m in mib), strict=True))))
    line = stats.linregress(np.log(sizes), np.log([int(m * 2**20) for m in mib]))
    half = stats.t.ppf(0.975, 4) * line.stderr
    assert fit.exponent == pytest.approx(line.slope)
    assert (fit.low, fit.high) == (pytest.approx(line.slope - half), pytest.approx(line.slope + half))
    assert fit.low < 1.03 < fit.high  # straight, not square
    assert fit.n == 6


def test_the_fit_follows_the_upper_envelope_of_prefill_and_decode_together(trace):
    good = [(t, 1000 * t) for t in (128, 256, 512, 1024)]
    low = [(t, 100 * t) for t in (128, 130, 250, 512, 1020) for _ in range(5)]
    steps = peaks(good + low + [(200, None), (300, 0), (16, 10**9)])
    for row in steps:
        row["prefill_tokens"], row["decode_tokens"] = row["prefill_tokens"] - 4, 4
    fit = memory_fit(trace(steps=steps))
    assert fit.exponent == pytest.approx(1)
    assert fit.bytes_at(512) == pytest.approx(512_000)
    assert fit.n == 4
    assert fit.steps == len(good + low)


@pytest.mark.parametrize("sizes", [[], [(128, 10)], [(128, 10), (256, 20)], [(128, 10), (129, 11), (256, 20)]])
def test_too_few_sizes_for_a_fit(trace, sizes):
    assert memory_fit(trace(steps=peaks(sizes))) is None


def test_a_prompt_takes_its_length_over_the_chunk_in_steps(trace, build):
    _, decodes, prefill = build
    long = [prefill("doc", step, 1024) for step in range(1, 33)]
    odd = [prefill("odd", step, tokens) for step, tokens in ((2, 512), (3, 512), (9, 76))]
    found = prefill_steps(trace(batch=[*long, *odd, *decodes("doc", 33, 34), prefill("none", 5, 0)]))
    assert found.to_dict("records") == [
        {"request": "doc", "prefill_steps": 32, "largest_chunk": 1024, "prefill_tokens": 32_768},
        {"request": "odd", "prefill_steps": 3, "largest_chunk": 512, "prefill_tokens": 1100},
    ]


def test_no_prefill(trace):
    found = prefill_steps(trace())
    assert list(found.columns) == ["request", "prefill_steps", "largest_chunk", "prefill_tokens"]
    assert not len(found)
