"""The memory cgroup of a process: where its usage stands, and its limit (cgroup v1 and v2)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
_UNLIMITED_V1 = 2**62  # v1 writes "no limit" as the largest whole number of pages


@dataclass(frozen=True)
class Cgroup:
    """The memory cgroup of a process.

    Attributes:
        version: 2 or 1.
        usage: file with the bytes in use, file cache included.
        limit: bytes that may be used, the least of its own limit and those above it; None when there is none.
        limit_path: the file that sets the limit.
    """

    version: int
    usage: Path
    limit: int | None
    limit_path: Path | None


def cgroup_of(pid: int | str = "self", proc: Path = PROC) -> Cgroup | None:
    """Find the memory cgroup of a process; None when it has none that can be read."""
    try:
        memberships = [line.split(":", 2) for line in (proc / str(pid) / "cgroup").read_text().splitlines()]
        mounts = [line.split() for line in (proc / str(pid) / "mountinfo").read_text().splitlines()]
    except OSError:
        return None
    for version, usage_name, limit_name in (
        (1, "memory.usage_in_bytes", "memory.limit_in_bytes"),
        (2, "memory.current", "memory.max"),
    ):
        for _, controllers, path in memberships:
            if controllers == "" if version == 2 else "memory" in controllers.split(","):
                found = _located(mounts, version, path, usage_name)
                if found is not None:
                    return Cgroup(version, found[1] / usage_name, *_limit(*found, limit_name))
    return None


def _located(mounts: list[list[str]], version: int, path: str, usage: str) -> tuple[Path, Path] | None:
    """Find the mount of a cgroup and its folder there; in a container the path may lie above what is mounted."""
    for fields in mounts:
        kind, options = fields[fields.index("-") + 1], fields[-1].split(",")
        if kind != ("cgroup2" if version == 2 else "cgroup") or (version == 1 and "memory" not in options):
            continue
        root, mount = fields[3], Path(fields[4])
        inside = path.removeprefix(root) if root != "/" else path
        for folder in (mount / inside.lstrip("/"), mount):
            if ".." not in folder.parts and (folder / usage).is_file():
                return mount, folder
    return None


def _limit(mount: Path, folder: Path, name: str) -> tuple[int | None, Path | None]:
    least: tuple[int | None, Path | None] = (None, None)
    while folder.is_relative_to(mount):
        try:
            text = (folder / name).read_text().strip()
        except OSError:
            text = "max"  # the topmost cgroup of v2 has no limit
        if text != "max" and int(text) < min(_UNLIMITED_V1, least[0] if least[0] is not None else _UNLIMITED_V1):
            least = (int(text), folder / name)
        folder = folder.parent
    return least
