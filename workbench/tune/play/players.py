"""Players that hold an engine: hot on a live or simulated one, started anew where a trial asks for that."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from workbench.config import EngineConfig
from workbench.engine.protocol import Progress
from workbench.errors import EngineError, InputError, StoreError, WorkbenchError
from workbench.origin import origin_words
from workbench.run import Run
from workbench.session import Workbench
from workbench.simulated_config import SimulatedConfig
from workbench.tail import Place
from workbench.tune.goal import Goal
from workbench.tune.play.judging import cut, look_back, result_of
from workbench.tune.space import Space
from workbench.tune.trial import Asked, Result, Stop, Watch
from workbench.workload.scenario import Scenario
from workbench.workload.stream import plan

_LOOK_S = 0.1
_END_S = 30.0  # for a run that was stopped to be on disk
_WARM_TOKENS, _WARM_OUTPUT = 1024, 4  # of the prompt that a fresh engine gets before its first trial

Began = Callable[[Asked, Run], None]


class EnginePlayer:
    """Plays trials on one engine, and restarts it where a trial's start-up fields differ from those it has.

    A fresh live engine gets one prompt before its first trial, so that memory is faulted in. With a prefix cache, the
    cache is emptied before every trial.

    Args:
        scenario: what is played.
        goal: what it is judged by.
        space: whose configuration engines start with.
        runs: folder that runs are recorded in.
        bench: an engine that runs already and is not ended by :meth:`close`; its start-up fields must be the space's.
        progress: told how each start goes.
        began: told of each run as it begins.

    Attributes:
        label: where its numbers come from.
        bench: the engine that it holds.
    """

    def __init__(
        self,
        scenario: Scenario,
        goal: Goal,
        space: Space,
        *,
        runs: Path | None = None,
        bench: Workbench | None = None,
        progress: Progress | None = None,
        began: Began | None = None,
    ) -> None:
        self._scenario, self._goal, self._space, self._runs = scenario, goal, space, runs
        self._progress, self._began, self._lent = progress, began, bench
        self._start_up: Mapping[str, Any] | None = {} if bench is not None else None
        self.bench = bench if bench is not None else bench_of(space.config, scenario, runs)
        self.label: str = self.bench.engine.label

    def play(self, asked: Asked, watch: Watch | None = None) -> Result:
        """Play one trial; see :class:`workbench.tune.trial.Player`.

        An engine that does not come up with a trial's own start-up fields, or dies in it, fails that trial alone.

        Raises:
            EngineStartError: the engine does not come up with the study's own start-up fields.
            InputError: the scenario or the setting does not fit.
            StoreError: the run cannot be recorded.
        """
        begun = time.monotonic()
        try:
            self._hold(asked.point.start_up)
        except (EngineError, InputError) as error:  # a model may not fit with them
            self._start_up = None
            if not asked.point.start_up:
                raise
            return _failed(asked, error, time.monotonic() - begun, self.label)
        if self.bench.engine.config.enable_prefix_caching:
            self.bench.reset_prefix_cache()
        run = self.bench.run(
            self._scenario,
            setting=asked.point.setting,
            seed=asked.seed,
            salt=0,
            slo=self._goal.slo,
            meta={"trial": asked.number},
        )
        if self._began is not None:
            self._began(asked, run)
        try:
            stop = self._follow(run, watch)
        except StoreError:
            raise
        except EngineError as error:
            self._start_up = None  # the next trial starts it again
            return _failed(asked, error, time.monotonic() - begun, self.label, str(run.folder))
        except BaseException:
            with contextlib.suppress(WorkbenchError):
                self.bench.stop_load(_END_S)
            raise
        trace, seconds = run.trace, time.monotonic() - begun
        if stop is None and trace.meta["status"] == "cancelled":  # by somebody else, such as a button beside the study
            stop = Stop("", 0.0, "its load was stopped")
        if run.label == "simulated":
            seconds = run.elapsed_s
            if stop is None and watch is not None and (seen := look_back(trace, watch)) is not None:
                stop, seconds = seen
                trace = cut(trace, seconds)
        label = origin_words(run.meta)
        return result_of(asked, self._goal, trace, stop=stop, engine_s=seconds, label=label, run=str(run.folder))

    def close(self) -> None:
        """End the engine, but one that was lent."""
        if self._lent is None:
            self.bench.stop()

    def _hold(self, start_up: Mapping[str, Any]) -> None:
        """Have an engine with these start-up fields, ready and warm."""
        if self._start_up == start_up and self.bench.engine.state == "ready":
            return
        if self._lent is not None and (start_up or self.bench.engine.state != "ready"):
            raise EngineError("engine: a running one was given to the study, and it died or a trial asks for another")
        self.bench.stop()
        self.bench = bench_of(self._space.config_of(start_up), self._scenario, self._runs)
        self.bench.start(self._progress)
        self._start_up = dict(start_up)
        if self.bench.engine.label != "simulated":
            self._warm_up()

    def _warm_up(self) -> None:
        longest = longest_prompt(self._scenario, self.bench.config.max_model_len)
        tokens = max(1, min(longest, _WARM_TOKENS, self.bench.config.max_model_len - _WARM_OUTPUT))
        self.bench.drop_long(tokens, _WARM_OUTPUT)
        run = self.bench.current_run
        if run is not None:
            run.wait()

    def _follow(self, run: Run, watch: Watch | None) -> Stop | None:
        """Wait for the run, or stop it; a simulated one is over in no time and looked at afterwards."""
        if watch is not None:
            watch.begin(run.workload)
        place = Place()
        while not run.wait(_LOOK_S):
            if watch is None:
                continue
            fresh, place = run.tail.since(place)
            stop = watch.look(fresh if run.label != "simulated" else [])
            if stop is not None:
                if not self.bench.stop_load(_END_S):
                    raise EngineError(f"trial: its requests did not end within {_END_S:g} s; look at the engine's log")
                return stop
        return None


def bench_of(config: EngineConfig, scenario: Scenario, runs: Path | None) -> Workbench:
    """A workbench with this configuration; nothing starts yet."""
    return Workbench(**config.model_dump(), runs=runs, slo=scenario.slo)


def longest_prompt(scenario: Scenario, max_model_len: int) -> int:
    """Tokens of the longest prompt that a scenario plays."""
    planned = (plan(stream, i, scenario.seed, max_model_len)[0] for i, stream in enumerate(scenario.streams))
    return max((one.prompt_tokens for some in planned for one in some), default=0)


def is_simulated(config: EngineConfig) -> bool:
    """Whether nothing is computed by an engine with this configuration."""
    return isinstance(config, SimulatedConfig)


def _failed(asked: Asked, error: WorkbenchError, engine_s: float, label: str, run: str | None = None) -> Result:
    return Result(
        asked.number, asked.point, asked.seed, "failed", engine_s=engine_s, label=label, run=run, error=str(error)
    )
