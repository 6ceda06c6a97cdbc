"""Published figures, against numbers known from elsewhere."""

import pytest

from workbench import hardware
from workbench.errors import InputError

FIGURES = ("flops", "memory", "bandwidth", "nvlink", "pcie")
KEYS = ["h100-sxm", "h200", "a100-80gb-sxm", "b200", "l40s", "rtx-4090"]


@pytest.mark.parametrize(
    ("key", "tflops", "gb", "gb_per_s"),
    [
        ("h100-sxm", 989.5, 80, 3350),
        ("h200", 989.5, 141, 4800),
        ("a100-80gb-sxm", 312, 80, 2039),
        ("b200", 2250, 180, 8000),
        ("l40s", 362.05, 48, 864),
        ("rtx-4090", 165.2, 24, 1008),
    ],
)
def test_dense_figures_of_one_gpu(key, tflops, gb, gb_per_s):
    found = hardware.gpu(key)
    assert found.flops.value == pytest.approx(tflops * 1e12)
    assert found.memory.value == pytest.approx(gb * 1e9)
    assert found.bandwidth.value == pytest.approx(gb_per_s * 1e9)


def test_all_are_there_each_figure_with_its_source():
    assert list(hardware.gpus()) == KEYS
    for found in hardware.gpus().values():
        for name in FIGURES:
            figure = getattr(found, name)
            if figure is not None:
                assert "NVIDIA" in figure.source
                assert ", row " in figure.source
            else:
                assert (name, found.key) in {("nvlink", "l40s"), ("nvlink", "rtx-4090")}
        assert "sparsity" in found.flops.note


def test_links_are_those_of_one_direction():
    assert hardware.gpu("h100-sxm").nvlink.value == 450e9
    # 16 lanes of 32 and 16 GT/s, 128 of 130 bits: 63.0 and 31.5 GB/s a direction
    assert hardware.gpu("h100-sxm").pcie.value == pytest.approx(16 * 32e9 * 128 / 130 / 8, rel=0.02)
    assert hardware.gpu("l40s").pcie.value == pytest.approx(16 * 16e9 * 128 / 130 / 8, rel=0.02)


def test_a_driver_name_is_matched_exactly():
    assert hardware.gpu_of_driver("NVIDIA H100 80GB HBM3").key == "h100-sxm"
    assert hardware.gpu_of_driver("NVIDIA GeForce RTX 4090").key == "rtx-4090"
    for slower in (
        "NVIDIA H100 PCIe",
        "NVIDIA H200 NVL",
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA A100-SXM4-40GB",
        "",
    ):
        assert hardware.gpu_of_driver(slower) is None


def test_an_unknown_gpu_gets_a_suggestion():
    with pytest.raises(InputError, match=r"GPU: got 'h100', expected one of h100-sxm, h200.*did you mean h100-sxm\?"):
        hardware.gpu("h100")
    with pytest.raises(InputError, match=r"add it to data/hardware\.yaml with its source"):
        hardware.gpu("abacus")


@pytest.mark.parametrize(
    "change", [{"flops": None}, {"memory": {"value": 1, "unit": "barrel", "row": "x"}}, {"pcie": {}}]
)
def test_facts_that_lack_something_are_refused(change):
    figure = {"value": 1, "unit": "GB/s", "row": "x"}
    entry = {"name": "X", "driver_names": [], "datasheet": "D", **dict.fromkeys(FIGURES, figure)}
    assert hardware.parse({"x": entry}, "f")["x"].pcie.value == 1e9
    with pytest.raises(InputError, match="f: x"):
        hardware.parse({"x": entry | change}, "f")
