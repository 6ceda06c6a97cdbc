"""Physical floors, against arithmetic by hand."""

import pytest
from made_runs import made_run

from workbench.config import SLO
from workbench.metrics import by_class, request_floors
from workbench.models.architecture import named
from workbench.simulate.floors import floor_of, impossible
from workbench.simulate.presets import device
from workbench.trace import table_of

LLAMA, H100 = named("llama-3.1-70b"), device("H100")
# 80 layers of 8192 x 10240 + 8192^2 + 3 x 8192 x 28672 weights; the head once; pairs of 65,536 tokens.
BODY = 80 * (8192 * 10240 + 8192**2 + 3 * 8192 * 28672)
HEAD = 8192 * 128256
PAIRS = 65536 * 65537 // 2
PROMPT = 2 * BODY * 65536 + 2 * HEAD + 4 * 8192 * 80 * PAIRS


def test_c14s_prompt_needs_1_84_seconds():
    floor = floor_of(LLAMA, H100, 8, prefill_tokens=65536)
    assert floor.flops == pytest.approx(PROMPT)
    assert floor.flops == pytest.approx(1.46e16, rel=1e-3)
    assert floor.seconds == floor.compute_s == pytest.approx(PROMPT / (8 * 989.5e12))
    assert floor.arithmetic == "1.46e16 FLOP / (8 x 989.5 TFLOP/s) = 1.84 s"


def test_claims_below_the_floor_are_impossible_with_the_arithmetic():
    floor = floor_of(LLAMA, H100, 8, prefill_tokens=65536)
    said = impossible(0.42, floor, "64K TTFT")
    assert said == (
        "64K TTFT of 420 ms cannot be: a prefill of 65,536 tokens of Llama-3.1-70B needs "
        "1.46e16 FLOP / (8 x 989.5 TFLOP/s) = 1.84 s at the dense peak of 8 x H100 SXM, 4.4 times as long."
    )
    assert impossible(0.65, floor)
    assert impossible(4.8, floor) == ""
    assert impossible(floor.seconds, floor) == ""
    assert "inf times" in impossible(0.0, floor)


def test_a_decode_step_reads_all_weights_and_its_cache():
    floor = floor_of(LLAMA, H100, 8, decodes=100, decode_context=100 * 1024)
    read = 2 * (BODY + HEAD) + (100 * 1024 + 100) * 80 * 8 * 256 * 2
    assert floor.bytes == pytest.approx(read)
    assert floor.seconds == floor.bandwidth_s == pytest.approx(read / (8 * 3.35e12))  # 6.4 ms
    assert "GB / (8 x 3,350 GB/s)" in floor.arithmetic
    assert impossible(3e-3, floor).endswith("at the full memory bandwidth of 8 x H100 SXM, 2.1 times as long.")
    # C14's gaps of 12.4 and 14.8 ms are possible for such steps.
    assert impossible(12.4e-3, floor) == ""


def test_chunks_need_the_same_flops_and_read_the_weights_again():
    whole = floor_of(LLAMA, H100, 8, prefill_tokens=65536)
    chunked = floor_of(LLAMA, H100, 8, prefill_tokens=65536, prefill_pairs=PAIRS, steps=32)
    assert chunked.flops == pytest.approx(whole.flops)
    assert chunked.bytes == pytest.approx(32 * 2 * (BODY + HEAD))
    assert str(chunked).startswith("a prefill of 65,536 tokens of Llama-3.1-70B in 32 steps on 8 x H100 SXM: at least")


def test_only_the_experts_that_are_touched_are_read():
    deepseek, h200 = named("deepseek-v3"), device("H200")
    one = floor_of(deepseek, h200, 8, decodes=1, decode_context=1000, weight_bytes=1)
    assert one.bytes == pytest.approx(36.6e9, rel=0.02)  # the published active parameters, a byte each
    assert one.flops_per_s == 2 * 989.5e12


def prefilled(compute=None, config=None):
    """20 steps with two prompts, of which the first is said to have had its token after a microsecond."""
    run = made_run("a", count=20)
    requests = [
        {"request": "p0", "class": "long", "planned_s": 10.0, "first_s": 10.0 + 1e-6},
        {"request": "p1", "class": "long", "planned_s": 10.0, "first_s": 20.0},
    ]
    meta = {"label": "simulated", "compute": compute, "engine": {"config": config or {}}}
    return type(run)({**run.tables, "requests": table_of("requests", requests)}, meta)


def test_each_request_of_a_run_has_its_floor():
    run = prefilled()
    rows = request_floors(run, LLAMA, flops_per_s=8 * 989.5e12, bytes_per_s=8 * 3.35e12).set_index("request")
    batch = run.batch
    mine = batch[(batch["request"] == "p0") & batch["prefill"]]
    tokens, pairs = int(mine["tokens"].sum()), 0
    for t, c in zip(mine["tokens"], mine["context"], strict=True):
        pairs += t * c + t * (t + 1) // 2
    assert set(rows.index) == {"p0", "p1"}  # decodes have no prefill
    assert rows.loc["p0", "computed_tokens"] == tokens
    assert rows.loc["p0", "flops"] == pytest.approx(2 * BODY * tokens + 4 * 8192 * 80 * pairs)
    assert rows.loc["p0", "bandwidth_floor_s"] == pytest.approx(len(mine) * 2 * (BODY + HEAD) / (8 * 3.35e12))
    assert rows["floor_s"].equals(rows[["compute_floor_s", "bandwidth_floor_s"]].max(axis=1))
    assert rows["impossible"].to_dict() == {"p0": True, "p1": False}


def test_the_metadata_say_what_the_floor_is_counted_with():
    compute = {
        "architecture": LLAMA.as_dict(),
        "peak": {"flops_per_s": 8e15, "source": "x"},
        "bandwidth": {"bytes_per_s": 2e13, "source": "x"},
    }
    by_hand = request_floors(prefilled(), LLAMA, flops_per_s=8e15, bytes_per_s=2e13)
    found = request_floors(prefilled(compute))
    assert found.equals(by_hand)
    narrow = request_floors(prefilled(compute, {"quantization": "fp8"}))  # half the bytes, twice the rate
    for name in ("compute_floor_s", "bandwidth_floor_s"):
        assert narrow[name].tolist() == pytest.approx((by_hand[name] / 2).tolist())
    classes = by_class(prefilled(compute), SLO())
    assert classes.loc["long", "compute_floor_s"] == pytest.approx(by_hand["compute_floor_s"].median())
    unread = request_floors(prefilled(compute | {"bandwidth": None}))
    assert unread["bandwidth_floor_s"].isna().all()
    assert unread["floor_s"].equals(unread["compute_floor_s"])


def test_a_run_that_does_not_say_its_model_has_no_floors():
    assert request_floors(prefilled()).empty
    assert by_class(prefilled(), SLO())["compute_floor_s"].isna().all()
