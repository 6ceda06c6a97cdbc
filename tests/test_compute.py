"""What a run is told of its model and machine; what cannot be found has a reason and never fails the run."""

from types import SimpleNamespace

import pytest

from workbench import compute, hardware
from workbench.models.architecture import named
from workbench.telemetry import peak

SMOL = {"model_type": "llama", "num_hidden_layers": 30, "hidden_size": 576, "num_attention_heads": 9}
SMOL |= {"num_key_value_heads": 3, "intermediate_size": 1536, "vocab_size": 49152, "tie_word_embeddings": True}


@pytest.fixture(autouse=True)
def measured(monkeypatch, tmp_path):
    """No child process, and a cache of the test's own."""
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path))
    asked = []

    def matmul(threads, folder, **options):
        asked.append((threads, folder, options))
        return peak.Peak(8e10, "measured matmul")

    monkeypatch.setattr(peak, "matmul_peak", matmul)
    monkeypatch.setattr(peak, "engine_threads", lambda: 3)
    monkeypatch.setattr(peak, "copy_rates", lambda _folder, **_options: {"to_device": 5e10, "to_host": 4e10})
    return asked


def model(**config):
    return SimpleNamespace(name="smollm2", config=config)


def test_a_live_cpu_run(measured, tmp_path):
    facts = compute.compute_facts(model(**SMOL), "live CPU")
    assert facts["architecture"] == named("smollm2-135m").as_dict() | {"name": "smollm2"}
    assert facts["peak"] == {"flops_per_s": 8e10, "source": "measured matmul"}
    assert facts["host_bytes_per_s"] is None
    assert "lies in the host's memory" in facts["missing"]["host_bytes_per_s"]
    assert measured == [(3, tmp_path / "peaks", {"again": False})]


def test_again_reaches_the_measurement(measured):
    compute.compute_facts(None, "live CPU", again=True)
    assert measured[0][2] == {"again": True}


def test_a_known_gpu_has_its_published_peak_for_each_device(measured):
    facts = compute.compute_facts(model(**SMOL), "live GPU", devices=4, gpu_name="NVIDIA H100 80GB HBM3")
    assert facts["peak"]["flops_per_s"] == 4 * hardware.gpu("h100-sxm").flops.value
    assert facts["peak"]["source"].startswith("published, dense bf16: NVIDIA H100")
    assert facts["peak"]["source"].endswith("times 4 devices")
    assert facts["bandwidth"]["bytes_per_s"] == 4 * 3.35e12
    assert facts["bandwidth"]["source"].endswith("row GPU memory bandwidth, times 4 devices")
    assert facts["host_bytes_per_s"] == {"to_device": 5e10, "to_host": 4e10, "source": "measured, pinned host memory"}
    assert facts["device"] == "NVIDIA H100 80GB HBM3"
    assert not measured


def test_an_unknown_gpu_is_measured(measured):
    facts = compute.compute_facts(model(**SMOL), "live GPU", gpu_name="NVIDIA X1")
    assert facts["peak"]["source"] == "measured matmul"
    assert facts["bandwidth"] is None
    assert facts["missing"]["bandwidth"] == "no published figures of NVIDIA X1"
    assert measured[0][2] == {"device": "cuda", "name": "NVIDIA X1", "again": False}


def test_a_simulated_or_attached_run_has_no_peak(measured):
    facts = compute.compute_facts(model(**SMOL), "simulated")
    assert facts["peak"] is None
    assert facts["missing"]["peak"] == "no device of ours computes in a run that is simulated"
    assert facts["architecture"]["layers"] == 30
    assert not measured


@pytest.mark.parametrize(
    ("given", "why"),
    [(None, "does not say which model"), (model(model_type="mamba2"), "expected one of the model types")],
)
def test_a_model_that_cannot_be_counted_has_a_reason(given, why):
    facts = compute.compute_facts(given, "live CPU")
    assert facts["architecture"] is None
    assert why in facts["missing"]["architecture"]
    assert facts["peak"]


def test_the_text_part_of_a_multimodal_model_counts():
    facts = compute.compute_facts(model(model_type="llava", text_config=SMOL), "live CPU")
    assert facts["architecture"]["hidden"] == 576


@pytest.mark.parametrize("error", [peak.PeakError("no torch"), ZeroDivisionError("odd"), OSError("disk")])
def test_no_error_leaves_it(monkeypatch, error):
    def fail(*_args, **_options):
        raise error

    monkeypatch.setattr(peak, "matmul_peak", fail)
    facts = compute.compute_facts(model(**SMOL), "live CPU")
    assert facts["peak"] is None
    assert str(error) in facts["missing"]["peak"]


def test_a_machine_without_a_driver_says_so(monkeypatch):
    monkeypatch.setattr(compute, "cuda_devices", lambda _nvml: ((), ("no NVIDIA driver here",)))
    facts = compute.compute_facts(None, "live GPU")
    assert facts["missing"]["device"] == "no NVIDIA driver here"
