"""NVML through the real pynvml against the stub library, each case in a process of its own."""

import ctypes
import re
from pathlib import Path

import pytest

READ = """
from dataclasses import asdict
from workbench.telemetry import Nvml
nvml = Nvml()
listed = nvml.devices()
result["listed"] = listed.reason or [asdict(d) for d in listed.value]
result["memory"] = [asdict(nvml.memory(d.key)) for d in listed.value or ()]
"""

MIG = {
    "count": 1,
    "gpu0.uuid": "GPU-aaaa1111-0000",
    "gpu0.name": "NVIDIA A100-SXM4-40GB",
    "gpu0.total": 42949672960,
    "gpu0.reserved": 0,
    "gpu0.used": 5000,
    "gpu0.free": 42949667960,
    "gpu0.mig_mode": 1,
    "gpu0.mig0.uuid": "MIG-11111111-0000",
    "gpu0.mig0.name": "NVIDIA A100-SXM4-40GB MIG 3g.20gb",
    "gpu0.mig0.total": 20937965568,
    "gpu0.mig0.reserved": 0,
    "gpu0.mig0.used": 3000,
    "gpu0.mig0.free": 20937962568,
    "gpu0.mig0.gi": 2,
    "gpu0.mig0.ci": 0,
    "gpu0.mig3.uuid": "MIG-22222222-0000",
    "gpu0.mig3.name": "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
    "gpu0.mig3.total": 4999999488,
    "gpu0.mig3.reserved": 0,
    "gpu0.mig3.used": 2000,
    "gpu0.mig3.free": 4999997488,
    "gpu0.mig3.gi": 9,
    "gpu0.mig3.ci": 0,
}

GB10 = {"count": 1, "gpu0.uuid": "GPU-0b10", "gpu0.name": "NVIDIA GB10"} | {
    f"error.nvmlDeviceGetMemoryInfo{v}": 3 for v in ("", "_v2")
}


def test_two_gpus(stub):
    got = stub.run(READ + "result['versions'] = {k: v.text for k, v in nvml.versions().items()}", stub.two_gpus)
    first, second = got["listed"]
    assert (first["index"], first["label"], first["uuid"]) == (0, "nvml:0", "GPU-aaaa1111-0000")
    assert (second["index"], second["label"], second["key"]) == (1, "nvml:1", "GPU-bbbb2222-0000")
    assert first["name"] == "NVIDIA H100 80GB HBM3"
    assert first["total"] == {"bytes": 85520809984, "note": None}
    assert (first["mig_mode"], first["migs"], first["unified"], first["notes"]) == ("off", [], False, [])
    assert [m["used"]["bytes"] for m in got["memory"]] == [1000000, 7000000]
    assert [m["reserved"]["bytes"] for m in got["memory"]] == [500000000] * 2
    assert [m["version"] for m in got["memory"]] == [2, 2]
    assert got["versions"] == {"driver": "580.65.06", "nvml": "13.580.65.06"}
    assert stub.log == ["init", "shutdown"]


def test_mig(stub):
    code = """
from workbench.telemetry.sources import cuda_devices, device_sources
devices, notes = cuda_devices(nvml, {})
result["cuda"], result["notes"] = [d.label for d in devices], notes
result["read"] = {s.name: s.read().bytes for s in device_sources(nvml, {"CUDA_VISIBLE_DEVICES": "MIG-2222"})}
result["gauges"] = nvml.gauges(listed.value[0].key)["gpu_percent"].text
"""
    values = MIG | {"error.nvmlDeviceGetUtilizationRates": 3}
    got = stub.run(READ + code, values)
    (gpu,) = got["listed"]
    assert gpu["mig_mode"] == "on"
    assert [m["label"] for m in gpu["migs"]] == ["nvml:0/mig0", "nvml:0/mig3"]
    assert [m["instance_ids"] for m in gpu["migs"]] == [[2, 0], [9, 0]]
    assert [m["total"]["bytes"] for m in gpu["migs"]] == [20937965568, 4999999488]
    assert got["cuda"] == ["nvml:0/mig0"]
    assert len(got["notes"]) == 1
    assert "only nvml:0/mig0 is used" in got["notes"][0]
    assert got["read"] == {"nvml:0/mig3 used": 2000, "nvml:0/mig3 reserved": 0}
    assert got["gauges"] == "n/a (not supported by this device)"


def test_mig_parent_without_permission_still_lists_its_instances(stub):
    got = stub.run(READ, MIG | {f"error.nvmlDeviceGetMemoryInfo{v}.gpu0": 4 for v in ("", "_v2")})
    (gpu,) = got["listed"]
    assert gpu["total"]["bytes"] is None
    assert gpu["total"]["note"].startswith("n/a (no permission")
    assert gpu["migs"][0]["total"]["bytes"] == 20937965568


