"""Where a run's numbers come from, in the words that stand beside each of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def origin_words(meta: Mapping[str, Any]) -> str:
    """Say "live CPU", "live GPU", or "simulated" with the step-time model and its measured error or "uncalibrated".

    A run that was recorded elsewhere and handed over says so: "recorded, live CPU, AMD EPYC, 2 cores, 2026-11-30".

    Args:
        meta: of a run; ``engine.simulated.step_time_label`` is :attr:`workbench.simulate.hardware_setup.Setup.label`,
            and ``recorded`` names the machine and the day of a run that was handed over.
    """
    label = str(meta.get("label") or "origin not stated")
    if meta.get("recorded"):
        label = f"recorded, {label}, {meta['recorded']}"
    simulated = (meta.get("engine") or {}).get("simulated") or {}
    how = simulated.get("step_time_label")
    return f"{label} · {how}" if how and how not in label else label
