"""FLOP and byte counts against published figures, hand counts, and torch's own counter on models it really runs."""

import json

import pytest

from workbench.architecture import Architecture, pairs
from workbench.errors import InputError, ModelError
from workbench.models.architecture import from_config, known_models, named

# A whole model by hand: hidden 8, 2 heads of 4, 1 KV head, MLP 16, vocabulary 10, 3 layers.
TINY = Architecture("tiny", 3, 8, 2, 1, 4, 4, 16, 10)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [  # what the safetensors indexes of the hub's models add up to
        ("llama-3.1-70b", 70_553_706_496),
        ("qwen2.5-72b", 72_706_203_648),
        ("qwen2.5-7b", 7_615_616_512),
        ("smollm2-135m", 134_515_008),
    ],
)
def test_parameters_are_those_of_the_published_weights(name, parameters):
    assert named(name).parameters == parameters
    assert named(name).weight_bytes() == 2 * parameters


def test_deepseek_v3_is_671_billion_of_which_37_are_active():
    model = named("deepseek-v3")
    assert model.parameters == pytest.approx(671e9, rel=1e-3)
    assert model.active_parameters == pytest.approx(
        36.6e9, rel=1e-3
    )  # its README: "36.6B (including ... the output Head)"
    assert model.kv_bytes_per_token() == (512 + 64) * 61 * 2  # compressed, once for all 128 heads


def test_kv_bytes_per_token():
    assert named("llama-3.1-70b").kv_bytes_per_token() == 320 * 1024
    assert named("llama-3.1-70b").kv_bytes_per_token(1) == 160 * 1024  # fp8
    assert named("qwen2.5-7b").kv_bytes_per_token() == 2 * 28 * 4 * 128 * 2


def test_a_64k_prefill_of_llama_70b_is_about_1_5e16():
    flops = float(named("llama-3.1-70b").flops(65_536, 0, 1))
    # 2 x (70.55e9 - two tables of 128,256 x 8,192) x 65,536 and 4 x 80 x 64 x 128 x 65,536 x 65,537 / 2
    body = 2 * (70_553_706_496 - 2 * 128_256 * 8192 - 161 * 8192) * 65_536
    attention = 4 * 80 * 64 * 128 * 65_536 * 65_537 // 2
    assert flops == pytest.approx(body + attention + 2 * 128_256 * 8192, rel=1e-12)
    assert flops == pytest.approx(1.5e16, rel=0.03)


def test_a_hand_count():
    layer = 8 * (2 + 1 + 1) * 4 + 2 * 4 * 8 + 8 * 2 * 16 + 16 * 8  # Q, K, V; O; gate and up; down
    assert TINY.parameters == 3 * layer + 2 * 10 * 8 + (2 * 3 + 1) * 8
    assert TINY.active_parameters == 3 * layer + 10 * 8
    # 2 tokens after 5: pairs 6 + 7, and 2 x 2 FLOPs for each pair, head and its 4 numbers, in 3 layers
    assert float(TINY.flops(2, 5)) == 2 * 2 * 3 * layer + 3 * 13 * 2 * 4 * 4
    assert float(TINY.flops(2, 5, 1) - TINY.flops(2, 5)) == 2 * 8 * 10
    assert TINY.kv_bytes_per_token() == 3 * 1 * (4 + 4) * 2


def test_parts_are_counted_at_once_as_one_by_one():
    parts = [(1, 100, 1), (64, 0, 0), (64, 64, 0), (7, 128, 1)]
    at_once = TINY.flops(*(list(column) for column in zip(*parts, strict=True)))
    assert at_once.tolist() == [float(TINY.flops(*part)) for part in parts]


@pytest.mark.parametrize("chunk", [1, 3, 10, 30])
def test_chunks_add_up_to_the_whole_prompt(chunk):
    sizes = [min(chunk, 30 - begin) for begin in range(0, 30, chunk)]
    whole = sum(float(TINY.flops(size, chunk * n)) for n, size in enumerate(sizes))
    assert whole == float(TINY.flops(30, 0))


def test_pairs_by_counting():
    for tokens, context, window in [(1, 0, 0), (4, 3, 0), (4, 3, 2), (9, 0, 4), (2, 20, 5), (3, 1, 100), (0, 9, 4)]:
        seen = [min(context + n + 1, window or 10**9) for n in range(tokens)]
        assert float(pairs(tokens, context, window)) == sum(seen)


def test_a_sliding_window_holds_only_in_its_layers():
    config = {"model_type": "mistral", "num_hidden_layers": 4, "hidden_size": 8, "num_attention_heads": 2}
    config |= {"intermediate_size": 16, "vocab_size": 10, "sliding_window": 16}
    every = from_config(config)
    assert (every.window, every.windowed_layers) == (16, 4)
    some = from_config(config | {"layer_types": ["sliding_attention", "full_attention"] * 2})
    assert some.windowed_layers == 2
    per_pair = 2 * 2 * (4 + 4)  # 2 FLOPs, 2 heads, keys and values of 4
    assert float(some.attention_flops(1, 99)) == per_pair * (2 * 100 + 2 * 16)
    assert from_config(config | {"model_type": "qwen2", "use_sliding_window": False}).windowed_layers == 0


