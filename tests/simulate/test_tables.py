"""Measured kernels of aiconfigurator-core, and how near the roofline comes to them."""

import numpy as np
import pytest

from workbench.errors import InputError
from workbench.models.architecture import from_config, named
from workbench.simulate.presets import device
from workbench.simulate.steptime import StepShape, StepTime, from_spec
from workbench.simulate.steptime import tables as module
from workbench.simulate.steptime.roofline import Roofline
from workbench.simulate.steptime.tables import Tables

made = StepShape.made
SHAPES = [
    *(made(decodes=n, context=c) for n, c in ((1, 2048), (8, 1024), (32, 1024), (64, 4096), (128, 8192), (256, 1024))),
    *(made([(n, 0)]) for n in (256, 512, 1024, 2048, 8192, 32768, 65536)),
    made([(2048, 16384)], 100, 1024),
    made([(512, 32768)], 100, 1024),
    made([(412, 1000)], 100, 1024),
    made([(1024, 0), (1024, 0)], 32, 1024),
]


@pytest.fixture(scope="module")
def llama():
    pytest.importorskip("aiconfigurator_core")
    return Tables(named("llama-3.1-70b"), device("H100"), 8)


def test_a_second_prompt_never_makes_a_step_faster(llama):
    # The package's own step call averages the prompts: there this one comes out faster.
    assert llama.seconds(made([(65536, 0), (1024, 0)])) > llama.seconds(made([(65536, 0)]))
    one, two = llama.seconds(made([(1024, 0)])), llama.seconds(made([(1024, 0), (1024, 0)]))
    assert one < two < 2 * one


def test_c14s_prompt_is_above_its_floor(llama):
    assert llama.seconds(made([(65536, 0)])) > 1.844


def test_the_roofline_is_near_the_tables_on_h100(llama):
    roofline = Roofline(named("llama-3.1-70b"), device("H100"), 8)
    off = np.array([roofline.seconds(one) / llama.seconds(one) - 1 for one in SHAPES])
    assert np.median(np.abs(off)) < 0.04
    assert np.abs(off).max() < 0.10
    # The band that is drawn holds what was measured.
    for shape in SHAPES:
        low, _, high = roofline.band(shape)
        assert low < llama.seconds(shape) < high


@pytest.mark.parametrize(
    ("model", "gpu", "tp", "median", "most"),
    [
        ("qwen2.5-7b", "h100", 1, 0.06, 0.15),
        ("qwen2.5-72b", "a100", 8, 0.06, 0.25),
        ("qwen2.5-7b", "l40s", 1, 0.08, 0.15),
        ("llama-3.1-70b", "b200", 4, 0.08, 0.15),
        ("deepseek-v3", "h200", 8, 0.12, 0.25),
    ],
)
def test_the_roofline_is_near_the_tables_elsewhere(llama, model, gpu, tp, median, most):
    roofline, tables = (kind(named(model), device(gpu), tp) for kind in (Roofline, Tables))
    off = np.abs([roofline.seconds(one) / tables.seconds(one) - 1 for one in SHAPES])
    assert np.median(off) < median
    assert off.max() < most


def test_it_is_uncalibrated_and_travels_as_plain_data(llama):
    told, shape = llama.describe(), made([(1948, 30000)], 100, 1024)
    assert isinstance(llama, StepTime)
    assert (told["label"], told["calibrated"]) == ("uncalibrated", False)
    assert "kernels of vLLM on H100 SXM measured by aiconfigurator-core" in told["source"]
    assert from_spec(llama.spec()).seconds(shape) == llama.seconds(shape)
    low, seconds, high = llama.band(shape)
    assert low < seconds == llama.seconds(shape) < high


def test_a_gpu_or_model_without_tables_is_named(llama):
    with pytest.raises(InputError, match=r"tables: got 'RTX 4090', expected one of h100-sxm.*take roofline"):
        Tables(named("qwen2.5-7b"), device("RTX 4090"))
    config = {
        "model_type": "mistral",
        "num_hidden_layers": 2,
        "hidden_size": 64,
        "num_attention_heads": 2,
        "intermediate_size": 128,
        "vocab_size": 100,
        "sliding_window": 16,
    }
    with pytest.raises(InputError, match="a model without sliding windows"):
        Tables(from_config(config, "Mistral"), device("H100"))


def test_a_missing_package_is_named_with_how_to_get_it(monkeypatch):
    def gone(name):
        raise ImportError(name)

    monkeypatch.setattr(module, "import_module", gone)
    with pytest.raises(InputError, match=r'the package aiconfigurator-core; pip install "aiconfigurator-core>=0.12"'):
        Tables(named("qwen2.5-7b"), device("H100"))
