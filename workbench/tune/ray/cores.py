"""Cores of this machine for one engine: no two engines that are started here share one.

Ray counts CPUs and says nothing of which; vLLM's CPU backend takes all cores of a NUMA node and pins a thread to each.
A claim is a lock on a file per core, which the kernel lets go of when its holder ends, kill -9 included.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from workbench.errors import EngineStartError
from workbench.topology import CPUS, core_of, node_of

BIND = "VLLM_CPU_OMP_THREADS_BIND"
_LOOK_S = 0.5
_ONE_THREAD_A_CORE = ("x86_64", "s390x")  # where vLLM 0.32 takes one logical CPU of each physical core


@dataclass(frozen=True, order=True)
class Core:
    """A physical core.

    Attributes:
        node: its NUMA node.
        cpus: its logical CPUs that this process may run on, in order.
    """

    node: int
    cpus: tuple[int, ...]


def cores_here(cpus: Iterable[int] | None = None, root: Path = CPUS) -> list[Core]:
    """Physical cores that this process may run on, by NUMA node.

    Args:
        cpus: logical CPUs to look at; by default those of the affinity.
        root: of the topology, as in sysfs.
    """
    found: dict[tuple[int, tuple[str, str]], list[int]] = {}
    for cpu in sorted(os.sched_getaffinity(0) if cpus is None else cpus):
        found.setdefault((node_of(cpu, root), core_of(cpu, root)), []).append(cpu)
    return sorted(Core(node, tuple(of)) for (node, _), of in found.items())


@dataclass
class Claim:
    """Cores that are held until :meth:`free`, or until this process ends."""

    cores: tuple[Core, ...]
    locks: tuple[int, ...]

    @classmethod
    def take(
        cls, cpus: int, *, wait_s: float = 0.0, cores: Sequence[Core] | None = None, folder: Path | None = None
    ) -> Self:
        """Claim whole cores with at least so many logical CPUs; those of one NUMA node where one has enough.

        Args:
            cpus: logical CPUs, as Ray counts them.
            wait_s: for others to let go of theirs.
            cores: to choose from; by default those of this machine.
            folder: of the locks; by default one for this user in the folder for temporary files.

        Raises:
            EngineStartError: so many are not free.
        """
        cores = cores_here() if cores is None else cores
        folder = _locks_folder() if folder is None else folder
        deadline = time.monotonic() + wait_s
        while True:
            held = [(core, lock) for core in cores if (lock := _lock(folder, core)) is not None]
            chosen = _choose([core for core, _ in held], cpus)
            for core, lock in held:
                if core not in chosen:
                    os.close(lock)
            if chosen:
                return cls(tuple(chosen), tuple(lock for core, lock in held if core in chosen))
            if time.monotonic() >= deadline:
                free, all_ = _size(core for core, _ in held), _size(cores)
                raise EngineStartError(
                    f"cores: got {free} free CPUs of {all_} on this machine, expected {cpus} for one more engine; end "
                    "what holds them, or ask for fewer workers or cores"
                )
            time.sleep(_LOOK_S)

    @property
    def cpus(self) -> list[int]:
        """Logical CPUs of the claim."""
        return sorted(cpu for core in self.cores for cpu in core.cpus)

    def bind(self, ranks: int = 1, machine: str | None = None) -> str:
        """What VLLM_CPU_OMP_THREADS_BIND is to be: a list of CPUs for each worker of the engine.

        As vLLM does by itself, one logical CPU of each physical core on x86, and one core a worker is left to its
        scheduler and its API server where there is more than one.
        """
        machine = os.uname().machine if machine is None else machine
        share = len(self.cores) // ranks
        if share < 1:
            raise EngineStartError(
                f"cores: got {len(self.cores)} for {ranks} workers of one engine, expected one each; give it more"
            )
        lists = []
        for rank in range(ranks):
            mine = self.cores[rank * share : (rank + 1) * share]
            mine = mine[:-1] if len(mine) > 1 else mine
            threads = [core.cpus[-1:] if machine in _ONE_THREAD_A_CORE else core.cpus for core in mine]
            lists.append(",".join(str(cpu) for of in threads for cpu in of))
        return "|".join(lists)

    def environment(self, ranks: int = 1) -> Mapping[str, str]:
        """What an engine on these cores is to be started with."""
        return {BIND: self.bind(ranks)}

    def free(self) -> None:
        """Let go of the cores; a second call does nothing."""
        locks, self.locks = self.locks, ()
        for lock in locks:
            os.close(lock)


def _choose(cores: Sequence[Core], cpus: int) -> list[Core]:
    """The first cores of the NUMA node with the least that is enough, else of all of them; none if that is too few."""
    nodes: dict[int, list[Core]] = {}
    for core in cores:
        nodes.setdefault(core.node, []).append(core)
    enough = [of for of in nodes.values() if _size(of) >= cpus]
    pool = min(enough, key=_size) if enough else list(cores)
    chosen: list[Core] = []
    for core in pool:
        if _size(chosen) < cpus:
            chosen.append(core)
    return chosen if _size(chosen) >= cpus else []


def _size(cores: Iterable[Core]) -> int:
    return sum(len(core.cpus) for core in cores)


def _lock(folder: Path, core: Core) -> int | None:
    """A lock on the core; none if another process has it."""
    lock = os.open(folder / f"cpu{core.cpus[0]}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


def _locks_folder() -> Path:
    folder = Path(tempfile.gettempdir()) / f"workbench-cores-{os.getuid()}"
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise EngineStartError(f"cores: got somebody else's folder {folder}, expected one of this user; remove it")
    return folder
