"""Makes a plan: every setting, the band of the best, the policies there; on as many simulators as there are cores."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from workbench.errors import InputError
from workbench.i18n import marked, phrase
from workbench.planning.asked import Asked
from workbench.planning.capacity import Capacity, find_capacity
from workbench.planning.crew import Crew
from workbench.planning.plan import Plan
from workbench.planning.plays import Place, Player, StoppedError
from workbench.planning.rows import Band, Row
from workbench.planning.rule import Verdict
from workbench.simulate.steptime import StepTime
from workbench.simulate.steptime.bands import Edge

WORKERS = 2  # simulators at once, if there are so many cores; each takes 0.6 GB
_PLAYS = 4.0  # of a search, before any is known
_SLOWER, _FASTER = 0.8, 1.25  # of the capacity, where the searches at the ends of the band begin
_MARGIN = 1.4  # requests stay longer at the next rate

Key = tuple[int, int]  # budget and chunk


@dataclass(frozen=True)
class Progress:
    """How far a plan is.

    Attributes:
        plays: played so far.
        expected: in all, an estimate.
        what: is going on.
    """

    plays: int
    expected: int
    what: str


Tell = Callable[[Progress], None]


class Planner:
    """Makes a plan; :meth:`stop` may come from any thread, and ``plan`` holds what there is by then.

    What is found does not depend on the number of workers: searches of one budget follow each other, and each budget
    begins anew.

    Args:
        asked: the question.
        tell: told after every play and when something begins, in several threads.
        workers: simulators at once.

    Raises:
        InputError: no setting can be set up: the model does not fit, the GPU is not known and the like.
    """

    def __init__(self, asked: Asked, tell: Tell | None = None, workers: int | None = None) -> None:
        self.asked, self._tell = asked, tell
        self.plan = Plan(asked, asked.load())
        self._places = self._set_up()
        count = min(WORKERS, os.cpu_count() or 1) if workers is None else workers
        self._crew = Crew([Player(self._played) for _ in range(count)])
        self._lock = threading.Lock()
        self._searches = 0  # so far
        self._left = len({key for key, _ in self._places.values()}) + 2 + 3 * len(asked.policies)

    def run(self) -> Plan:
        """Play it all; takes a minute, so in a thread or with a progress bar.

        Returns:
            The plan; where it was stopped, with what there was by then.

        Raises:
            EngineError: a simulator's child did not come up, or a play failed.
        """
        try:
            self._crew.start(self._say)
            self._crew.at_once(self._one_budget, self.asked.budgets)
            best = self.plan.best_cell
            if best is not None:
                self._take_over(best, self._band(best))
                self._crew.at_once(lambda policy: self._one_policy(policy, best), self.asked.policies)
                self.plan.policies.sort(key=lambda row: self.asked.policies.index(row.policy))
            self.plan.done, self._left = True, 0
            self._say("done")
        except StoppedError:
            self.plan.stopped = True
        except KeyboardInterrupt:
            self.plan.stopped = True
            raise
        finally:
            self._crew.close()
        return self.plan

    def stop(self) -> None:
        """End it soon."""
        self._crew.stop()

    def _set_up(self) -> dict[Key, tuple[Key, Place | InputError]]:
        """For each setting, the one that stands for it, and that one's engine or why it cannot be."""
        made: dict[Key, Place | InputError] = {}
        found = {}
        for budget in self.asked.budgets:
            for chunk in self.asked.chunks:
                key = (budget, self.asked.effective_chunk(self.plan.load, budget, chunk))
                if key not in made:
                    made[key] = self.asked.place_or_error(self.plan.load, *key, self.asked.policy)
                found[budget, chunk] = key, made[key]
        errors = [one for one in made.values() if isinstance(one, InputError)]
        if len(errors) == len(made):
            raise errors[0]
        return found

    def _one_budget(self, budget: int) -> None:
        """All chunk caps of a budget, each from where the one before ended."""
        known: dict[Key, Capacity] = {}
        before: Capacity | None = None
        with self._crew.one() as player:
            for chunk in self.asked.chunks:
                key, place = self._places[budget, chunk]
                row = Row(budget, chunk, self.asked.policy)
                if isinstance(place, InputError):
                    self._keep(replace(row, refused=str(place)))
                    continue
                if key not in known:
                    what = phrase(
                        "budget {budget:,}, chunk {chunk}",
                        budget=budget,
                        chunk=f"{chunk:,}" if chunk else phrase("off"),
                    )
                    before = known[key] = self._search(player, place, what, before)
                same = key if key != (budget, chunk) else None
                self._keep(replace(row, place=place, capacity=known[key], same_as=same))

    def _keep(self, row: Row) -> None:
        order = list(self._places)
        with self._lock:
            cells = [*self.plan.cells, row]
            self.plan.cells = sorted(cells, key=lambda one: order.index((one.budget, one.chunk)))

    def _take_over(self, best: Row, band: Band) -> None:
        """Give the band of the best to all: theirs would take three times as long to find."""
        whose = self._places[best.budget, best.chunk][0]
        for i, row in enumerate(self.plan.cells):
            own = self._places[row.budget, row.chunk][0] == whose or band.of == "none"
            if row.capacity is not None:
                self.plan.cells[i] = replace(row, band=band if own else replace(band, of="best"))

    def _one_policy(self, policy: str, best: Row) -> None:
        place = self.asked.place_or_error(self.plan.load, best.budget, best.chunk, policy)
        if isinstance(place, InputError) or policy == best.policy:
            self._left -= 3
            if isinstance(place, InputError):
                self.plan.refused[policy] = str(place)
            else:
                self.plan.policies.append(next(row for row in self.plan.cells if row.capacity is best.capacity))
            return
        with self._crew.one() as player:
            found = self._search(player, place, policy, best.capacity)
        row = Row(place.knobs.budget, place.knobs.chunk, policy, place, found)
        self.plan.policies.append(replace(row, band=self._band(row) if found.low else None))

    def _band(self, row: Row) -> Band:
        """The capacities with the slowest and the fastest steps, as shares of the one in the middle."""
        place = row.place
        if place is None or place.setup.step_time.calibrated:
            self._left -= 2
            return Band(1.0, 1.0, "none")

        def at(end: str) -> Capacity:
            edge = Edge("high" if end == "slowest" else "low", place.setup.step_time)
            what = phrase(
                "{policy}, budget {budget:,}: {end} steps of the band",
                policy=row.policy,
                budget=row.budget,
                end=phrase(end),
            )
            with self._crew.one() as player:
                factor = _SLOWER if end == "slowest" else _FASTER
                return self._search(player, place, what, row.capacity, edge, factor)

        slow, fast = self._crew.at_once(at, (marked("slowest"), marked("fastest")))
        high = fast.high or fast.low
        return Band(min(slow.low / row.rate, 1.0), max(high / row.rate, 1.0), "own")

    def _search(
        self,
        player: Player,
        place: Place,
        what: str,
        near: Capacity | None,
        step_time: StepTime | None = None,
        factor: float = 1.0,
    ) -> Capacity:
        """Find a capacity, from another one that may be near or from a guess."""
        self._say(what)
        guess, stay = place.guess(step_time or place.setup.step_time)
        if near is not None and near.at is not None:
            guess, stay = near.low * factor, near.at.residence_s

        def play(rate: float) -> Verdict:
            nonlocal stay
            verdict = player.play(place, rate, stay * _MARGIN, step_time)
            if verdict.met:
                stay = max(stay, verdict.residence_s)
                if not verdict.steady:  # it was too short to show that the engine can go on like that
                    verdict = player.play(place, rate, stay * _MARGIN, step_time)
                    stay = max(stay, verdict.residence_s) if verdict.met else stay
            self._say(what)
            return verdict

        doubtful = near is not None and not near.low
        found = find_capacity(play, guess, self.asked.rule.step, doubtful=doubtful)
        with self._lock:
            self._searches += 1
            self._left -= 1
        return found

    def _played(self) -> None:
        with self._lock:
            self.plan.plays += 1

    def _say(self, what: str) -> None:
        if self._tell is not None:
            with self._lock:
                plays = self.plan.plays
                each = (plays + _PLAYS) / (self._searches + 1)
                expected = max(plays + 1, round((self._searches + self._left) * each)) if self._left > 0 else plays
                self._tell(Progress(plays, expected, what))


def plan(scenario: Any, *, tell: Tell | None = None, **asked: Any) -> Plan:
    """Plan for some hardware, model, traffic and promise: ``plan("azure-like", gpu="H100", count=8).table``.

    Args:
        scenario: a scenario's name, file or object, or a built-in mix.
        tell: told how far it is.
        **asked: as for :meth:`workbench.planning.asked.Asked.of`: gpu, count, model, budgets, chunks, policies,
            ttft_ms, gap_ms, price, need, start_up, knobs, rule.

    Raises:
        InputError: something is wrong, does not fit, or is not known.
        EngineError: the simulator's child did not come up, or a play failed.
    """
    return Planner(Asked.of(scenario, **asked), tell).run()
