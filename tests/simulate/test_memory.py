"""Memory of a GPU, against sums by hand."""

from dataclasses import replace

import pytest

from workbench.errors import InputError
from workbench.metrics import MemoryFit
from workbench.models.architecture import named
from workbench.simulate.memory import Memory
from workbench.simulate.presets import device
from workbench.simulate.sizes import activation_bytes

LLAMA = named("llama-3.1-70b")
EIGHT = Memory.of(LLAMA, device("H100"), 8)


def size(memory, name):
    return next(one.bytes for one in memory.shares(2048) if one.name == name)


def test_weights_and_cache_are_shared_out():
    assert size(EIGHT, "weights") == pytest.approx(2 * 70_553_706_496 / 8, rel=1e-3)
    assert EIGHT.kv_token_bytes == 80 * 1 * (128 + 128) * 2
    assert Memory.of(LLAMA, device("H100"), 16).kv_token_bytes == EIGHT.kv_token_bytes  # 8 KV heads: copied
    assert Memory.of(LLAMA, device("H100"), 4, 2).kv_token_bytes == 40 * 2 * 256 * 2
    deepseek = Memory.of(named("deepseek-v3"), device("H200"), 8, weight_bytes=1)
    assert deepseek.kv_token_bytes == 61 * (512 + 64) * 2  # MLA: all of it on every GPU
    assert size(deepseek, "weights") == pytest.approx(671e9 / 8, rel=0.02)


def test_the_pool_is_what_is_left():
    parts = {one.name: one.bytes for one in EIGHT.shares(8192)}
    assert sum(parts.values()) == pytest.approx(0.92 * 81559 * 2**20)
    assert EIGHT.blocks(8192) == int(parts["KV pool"] // (16 * 40960))
    assert EIGHT.blocks(65536) < EIGHT.blocks(512)


def test_activation_goes_with_the_tokens_of_the_step():
    # Residual, its norm and the MLP's three parts of 28672 / 8, 2 bytes each, and a third for workspaces.
    token = (3 * 8192 + 3 * 28672 / 8) * 2 * 1.33
    assert EIGHT.activation(2000) - EIGHT.activation(1000) == pytest.approx(1000 * token)
    assert EIGHT.activation(0) == 0
    assert EIGHT.activation(1) == pytest.approx(token + 128256 * 10)


def test_smollm2s_estimate_is_what_was_measured_on_the_cpu():
    # 41.4 MiB for a step of 2,502 tokens, DESIGN
    assert activation_bytes(named("smollm2-135m"), tp=1) == pytest.approx(16.9e3, rel=0.01)


@pytest.mark.parametrize("budget", [256, 2048, 16384])
def test_the_largest_step_is_the_last_that_fits(budget):
    limit = EIGHT.largest_step(budget)
    assert EIGHT.activation(limit) <= EIGHT.room(budget) < EIGHT.activation(limit + 1)
    assert EIGHT.dies_at(budget, 1 << 20) == limit + 1
    assert EIGHT.dies_at(budget, limit) is None
    assert limit > budget


def test_a_measured_fit_takes_the_place_of_the_estimate():
    fit = MemoryFit(1.0, 0.9, 1.1, 11.0, 8, 100, 64, 8192)  # e^11 = 59,874 bytes a token
    memory = Memory.of(LLAMA, device("H100"), 8, fit=fit)
    assert memory.activation(1000) == pytest.approx(59_874_142, rel=1e-6)
    assert (memory.activation_origin, EIGHT.activation_origin) == ("measured", "estimate")
    limit = memory.largest_step(2048)
    assert memory.activation(limit) <= memory.room(2048) < memory.activation(limit + 1)


def test_told_weights_are_labelled_as_measured():
    memory = Memory.of(LLAMA, device("H100"), 8, measured={"weights": 18e9})
    share = memory.resident[0]
    assert (share.bytes, share.origin) == (18e9, "measured")
    assert EIGHT.resident[0].origin == "estimate"


def test_a_fixed_pool_leaves_the_rest_to_the_step():
    fixed = Memory.of(LLAMA, device("H100"), 8, pool_bytes=20 * 2**30)
    assert fixed.blocks(512) == fixed.blocks(8192) == 20 * 2**30 // (16 * 40960)
    assert fixed.largest_step(512) > EIGHT.largest_step(512)


def test_the_warning_has_the_arithmetic_and_only_where_it_is_needed():
    said = EIGHT.warning(2048, 131072)
    assert f"a prompt of {EIGHT.dies_at(2048, 131072):,} tokens or more dies" in said
    assert "(estimate)" in said
    assert EIGHT.warning(2048, 4096) == ""


def test_the_line_beside_a_hot_budget_keeps_the_pool_that_was_taken_at_the_start():
    # 0.08 of 81,559 MiB and the activation of a step of 8,192 are free, whatever the budget is now.
    need = (512 * EIGHT.token_bytes + 128 * 128256 * 10) / 2**30
    room = (0.08 * 81559 * 2**20 + EIGHT.activation(8192)) / 2**30
    said = EIGHT.beside(512, 8192, 131072)
    assert said.startswith(f"A step of 512 tokens needs {need:.2f} GiB of {room:.1f} free; unchunked, ")
    assert f"{EIGHT.dies_at(8192, 131072):,} tokens or more die (estimate)" in said
    assert "the longest prompt fits into one step" in EIGHT.beside(512, 8192, 4096)


def test_one_row_a_budget():
    rows = EIGHT.table([512, 2048])
    assert [row["budget"] for row in rows] == [512, 2048]
    assert rows[0]["kv_tokens"] == rows[0]["blocks"] * 16
    assert rows[0]["largest_step_tokens"] < rows[1]["largest_step_tokens"]
    assert {row["origin"] for row in rows} == {"estimate"}


def test_a_model_that_does_not_fit_is_named():
    memory = Memory.of(LLAMA, device("H100"), 1)
    with pytest.raises(
        InputError, match=r"memory of Llama-3.1-70B on 1 x H100 SXM: got 'weights 131.4,.*take more GPUs"
    ):
        memory.blocks(2048)
    with pytest.raises(InputError, match=r"KV pool 70.0 GiB"):
        replace(EIGHT, fixed_pool=70 * 2**30).pool(2048)
    with pytest.raises(InputError, match="divides the 28 heads"):
        Memory.of(named("qwen2.5-7b"), device("H100"), 8)