def test_no_permission(stub):
    got = stub.run(READ, stub.two_gpus | {"error.gpu1": 4})
    first, second = got["listed"]
    assert first["total"]["bytes"] == 85520809984
    assert second["key"] == "index:1"
    assert second["uuid"] is None
    for text in (second["name"], second["mig_mode"], second["total"]["note"], got["memory"][1]["used"]["note"]):
        assert text.startswith("n/a (no permission")


def test_not_supported_is_not_taken_for_unified_memory(stub):
    got = stub.run(READ, stub.two_gpus | {f"error.nvmlDeviceGetMemoryInfo{v}": 3 for v in ("", "_v2")})
    assert [d["unified"] for d in got["listed"]] == [False, False]
    assert got["memory"][0]["used"] == {"bytes": None, "note": "n/a (not supported by this device)"}


def test_used_unavailable(stub):
    values = {k: v for k, v in stub.two_gpus.items() if k != "gpu0.used"}
    memory = stub.run(READ, values)["memory"]
    assert memory[0]["used"] == {"bytes": None, "note": "n/a (the driver does not report it)"}
    assert memory[0]["total"]["bytes"] == 85520809984
    assert memory[1]["used"]["bytes"] == 7000000


@pytest.mark.parametrize("code", [13, 25])
def test_old_driver_falls_back_to_v1(stub, code):
    memory = stub.run(READ, stub.two_gpus | {"error.nvmlDeviceGetMemoryInfo_v2": code})["memory"][0]
    assert memory["version"] == 1
    assert memory["used"]["bytes"] == 501000000  # v1 counts what is reserved as used
    assert memory["reserved"]["note"] == "n/a (the installed NVIDIA driver counts it as used)"


@pytest.mark.parametrize(
    "values",
    [
        GB10,
        GB10 | {"gpu0.name": "NVIDIA Nameless", "gpu0.addressing": 2},
        {"count": 1, "gpu0.uuid": "GPU-0b10", "gpu0.name": "Orin (nvgpu)", "gpu0.total": 0, "gpu0.used": 0},
    ],
)
def test_unified_memory_is_na_beside_a_labelled_line_of_the_host(stub, values):
    code = """
from workbench.telemetry.sources import device_sources
result["read"] = {s.name: (s.read().bytes, s.read().note) for s in device_sources(nvml, {})}
"""
    got = stub.run(READ + code, values)
    assert got["listed"][0]["unified"]
    assert got["listed"][0]["total"]["bytes"] is None
    assert set(got["read"]) == {"nvml:0 used", "host used (unified memory of nvml:0)"}
    assert got["read"]["nvml:0 used"][0] is None
    assert got["read"]["nvml:0 used"][1].startswith("n/a (unified memory: ")
    assert got["read"]["host used (unified memory of nvml:0)"][0] > 0


def test_ats_with_memory_of_its_own_is_not_unified(stub):
    got = stub.run(READ, stub.two_gpus | {"gpu0.name": "NVIDIA GH200 480GB", "gpu0.addressing": 2})
    assert not got["listed"][0]["unified"]
    assert got["memory"][0]["used"]["bytes"] == 1000000


def test_a_memory_of_zero_bytes_is_not_a_value(stub):
    got = stub.run(READ, stub.two_gpus | {"gpu0.total": 0, "gpu0.used": 0})
    assert got["memory"][0]["used"] == {"bytes": None, "note": "n/a (the driver reports a memory of 0 bytes)"}


def test_no_library(stub, tmp_path):
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        pass
    else:
        pytest.skip("this machine has a real libnvidia-ml.so.1")
    got = stub.run(READ, {}, library=tmp_path)
    assert got["listed"].startswith("no NVIDIA driver here: libnvidia-ml.so.1")
    assert got["memory"] == []


def test_damaged_library(stub, tmp_path):
    (tmp_path / "libnvidia-ml.so.1").write_text("this is no library")
    assert stub.run(READ, {}, library=tmp_path)["listed"].startswith("no NVIDIA driver here")


def test_package_not_installed(stub):
    got = stub.run("sys.modules['pynvml'] = None\n" + READ, stub.two_gpus)
    assert got["listed"] == "the package nvidia-ml-py is not installed: pip install nvidia-ml-py"


def test_no_gpu(stub):
    code = """
from workbench.telemetry.sources import device_sources
result["sources"] = [(s.name, s.read().note) for s in device_sources(nvml, {})]
"""
    got = stub.run(READ + code, {"count": 0})
    assert got["listed"] == []
    assert got["sources"] == [["nvml used", "n/a (CUDA sees no GPU)"]]


