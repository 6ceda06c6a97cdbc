"""Recompute against swap where the crossing is known by algebra."""

from __future__ import annotations

import numpy as np
import pytest

from workbench import metrics
from workbench.architecture import Architecture
from workbench.errors import InputError
from workbench.hardware import gpu
from workbench.metrics.crossover import crossings, estimated_cost, link_of
from workbench.metrics.prefill_cost import PrefillCost
from workbench.models.architecture import named
from workbench.trace import Trace

# 1,000 bytes of KV a token at bf16: 10 layers, 5 KV heads of 5.
MODEL = Architecture("tiny", 10, 25, 5, 5, 5, 5, 50, 100)


def cost(token_s, pair_s=0.0):
    return PrefillCost(token_s=token_s, pair_s=pair_s, fixed_s=9.0, source="by hand")


def rate(out, back):
    measured = {"to_host": out, "to_device": back, "source": "measured, pinned host memory"}
    return {"compute": {"host_bytes_per_s": measured, "architecture": MODEL.as_dict()}}


def test_one_crossing_where_attention_outgrows_the_link(trace):
    # 1000 bytes each way at 1e6 and 2e6 bytes/s: 1.5 ms a token. Recompute: 0.5 ms and 1 us a pair, n (n + 1) / 2.
    run = Trace(trace().tables, rate(1e6, 2e6))
    frame = metrics.crossover(run, cost=cost(0.5e-3, 1e-6))
    expected = 2 * (1.5e-3 - 0.5e-3) / 1e-6 - 1
    assert frame.attrs["crossings"] == [pytest.approx(expected, rel=0.01)]
    assert list(frame.columns) == ["tokens", "recompute_s", "swap_s", "recompute_source", "swap_source"]
    row = frame[frame["tokens"] == 1024].iloc[0]
    assert row["swap_s"] == pytest.approx(1024 * 1.5e-3)
    assert row["recompute_s"] == pytest.approx(1024 * 0.5e-3 + 1024 * 1025 / 2 * 1e-6)
    assert set(frame["recompute_source"]) == {"by hand"}
    assert set(frame["swap_source"]) == {"measured, pinned host memory, out and in"}
    assert frame.attrs["summary"].startswith("recompute is cheaper below 1,99")
    assert frame.attrs["kv_bytes_per_token"] == 1000


def test_the_way_out_may_be_free_and_links_add_up(trace):
    run = Trace(trace().tables, rate(1e6, 2e6))
    both = metrics.crossover(run, cost=cost(1e-3))
    back = metrics.crossover(run, cost=cost(1e-3), write_out=False)
    four = metrics.crossover(run, cost=cost(1e-3), devices=4)
    assert (both["swap_s"] / back["swap_s"]).to_numpy() == pytest.approx(3)
    assert (both["swap_s"] / four["swap_s"]).to_numpy() == pytest.approx(4)
    assert four["swap_source"].iloc[0].endswith("out and in, 4 links")
    assert back["swap_source"].iloc[0].endswith("in only")


@pytest.mark.parametrize(("token_s", "winner", "times"), [(1e-3, "recompute", "1.5"), (3e-3, "swap", "2.0")])
def test_never_within_the_lengths(trace, token_s, winner, times):
    frame = metrics.crossover(Trace(trace().tables, rate(1e6, 2e6)), cost=cost(token_s), max_tokens=4096)
    assert frame.attrs["crossings"] == []
    assert frame.attrs["summary"] == (
        f"{winner} is cheaper at every length from 64 to 4,096 tokens, {times} to {times} times: "
        "they never cross within 4,096 tokens"
    )


def test_a_published_link_says_that_it_is_an_estimate(trace):
    frame = metrics.crossover(architecture=MODEL, cost=cost(1e-3), device="l40s")
    assert frame["swap_s"].iloc[0] == pytest.approx(2 * 1000 * 64 / 32e9)
    assert frame["swap_source"].iloc[0] == "estimate: published 32 GB/s each way of L40S, out and in"
    assert link_of(None).source == "estimate: published 64 GB/s each way of H100 SXM"
    assert link_of(Trace(trace().tables, rate(1, 2)), "l40s").out_bytes_per_s == 32e9  # a named one goes before


