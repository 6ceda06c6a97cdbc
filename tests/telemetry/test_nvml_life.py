"""NVML over time: GPUs that get lost, libraries that go, threads, exits and forks."""

import json

import pytest


def test_lost_in_mid_sampling(stub):
    code = """
from workbench.telemetry import Nvml, Sampler, nvml as module
from workbench.telemetry.sources import device_sources
module.RETRY_DEVICE_S = 0.05
nvml, rows = Nvml(), Rows()
sources = [s for s in device_sources(nvml, {}) if s.name.endswith("used")]
of = lambda name: [r for r in list(rows) if r["source"] == name]
with Sampler(sources, rows, zero=time.monotonic(), flush_s=0.01) as sampler:
    until(lambda: len(of("nvml:0 used")) > 5)
    script(values | {"error.gpu0": 15})
    until(lambda: of("nvml:0 used")[-1]["bytes"] is None)
    time.sleep(1.2)  # many tries at the lost GPU
    n = len(of("nvml:1 used"))
    until(lambda: len(of("nvml:1 used")) > n + 5)
    script(values | {"gpu0.used": 2000000})
    until(lambda: of("nvml:0 used")[-1]["bytes"] is not None)
result["lost"] = [(r["bytes"], r["note"]) for r in of("nvml:0 used")]
missing = [r["t_s"] for r in of("nvml:0 used") if r["bytes"] is None]
result["between"] = [b - a for a, b in zip(missing, missing[1:])]
result["other"] = sorted({str(r["bytes"]) for r in of("nvml:1 used")})
result["errors"] = len(sampler.errors)
"""
    got = stub.run(code, stub.two_gpus)
    kinds = [key for i, key in enumerate(map(tuple, got["lost"])) if i == 0 or key != tuple(got["lost"][i - 1])]
    lost = "n/a (the GPU is lost: it fell off the bus or was reset)"
    assert kinds == [(1000000, None), (None, lost), (2000000, None)]
    assert all(seconds >= 1.0 for seconds in got["between"])  # said once a second, not at 100 Hz
    assert got["other"] == ["7000000"]
    assert got["errors"] == 0
    assert stub.log == ["init", "shutdown"]


def test_a_lost_gpu_is_asked_again_after_a_while_and_keeps_its_reason(stub):
    code = """
from workbench.telemetry import Nvml
from workbench.telemetry.nvml import RETRY_DEVICE_S
clock = Clock()
nvml = Nvml(clock)
first, second = (d.key for d in nvml.devices().value)
note = lambda key=first: (nvml.memory(key).used.bytes, nvml.memory(key).used.note)
script(values | {"error.gpu0": 15})
result["lost"] = note()
script(values)
result["too soon"] = note()
clock.now = RETRY_DEVICE_S
gone = {k: v for k, v in values.items() if not k.startswith("gpu0")}
script(gone)  # the retry finds no such UUID
result["still"] = note()
script(values | {"gpu0.used": 5})
clock.now = 3 * RETRY_DEVICE_S
result["back"] = note()
script(values | {"error.gpu0": 15})
fresh = Nvml(clock)
result["behind a lost one"] = fresh.memory(second).used.bytes
"""
    got = stub.run(code, stub.two_gpus)
    lost = [None, "n/a (the GPU is lost: it fell off the bus or was reset)"]
    assert got["lost"] == got["too soon"] == got["still"] == lost
    assert got["back"] == [5, None]
    assert got["behind a lost one"] == 7000000


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (18, "driver/library version mismatch"),
        (9, "the NVIDIA driver is not loaded"),
        (4, "no permission"),
        (77, "NVML: stub error 77"),
    ],
)
def test_a_library_that_does_not_come_up_is_tried_again_later(stub, code, reason):
    run = """
from workbench.telemetry import Nvml
from workbench.telemetry.nvml import RETRY_LIBRARY_S
from workbench.telemetry.sources import device_sources
clock = Clock()
nvml = Nvml(clock)
result["listed"] = nvml.devices().reason
result["version"] = nvml.versions()["driver"].text
result["sources"] = [(s.name, s.read().note) for s in device_sources(nvml, {})]
values.pop("error.nvmlInit")
script(values)
result["soon"] = nvml.devices().reason
clock.now = RETRY_LIBRARY_S
result["later"] = len(nvml.devices().value)
"""
    got = stub.run(run, stub.two_gpus | {"error.nvmlInit": code})
    assert got["listed"].startswith(reason)
    assert got["version"].startswith(f"n/a ({reason}")
    assert got["sources"] == [["nvml used", f"n/a ({got['listed']})"]]
    assert got["soon"] == got["listed"]
    assert got["later"] == 2


def test_driver_unloaded_in_mid_run(stub):
    code = """
from workbench.telemetry import Nvml
from workbench.telemetry.nvml import RETRY_LIBRARY_S
clock = Clock()
nvml = Nvml(clock)
key = nvml.devices().value[0].key
script(values | {"error.gpu0": 9, "error.nvmlInit": 9})
result["gone"] = nvml.memory(key).used.note
script(values)
result["soon"] = nvml.memory(key).used.note
clock.now = RETRY_LIBRARY_S
result["back"] = nvml.memory(key).used.bytes
"""
    got = stub.run(code, stub.two_gpus)
    assert got["gone"] == got["soon"] == "n/a (the NVIDIA driver is not loaded)"
    assert got["back"] == 1000000
    assert stub.log == ["init", "shutdown", "init", "shutdown"]


