"""Start a Ray cluster on this machine, or join one that is there. Called in the driver's process only.

A cluster of ours has no dashboard and leaves no file. One that was joined stays as it is.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import Any

from workbench.errors import InputError
from workbench.proc import descendants
from workbench.tune.ray.address import kind_of
from workbench.tune.ray.remote import one_line

QUICK = "quick-imports"
_STORE_BYTES = 256 << 20  # of the object store: a few runs on their way home; more goes to disk
_STARTS = 3  # Ray gives its own processes 30 s, too few on a busy machine
SOCKETS = Path("/tmp")  # noqa: S108  a socket's path has 107 characters at most; TMPDIR may be long


def import_ray(address: str) -> Any:
    """Ray.

    Args:
        address: that it was asked for with.

    Raises:
        InputError: it is not installed.
    """
    try:
        import ray  # only whoever asks for it pays for it
    except ImportError as error:
        fix = 'pip install "ray>=2.60" in this environment, and on each machine'
        raise InputError("--ray", address, f"Ray to be installed ({one_line(error)})", fix) from None
    return ray


def lighten(folder: Path) -> None:
    """Spare each of Ray's processes an import that takes 3 s of CPU and that it has no use for.

    Ray imports jsonschema, and that, where Jupyter has brought it along, a grammar of IRIs (rfc3987-syntax) which is
    compiled at every import. Ray's agents must be up within 15 s, which they then miss on a busy machine. jsonschema
    does without it.

    Args:
        folder: of a local cluster, to put a module in that stands in the way of the real one.
    """
    quick = folder / QUICK
    quick.mkdir()
    (quick / "rfc3987_syntax.py").write_text('raise ImportError("not for Ray")\n')
    sys.path.insert(0, str(quick))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(quick), os.environ.get("PYTHONPATH", "")])


def connect(ray: Any, address: str, cpus: int, temporary: Path | None) -> None:
    """Start or join the cluster.

    Args:
        ray: the module.
        address: "local", "auto" or "host:port".
        cpus: that a local cluster is to have at least; simulated engines may be more than the machine's CPUs.
        temporary: folder of a local cluster's files.

    Raises:
        InputError: there is no such cluster, or it is of another version.
    """
    local = kind_of(address) == "local"
    options: dict[str, Any] = {"address": address, "logging_level": "error", "log_to_driver": False}
    if local:
        options |= {
            "num_cpus": max(cpus, len(os.sched_getaffinity(0))),
            "include_dashboard": False,
            "object_store_memory": _STORE_BYTES,
        }
    for attempt in range(_STARTS if local else 1):
        if temporary is not None:
            options["_temp_dir"] = str(temporary / str(attempt))
        try:
            ray.init(**options)
            break
        except Exception as error:  # noqa: BLE001  Ray raises what it likes
            ray.shutdown()
            why = one_line(error)
            if local:
                _end_children()  # of a start that was given up half way
    else:
        fix = "look at the machine's load" if local else "run `ray status` there; all machines need the same versions"
        if address == "auto":
            fix = f"start one here with `ray start --head`, or take --ray local; {fix}"
        raise InputError("--ray", address, f"a Ray cluster that can be used ({why})", fix)
    if local:
        outside = [node["NodeManagerAddress"] for node in ray.nodes() if node["NodeManagerAddress"] != "127.0.0.1"]
        if outside:
            ray.shutdown()
            raise InputError("--ray", address, f"Ray on 127.0.0.1, not {outside[0]}", "use the Ray that was tested")


def _end_children() -> None:
    for pid in descendants(os.getpid()):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
