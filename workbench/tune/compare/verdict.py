"""What may be said of two settings: one is better, no difference was shown, or more rounds are needed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from scipy import stats

from workbench.i18n import phrase, phrase_counted
from workbench.tune.compare.bootstrap import Estimate
from workbench.tune.compare.spending import FIRST_LOOK
from workbench.tune.goal import Objective

Kind = Literal["A better", "B better", "no difference shown", "needs more rounds"]

EQUIVALENCE = 0.05  # chance that a difference as large as was asked for is taken for none, at one look
_POWER = 0.8  # with which the rounds that are still needed find such a difference
_MOST = 10_000
_WIDE = 0.5  # half of an interval as share of the difference, from which its ends are said: the lower one matters
_FACTOR = 2.0  # from here on ratios are easier to read than per cent


@dataclass(frozen=True)
class Verdict:
    """What may be said by the primary measure.

    Attributes:
        kind: which of the four.
        words: in a sentence, with the size of the difference or its bounds.
        more: rounds that are still needed, about; None where none are, or nobody can tell.
    """

    kind: Kind
    words: str
    more: int | None = None

    @property
    def clear(self) -> bool:
        """Whether further rounds would tell nothing that was asked for."""
        return self.kind != "needs more rounds"


def decide(
    estimate: Estimate | None, primary: Objective, resolve: float, done: int, first: int = FIRST_LOOK
) -> Verdict:
    """The verdict on what was measured so far.

    A difference is shown where the interval leaves out 1; its level is that of the look. That there is none to speak
    of, is said where two one-sided tests at 5 % exclude a difference of ``resolve`` in either direction (Schuirmann
    1987, J. Pharmacokinet. Biopharm. 15); stopping for that reason makes no false difference more likely.

    Args:
        estimate: the primary measure of A over that of B; None where no two rounds have it.
        primary: the measure.
        resolve: least difference worth knowing, such as 0.05.
        done: rounds that were played.
        first: rounds before the first look.
    """
    if estimate is None or estimate.pairs < first:
        more = max(1, first - (done if estimate is None else estimate.pairs))
        words = phrase("needs {rounds} before anything can be said", rounds=_rounds(more))
        return Verdict("needs more rounds", words, more)
    said = phrase("{pairs} rounds, {level:.4g} % interval", pairs=estimate.pairs, level=100 * estimate.level)
    if estimate.differs:
        a_better = (estimate.ratio > 1) == (primary.direction == "maximize")
        better, shown = ("A", estimate) if a_better else ("B", estimate.inverse)
        words = phrase("{which} better by {size} ({said})", which=better, size=size(shown, primary), said=said)
        return Verdict(f"{better} better", words)  # type: ignore[arg-type]
    reach = one_sided(estimate)
    if reach[1] < 1 + resolve and 1 / reach[0] < 1 + resolve:
        level = 100 * (1 - 2 * EQUIVALENCE)
        words = phrase(
            "no difference shown: {span} ({said}); one of {resolve:g} % is ruled out",
            span=_span(primary, *reach),
            said=phrase("{pairs} rounds, {level:.4g} % interval", pairs=estimate.pairs, level=level),
            resolve=100 * resolve,
        )
        return Verdict("no difference shown", words)
    more = max(1, needed(estimate.spread, resolve) - estimate.pairs)
    words = phrase(
        "needs {rounds} to tell a difference of {resolve:g} %: so far {span} ({said}), and a round varies by "
        "{spread:.2g} %",
        rounds=phrase("many more rounds")
        if more >= _MOST - estimate.pairs
        else phrase_counted("about {n} more round", "about {n} more rounds", more),
        resolve=100 * resolve,
        span=_span(primary, estimate.low, estimate.high),
        said=said,
        spread=100 * math.expm1(estimate.spread),
    )
    return Verdict("needs more rounds", words, more)


def not_shown(estimate: Estimate, measure: Objective, said: str) -> Verdict:
    """The verdict where recorded runs show no difference; they cannot tell where it may be a factor of two or more.

    Args:
        estimate: A's figure over B's, whose interval holds 1.
        measure: of the figure.
        said: what the interval comes from.
    """
    what = phrase(measure.words)
    if estimate.is_exact:
        words = phrase("no difference: {measure} is the same in both ({said})", measure=what, said=said)
        return Verdict("no difference shown", words)
    told = {"measure": what, "low": 100 * (estimate.low - 1), "high": 100 * (estimate.high - 1), "said": said}
    if estimate.low < 1 / _FACTOR or estimate.high > _FACTOR:
        words = phrase("these runs cannot tell: {measure} of A {low:+.1f} to {high:+.1f} % beside B's ({said})", **told)
        return Verdict("needs more rounds", words)
    words = phrase("no difference shown: {measure} of A {low:+.1f} to {high:+.1f} % beside B's ({said})", **told)
    return Verdict("no difference shown", words)


def one_sided(estimate: Estimate) -> tuple[float, float]:
    """The ratios that two one-sided tests at 5 % exclude nothing between: a 90 % interval."""
    freedom = max(1.0, estimate.pairs / estimate.block - 1)
    half = float(stats.t.ppf(1 - EQUIVALENCE, freedom)) * estimate.se
    return math.exp(estimate.log - half), math.exp(estimate.log + half)


def needed(spread: float, resolve: float, alpha: float = 0.05) -> int:
    """Rounds that find a difference of ``resolve`` four times of five, by Student's t (its noncentral distribution).

    Args:
        spread: standard deviation of a pair's log ratio.
        resolve: the difference, such as 0.05.
        alpha: chance that a difference is found where there is none.
    """
    wanted = math.log1p(resolve)
    low, high = FIRST_LOOK, _MOST
    while low < high:
        n = (low + high) // 2
        bound = stats.t.ppf(1 - alpha / 2, n - 1)
        if stats.nct.sf(bound, n - 1, wanted * math.sqrt(n) / max(spread, 1e-6)) >= _POWER:
            high = n
        else:
            low = n + 1
    return low


def size(estimate: Estimate, measure: Objective) -> str:
    """How much better the first of a ratio is: "12 % ± 3 % (gap P99 lower)", or a factor where that is easier to read.

    An interval that comes near to 1 is said by its ends, since it is wider above than below: "11 % (0.3 % to 23 %; …)".

    Args:
        estimate: the better one's figure over the other's.
        measure: of the figure.
    """
    lower = measure.direction == "minimize"
    ratio, low, high = estimate.ratio, estimate.low, estimate.high
    what = phrase(measure.words)
    which = phrase("{measure} lower", measure=what) if lower else phrase("{measure} higher", measure=what)
    times, ends = (1 / ratio, (1 / high, 1 / low)) if lower else (ratio, (low, high))
    if estimate.is_exact:
        factor = phrase("a factor of {times:.3g} ({which})", times=times, which=which)
        return factor if times >= _FACTOR else phrase("{size:.1f} % ({which})", size=100 * abs(ratio - 1), which=which)
    if times >= _FACTOR:
        return phrase(
            "a factor of {times:.3g} ({low:.3g} to {high:.3g}; {which})",
            times=times,
            low=ends[0],
            high=ends[1],
            which=which,
        )
    better, bounds = 100 * abs(ratio - 1), sorted(100 * abs(end - 1) for end in (low, high))
    half = (bounds[1] - bounds[0]) / 2
    if half > _WIDE * better:
        return phrase(
            "{size:.1f} % ({low:.1f} % to {high:.1f} %; {which})",
            size=better,
            low=bounds[0],
            high=bounds[1],
            which=which,
        )
    return phrase("{size:.1f} % ± {half:.1f} % ({which})", size=better, half=half, which=which)


def _span(measure: Objective, low: float, high: float) -> str:
    return phrase(
        "{measure} of A {low} to {high} beside B's",
        measure=phrase(measure.words),
        low=_change(low),
        high=_change(high),
    )


def _change(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f} %" if ratio < 1000 else phrase("any amount")


def _rounds(n: int) -> str:
    return phrase_counted("{n} more round", "{n} more rounds", n)