def test_the_cost_is_fitted_to_the_run_where_it_is_not_given(trace):
    steps, batch = [], []
    for n, size in enumerate((64, 128, 256, 512, 1024)):
        steps.append({"step": n, "start_s": 10.0 * n, "end_s": 10.0 * n + 1e-3 * size, "prefill_tokens": size})
        steps[-1]["decode_tokens"] = 0
        batch.append({"step": n, "request": f"r{n}", "tokens": size, "context": 0, "prefill": True, "emitted": 1})
    run = Trace(trace(steps=steps, batch=batch).tables, rate(1e6, 2e6) | {"label": "live CPU"})
    frame = metrics.crossover(run)
    assert frame["recompute_s"].to_numpy() == pytest.approx(1e-3 * frame["tokens"].to_numpy(), rel=1e-6)
    assert frame.attrs["measured_to"] == 1024
    assert "live CPU, measured over 5 prefill steps" in frame["recompute_source"].iloc[0]


def test_what_is_not_known_is_not_a_number(trace):
    frame = metrics.crossover(trace())
    assert frame["recompute_s"].isna().all()
    assert frame["swap_s"].isna().all()
    assert frame["recompute_source"].iloc[0].startswith("not known: too few prefill steps")
    assert frame["swap_source"].iloc[0].startswith("not known: the run does not say which model")
    assert frame.attrs["crossings"] == []
    assert frame.attrs["summary"].startswith("recompute: not known")


def test_a_float32_engine_caches_twice_the_bytes(trace):
    run = Trace(trace().tables, rate(1e6, 2e6) | {"engine": {"config": {"dtype": "float32"}}})
    frame = metrics.crossover(run, cost=cost(1e-3))
    assert frame.attrs["kv_bytes_per_token"] == 2000
    assert frame["swap_s"].iloc[0] == pytest.approx(64 * 3e-3)


def test_two_crossings_are_both_found():
    import pandas as pd

    tokens = np.array([1.0, 10, 100, 1000])
    frame = pd.DataFrame({"tokens": tokens, "recompute_s": [2.0, 0.5, 0.5, 2.0], "swap_s": 1.0})
    assert crossings(frame) == [pytest.approx(10**0.5), pytest.approx(10**2.5)]


def test_lengths_reach_the_end_and_are_whole():
    for longest in (1, 50, 64, 1000, 131_072):
        tokens = metrics.crossover(architecture=MODEL, cost=cost(1e-3), max_tokens=longest)["tokens"]
        assert tokens.iloc[-1] == longest
        assert (tokens == tokens.round()).all()
        assert tokens.is_unique


def test_the_estimate_of_a_70b_on_8_h100s_by_hand():
    model, h100 = named("llama-3.1-70b"), gpu("h100-sxm")
    estimate = estimated_cost(model, h100, 8)
    assert estimate.seconds(65_536) == pytest.approx(1.46e16 / (8 * 989.5e12 * 0.62), rel=0.01)  # about 3 s
    assert estimate.token_s == pytest.approx(2 * 68.45e9 / (8 * 989.5e12 * 0.62), rel=0.01)
    frame = metrics.crossover(architecture=model, cost=estimate, device="h100-sxm", devices=8)
    ratio = 2 * 68.45e9 / (989.5e12 * 0.62) / (2 * 327_680 / 64e9)  # a token through one GPU over its KV both ways
    assert ratio == pytest.approx(21.8, rel=0.01)
    assert "swap is cheaper at every length" in frame.attrs["summary"]
    assert "estimate" in estimate.source


@pytest.mark.parametrize("wrong", [{"max_tokens": 0}, {"devices": 0}, {"device": "abacus"}])
def test_bad_input(wrong):
    with pytest.raises(InputError):
        metrics.crossover(architecture=MODEL, cost=cost(1e-3), **wrong)
