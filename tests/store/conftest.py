from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import workbench
from workbench.store import RunWriter, owner
from workbench.store.meta import read_meta, write_meta

ROOT = Path(workbench.__file__).parents[1]

ROWS = {
    "requests": [
        {"request": "a", "class": "chat", "planned_s": 0.0, "sent_s": 0.0, "status": "ok", "output_tokens": 2},
        {"request": "b", "class": "long", "planned_s": 0.5, "status": "error", "error": "no room"},
    ],
    "tokens": [
        {"request": "a", "index": 0, "n": 1, "client_s": 1.01},
        {"request": "a", "index": 1, "n": 1, "client_s": 2.01},
    ],
    "steps": [{"step": 1, "end_s": 1.0, "preempted": []}, {"step": 2, "end_s": 2.0, "preempted": ["b"]}],
    "batch": [{"step": s, "request": "a", "tokens": 1, "prefill": False, "emitted": 1} for s in (1, 2)],
    "client": [{"t_s": 0.6, "late_s": 0.02}],
    "server": [{"t_s": 0.2, "running": 2, "kv_use": 0.5}],
    "memory": [{"t_s": 0.1, "source": "host", "bytes": 123}],
    "knobs": [{"revision": 0, "sent_s": 0.0, "budget": 256, "policy": "chunked"}],
}


@pytest.fixture
def rows():
    """One or two rows of every table."""
    return {name: [dict(row) for row in rows] for name, rows in ROWS.items()}


@pytest.fixture
def write(rows):
    """Write a small run into a folder; ``crash`` leaves it as a kill -9 would."""

    def write(folder, *, crash=False, tables=rows, meta=None, **end):
        writer = RunWriter(folder, meta or {"label": "small"})
        for name, those in tables.items():
            writer.rows(name, those)
        if crash:
            writer.flush()
            abandon(writer)
        else:
            writer.close(**end)
        return Path(folder)

    return write


def abandon(writer):
    """Let a writer of this process look like one of an earlier process that had the same pid."""
    writer._stop.set()
    writer._thread.join()
    owner.release(writer.folder, writer._lock)
    meta = read_meta(writer.folder)
    meta["writer"]["start"] -= 1
    write_meta(writer.folder, meta)


@pytest.fixture
def python():
    """Start a script in a Python of its own that finds the package."""
    started = []

    def start(script, *args, before=(), **how):
        env = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
        command = [*before, sys.executable, "-c", script, *map(str, args)]
        process = subprocess.Popen(command, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how)
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def mounted():
    """A command prefix that runs what follows where ``setup`` (a line of shell) has mounted something."""
    probe = ["unshare", "--map-root-user", "--mount", "sh", "-c", "mount -t tmpfs none /mnt"]
    if not shutil.which("unshare") or subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("this machine does not let us mount a file system in a namespace of our own")

    def prefix(setup):
        return ["unshare", "--map-root-user", "--mount", "sh", "-ec", f'{setup}\nexec "$@"', "sh"]

    return prefix
