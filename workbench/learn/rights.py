"""Right answers by name: each is computed from what was played, never written down.

A name is one of :data:`RIGHTS`, or a figure of :func:`workbench.tune.figures.figures_of` such as ``gap_max_ms`` or
``ttft_p50_s.vip``.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow.compute as pc

from workbench import metrics
from workbench.claims.freeze import FROZEN
from workbench.claims.long_prompt import LongPrompt
from workbench.errors import InputError
from workbench.i18n import translate
from workbench.learn.compare import number
from workbench.tune.figures import figures_of
from workbench.units import MIB


@dataclass(frozen=True)
class Right:
    """A right answer.

    Attributes:
        value: a number, or the name of what is to be picked.
        because: one sentence with the numbers behind it; may be empty.
        cost: of a limit, what another answer would cost, in the unit of what is limited.
        allowed: of a limit, the most that it may cost.
        among: of a pick, what there is to choose from, with the figure that decides.
        unit: of these figures.
    """

    value: float | str
    because: str = ""
    cost: Callable[[float], float] | None = None
    allowed: float = math.nan
    among: Mapping[str, float] = field(default_factory=dict)
    unit: str = ""

    @property
    def number(self) -> float:
        """The value where it is a number; NaN otherwise."""
        return math.nan if isinstance(self.value, str) else float(self.value)


def right(name: str, /, *subjects: Any, **options: Any) -> Right:
    """Compute a right answer.

    Args:
        name: of it.
        *subjects: what it is computed from, mostly one run.
        **options: what else it takes.

    Raises:
        InputError: there is no such answer, or the subjects do not have it.
    """
    from workbench.learn.limits import LIMITS  # here, since those stand on this module

    known = {**RIGHTS, **LIMITS}
    if name in known:
        return known[name](*subjects, **options)
    return Right(figure(name, *subjects))


def figure(name: str, subject: Any) -> float:
    """A plain figure of a run, or of a trial of a study.

    Raises:
        InputError: it does not have it.
    """
    figures = subject.figures if hasattr(subject, "figures") else figures_of(subject.trace, subject.slo)
    if name not in figures:
        near = difflib.get_close_matches(name, figures, 1)
        fix = f"did you mean {near[0]}?" if near else "play one that has it"
        raise InputError("figure", name, f"one of {', '.join(sorted(figures))}", fix)
    return float(figures[name])


def prefill_steps(run: Any) -> Right:
    """Steps of the longest prompt's prefill."""
    table = metrics.prefill_steps(run.trace)
    if table.empty:
        raise InputError("run", "no prefill on record", "step records", "play it on a live or simulated engine")
    row = table.loc[table["prefill_tokens"].idxmax()]
    tokens, largest = int(row["prefill_tokens"]), int(row["largest_chunk"])
    return Right(
        int(row["prefill_steps"]),
        translate(
            "{tokens:,} prompt tokens were computed, {largest:,} in the largest of the steps.",
            tokens=tokens,
            largest=largest,
        ),
    )


def frozen_streams(run: Any) -> Right:
    """Streams with a gap that covers nine tenths of the longest prompt's prefill; the bar of claim C1."""
    long = LongPrompt.of(run)
    frozen = int((long.worst_ms >= FROZEN * 1e3 * long.seconds).sum())
    return Right(
        frozen,
        translate(
            "{frozen} of {streams} streams stood still for nine tenths of the prefill or more.",
            frozen=frozen,
            streams=len(long.streams),
        ),
    )


def peak_activation_mib(run: Any) -> Right:
    """Largest activation peak of a step, MiB."""
    peak = pc.max(run.trace.tables["steps"]["activation_bytes"]).as_py()
    if peak is None:
        raise InputError("run", "no memory peak", "measured peaks", "play it on a live engine")
    return Right(peak / MIB)


def preemptions(run: Any) -> Right:
    """How often a request lost its blocks."""
    return Right(len(metrics.preemptions(run.trace)))


def recomputed_percent(run: Any) -> Right:
    """Share of all computed tokens that had been computed before, %."""
    again = float(metrics.preemptions(run.trace)["recomputed_tokens"].sum())
    steps = run.trace.steps
    every = float(steps["prefill_tokens"].sum() + steps["decode_tokens"].sum())
    share = 100 * again / every if every else math.nan
    return Right(
        share,
        translate("{again:,.0f} of {every:,.0f} computed tokens had been computed before.", again=again, every=every),
    )


def cached_percent(run: Any) -> Right:
    """Share of the prompt tokens that came from the prefix cache, %."""
    requests = run.trace.requests
    cached, asked = float(requests["cached_tokens"].fillna(0).sum()), float(requests["prompt_tokens"].sum())
    return Right(
        100 * cached / asked,
        translate("{cached:,.0f} of {asked:,.0f} prompt tokens came from the cache.", cached=cached, asked=asked),
    )


def computed_tokens(run: Any) -> Right:
    """Prompt tokens that were computed, in all prefill steps together."""
    return Right(float(run.trace.steps["prefill_tokens"].sum()))


def stalls_of_prefill_percent(run: Any) -> Right:
    """Share of the stalls that a prefill caused, %."""
    causes = metrics.stalls(run.trace, run.slo)["cause"]
    if not len(causes):
        raise InputError("run", "no stall", "at least one", "play one under a larger budget")
    of_prefill = int((causes == "prefill").sum())
    return Right(
        100 * of_prefill / len(causes),
        translate("{of_prefill} of {causes} stalls have the cause prefill.", of_prefill=of_prefill, causes=len(causes)),
    )


def ratio(one: Any, other: Any, name: str) -> Right:
    """How many times the second's figure the first's is."""
    above, below = right(name, one).number, right(name, other).number
    return Right(above / below, translate("{one} over {other}.", one=number(above), other=number(below)))


def share_left(one: Any, other: Any, name: str) -> Right:
    """The first's figure in per cent of the second's."""
    found = ratio(one, other, name)
    return Right(100 * found.number, found.because)


def best_of(runs: Mapping[str, Any], name: str, most: bool = False, unit: str = "") -> Right:
    """Which of several runs has the least of a figure, or the most."""
    values = {label: right(name, run).number for label, run in runs.items()}
    there = {label: value for label, value in values.items() if not math.isnan(value)}
    if not there:
        raise InputError("runs", ", ".join(runs) or "none", f"one that has {name}", "play them")
    chosen = (max if most else min)(there, key=lambda label: there[label])
    said = ", ".join(f"{label} {number(value, unit)}" for label, value in values.items())
    return Right(chosen, f"{said}.", among=values, unit=unit)


_ALL: tuple[Callable[..., Right], ...] = (
    prefill_steps,
    frozen_streams,
    peak_activation_mib,
    preemptions,
    recomputed_percent,
    cached_percent,
    computed_tokens,
    stalls_of_prefill_percent,
    ratio,
    share_left,
    best_of,
)
RIGHTS: Mapping[str, Callable[..., Right]] = {one.__name__: one for one in _ALL}