def test_a_step_reads_all_weights_but_only_the_experts_it_needs():
    dense = named("qwen2.5-7b")
    matrices = dense.parameters - 152_064 * 3584 - (57 * 3584 + 28 * (28 + 4 + 4) * 128)
    assert dense.read_bytes([0, 1, 500]).tolist() == [0, 2 * matrices, 2 * matrices]
    mixed = named("deepseek-v3")
    one, many = mixed.read_bytes([1, 100_000])
    assert one == pytest.approx(2 * mixed.active_parameters)
    assert many == pytest.approx(2 * (mixed.parameters - 129_280 * 7168), rel=1e-4)


def test_plain_data_and_back():
    for name in known_models():
        model = named(name)
        assert Architecture.from_dict(json.loads(json.dumps(model.as_dict() | {"new": 1}))) == model
    with pytest.raises(InputError, match="all sizes of a model"):
        Architecture.from_dict({"name": "x", "layers": 3})


@pytest.mark.parametrize(
    ("config", "match"),
    [
        ({"model_type": "mamba2"}, r"got 'mamba2', expected one of the model types llama"),
        ({}, "no model_type"),
        ({"model_type": "llama", "num_hidden_layers": 2}, "no hidden_size"),
        ({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 8, "num_attention_heads": 0}, "whole numbers"),
    ],
)
def test_what_cannot_be_counted_is_refused_in_one_line(config, match):
    with pytest.raises(ModelError, match=match) as caught:
        from_config(config, "mine")
    assert "\n" not in str(caught.value)
    assert "mine" in str(caught.value)


def test_an_unknown_name_gets_a_suggestion():
    with pytest.raises(ModelError, match=r"did you mean llama-3\.1-70b\?"):
        named("llama-3-70b")


def _tiny(family):
    """A model that torch runs, and its configuration as ``config.json`` holds it."""
    transformers = pytest.importorskip("transformers")
    base = {"num_hidden_layers": 2, "hidden_size": 32, "intermediate_size": 48, "vocab_size": 64}
    base |= {"num_attention_heads": 4, "num_key_value_heads": 2, "attn_implementation": "eager"}
    experts = {"n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "n_shared_experts": 1}
    latent = {"kv_lora_rank": 16, "q_lora_rank": 12, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 6}
    made = {
        "llama": lambda: transformers.LlamaConfig(**base),
        "qwen2": lambda: transformers.Qwen2Config(**base, tie_word_embeddings=True),
        "qwen3": lambda: transformers.Qwen3Config(**base, head_dim=16),
        "mixtral": lambda: transformers.MixtralConfig(**base, num_local_experts=4, num_experts_per_tok=2),
        "deepseek_v3": lambda: transformers.DeepseekV3Config(
            **(base | {"num_key_value_heads": 4}), **experts, **latent, n_group=1, topk_group=1, first_k_dense_replace=1
        ),
    }[family]()
    if family in ("mixtral", "deepseek_v3"):
        made._experts_implementation = "eager"
    return transformers.AutoModelForCausalLM.from_config(made).eval(), made.to_dict()


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3", "mixtral", "deepseek_v3"])
def test_torch_counts_the_same_on_a_model_that_it_runs(family):
    torch = pytest.importorskip("torch")
    from torch.utils.flop_counter import FlopCounterMode

    model, config = _tiny(family)
    ours = from_config(config, family)
    stored = sum(tensor.numel() for tensor in model.parameters())
    assert ours.parameters == pytest.approx(stored, rel=0.01)  # vectors of single families are left out
    cache = None
    with torch.inference_mode(), FlopCounterMode(display=False) as counted:
        for position in range(6):  # one token after the other, so that torch has no pairs that the mask throws away
            out = model(torch.tensor([[position]]), past_key_values=cache, use_cache=True)
            cache = out.past_key_values
    expected = float(ours.flops(6, 0, 6))
    if family == "deepseek_v3":  # transformers unpacks the whole latent cache again for every token
        again = sum(range(1, 7)) - 6
        expected += again * 2 * 2 * 16 * 4 * (8 + 6)  # tokens, layers, 2 FLOPs a weight, rank x heads x (K + V)
    assert counted.get_total_flops() == expected


def test_the_latent_decode_works_on_the_compressed_cache():
    model = named("deepseek-v3")
    per_pair = float(model.attention_flops(1, 1000, decode=True) - model.attention_flops(1, 999, decode=True))
    assert per_pair == 2 * 128 * 61 * ((512 + 64) + 512)
    unpacked = float(model.attention_flops(1, 1000) - model.attention_flops(1, 999))
    assert unpacked == 2 * 128 * 61 * (192 + 128)
    assert float(TINY.attention_flops(1, 9, decode=True)) == float(TINY.attention_flops(1, 9))
