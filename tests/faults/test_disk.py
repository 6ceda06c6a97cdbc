"""A disk that is full or may not be written, below a whole run; the engine is a stand-in."""

from __future__ import annotations

import errno
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import zmq

import workbench
from workbench.engine import live_server, prepared
from workbench.engine.probe.knob_page import KnobPage
from workbench.errors import EngineStartError, ModelError, StoreError

ROOT = Path(workbench.__file__).parents[1]
HERE = Path(__file__).parent

# A run on a disk that ends in mid-run, then another when there is room again, on the same engine.
FULL = """
import json, resource, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import stand_in
for owner, name, value in stand_in.patches(period_ms=2):
    setattr(owner, name, value)
from workbench import Workbench
from workbench.errors import StoreError
from workbench.store import open_run
from workbench.workload.scenario import Scenario

model, runs, limit = sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])
arrivals = {"kind": "at_once", "count": 40}
stream = {"class": "chat", "arrivals": arrivals, "prompt_tokens": 20, "output_tokens": 4000}
scenario = Scenario.model_validate({"name": "full", "streams": [stream]})
said = {}
with Workbench(model, runs=runs) as bench:
    bench.start()
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    else:
        ballast = runs / "ballast"
        with ballast.open("wb") as file:
            file.write(bytes(1 << 20))
    run = bench.run(scenario)
    deadline = time.monotonic() + 60
    while not run._writer.dropped and time.monotonic() < deadline:
        time.sleep(0.02)
    said["dropped in time"] = bool(run._writer.dropped)
    try:
        bench.stop_load()
    except StoreError as error:
        said["error"] = str(error)
    said["engine"] = bench.engine.state
    trace = open_run(run.folder)
    said["status"], said["reason"] = trace.meta["status"], trace.meta["reason"]
    tokens = trace.tokens
    said["tokens"] = len(tokens)
    # Rows may be missing in between, where a small batch still had room: none is there twice, and none is out of order.
    rising = lambda index: index.is_monotonic_increasing and index.is_unique
    said["in order"] = bool(tokens.groupby("request")["index"].apply(rising).all())
    said["steps in order"] = bool(rising(trace.steps["step"]))
    said["named"] = int(trace.requests["class"].eq("chat").sum())
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    else:
        ballast.unlink()
    stream["output_tokens"], arrivals["count"] = 30, 4
    after = bench.run(Scenario.model_validate({"name": "after", "streams": [stream]}))
    after.wait(60)
    said["after"] = [after.meta["status"], len(after.trace.tokens)]
print(json.dumps(said))
"""


def namespace(setup):
    """A command prefix that runs what follows where ``setup`` (a line of shell) has mounted something."""
    probe = ["unshare", "--map-root-user", "--mount", "sh", "-c", "mount -t tmpfs none /mnt"]
    if not shutil.which("unshare") or subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("this machine does not let us mount a file system in a namespace of our own")
    return ["unshare", "--map-root-user", "--mount", "sh", "-ec", f'{setup}\nexec "$@"', "sh"]


@pytest.mark.parametrize("how", ["a disk of two MiB", "a limit on files"])
def test_a_disk_that_fills_up_ends_no_engine_and_keeps_what_was_written(place, how):
    place.runs.mkdir()
    mounted = how == "a disk of two MiB"
    before = namespace(f"mount -t tmpfs -o size=2m none {place.runs}") if mounted else []
    limit = 0 if mounted else 200_000
    command = [*before, sys.executable, "-c", FULL, str(HERE), str(place.model), str(place.runs), str(limit)]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["dropped in time"]
    assert ("No space left on device" if mounted else "File too large") in said["error"]
    assert said["error"].endswith("free some space there, or choose another folder")
    assert "\n" not in said["error"]
    assert (said["engine"], said["status"]) == ("ready", "failed")
    assert "rows were lost" in said["reason"]
    assert said["tokens"] > 1000
    assert said["in order"]
    assert said["steps in order"]
    assert said["named"] == 40
    assert said["after"] == ["complete", 120]
    assert place.nothing_left()


def test_a_run_folder_that_may_not_be_written_costs_no_start(place, stand_in, one_line, monkeypatch):
    stand_in()
    bench = place.bench()
    place.runs.mkdir()

    def read_only(*_how, **_more):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    with monkeypatch.context() as patch:
        patch.setattr("workbench.store.folder.tempfile.NamedTemporaryFile", read_only)
        with pytest.raises(StoreError) as caught:
            bench.start()
    said = one_line(caught.value)
    assert f"cannot write to {place.runs}: Read-only file system" in said
    assert said.endswith("make it writable, or choose another folder")
    assert bench.engine.state == "new", "no engine was started for it"
    assert place.nothing_left()
    bench.start()
    place.mark()
    bench.stop()
    assert place.nothing_left()


