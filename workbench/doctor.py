"""``workbench doctor``: what could keep an engine from starting here, and what vLLM's own defaults are."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import psutil

from workbench.engine.leftovers import find_leftovers
from workbench.engine.probe.compat import TESTED, check_version, installed_vllm
from workbench.errors import VersionError
from workbench.i18n import marked, phrase
from workbench.machine import machine_facts
from workbench.models import list_presets
from workbench.store import default_root
from workbench.telemetry import Nvml, cuda_devices
from workbench.telemetry.cgroup import cgroup_of
from workbench.units import GIB

Verdict = Literal["ok", "warn", "fail"]

_NEEDED_MEMORY = 4 * GIB  # smollm2 with its default KV pool peaks at about 3.5 GiB over all processes
_NEEDED_DISK = GIB
_NEEDED_SHM = 64 << 20  # vLLM's message queues between engine core and workers
_RESOLVE_TIMEOUT_S = 120.0


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    Attributes:
        name: what.
        verdict: ok, warn (works, with a limit) or fail (an engine will not start).
        found: what was found.
        fix: what to do about it, if anything.
        data: the same as plain data, for scripts.
    """

    name: str
    verdict: Verdict
    found: str
    fix: str = ""
    data: Any = None


def examine(tell: Callable[[str], None], *, defaults: bool = True) -> list[Check]:
    """Look at everything.

    Args:
        tell: told what is being looked at.
        defaults: also let vLLM resolve its own defaults, which imports it and takes some seconds.
    """
    checks = []
    for name, look in _LOOKS:
        tell(name)
        checks.append(look())
    if defaults:
        tell(marked("vLLM's defaults"))
        checks.append(_defaults())
    return checks


def as_json(checks: list[Check]) -> str:
    """All checks as one JSON document, with ``ok`` false when one has failed."""
    return json.dumps(
        {
            "ok": all(check.verdict != "fail" for check in checks),
            "machine": machine_facts(),
            "checks": [asdict(check) for check in checks],
        },
        indent=2,
        default=str,
    )


def _vllm() -> Check:
    found = installed_vllm()
    if found is None:
        return Check(
            "vLLM", "fail", phrase("not installed"), phrase("run make setup; recorded runs can be opened without it")
        )
    shown = "==".join(found)
    try:
        check_version(found[1])
    except VersionError as error:
        return Check("vLLM", "fail", shown, str(error), found)
    return Check(
        "vLLM", "ok", phrase("{shown} (tested: {versions})", shown=shown, versions=", ".join(TESTED)), data=found
    )


def _gpu() -> Check:
    nvml = Nvml()
    try:
        devices, notes = cuda_devices(nvml)
        data = [{"name": device.label, "key": device.key} for device in devices]
    finally:
        nvml.close()
    if devices:
        return Check("GPU", "ok", "; ".join(device.label for device in devices), "; ".join(notes), data)
    return Check(
        "GPU", "warn", "; ".join(notes) or phrase("none"), phrase("live engines run on the CPU build of vLLM"), data
    )


def _memory() -> Check:
    free = psutil.virtual_memory().available
    group = cgroup_of()
    if group is not None and group.limit is not None:  # a container may use less than the machine has
        with contextlib.suppress(OSError, ValueError):
            free = min(free, max(0, group.limit - int(group.usage.read_text())))
    verdict: Verdict = "ok" if free >= _NEEDED_MEMORY else "warn"
    fix = "" if verdict == "ok" else phrase("close other programs, or start with a smaller kv_cache_mib")
    return Check("memory", verdict, phrase("{gib:.1f} GiB available", gib=free / GIB), fix, free)


def _processor() -> Check:
    facts = machine_facts()
    cores = int(facts["usable_cores"])
    verdict: Verdict = "ok" if cores > 1 else "warn"
    fix = "" if cores > 1 else phrase("vLLM and the client share one core, so gaps include the client's own work")
    found = phrase("{processor}, {cores} usable cores", processor=facts["processor"], cores=cores)
    return Check("processor", verdict, found, fix, facts)


