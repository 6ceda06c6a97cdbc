"""Single operations, against arithmetic by hand and against measured kernels."""

from dataclasses import replace

import pytest

from workbench.simulate.presets import device
from workbench.simulate.steptime import Chunk, kernels

H100 = device("H100")
# Kernels that reach every peak and cost nothing to call.
IDEAL = replace(
    H100,
    efficiency=replace(
        H100.efficiency,
        **dict.fromkeys(("gemm", "stream", "attention", "kv", "link"), 1.0),
        **dict.fromkeys(("gemm_s", "attention_s", "reduce_s", "ring_s"), 0.0),
    ),
)
FLAT = replace(IDEAL, bandwidth=1e30)


def test_a_full_wave_takes_what_the_peak_says():
    rows, inner, columns = 256, 8192, 128 * 132  # 132 tiles of 256 x 128, one for each processor
    assert kernels.product_s(FLAT, rows, inner, columns, 2) == pytest.approx(2 * rows * inner * columns / 989.5e12)


def test_one_column_of_tiles_more_starts_a_wave_that_is_mostly_idle():
    full = kernels.product_s(FLAT, 256, 8192, 128 * 132, 2)
    # Best with tiles of 128 x 128: 266 of them are 2.0152 waves, of the third 0.3 of the idle 0.9848 is lost: 2.3106
    # waves of half the size, 1.02 times as slow: 1.1784.
    assert kernels.product_s(FLAT, 256, 8192, 128 * 133, 2) / full == pytest.approx(1.1784, rel=1e-3)


def test_few_rows_take_what_reading_the_weights_takes():
    seconds = kernels.product_s(IDEAL, 1, 8192, 28672, 2)
    assert seconds == pytest.approx(2 * 8192 * 28672 / 3.35e12, rel=0.01)
    assert kernels.product_s(IDEAL, 1, 8192, 28672, 1) == pytest.approx(seconds / 2, rel=0.01)


def test_fp8_is_twice_as_fast_where_the_device_has_it():
    big = (8192, 8192, 8192)
    assert kernels.product_s(FLAT, *big, 1) == pytest.approx(kernels.product_s(FLAT, *big, 2) / 2)
    a100 = replace(device("A100"), bandwidth=1e30)
    assert kernels.product_s(a100, *big, 1) == kernels.product_s(a100, *big, 2)


@pytest.mark.parametrize(
    ("rows", "inner", "columns", "us"),
    # Of the table of aiconfigurator-core 0.12 for H100, bf16: computed and read, large and small.
    [(1, 8192, 10240, 60.8), (2048, 8192, 8192, 366.3), (8192, 4096, 12288, 1080.5), (128, 8192, 7168, 42.6)],
)
def test_products_are_near_those_that_were_measured_on_h100(rows, inner, columns, us):
    assert kernels.product_s(H100, rows, inner, columns, 2) * 1e6 == pytest.approx(us, rel=0.15)


def test_an_all_reduce_is_one_exchange_while_small_and_a_ring_when_large():
    count = 1024 * 8192 * 2
    assert kernels.all_reduce_s(IDEAL, count, 8) == pytest.approx(2 * 7 / 8 * count / 450e9)
    assert kernels.all_reduce_s(H100, 1024, 8) == pytest.approx(4.6e-6, rel=0.02)
    assert kernels.all_reduce_s(H100, count, 8) == pytest.approx(92.4e-6, rel=0.2)  # measured: 92.4 us
    assert kernels.all_reduce_s(H100, count, 1) == 0


def test_without_nvlink_a_ring_of_four_crawls():
    l40s = device("L40S")
    assert kernels.all_reduce_s(l40s, 1 << 24, 2) == pytest.approx(892e-6, rel=0.1)  # both measured
    assert kernels.all_reduce_s(l40s, 1 << 24, 4) == pytest.approx(6676e-6, rel=0.1)


def test_attention_of_a_long_prompt_goes_with_its_pairs():
    chunk = Chunk(16384, 0)
    flops = 2.0 * 256  # of a pair and a head of 128
    work, least = kernels.prompt_attention(IDEAL, chunk, chunk.pairs, 64, flops)
    assert work == pytest.approx(64 * flops * 16384 * 16385 / 2 / 989.5e12, rel=0.02)
    assert least < work


def test_attention_of_a_short_prompt_lasts_as_long_as_its_last_tile():
    chunk = Chunk(1024, 0)
    work, least = kernels.prompt_attention(IDEAL, chunk, chunk.pairs, 1, 512.0)
    assert least == pytest.approx(128 * 1024 * 512 * 132 / 989.5e12)
    assert least > work


def test_decodes_read_their_cache():
    assert kernels.decode_attention_s(IDEAL, 3.35e9, 0) == pytest.approx(1e-3)
    assert kernels.decode_attention_s(IDEAL, 3.35e9, 989.5e10) == pytest.approx(1e-2)