def test_shut_down_by_someone_else_in_this_process(stub):
    code = """
import pynvml
from workbench.telemetry import Nvml
from workbench.telemetry.nvml import RETRY_LIBRARY_S
clock = Clock()
nvml = Nvml(clock)
key = nvml.devices().value[0].key
pynvml.nvmlShutdown()
result["gone"] = nvml.memory(key).used.note
clock.now = RETRY_LIBRARY_S
result["back"] = nvml.memory(key).used.bytes
"""
    got = stub.run(code, stub.two_gpus)
    assert got == {"gone": "n/a (NVML: Uninitialized)", "back": 1000000}


def test_close_while_threads_are_calling(stub):
    code = """
from workbench.telemetry import Nvml
nvml = Nvml()
key = nvml.devices().value[0].key
seen, go = [], threading.Event()
def ask():
    while not go.is_set() or seen[-1] is not None:
        seen.append(nvml.memory(key).used.bytes)
threads = [threading.Thread(target=ask) for _ in range(8)]
for thread in threads: thread.start()
until(lambda: len(seen) > 200)
result["closed"] = nvml.close()
go.set()
for thread in threads: thread.join()
result["seen"] = sorted({str(value) for value in seen})
result["after"] = nvml.memory(key).used.note
result["again"] = nvml.close()
result["other"] = Nvml().memory(key).used.bytes
"""
    got = stub.run(code, stub.two_gpus)
    assert got == {
        "closed": True,
        "seen": ["1000000", "None"],
        "after": "n/a (NVML was closed)",
        "again": True,
        "other": 1000000,
    }
    assert stub.log == ["init", "shutdown", "init", "shutdown"]


def test_close_while_a_call_hangs(stub):
    code = """
from workbench.telemetry import Nvml
nvml = Nvml()
key = nvml.devices().value[0].key
script(values | {"sleep_ms.nvmlDeviceGetMemoryInfo_v2": 1000})
thread = threading.Thread(target=nvml.memory, args=(key,))
thread.start()
from workbench.telemetry import nvml as module
until(lambda: not module._gate.acquire(blocking=False) or module._gate.release())
result["closed"] = nvml.close(timeout=0.05)
thread.join()
result["log"] = open(os.environ["NVML_STUB_LOG"]).read().split()  # shut down by the call that hung
result["then"] = nvml.close()
"""
    assert stub.run(code, stub.two_gpus) == {"closed": False, "log": ["init", "shutdown"], "then": True}
    assert stub.log == ["init", "shutdown"]


@pytest.mark.parametrize(
    "end", ["", "sampler.stop(); nvml.close()", "nvml.close()", "print(json.dumps(result)); sys.exit()"]
)
def test_the_process_ends_cleanly_while_sampling(stub, end):
    code = f"""
from workbench.telemetry import Nvml, Sampler
from workbench.telemetry.sources import device_sources
nvml, rows = Nvml(), Rows()
sampler = Sampler(device_sources(nvml, {{}}), rows, zero=time.monotonic(), flush_s=0.01)
sampler.start()
until(lambda: len(rows) > 5)
{end}
"""
    stub.run(code, stub.two_gpus)
    assert stub.log == ["init", "shutdown"]


def test_the_last_rows_are_handed_over_at_exit(stub, tmp_path):
    code = f"""
from workbench.telemetry import Nvml, Sampler
from workbench.telemetry.sources import device_sources
class File:
    def rows(self, table, rows):
        with open({str(tmp_path / "rows.json")!r}, "w") as file:
            json.dump(rows, file)
sampler = Sampler(device_sources(Nvml(), {{}}), File(), zero=time.monotonic(), flush_s=3600)
sampler.start()
until(lambda: sampler.stats.ticks > 5)
"""
    stub.run(code, stub.two_gpus)
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert {row["bytes"] for row in rows if row["source"] == "nvml:0 used"} == {1000000}
    assert stub.log == ["init", "shutdown"]


FORK = """
import warnings
warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)  # Python 3.12 and later
from workbench.telemetry import Sampler
from workbench.telemetry import Nvml
from workbench.telemetry.sources import device_sources

def in_child(do):
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        with os.fdopen(write_end, "w") as out:
            out.write(json.dumps(do()))
        sys.exit()  # runs what is registered for the exit
    os.close(write_end)
    with os.fdopen(read_end) as back:
        text = back.read()
    assert os.waitpid(pid, 0)[1] == 0
    return json.loads(text)

nvml = Nvml()
"""


def test_fork_after_nvml_was_opened(stub):
    code = """
key = nvml.devices().value[0].key
rows = Rows()
sampler = Sampler(device_sources(nvml, {}), rows, zero=time.monotonic(), flush_s=0.01)
sampler.start()
until(lambda: len(rows) > 5)
stopped = lambda: (sampler.running, sampler.stop())
result["children"] = [
    in_child(lambda: [nvml.memory(key).used.note, Nvml().memory(key).used.note, stopped(), nvml.close()])
    for _ in range(20)
]
n = len(rows)
until(lambda: len(rows) > n + 5)
result["parent"] = sampler.running and nvml.memory(key).used.bytes
sampler.stop()
"""
    got = stub.run(FORK + code, stub.two_gpus)
    note = "n/a (this process was forked after NVML was opened: start a fresh one instead)"
    assert got["children"] == [[note, note, [False, True], True]] * 20
    assert got["parent"] == 1000000
    assert stub.log == ["init", "shutdown"]  # the children called nothing


def test_fork_before_nvml_was_opened(stub):
    code = """
result["child"] = in_child(lambda: len(nvml.devices().value))
result["parent"] = len(nvml.devices().value)
"""
    assert stub.run(FORK + code, stub.two_gpus) == {"child": 2, "parent": 2}
    assert stub.log == ["init", "shutdown"] * 2
