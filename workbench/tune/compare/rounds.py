"""Plays two settings in turn, A/B or B/A by chance, until the verdict is clear or the rounds are used up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.errors import InputError
from workbench.i18n import phrase, phrases
from workbench.origin import origin_words
from workbench.run import RecordedRun, Run
from workbench.tune.compare.comparison import Comparison, Round
from workbench.tune.compare.measures import PRIMARY, check_gaps, figures, measure
from workbench.tune.compare.settings import setting_of
from workbench.tune.compare.settle import is_steady, is_warm, lead_in_s
from workbench.tune.compare.sides import Sides
from workbench.tune.compare.turns import schedule
from workbench.workload.scenario import MAX_SEED, Scenario, load_scenario
from workbench.workload.setting import Setting

if TYPE_CHECKING:
    from workbench.plays import Plays

MOST_ROUNDS = 200
ROUNDS = 20
RESOLVE = 0.05
_WARM_UP = 4  # plays at most


@dataclass(frozen=True)
class Playing:
    """What goes on, for a bar.

    Attributes:
        what: "warm-up A", "round 3 B", ...
        run: that has just begun.
        comparison: as far as it is.
    """

    what: str
    run: Run
    comparison: Comparison


Tell = Callable[[Playing], None]  # called as each play begins; may wait for the run


class Comparing:
    """A comparison to be played; everything that can be wrong is found when it is made.

    Both rounds of a pair have the same seeded workload, each begins with an empty prefix cache and its own setting from
    the first step on, and chance decides which comes first: once each in every two rounds, so that a steady drift of
    the machine cancels. What a machine's speed does from one minute to the next is in both rounds of a pair.

    Args:
        bench: what A is played on; its engine may be started later.
        a: a setting, or its text, see :func:`setting_of`.
        b: likewise.
        scenario: a name, a file or an object. Where it has settings take hold later, they are in force at once.
        rounds: most rounds; one is a play of each setting.
        primary: name of the measure that the verdict is about.
        resolve: least difference worth knowing, such as 0.05: where it is ruled out, no further round is played.
        alpha: chance that a difference is found where there is none.
        seed: of the first round's workload and of the order; by default the scenario's.
        warm_up: play both settings before, until the engine is warm.
        bench_b: another workbench to play B on.

    Attributes:
        comparison: what was played so far, also after an error.

    Raises:
        InputError: a setting, the scenario, the measure or the number of rounds is wrong.
    """

    def __init__(
        self,
        bench: Plays,
        a: Setting | str,
        b: Setting | str,
        scenario: Scenario | str | Path,
        *,
        rounds: int = ROUNDS,
        primary: str = PRIMARY,
        resolve: float = RESOLVE,
        alpha: float = 0.05,
        seed: int | None = None,
        warm_up: bool = True,
        bench_b: Plays | None = None,
    ) -> None:
        scenario = scenario if isinstance(scenario, Scenario) else load_scenario(scenario)
        if isinstance(rounds, bool) or not isinstance(rounds, int) or not 1 <= rounds <= MOST_ROUNDS:
            raise InputError("rounds", rounds, f"1 to {MOST_ROUNDS}", "four or more can tell something")
        if not 0 < resolve < 1:
            raise InputError("resolve", resolve, "a share between 0 and 1, such as 0.05", "give the least difference")
        if not 0 < alpha < 0.5:
            raise InputError("alpha", alpha, "a chance between 0 and 0.5, such as 0.05", "give a small one")
        sides = (setting_of("A", a), setting_of("B", b))
        self._sides = Sides(sides, (bench, bench_b or bench), scenario)
        check_gaps(scenario, measure(primary))
        self._steady = is_steady(scenario)
        self._seed = scenario.seed if seed is None else seed
        self._warm_up = warm_up
        self.comparison = Comparison(*sides, scenario.name, rounds, primary, resolve, alpha)
        if self.comparison.same and bench_b is None:
            self.comparison.concerns.append(phrase("A and B are the same setting: a difference would be the machine's"))

    def run(self, tell: Tell | None = None, *, adaptive: bool = True) -> Comparison:
        """Play; the knobs in force are put back.

        Args:
            tell: told of each play.
            adaptive: stop as soon as the verdict is clear.

        Returns:
            The comparison; where somebody stopped the load, as far as it was.

        Raises:
            EngineError: an engine does not run, or a run is going on.
            EngineDiedError: an engine ended in mid-run.
            StoreError: a run cannot be recorded.
            InputError: the primary measure was not measured in the first two rounds.
        """
        found = self.comparison
        try:
            with self._sides.held():
                if not self._warm_up or self._warmed(tell):
                    self._go_on(tell, adaptive)
        except BaseException:
            found.stopped = True
            raise
        return found

    def _go_on(self, tell: Tell | None, adaptive: bool) -> None:
        found = self.comparison
        orders = schedule(self._seed)
        while len(found.rounds) < found.planned:
            number = len(found.rounds)
            one = self._round(number, next(orders), tell)
            if one is None:
                return
            found.rounds.append(one)
            if number == 1:
                self._expect_measured()
            if adaptive and found.verdict.clear:
                return

    def _warmed(self, tell: Tell | None) -> bool:
        """Play both settings in turn until the engine is warm; false if somebody stopped it."""
        found, traces = self.comparison, []
        if self._sides.simulated:
            return True  # every play of it begins from nothing
        for place in range(_WARM_UP):
            run = self._play("AB"[place % 2], phrase("warm-up"), self._seed, tell)
            if run is None:
                return False
            found.warm_up += 1
            traces.append(run.trace)
            if place % 2 and is_warm(traces):
                return True
        found.concerns.append(
            phrase("the engine's speed still moved after {n} plays of warm-up; pairs bear with that", n=_WARM_UP)
        )
        return True

    def _round(self, number: int, order: str, tell: Tell | None) -> Round | None:
        """Play one pair; None if somebody stopped it."""
        seed = (self._seed + number) % (MAX_SEED + 1)
        runs: dict[str, RecordedRun] = {}
        for letter in order:
            run = self._play(letter, phrase("round {n}", n=number + 1), seed, tell)
            if run is None:
                return None
            runs[letter] = run
        a, b = (runs[letter] for letter in "AB")
        found = self.comparison
        found.origin = origin_words(a.meta)
        from_s = self._lead_in(a, b)
        one = Round(
            number,
            seed,
            order,
            figures(a.trace, a.slo, from_s),
            figures(b.trace, b.slo, from_s),
            from_s,
            (str(a.folder), str(b.folder)),
        )
        for letter, side in (("A", one.a), ("B", one.b)):
            if side["failed"]:
                said = phrase(
                    "round {round}: {share:.0%} of {letter}'s requests failed",
                    round=number + 1,
                    share=side["failed"],
                    letter=letter,
                )
                found.concerns.append(said)
        return one

    def _lead_in(self, a: RecordedRun, b: RecordedRun) -> float:
        """What to leave out of both plays, so that they are compared over the same part of the load."""
        if not self._steady:
            return 0.0
        ends = [lead_in_s(run.trace) for run in (a, b)]
        concern = phrase("some rounds did not settle and count whole: a longer scenario would settle")
        if None in ends and concern not in self.comparison.concerns:
            self.comparison.concerns.append(concern)
        return 0.0 if None in ends else max(end for end in ends if end is not None)

    def _play(self, letter: str, what: str, seed: int, tell: Tell | None) -> RecordedRun | None:
        """Play one setting; None if somebody stopped it."""

        def began(run: Run) -> None:
            if tell is not None:
                tell(Playing(phrases(" ", (what, letter)), run, self.comparison))

        run = self._sides.play(letter, what, seed, began)
        self.comparison.stopped |= run is None
        return run

    def _expect_measured(self) -> None:
        """Two rounds without the primary measure: no further one would have it."""
        found = self.comparison
        if found.primary not in found.estimates:
            words = found.measure.words
            raise InputError(
                "primary",
                found.primary,
                f"one that both settings have in scenario {found.scenario} ({words} is 0 or was not measured)",
                "take another one, such as throughput or gap_p99",
            )


def compare(
    bench: Plays,
    a: Setting | str,
    b: Setting | str,
    scenario: Scenario | str | Path,
    tell: Tell | None = None,
    **how: object,
) -> Comparison:
    """Play two settings in turn on one engine until the verdict is clear; see :class:`Comparing`.

    Args:
        bench: its engine must be ready.
        a: a setting, or its text such as "budget=256,chunk=128".
        b: likewise.
        scenario: a name, a file or an object.
        tell: told of each play.
        **how: further arguments of :class:`Comparing`.
    """
    return Comparing(bench, a, b, scenario, **how).run(tell)  # type: ignore[arg-type]