@pytest.mark.parametrize(
    ("where", "what", "variable"),
    [
        ("new_log", "the engine's log", "WORKBENCH_STATE"),
        ("socket_folder", "the engine's sockets", "TMPDIR"),
        ("Collector", "the engine's sockets", "TMPDIR"),
        ("DriverProcess", "the client's socket", "TMPDIR"),
    ],
)
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_what_a_start_writes_elsewhere(place, stand_in, one_line, monkeypatch, where, what, variable, number):
    stand_in()
    bench = place.bench()

    def refuse(*_how, **_more):
        if where == "Collector":  # its socket is what cannot be made
            raise zmq.ZMQError(number)
        raise OSError(number, os.strerror(number), "/some/folder")

    with monkeypatch.context() as patch:
        patch.setattr(prepared if where == "new_log" else live_server, where, refuse)
        with pytest.raises(EngineStartError) as caught:
            bench.start()
    said = one_line(caught.value)
    place_of = "" if where == "Collector" else " (/some/folder)"
    assert said.startswith(f"{what}: got {os.strerror(number)}{place_of}, expected a folder that can be written")
    assert said.endswith(f"or set {variable} to another one")
    assert ("free some space" if number == errno.ENOSPC else "make it writable") in said
    assert place.nothing_left()


def test_a_workbench_without_file_descriptors(place, stand_in, one_line, monkeypatch):
    stand_in()
    bench = place.bench()

    def refuse(*_how, **_more):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as patch:
        patch.setattr(live_server, "socket_folder", refuse)
        with pytest.raises(EngineStartError) as caught:
            bench.start()
    assert one_line(caught.value).endswith("close other notebooks, or raise the limit (ulimit -n)")
    assert place.nothing_left()


def test_temporary_files_too_deep_for_a_socket(place, stand_in, one_line, monkeypatch):
    stand_in()
    deep = place.temporary / ("d" * 80)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    with pytest.raises(EngineStartError) as caught:
        place.bench().start()
    assert "expected at most 70; set TMPDIR to a folder with a short name" in one_line(caught.value)
    assert list(deep.iterdir()) == []
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert place.nothing_left()


def test_a_page_of_knobs_on_a_full_disk_is_an_error_and_not_the_end_of_the_process(tmp_path):
    """A page without blocks is killed at its first write (SIGBUS), and the notebook's kernel with it."""
    code = (
        "import errno, sys\nfrom workbench.engine.probe.knob_page import KnobPage\n"
        "with open(sys.argv[1] + '/ballast', 'wb') as file:\n"
        "    try:\n        file.write(bytes(1 << 20))\n    except OSError:\n        pass\n"
        "try:\n    KnobPage(sys.argv[1], create=True)\n"
        "except OSError as error:\n    print(errno.errorcode[error.errno])\n"
    )
    before = namespace(f"mount -t tmpfs -o size=64k none {tmp_path}")
    done = subprocess.run(
        [*before, sys.executable, "-c", code, str(tmp_path)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "ENOSPC"), done.stderr


def test_a_page_has_its_blocks_from_the_start(tmp_path):
    KnobPage(tmp_path, create=True)
    assert (tmp_path / "knobs.page").stat().st_blocks * 512 >= 4096


@pytest.mark.parametrize("damage", ["cut short", "header", "config", "gone"])
def test_a_damaged_model_folder_is_named_before_anything_starts(place, stand_in, books, one_line, tmp_path, damage):
    stand_in()
    folder = Path(shutil.copytree(place.model, tmp_path / "model"))
    weights, config = folder / "model.safetensors", folder / "config.json"
    whole = weights.read_bytes()
    if damage == "cut short":
        weights.write_bytes(whole[:-2])
    elif damage == "header":
        weights.write_bytes(struct.pack("<Q", 9) + b"no header")
    elif damage == "config":
        config.write_text('{"architectures": [')
    else:
        weights.unlink()
    place.model = folder
    bench = place.bench()
    with pytest.raises(ModelError) as caught:
        bench.start()
    said = one_line(caught.value)
    assert str(folder) in said
    assert {"cut short": "a whole model.safetensors", "header": "header cannot be read"}.get(damage, "") in said
    assert place.nothing_left()
    weights.write_bytes(whole)
    if damage == "config":
        config.write_text(json.dumps({"architectures": ["LlamaForCausalLM"], "model_type": "llama"}))
    bench.start()
    place.mark()
    run = bench.run(place.scenario(output=30))
    assert run.wait(place.patience)
    assert len(books(run.trace, 30)) == 120
    bench.stop()
    assert place.nothing_left()
