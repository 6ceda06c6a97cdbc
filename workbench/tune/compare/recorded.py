"""What runs that were recorded at other times can say of two settings: less than rounds that were played in turn."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from workbench.errors import InputError, RunNotFoundError
from workbench.i18n import marked, phrase
from workbench.metrics.gaps import Gaps
from workbench.origin import origin_words
from workbench.run import RecordedRun
from workbench.store import list_runs
from workbench.tune.compare.bootstrap import Estimate, Floats, of_groups, within
from workbench.tune.compare.comparison import table_of
from workbench.tune.compare.exact import HOW, MODELLED, exact, is_exact
from workbench.tune.compare.measures import COUNTED, MEASURES, PRIMARY, column, figures, measure
from workbench.tune.compare.verdict import Verdict, not_shown, size

_LEAST_RUNS = 3  # of each, from which their own spread is known
_BINS = 50  # of a run's time, for its throughput
_ALPHA = 0.05
_NOT_IN_TURN = marked(
    "the runs were not played in turn: what the machine's speed did between them is in the ratio and not in the "
    "interval; workbench compare with two settings plays them in turn"
)


@dataclass(frozen=True)
class RecordedComparison:
    """Two sets of recorded runs side by side.

    Attributes:
        a: names of A's runs.
        b: of B's.
        origin: where the numbers come from.
        primary: name of the measure that is looked at first.
        how: what the intervals come from, in words.
        estimates: A over B, by measure.
        values: by measure, those of A's runs and those of B's.
        concerns: what a reader should know.
    """

    a: tuple[str, ...]
    b: tuple[str, ...]
    origin: str
    primary: str
    how: str
    estimates: Mapping[str, Estimate]
    values: Mapping[str, tuple[np.ndarray, np.ndarray]]
    concerns: tuple[str, ...] = field(default=())

    @property
    def title(self) -> str:
        """What is compared."""
        a, b = (names[0] if len(names) == 1 else phrase("{n} runs", n=len(names)) for names in (self.a, self.b))
        pair = phrase("{a} against {b}", a=a, b=b)
        return pair if self.origin.startswith("recorded") else phrase("{pair}, recorded", pair=pair)

    @property
    def verdict(self) -> Verdict:
        """What may be said; never that a setting is better, only that the recordings are."""
        one, what = self.estimates.get(self.primary), measure(self.primary)
        if one is None:
            return Verdict(
                "needs more rounds",
                phrase("nothing can be said: the runs do not have {measure}", measure=phrase(what.words)),
            )
        interval = phrase("{level:g} % interval, {how}", level=100 * one.level, how=self.how)
        said = self.how if one.is_exact else interval
        if not one.differs:
            return not_shown(one, what, said)
        a_better = (one.ratio > 1) == (what.direction == "maximize")
        shown = one if a_better else one.inverse
        letter = "A" if a_better else "B"
        words = phrase("{which}'s recording better by {size} ({said})", which=letter, size=size(shown, what), said=said)
        return Verdict("A better" if a_better else "B better", words)

    @property
    def table(self) -> pd.DataFrame:
        """As :attr:`workbench.tune.compare.Comparison.table`."""
        return table_of(self.estimates, self.values, self.primary)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, as JSON takes it."""
        rows = self.table.reset_index().to_dict(orient="records")
        return {
            "recorded": True,
            "origin": self.origin,
            "a": {"runs": list(self.a)},
            "b": {"runs": list(self.b)},
            "primary": self.primary,
            "verdict": {"kind": self.verdict.kind, "words": self.verdict.words, "more_rounds": None},
            "measures": [
                {
                    key: None if isinstance(value, float) and not math.isfinite(value) else value
                    for key, value in row.items()
                }
                for row in rows
            ],
            "how": self.how,
            "concerns": list(self.concerns),
        }


def compare_recorded(a: Path | str, b: Path | str, *, primary: str = PRIMARY) -> RecordedComparison:
    """Compare runs that are on disk.

    With three runs or more of each, intervals come from how the runs of one setting differ (Welch's t on logarithms);
    else from blocks of gaps and of time within the runs, which know nothing of one run differing from the next. Of two
    simulated runs of the same load every ratio is exact, that of a maximum too.

    Args:
        a: a run folder, or a folder of run folders.
        b: likewise.
        primary: name of the measure to look at first.

    Raises:
        RunNotFoundError: a folder holds no run that ended.
        InputError: there is no such measure.
        StoreError: a run cannot be read.
    """
    measure(primary)
    groups = {letter: _runs(letter, Path(folder)) for letter, folder in (("A", a), ("B", b))}
    alone = is_exact(*groups.values())
    sides = [[figures(run.trace, run.slo) for run in group] for group in groups.values()]
    values = {name: (column(sides[0], name), column(sides[1], name)) for name in MEASURES}
    known = {name: pair for name, pair in values.items() if all(np.isfinite(one).any() for one in pair)}
    if alone:
        how = phrase(HOW)
        found = {name: exact(*pair) for name, pair in known.items()}
    elif all(len(group) >= _LEAST_RUNS for group in groups.values()):
        how = phrase("from {a} and {b} runs", a=len(groups["A"]), b=len(groups["B"]))
        found = {name: of_groups(*pair, alpha=_ALPHA, counted=name in COUNTED) for name, pair in known.items()}
    else:
        how = phrase("from blocks within the runs")
        found = {name: _within(name, *groups.values()) for name in known}
    estimates = {name: one for name, one in found.items() if one is not None}
    return RecordedComparison(
        tuple(run.folder.name for run in groups["A"]),
        tuple(run.folder.name for run in groups["B"]),
        " and ".join(dict.fromkeys(origin_words(run.meta) for group in groups.values() for run in group)),
        primary,
        how,
        estimates,
        {name: values[name] for name in estimates},
        (MODELLED if alone else _NOT_IN_TURN, *_differences(groups["A"], groups["B"])),
    )


