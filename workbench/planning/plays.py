"""Plays loads on one simulator's child, which is started once for all of them, and says what came of each."""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass

from workbench.config import SLO, Knobs
from workbench.engine.probe.compat import check_version
from workbench.engine.probe.wire import KnobChange
from workbench.engine.protocol import Progress
from workbench.errors import EngineError
from workbench.planning.loads import Load
from workbench.planning.rule import Rule, Verdict, judge
from workbench.planning.watch import Watch, as_of
from workbench.simulate.hardware_setup import Setup
from workbench.simulate.host import Simulator
from workbench.simulate.job import Cancel, Rows
from workbench.simulate.outcome import play_job
from workbench.simulate.rows import unpacked
from workbench.simulate.steptime import StepShape, StepTime

_FIRST = 0.7  # of what the engine could do at most: where a search begins that has no neighbour to begin from


class StoppedError(EngineError):
    """The planner was stopped by a person."""


@dataclass(frozen=True)
class Place:
    """One setting of one engine, to be played at several rates.

    Attributes:
        setup: the engine.
        knobs: in force.
        load: its traffic.
        slo: the promise.
        rule: when a rate counts as met.
    """

    setup: Setup
    knobs: Knobs
    load: Load
    slo: SLO
    rule: Rule

    @property
    def peak(self) -> float | None:
        """FLOP/s of all its GPUs, as published; None where no GPU is simulated."""
        device = self.setup.device
        return device.flops * self.setup.config.gpus if device is not None else None

    def _batch(self, step_time: StepTime) -> tuple[float, float, float]:
        """Seconds of a prompt token in a full step, of a decode step with all that fit, and how many fit."""
        mean = self.load.prompt_tokens + self.load.output_tokens / 2
        pool = self.setup.blocks * self.setup.block_size
        fit = max(1, int(min(self.knobs.max_running, pool / mean)))
        budget = max(1, min(self.knobs.budget, int(mean)))
        whole = step_time.seconds(StepShape.made([(budget, 0)]))
        return whole / budget, step_time.seconds(StepShape.made((), fit, int(mean))), fit

    def guess(self, step_time: StepTime) -> tuple[float, float]:
        """About the most requests a second that the engine could serve, and how long each would stay, s.

        Prefill and decode one after the other: the time of all prompt tokens in full steps, and each output token's
        share of a decode step with as many requests as fit.
        """
        token_s, decode_s, fit = self._batch(step_time)
        prompt_s = token_s * self.load.prompt_tokens
        each = prompt_s + self.load.output_tokens * decode_s / fit
        return _FIRST / each, prompt_s + self.load.output_tokens * decode_s


class Player:
    """Plays loads one after the other; any thread may stop it.

    Args:
        told: called after every play.
    """

    def __init__(self, told: Callable[[], None] | None = None) -> None:
        self._told = told
        self._simulator = Simulator()
        self._stopping = threading.Event()
        self._number: int | None = None

    def start(self, progress: Progress | None = None) -> None:
        """Start the child.

        Raises:
            EngineStartError: it did not come up.
            VersionError: the probe was not tested on the installed vLLM.
            StoppedError: it was stopped meanwhile.
        """
        try:
            self._go_on()
            self._simulator.start(progress)
        except EngineError as error:
            self._go_on(error)
            raise
        check_version(self._simulator.vllm or "")

    def stop(self) -> None:
        """End what is played and play nothing more."""
        self._stopping.set()
        number = self._number
        if number is not None:
            with contextlib.suppress(EngineError):
                self._simulator.send(Cancel(number))
        elif not self._simulator.running:
            self._simulator.close()  # it is starting

    def close(self) -> None:
        """End the child; one that takes its time to go, as on a machine with a high load, is gone all the same."""
        with contextlib.suppress(subprocess.TimeoutExpired):  # it was killed, and nobody has to wait for it
            self._simulator.close()

    def play(self, place: Place, rate: float, residence_s: float, step_time: StepTime | None = None) -> Verdict:
        """Play a load at a rate, 1/s.

        Args:
            place: engine, setting and load.
            rate: requests a second.
            residence_s: about how long a request stays, which says how long the play must be.
            step_time: in place of the engine's own.

        Raises:
            StoppedError: it was stopped.
            EngineError: it could not be played.
        """
        setup, load = place.setup, place.load
        count = len(load.requests)
        if not load.whole:
            count = min(place.rule.count(rate, residence_s), count)
        fields = {} if step_time is None else {"step_time": dict(step_time.spec())}
        asks = load.asks(rate, count, tokens=setup.config.enable_prefix_caching)
        watch = Watch(asks, place.slo, place.rule)
        job = setup.job(
            requests=asks,
            knobs=KnobChange(revision=0, **place.knobs.model_dump()),
            **fields,
        )

        def look(rows: Rows) -> None:
            """In the thread that hears the child."""
            self._number = rows.number
            tokens = rows.tables.get("tokens")
            failed = watch.look(unpacked(tokens) if tokens is not None else None, rows.now_s)
            if failed or self._stopping.is_set():
                with contextlib.suppress(EngineError):
                    self._simulator.send(Cancel(rows.number))

        self._go_on()
        try:
            outcome = play_job(self._simulator, job, look)
        except EngineError as error:
            self._go_on(error)
            raise
        finally:
            self._number = None
        self._go_on()
        if self._told is not None:
            self._told()
        trace, cut_s = outcome.trace(), watch.failed_s
        known = trace if cut_s is None else as_of(trace, cut_s)
        return judge(known, rate, place.slo, place.rule, setup.architecture, place.peak, cut_s)

    def _go_on(self, error: EngineError | None = None) -> None:
        if self._stopping.is_set():
            raise StoppedError("planner: it was stopped") from error
