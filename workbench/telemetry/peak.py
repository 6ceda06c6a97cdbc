"""What this machine can do at most: FLOP/s of a matrix product, bytes/s between host and device. Measured once, kept.

The answer is kept in a folder by what it depends on: processor or GPU, torch version, threads. Measuring takes a few
seconds in a child process; reading it back takes less than a millisecond.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from workbench.children import import_path
from workbench.json_file import read_json
from workbench.machine import processor
from workbench.topology import CPUS, core_of, node_of
from workbench.whole_file import draft_of

_TIMEOUT_S = 60.0
_failed: dict[str, str] = {}  # why a measurement failed in this process: not tried again at every run


class PeakError(Exception):
    """It could not be measured; the text says why."""


@dataclass(frozen=True, slots=True)
class Peak:
    """A rate that a device can reach.

    Attributes:
        per_s: FLOP/s or bytes/s.
        source: how it was found, in words.
    """

    per_s: float
    source: str


def matmul_peak(threads: int, folder: Path, *, device: str = "cpu", name: str = "", again: bool = False) -> Peak:
    """Measure the peak of a matrix product, or read what was measured before.

    On a CPU the faster of bf16 and float32 counts: without bf16 instructions the former is emulated.

    Args:
        threads: as many as the engine computes with.
        folder: where measurements are kept.
        device: "cpu" or "cuda".
        name: of the device; by default the processor's.
        again: measure anew.

    Raises:
        PeakError: torch is missing, or the child failed.
    """
    options = ["--device", device, "--threads", str(threads)]
    found = _measured("matmul", options, {"name": name or processor(), "threads": threads}, folder, again)
    kind = max(found, key=lambda one: found[one])
    beside = "".join(f", {one} reaches {rate / found[kind]:.0%} of it" for one, rate in found.items() if one != kind)
    where = f"{threads} thread{'s' if threads > 1 else ''}" if device == "cpu" else name or "GPU"
    return Peak(found[kind], f"measured matmul, {where}, {kind}{beside}")


def copy_rates(folder: Path, *, name: str, again: bool = False) -> dict[str, float]:
    """Bytes/s ``to_device`` and ``to_host`` between pinned host memory and the CUDA device, measured or kept.

    Raises:
        PeakError: there is no CUDA device, or the child failed.
    """
    return _measured("copies", [], {"name": name}, folder, again)


def engine_threads(environ: Mapping[str, str] | None = None, cpus: Iterable[int] | None = None) -> int:
    """Threads that one worker of vLLM's CPU backend computes with.

    vLLM 0.32 (``utils/ompmultiprocessing.py``) binds one thread to each physical core of the first NUMA node that it
    may use (to each logical one on ARM), less one core, or ``VLLM_CPU_NUM_OF_RESERVED_CPU``, which it leaves free;
    ``VLLM_CPU_OMP_THREADS_BIND`` may list the cores instead.
    """
    environ = os.environ if environ is None else environ
    allowed = sorted(os.sched_getaffinity(0) if cpus is None else cpus)
    bound = environ.get("VLLM_CPU_OMP_THREADS_BIND", "auto")
    if bound == "nobind":
        return int(environ.get("OMP_NUM_THREADS") or len(allowed))
    if bound != "auto":
        return _listed(bound.split("|")[0])
    nodes = [(node_of(cpu, CPUS), cpu) for cpu in allowed]
    first = [cpu for node, cpu in nodes if node == min(nodes)[0]]
    cores = len({core_of(cpu, CPUS) for cpu in first}) if os.uname().machine in ("x86_64", "s390x") else len(first)
    reserved = int(environ.get("VLLM_CPU_NUM_OF_RESERVED_CPU") or 1)
    return cores - reserved if cores > reserved else cores


def _listed(text: str) -> int:
    """How many CPUs a list such as "0-3,8" names."""
    count = 0
    for part in text.split(","):
        low, _, high = part.partition("-")
        count += int(high or low) - int(low) + 1
    return count


def _measured(what: str, options: list[str], about: dict[str, Any], folder: Path, again: bool) -> dict[str, float]:
    """Rates that the child ``what`` prints, from the folder where they are there for the same machine and torch."""
    try:
        key = {"what": what, "torch": version("torch"), **about}
    except PackageNotFoundError:
        raise PeakError("torch is not installed in this environment") from None
    text = json.dumps(key, sort_keys=True)
    path = folder / f"{what}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"
    if not again:
        with suppress(OSError, ValueError, KeyError, TypeError):
            kept = read_json(path)
            if kept["key"] == key:
                return {str(name): float(rate) for name, rate in kept["rates"].items()}
        if text in _failed:
            raise PeakError(_failed[text])
    try:
        found = _child(what, options)
    except PeakError as error:
        _failed[text] = str(error)
        raise
    _keep(path, {"key": key, "rates": found})
    return found


def _child(what: str, options: list[str]) -> dict[str, float]:
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", f"workbench.telemetry.{what}", *options],
            env={**os.environ, "PYTHONPATH": import_path()},
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
        if done.returncode:
            lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
            raise PeakError(lines[-1] if lines else f"the measurement ended with code {done.returncode}")
        found = {str(name): float(rate) for name, rate in json.loads(done.stdout.splitlines()[-1]).items()}
    except subprocess.TimeoutExpired:
        raise PeakError(f"the measurement took longer than {_TIMEOUT_S:.0f} s") from None
    except (OSError, ValueError, IndexError, AttributeError) as error:
        raise PeakError(f"the measurement gave no numbers ({error})") from None
    if not found or min(found.values()) <= 0:
        raise PeakError("the measurement gave no numbers")
    return found


def _keep(path: Path, entry: dict[str, Any]) -> None:
    """A full disk keeps nothing."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft_of(path) as draft:
            draft.write_text(json.dumps(entry, indent=1), encoding="utf-8")
