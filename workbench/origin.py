"""Where a run's numbers come from, in the words that stand beside each of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import reduce
from typing import Any

from workbench.i18n import Phrase, phrase, phrase_counted, phrases, translate


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


def in_phrases(words: str) -> Phrase:
    """Such words as a text in which each piece is told by itself: names of machines among them stay."""
    return phrases(" · ", [reduce(_and, map(_piece, part.split(", "))) for part in words.split(" · ")])


def in_pieces(words: str) -> str:
    """The same in the language that is spoken."""
    return translate(in_phrases(words))


def _and(one: Phrase, other: Phrase) -> Phrase:
    return phrase("{one}, {other}", one=one, other=other)


def _piece(words: str) -> Phrase:
    cores = re.fullmatch(r"(\d{1,9}) cores?", words)
    return phrase_counted("{n} core", "{n} cores", int(cores[1])) if cores else phrase(words)