def test_what_pynvml_lacks_or_breaks_is_a_reason(stub):
    code = """
from workbench.telemetry import Nvml
nvml = Nvml()
result["lacks"] = nvml.query("nvmlNoSuchFunction").text
result["symbol"] = nvml.query("nvmlSystemGetCudaDriverVersion").text
result["breaks"] = nvml.query("nvmlDeviceGetHandleByIndex", "x").text
result["unknown"] = nvml.memory("GPU-nowhere").used.note
"""
    got = stub.run(code, stub.two_gpus)
    assert got["lacks"].startswith("n/a (AttributeError: ")
    assert got["symbol"] == "n/a (the installed NVIDIA driver is too old for this query)"
    assert got["breaks"].startswith("n/a (TypeError: ")
    assert got["unknown"] == "n/a (not found by the NVIDIA driver)"


def test_process_memory(stub):
    code = """
from workbench.telemetry import Nvml
nvml = Nvml()
first, second = (d.key for d in nvml.devices().value)
said = lambda reading: reading.note or reading.bytes
result["ours"] = said(nvml.process_memory(first, [100, 102]))
result["none of ours"] = said(nvml.process_memory(first, [999]))
result["unknown size"] = said(nvml.process_memory(first, [100, 103]))
result["idle"] = said(nvml.process_memory(second, [100]))
script(values | {"error.nvmlDeviceGetComputeRunningProcesses_v3": 4})
result["forbidden"] = said(nvml.process_memory(first, [100]))
"""
    sizes = {100: 10, 101: 20, 102: 30}
    values = stub.two_gpus | {"gpu0.processes": 4}
    for i, pid in enumerate((100, 101, 102, 103)):
        values[f"gpu0.pid{i}"] = pid
        if pid in sizes:
            values[f"gpu0.pid{i}.used"] = sizes[pid]
    got = stub.run(code, values)
    assert got["ours"] == 40
    assert "in a container it knows only the host's pids" in got["none of ours"]
    assert got["unknown size"] == "n/a (the driver does not report the memory of single processes)"
    assert got["idle"] == got["none of ours"]
    assert got["forbidden"].startswith("n/a (no permission")


def test_engine_memory_is_used_less_the_baseline(stub):
    code = """
from workbench.telemetry import Nvml
from workbench.telemetry.sources import baseline, cuda_devices, device_sources
nvml = Nvml()
before = baseline(nvml, cuda_devices(nvml, {})[0])
def engine(before):
    return {s.name: s for s in device_sources(nvml, {"CUDA_VISIBLE_DEVICES": "0"}, before)}["nvml:0 engine"]
def read(source):
    reading = source.read()
    return reading.note or reading.bytes
source = engine(before)
script(values | {"gpu0.used": 41000000})
result["taken"] = read(source)
result["not there"] = read(engine({}))
script(values | {"gpu0.used": 10})
result["below"] = read(source)
script(values | {"error.gpu0": 15})
result["lost"] = read(source)
"""
    got = stub.run(code, stub.two_gpus)
    assert got["taken"] == 40000000
    assert got["not there"].startswith("n/a (no baseline from before the start")
    assert got["below"].startswith("n/a (less is used than before the start")
    assert got["lost"].startswith("n/a (the GPU is lost")


def test_gauges_are_missing_one_by_one(stub):
    code = """
from workbench.telemetry import Nvml
nvml = Nvml()
keys = [d.key for d in nvml.devices().value]
result["full"] = {k: a.value for k, a in nvml.gauges(keys[0]).items()}
script(values | {"error.nvmlDeviceGetTemperatureV": 13})
result["old driver"] = nvml.gauges(keys[0])["temperature_c"].value
result["bare"] = sorted({a.text for a in nvml.gauges(keys[1]).values()})
"""
    full = {"gpu_percent": 87, "memory_percent": 12, "temperature": 61, "sm_mhz": 1980, "memory_mhz": 2619}
    values = stub.two_gpus | {f"gpu0.{k}": v for k, v in full.items()} | {"gpu0.power_mw": 512345}
    got = stub.run(code, values)
    assert got["full"] == {
        "gpu_percent": 87,
        "memory_percent": 12,
        "power_w": 512.345,
        "temperature_c": 61,
        "sm_mhz": 1980,
        "memory_mhz": 2619,
    }
    assert got["old driver"] == 61
    assert got["bare"] == ["n/a (not supported by this device)"]


def test_only_one_module_imports_pynvml():
    package = Path(__file__).parents[2] / "workbench"
    found = [
        p.name for p in package.rglob("*.py") if re.search(r"^\s*(import|from) pynvml", p.read_text(), re.MULTILINE)
    ]
    assert found == ["nvml.py"]
