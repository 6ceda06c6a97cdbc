"""Published figures of GPUs (``data/hardware.yaml``), each with the document and row it was taken from."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from workbench.errors import InputError
from workbench.i18n import phrase

_UNITS = {"TFLOP/s": 1e12, "GB": 1e9, "GB/s": 1e9, "TB/s": 1e12}


@dataclass(frozen=True, slots=True)
class Figure:
    """A published figure.

    Attributes:
        value: for one GPU, dense, in one direction: FLOP/s, bytes or bytes/s.
        source: document, table and row.
        note: what was printed, where it is not the value itself.
    """

    value: float
    source: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Gpu:
    """What a GPU's makers promise; nobody reaches it.

    Attributes:
        key: how it is asked for, such as "h100-sxm".
        name: how people call it.
        flops: dense bf16, FLOP/s.
        memory: of the device, bytes (as printed, decimal).
        bandwidth: of that memory, bytes/s.
        nvlink: to other GPUs, bytes/s in one direction; None has no such link.
        pcie: to the host, bytes/s in one direction.
        driver_names: how the driver calls it, without "NVIDIA".
    """

    key: str
    name: str
    flops: Figure
    memory: Figure
    bandwidth: Figure
    nvlink: Figure | None
    pcie: Figure
    driver_names: tuple[str, ...]

    @property
    def ridge(self) -> float:
        """FLOPs that it does in the time in which it reads a byte; below that many a byte, memory is the limit."""
        return self.flops.value / self.bandwidth.value


def gpus() -> Mapping[str, Gpu]:
    """All of them, by key."""
    return dict(_all())


def gpu(name: str) -> Gpu:
    """One of them, by key or name; small and capital letters are alike.

    Raises:
        InputError: there are no figures of it.
    """
    wanted = name.strip().lower().replace(" ", "-")
    for key, found in _all().items():
        if wanted in (key, found.name.lower().replace(" ", "-")):
            return found
    near = [key for key in _all() if wanted and key.startswith(wanted)] or difflib.get_close_matches(
        wanted, _all(), n=1
    )
    fix = (
        phrase("did you mean {name}?", name=near[0]) if near else phrase("add it to data/hardware.yaml with its source")
    )
    raise InputError("GPU", name, phrase("one of {names}", names=", ".join(_all())), fix)


def gpu_of_driver(name: str) -> Gpu | None:
    """The GPU that a driver calls so ("NVIDIA H100 80GB HBM3"); None where there are no figures of exactly that one.

    Variants differ (PCIe, NVL and laptop versions run slower), so names are not matched loosely.
    """
    plain = name.strip().removeprefix("NVIDIA ").strip()
    return next((found for found in _all().values() if plain in found.driver_names), None)


@cache
def _all() -> dict[str, Gpu]:
    path = Path(__file__).resolve().parents[1] / "data" / "hardware.yaml"
    return parse(yaml.safe_load(path.read_text(encoding="utf-8")), str(path))


def parse(facts: Mapping[str, Any], where: str) -> dict[str, Gpu]:
    """Read the facts of a file.

    Raises:
        InputError: a figure is missing, has an unknown unit, or lacks its source.
    """
    return {key: _gpu(key, entry, f"{where}: {key}") for key, entry in facts.items()}


def _gpu(key: str, entry: Mapping[str, Any], where: str) -> Gpu:
    try:
        sheet = entry["datasheet"]
        return Gpu(
            key=key,
            name=entry["name"],
            flops=_figure(entry["flops"], sheet),
            memory=_figure(entry["memory"], sheet),
            bandwidth=_figure(entry["bandwidth"], sheet),
            nvlink=None if entry["nvlink"] is None else _figure(entry["nvlink"], sheet),
            pcie=_figure(entry["pcie"], sheet),
            driver_names=tuple(entry["driver_names"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        expected = "name, driver_names, datasheet, flops, memory, bandwidth, nvlink (or null) and pcie"
        raise InputError(where, error, expected, "see the entries beside it") from None


def _figure(fact: Mapping[str, Any], datasheet: str) -> Figure:
    value = float(fact["value"]) * _UNITS[fact["unit"]] / float(fact.get("per", 1))
    return Figure(value, f"{datasheet}, row {fact['row']}", str(fact.get("note", "")))
