"""The roofline: never under the physical floor, right bytes by architecture, a band around it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.errors import InputError
from workbench.models.architecture import from_config, named
from workbench.simulate.presets import device, devices
from workbench.simulate.steptime import StepShape, StepTime, from_spec
from workbench.simulate.steptime.bands import Edge
from workbench.simulate.steptime.counted import STEP_S
from workbench.simulate.steptime.roofline import Roofline

LLAMA = named("llama-3.1-70b")
EIGHT = Roofline(LLAMA, device("H100"), 8)
made = StepShape.made


def test_c14s_prompt_takes_longer_than_its_floor():
    seconds = EIGHT.seconds(made([(65536, 0)]))
    assert seconds > 1.46e16 / (8 * 989.5e12)  # 1.84 s
    assert 2 < seconds / 1.84 + 1 < 4  # and is no fantasy: 41 to 100 % of the peak


def test_a_decode_step_takes_longer_than_reading_the_weights():
    weights_s = 2 * 69.5e9 / 8 / 3.35e12  # 5.19 ms: 70.55 billion less the embedding, which is only looked up
    assert 1 < EIGHT.seconds(made(decodes=1, context=1000)) / weights_s < 2.2


def test_decodes_read_the_cache_of_their_kv_heads():
    one, more = (EIGHT.seconds(made(decodes=64, context=context)) for context in (1024, 2048))
    # 80 layers x 1 KV head x (128 + 128) x 2 bytes on each GPU, at 0.88 of 3.35 TB/s
    assert more - one == pytest.approx(64 * 1024 * 40960 / (3.35e12 * 0.88), rel=1e-6)
    half = Roofline(LLAMA, device("H100"), 8, kv_bytes=1)
    assert half.seconds(made(decodes=64, context=2048)) < more


def test_kv_heads_are_copied_where_there_are_fewer_than_gpus():
    wide, wider = Roofline(LLAMA, device("H100"), 8), Roofline(LLAMA, device("H100"), 16)
    assert wide._kv_token == wider._kv_token == 256 * 2


def test_mla_keeps_the_compressed_cache_on_every_gpu():
    deepseek = Roofline(named("deepseek-v3"), device("H200"), 8, weight_bytes=1)
    one, more = (deepseek.seconds(made(decodes=32, context=context)) for context in (4096, 8192))
    assert more - one == pytest.approx(61 * 32 * 4096 * (512 + 64) * 2 / (4.8e12 * 0.84), rel=1e-6)
    # Another chunk of the same size further on unpacks what came before it, which a GQA model does not.
    assert deepseek.seconds(made([(1024, 8192)])) > deepseek.seconds(made([(1024, 0)]))


def test_more_tokens_touch_more_experts():
    moe = Roofline(named("deepseek-v3"), device("H200"), 8, weight_bytes=1)
    few, many = (moe.body_s(tokens) for tokens in (1, 64))
    # One token goes through 8 of 256 experts in 58 layers, 64 through 223 of them: 215 x 3 x 7168 x 2048 / 8 bytes.
    assert many - few == pytest.approx(58 * 215 * 3 * 7168 * 2048 / 8 / (4.8e12 * 0.84 * 1.15), rel=0.25)


def test_a_window_bounds_what_decodes_read():
    config = {
        "model_type": "mistral",
        "num_hidden_layers": 32,
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "intermediate_size": 14336,
        "vocab_size": 32000,
        "sliding_window": 4096,
    }
    mistral = Roofline(from_config(config, "Mistral"), device("H100"))
    assert mistral.seconds(made(decodes=8, context=8192)) == mistral.seconds(made(decodes=8, context=30000))
    assert mistral.seconds(made([(1024, 8192)])) == pytest.approx(mistral.seconds(made([(1024, 30000)])), rel=1e-9)


def test_chunks_cost_more_in_all_than_the_prompt_at_once():
    whole = EIGHT.seconds(made([(32768, 0)]))
    for chunk in (512, 2048, 8192):
        chunks = sum(EIGHT.seconds(made([(chunk, start)])) for start in range(0, 32768, chunk))
        assert whole < chunks < 2 * whole


def test_prompts_are_counted_one_by_one():
    assert EIGHT.seconds(made([(65536, 0), (1024, 0)])) > EIGHT.seconds(made([(65536, 0)]))
    two, one = EIGHT.attention_s(made([(1024, 0), (1024, 0)])), EIGHT.attention_s(made([(2048, 0)]))
    assert two <= one  # half the pairs, and both end at once


@settings(deadline=None, max_examples=60)
@given(
    tokens=st.integers(1, 20000),
    context=st.integers(0, 100000),
    decodes=st.integers(0, 256),
    key=st.sampled_from(devices()),
)
def test_more_work_never_takes_less_and_the_band_holds_it(tokens, context, decodes, key):
    model = Roofline(named("qwen2.5-7b"), device(key))
    shape = made([(tokens, context)], decodes, 500)
    low, seconds, high = model.band(shape)
    assert STEP_S < low < seconds < high
    assert model.seconds(made([(tokens, context + 1)], decodes, 500)) >= seconds
    assert model.seconds(made([(tokens, context)], decodes + 64, 500)) > seconds * 0.98  # a fuller wave may be quicker


def test_it_is_uncalibrated_and_says_on_what_it_rests():
    told = EIGHT.describe()
    assert isinstance(EIGHT, StepTime)
    assert (told["label"], told["calibrated"], EIGHT.calibrated) == ("uncalibrated", False, False)
    assert "aiconfigurator-core" in told["efficiencies"]
    assert "datasheet" in told["peak_source"]
    assert "not measured" in Roofline(named("qwen2.5-7b"), device("RTX 4090")).describe()["efficiencies"]


def test_it_travels_as_plain_data():
    again = from_spec(EIGHT.spec())
    shape = made([(1948, 30000)], 100, 1024)
    assert again.seconds(shape) == EIGHT.seconds(shape)
    edge = Edge("high", EIGHT, Roofline(LLAMA, device("H200"), 8))
    assert from_spec(edge.spec()).seconds(shape) == edge.seconds(shape) == edge.band(shape).high
    assert Edge("low", EIGHT).seconds(shape) == EIGHT.band(shape).low


def test_a_pipeline_hands_on_and_takes_the_next_step_earlier():
    two = Roofline(LLAMA, device("H100"), 4, 2)
    flat = Roofline(LLAMA, device("H100"), 4, 1)
    shape = made([(2048, 0)])
    assert two.seconds(shape) > flat.seconds(shape)
    assert two.interval(shape) == pytest.approx(two.seconds(shape) / 2)
    assert two.describe()["stages"] == 2


@pytest.mark.parametrize(
    ("model", "tp", "pp", "message"),
    [
        ("qwen2.5-7b", 8, 1, "tensor parallel: got '8', expected a number that divides the 28 heads.*take 1, 2, 4$"),
        ("llama-3.1-70b", 8, 81, "pipeline parallel: got '81', expected 1 to 80 stages"),
        ("llama-3.1-70b", 0, 1, "tensor parallel: got '0'"),
    ],
)
def test_splits_that_cannot_be_are_named(model, tp, pp, message):
    with pytest.raises(InputError, match=message):
        Roofline(named(model), device("H100"), tp, pp)
