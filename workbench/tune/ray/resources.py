"""What one engine takes of a Ray cluster, and how many of them the cluster has room for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.config import EngineConfig
from workbench.errors import ConfigError, InputError
from workbench.simulated_config import SimulatedConfig

Node = Mapping[str, float]  # what a machine of the cluster has, as Ray names it: CPU, GPU, memory in bytes, ...


@dataclass(frozen=True)
class Need:
    """Resources of one engine.

    Attributes:
        cpus: logical CPUs.
        gpus: GPUs, all on one machine.
        pinned: whether its threads are pinned to cores of their own: on CPUs, where two engines must not share one.
    """

    cpus: int
    gpus: int
    pinned: bool

    @property
    def words(self) -> str:
        """Such as "2 CPUs" or "1 CPU and 4 GPUs"."""
        cpus = f"{self.cpus} CPU{'s' * (self.cpus > 1)}"
        return cpus + (f" and {self.gpus} GPU{'s' * (self.gpus > 1)}" if self.gpus else "")

    def on(self, node: Node) -> int:
        """How many such engines a machine has room for."""
        room = int(node.get("CPU", 0)) // self.cpus
        return min(room, int(node.get("GPU", 0)) // self.gpus) if self.gpus else room


def ranks_of(config: EngineConfig) -> int:
    """Workers of one engine, each on a GPU of its own, or on cores of its own."""
    return config.tensor_parallel_size * config.pipeline_parallel_size


def check_counts(workers: int | None, cores: int | None) -> None:
    """Refuse a number that no cluster can have room for.

    Raises:
        InputError: one is below 1.
    """
    for what, value in (("--workers", workers), ("--cores", cores)):
        if value is not None and value < 1:
            raise InputError(what, value, "1 or more", "leave it out to take what the cluster has room for")


def need_of(
    config: EngineConfig, ranks: int, device: str, nodes: Sequence[Node], workers: int | None, cores: int | None
) -> Need:
    """What an engine of this configuration takes.

    Args:
        config: start-up fields. A live engine on GPUs takes ``ranks`` of them and one CPU, a simulated one a CPU, and
            one on CPUs ``cores``.
        ranks: tensor x pipeline parallel, the most that a trial asks for.
        device: of live engines, "cpu" or "cuda".
        nodes: machines of the cluster.
        workers: how many engines are asked for.
        cores: logical CPUs of an engine on CPUs; by default what the smallest machine has, or with ``workers`` an equal
            share of what there is.

    Raises:
        InputError: a number is wrong.
        ConfigError: the engine spreads over machines by itself.
    """
    check_counts(workers, cores)
    if isinstance(config, SimulatedConfig):
        return Need(1, 0, pinned=False)
    if config.distributed_executor_backend == "ray":
        raise ConfigError(
            "distributed_executor_backend and --ray",
            "ray and a cluster for trials side by side",
            "an engine that fits on one machine, or trials one after the other",
            "leave one of them out; see docs/several_machines.md",
        )
    if device == "cuda":
        return Need(1, ranks, pinned=False)
    return Need(cores or _share([int(node.get("CPU", 0)) for node in nodes], workers), 0, pinned=True)


def room_for(need: Need, nodes: Sequence[Node], workers: int | None) -> int:
    """How many engines to start: as many as are asked for, else as many as there is room for.

    Raises:
        InputError: there is no room for that many.
    """
    room = sum(need.on(node) for node in nodes)
    if room >= (workers or 1):
        return workers or room
    asked = f"{workers} engines of {need.words} each" if workers else f"an engine of {need.words}"
    largest = max(nodes, key=lambda node: (node.get("GPU", 0), node.get("CPU", 0)), default={})
    has = f"{len(nodes)} machine{'s' * (len(nodes) != 1)} with room for {room}"
    biggest = f"the largest has {int(largest.get('CPU', 0))} CPUs and {int(largest.get('GPU', 0))} GPUs"
    fix = "ask for fewer --workers or a smaller engine, or add machines"
    raise InputError("Ray cluster", f"{has}; {biggest}", f"room for {asked}", fix)


def nodes_of(listed: Sequence[Mapping[str, Any]]) -> list[Node]:
    """Machines that are alive, of what ``ray.nodes()`` says."""
    return [dict(node.get("Resources") or {}) for node in listed if node.get("Alive")]


def _share(cpus: Sequence[int], workers: int | None) -> int:
    """The most CPUs that each of so many engines can have; without a number, those of the smallest machine."""
    usable = [n for n in cpus if n > 0]
    if not usable:
        return 1
    if workers is None:
        return min(usable)
    return next((n for n in range(max(usable), 1, -1) if sum(have // n for have in usable) >= workers), 1)
