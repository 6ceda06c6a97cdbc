"""Plays trials side by side on a Ray cluster, each on an engine of its own, wherever the cluster has room.

    with RayPlayer(scenario, goal, space, address="local", workers=2) as player:
        for result in player.play_many(asked):  # an iterator may ask the study each time that a worker is free
            study.tell(result)

Ray itself runs in a child (``driver``), so that neither its signals nor its end reach this process. A Ray cluster
is trusted: whoever can join it can run code on all its machines. What comes home is JSON and files by name.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from workbench.engine.protocol import Progress
from workbench.errors import EngineDiedError, EngineError, InputError
from workbench.store import prepare_root
from workbench.tune.goal import Goal
from workbench.tune.ray.address import check_address, coming_up, environment
from workbench.tune.ray.lines import LineChild, Message
from workbench.tune.ray.remote import Job, Order, error_of
from workbench.tune.ray.resources import check_counts, ranks_of
from workbench.tune.space import Space
from workbench.tune.trial import Asked, Result, Watch
from workbench.workload.scenario import Scenario

DRIVER = "workbench.tune.ray.driver"
_UP_S = 240.0  # for Ray to find a place and start a process there; its engine starts with its first trial
_TICK_S = 0.2
_CLOSE_S = 60.0  # for engines to end in order, then Ray
_EARLY_CLOSE_S = 5.0  # while Ray is starting there is no engine

Tell = Callable[[str], None]


class RayPlayer:
    """A :class:`workbench.tune.trial.Player` on a Ray cluster that plays several trials at a time.

    Args:
        scenario: what is played; files that it reads must lie at the same place on every machine.
        goal: what trials are judged by.
        space: whose configuration engines start with; the largest engine that it tries says what a worker takes.
        address: "local" starts a cluster on this machine and ends it; "auto" joins the one that runs here (or that
            ``RAY_ADDRESS`` names); "host:port" joins another. One that was joined is left alone.
        workers: engines at a time; by default as many as the cluster has room for.
        cores: logical CPUs of an engine on CPUs; see :func:`workbench.tune.ray.resources.need_of`.
        runs: folder that runs come home to; by default ``WORKBENCH_RUNS`` or ``runs``.
        error_rate: of the sequential test that stops hopeless trials where they are played; None plays all to the end.
        progress: told the elapsed seconds and what is going on while the cluster starts, five times a second.
        tell: told what happens, in one line: workers that come up, trials that are tried again.

    Attributes:
        label: where its numbers come from; known once it has started.
        workers: engines at a time; known once it has started.
        notes: what went wrong and was mended, or a run that was not kept.
    """

    def __init__(
        self,
        scenario: Scenario,
        goal: Goal,
        space: Space,
        *,
        address: str = "local",
        workers: int | None = None,
        cores: int | None = None,
        runs: Path | str | None = None,
        error_rate: float | None = None,
        progress: Progress | None = None,
        tell: Tell | None = None,
    ) -> None:
        self.label, self.workers, self.notes = "", workers or 1, list[str]()
        config = space.config
        ranks = max(ranks_of(one) for one in (config, *(config.replace(**fields) for fields in space.starts())))
        self._job = Job(config, scenario, goal, ranks)
        self._address, self._asked_workers, self._cores = address, workers, cores
        self._runs, self._error_rate = prepare_root(runs).resolve(), error_rate
        self._progress, self._tell = progress, tell or (lambda _text: None)
        self._child: LineChild | None = None
        self._connected = False
        self._open: dict[int, Order] = {}
        self._back: list[Result] = []

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Start or join the cluster and wait for the first worker; does nothing when it is up.

        Raises:
            InputError: Ray is not installed, nobody answers at the address, or there is no room for the engines.
            EngineError: the cluster or the engines did not come up.
        """
        if self._child is not None:
            return
        check_counts(self._asked_workers, self._cores)
        check_address(self._address)
        self._child = LineChild(DRIVER, {**os.environ, **environment(self._address)})
        begin = {"address": self._address, "workers": self._asked_workers, "cores": self._cores}
        self._child.tell({**begin, "runs": str(self._runs), "job": self._job.as_dict()})
        try:
            self._await(lambda: self._connected, *coming_up(self._address))
            several = f"{self.workers} worker{'s' * (self.workers > 1)}"
            self._await(lambda: bool(self.label), f"Ray is up; starting {several}", _UP_S)
            if self._progress is not None:
                self._progress(0.0, "ready")
        except BaseException:
            self.close()
            raise

    def submit(self, asked: Asked, *, beat: float | None = None) -> None:
        """Ask for a trial; returns at once.

        Args:
            asked: the trial; its number is not that of one that is under way.
            beat: goodput to beat, for the sequential test (requests/s).

        Raises:
            InputError: a trial of that number is under way.
            EngineError: nothing can be played any more.
        """
        self._send(Order(asked, self._error_rate, beat if self._error_rate is not None else None))

    def results(self, timeout_s: float | None = None) -> list[Result]:
        """What has come back since the last call; none where nothing is under way, or nothing came in time.

        Args:
            timeout_s: longest wait for the first; by default as long as it takes.

        Raises:
            WorkbenchError: nothing can be played any more.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while not self._back and self._open and (deadline is None or time.monotonic() < deadline):
            left = _TICK_S if deadline is None else max(0.0, min(_TICK_S, deadline - time.monotonic()))
            self._take(left)
        back, self._back = self._back, []
        return back

    def play_many(self, asked: Iterable[Asked]) -> Iterator[Result]:
        """Play all of them and give each result as it comes, not in their order.

        The next one is taken from ``asked`` when a worker is free for it, so that it may depend on results so far.

        Raises:
            WorkbenchError: nothing can be played any more.
        """
        self.start()
        coming, over = iter(asked), False
        while True:
            while not over and len(self._open) < self.workers:
                one = next(coming, None)
                over = one is None
                if one is not None:
                    self.submit(one)
            if not self._open and not self._back:
                return
            yield from self.results()

    def play(self, asked: Asked, watch: Watch | None = None) -> Result:
        """Play one trial to its end and wait for it; see :class:`workbench.tune.trial.Player`.

        No sequential test looks at it. ``watch`` cannot travel, so it sees no rows: all that it can say is that
        somebody has stopped the study, and then the trial is given up.
        """
        self._send(Order(asked))
        others = list[Result]()
        while True:
            back = self.results(_TICK_S)
            others += [one for one in back if one.number != asked.number]
            mine = next((one for one in back if one.number == asked.number), None)
            if mine is None and watch is not None and (stop := watch.look(())) is not None:
                self._open.pop(asked.number, None)
                mine = Result(asked.number, asked.point, asked.seed, "interrupted", label=self.label, error=stop.why)
            if mine is not None:
                self._back = others
                return mine
            if not self._open and not back:
                raise EngineDiedError(f"trial {asked.number}: it did not come back")

    def close(self) -> None:
        """Give up what is under way, end all engines, and the cluster if it is ours; a second call does nothing."""
        child, self._child = self._child, None
        if child is not None:
            child.close(_CLOSE_S if self._connected else _EARLY_CLOSE_S)
        self._connected = False

    def _send(self, order: Order) -> None:
        self.start()
        number = order.asked.number
        if number in self._open:
            raise InputError("trial", number, "a number that no trial under way has", "ask for each trial once")
        self._open[number] = order
        self._running().tell({"play": order.as_dict()})

    def _running(self) -> LineChild:
        if self._child is None:
            raise EngineError("Ray: got a trial after the end, expected a player that runs; make another one")
        return self._child

    def _await(self, condition: Callable[[], bool], what: str, limit_s: float) -> None:
        begun = time.monotonic()
        while not condition():
            elapsed = time.monotonic() - begun
            if self._progress is not None:
                self._progress(elapsed, what)
            if elapsed > limit_s:
                raise EngineError(f"Ray: {what}: not done after {limit_s:g} s; look at `ray status` and the load there")
            self._take(_TICK_S)

    def _take(self, timeout_s: float) -> None:
        """Take one message of the driver, if there is one in time."""
        try:
            message = self._running().hear(timeout_s)
        except TimeoutError:
            return
        if message is None:
            raise EngineDiedError(f"Ray: its driver ended: {self._running().last_words()}; start again")
        self._heed(message)

    def _heed(self, message: Message) -> None:
        if "fatal" in message:
            raise error_of(message["fatal"])
        if "connected" in message:
            self._connected, self.workers = True, message["connected"]["workers"]
        elif "up" in message:
            about = message["up"]
            self.label = self.label or about["label"]
            cpus = f", CPUs {','.join(map(str, about['cpus']))}" if about["cpus"] else ""
            self._tell(f"worker {about['worker']} is up on {about['host']}{cpus}: {about['label']}")
        elif "begun" in message:
            self._tell(f"trial {message['begun']}: worker {message['worker']} on {message['host']}")
        elif "note" in message:
            self.notes.append(message["note"])
            self._tell(message["note"])
        elif "result" in message:
            result = Result.of_dict(message["result"])
            self._open.pop(result.number, None)
            self._back.append(result)
