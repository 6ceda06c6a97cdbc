"""Where a logical CPU sits: its NUMA node and its physical core, as Linux tells them."""

from __future__ import annotations

from pathlib import Path

CPUS = Path("/sys/devices/system/cpu")


def node_of(cpu: int, root: Path = CPUS) -> int:
    """Its NUMA node; 0 where that is not told.

    Args:
        cpu: number of the logical CPU.
        root: folder that has one for each CPU.
    """
    names = (path.name.removeprefix("node") for path in (root / f"cpu{cpu}").glob("node[0-9]*"))
    return min((int(name) for name in names if name.isdigit()), default=0)


def core_of(cpu: int, root: Path = CPUS) -> tuple[str, str]:
    """What the logical CPUs of one physical core have in common; where that is not told each is a core of its own.

    Args:
        cpu: number of the logical CPU.
        root: folder that has one for each CPU.
    """
    topology = root / f"cpu{cpu}" / "topology"
    try:
        return (topology / "physical_package_id").read_text().strip(), (topology / "core_id").read_text().strip()
    except OSError:
        return "", str(cpu)
