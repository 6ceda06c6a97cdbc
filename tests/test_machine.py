from __future__ import annotations

import os
import platform
import socket
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from workbench import machine


def test_facts_are_those_of_the_kernel():
    facts = machine.machine_facts()
    total_kib = int(Path("/proc/meminfo").read_text().split()[1])
    assert facts["memory_bytes"] == total_kib * 1024
    assert facts["usable_cores"] == len(os.sched_getaffinity(0)) <= facts["cores"]
    assert facts["system"].startswith("Linux ")
    assert facts["python"] == platform.python_version()


def test_facts_do_not_name_the_machine_or_its_user():
    assert socket.gethostname() not in str(machine.machine_facts())


def test_versions_are_those_installed_and_no_others(monkeypatch):
    found = machine.package_versions()
    assert set(found) <= set(machine.PACKAGES)
    assert found["pandas"] == version("pandas")

    def only_torch(name):
        if name == "torch":
            return "2.13.0"
        raise PackageNotFoundError(name)

    monkeypatch.setattr(machine, "version", only_torch)
    assert machine.package_versions() == {"torch": "2.13.0"}


def test_a_processor_has_a_name(monkeypatch, tmp_path):
    assert machine.processor()

    class Unreadable:
        def __init__(self, path):
            pass

        def read_text(self):
            raise OSError

    monkeypatch.setattr(machine, "Path", Unreadable)
    monkeypatch.setattr(machine.platform, "processor", lambda: "")
    assert machine.processor() == "unknown"