def _runs(letter: str, folder: Path) -> list[RecordedRun]:
    """The runs of a folder: itself, or those in it that are complete."""
    if not folder.is_dir():
        raise RunNotFoundError(
            letter, folder, phrase("a run folder, or a folder of runs"), phrase("see `workbench runs list`")
        )
    try:
        run = RecordedRun(folder)
        _ = run.trace
    except RunNotFoundError:
        listed = list_runs(folder)
        runs = [RecordedRun(folder / name) for name in listed.loc[listed["status"] == "complete", "id"]]
        if not runs:
            raise RunNotFoundError(
                letter, folder, phrase("a folder with a complete run in it"), phrase("see `workbench runs list`")
            ) from None
        return runs
    if run.meta["status"] == "running":
        raise InputError(letter, folder.name, phrase("a run that has ended"), phrase("wait for it"))
    return [run]


def _within(name: str, a: Sequence[RecordedRun], b: Sequence[RecordedRun]) -> Estimate | None:
    """The ratio of a measure from blocks within the runs; None for what has too few values in a run."""
    share = {"gap_p50": 50.0, "gap_p99": 99.0}.get(name)
    if share is not None:
        return within(_all(_gaps, a), _all(_gaps, b), lambda drawn: np.percentile(drawn, share, axis=1), alpha=_ALPHA)
    if name == "throughput":
        one, other = _all(_tokens_per_s, a), _all(_tokens_per_s, b)
        return within(one, other, lambda drawn: drawn.mean(axis=1), alpha=_ALPHA, log_scale=False)
    if name == "ttft_p50":
        return within(_all(_ttft, a), _all(_ttft, b), lambda drawn: np.median(drawn, axis=1), alpha=_ALPHA)
    return None  # a maximum, and what few requests have, has no spread that resampling could show


def _all(of: Callable[[RecordedRun], Floats], runs: Sequence[RecordedRun]) -> Floats:
    return np.concatenate([of(run) for run in runs])


def _ttft(run: RecordedRun) -> Floats:
    return np.asarray(run.requests["ttft_s"].dropna(), dtype=np.float64)


def _gaps(run: RecordedRun) -> Floats:
    gaps = Gaps.of(run.trace)
    return gaps.gap_ms[np.argsort(gaps.at_s, kind="stable")]


def _tokens_per_s(run: RecordedRun) -> Floats:
    """Prompt and output tokens a second in each of fifty equal parts of a run, as many in all as the run's figure says.

    The steps say when: a prompt counts when it is computed. How many is the figure's word, since steps hold what is
    computed again after a preemption, and do not hold what the prefix cache had.
    """
    steps = run.trace.steps.dropna(subset=["end_s"])
    tokens = steps["prefill_tokens"].fillna(0) + steps["decode_tokens"].fillna(0)
    if steps.empty:
        return np.empty(0)
    ends = steps["end_s"].to_numpy()
    counted, edges = np.histogram(ends, bins=_BINS, weights=tokens)
    rates = np.asarray(counted / np.diff(edges), dtype=np.float64)
    whole = figures(run.trace, run.slo).get("throughput", math.nan)
    return rates * (whole / rates.mean()) if whole > 0 and rates.mean() > 0 else np.empty(0)


def _differences(a: Sequence[RecordedRun], b: Sequence[RecordedRun]) -> list[str]:
    """What else differs between the two than a setting."""
    said: list[str] = []
    if both := {run.folder.resolve() for run in a} & {run.folder.resolve() for run in b}:
        said.append(
            phrase(
                "A and B share {runs}: a run is no different from itself",
                runs=", ".join(sorted(one.name for one in both)),
            )
        )
    cut = [(run.folder.name, run.meta["status"]) for run in (*a, *b) if run.meta["status"] != "complete"]
    said += [
        phrase("{name} did not come to its end ({status})", name=name, status=phrase(status)) for name, status in cut
    ]
    for key, what in (
        ("scenario", phrase("scenarios")),
        ("seed", phrase("seeds")),
        ("label", phrase("kinds of engine")),
    ):
        one, other = ({str(run.meta.get(key)) for run in group} for group in (a, b))
        if one != other:
            said.append(
                phrase(
                    "the {what} differ: {a} and {b}",
                    what=what,
                    a=", ".join(sorted(one)),
                    b=", ".join(sorted(other)),
                )
            )
    configs = [{str((run.meta.get("engine") or {}).get("config")) for run in group} for group in (a, b)]
    if configs[0] != configs[1]:
        said.append(phrase("the engines were started with other fields"))
    return said