def _disk() -> Check:
    root = default_root().absolute()
    there = next(path for path in (root, *root.parents) if path.exists())
    free = shutil.disk_usage(there).free
    verdict: Verdict = "ok" if free >= _NEEDED_DISK else "fail"
    found = phrase("{gib:.1f} GiB free for {root}", gib=free / GIB, root=str(root))
    return Check("disk", verdict, found, "" if verdict == "ok" else phrase("free some"), free)


def _shared_memory() -> Check:
    place = Path("/dev/shm")  # noqa: S108  it is what vLLM uses, and we only look
    if not place.is_dir():
        return Check("shared memory", "fail", phrase("no /dev/shm"), phrase("mount one (docker run --shm-size=1g)"))
    free = shutil.disk_usage(place).free
    verdict: Verdict = "ok" if free >= _NEEDED_SHM else "fail"
    fix = "" if verdict == "ok" else phrase("enlarge it (docker run --shm-size=1g), or remove old segments")
    return Check("shared memory", verdict, phrase("{gib:.2f} GiB free in /dev/shm", gib=free / GIB), fix, free)


def _ports() -> Check:
    try:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
    except OSError as error:
        found = phrase("no free port on 127.0.0.1 ({why})", why=str(error))
        return Check("ports", "fail", found, phrase("allow programs to listen on loopback"))
    return Check("ports", "ok", phrase("127.0.0.1 has free ports"))


def _leftovers() -> Check:
    found = find_leftovers()
    data = [{"label": one.label, "pids": list(one.pids)} for one in found]
    if not found:
        return Check("leftovers", "ok", phrase("none"), data=data)
    said = phrase("{count} engines that nobody guards", count=len(found))
    return Check("leftovers", "warn", said, phrase("run workbench reap"), data)


def _models() -> Check:
    presets = list_presets()
    ready = [preset.name for preset in presets if preset.ready]
    data = {preset.name: preset.ready for preset in presets}
    rest = [preset.name for preset in presets if not preset.ready]
    found = phrase("ready: {names}", names=", ".join(ready) or phrase("none"))
    if rest:
        found += phrase("; made at first use: {names}", names=", ".join(rest))
    return Check("models", "ok", found, data=data)


def _defaults() -> Check:
    """C6: what stock vLLM does when no flag is given, resolved by vLLM itself."""
    name = marked("chunked prefill default")
    if installed_vllm() is None:
        return Check(
            name, "warn", phrase("n/a (vLLM is not installed, and it is what is asked)"), phrase("run make setup")
        )
    ready = next((preset for preset in list_presets() if preset.ready), None)
    if ready is None:
        fix = phrase("run workbench demo once, which makes one")
        return Check(name, "warn", phrase("n/a (vLLM is there; it wants a model to resolve its defaults for)"), fix)
    command = [sys.executable, "-m", "workbench.engine.probe.defaults", str(ready.folder)]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=_RESOLVE_TIMEOUT_S, check=True)
        data = json.loads(answer.stdout.strip().splitlines()[-1])
    except (subprocess.SubprocessError, OSError, ValueError, IndexError) as error:
        why = " ".join(str(error).split())[:200]
        return Check(name, "warn", phrase("n/a (vLLM did not say: {why})", why=why))
    found = phrase(
        "{switch} without any flag (max_num_batched_tokens {budget}, max_num_seqs {seqs}, resolved by vLLM for {name})",
        switch=phrase("on") if data["enable_chunked_prefill"] else phrase("off"),
        budget=data["max_num_batched_tokens"],
        seqs=data["max_num_seqs"],
        name=ready.name,
    )
    return Check(name, "ok", found, data=data)


_LOOKS: tuple[tuple[str, Callable[[], Check]], ...] = (
    ("vLLM", _vllm),
    (marked("processor"), _processor),
    (marked("memory"), _memory),
    ("GPU", _gpu),
    (marked("disk"), _disk),
    (marked("shared memory"), _shared_memory),
    (marked("ports"), _ports),
    (marked("leftovers"), _leftovers),
    (marked("models"), _models),
)
