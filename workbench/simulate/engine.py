"""The simulated engine: vLLM's own scheduler in a child, in virtual time, on hardware that nobody has here."""

from __future__ import annotations

import threading
import time
from typing import Any

from workbench.config import Envelope, Knobs
from workbench.engine.probe.compat import check_version
from workbench.engine.probe.wire import KnobChange
from workbench.engine.protocol import Label, Progress, State
from workbench.errors import ConfigError, EngineDiedError, EngineError, EngineStartError
from workbench.i18n import phrase
from workbench.models import ModelFiles
from workbench.simulate.facts import compute_facts_of, description_of
from workbench.simulate.hardware_setup import Setup, set_up
from workbench.simulate.host import Simulator
from workbench.simulate.job import SimJob
from workbench.simulate.made_up_files import made_up_files
from workbench.simulate.memory import Memory
from workbench.simulate.play import SimulatedPlay, ask_of
from workbench.simulate.steptime import StepTime
from workbench.simulated_config import SimulatedConfig
from workbench.trace import Sink
from workbench.workload.request import Workload


class SimulatedEngine:
    """An engine that computes nothing: steps take as long as a model says they would.

    Every play starts with an empty KV pool and an empty prefix cache, so that the same workload makes the same trace.

    Args:
        config: start-up fields.
        step_time: in place of the model that the configuration names.
        memory: in place of what is counted from the model's sizes.
        blocks: KV blocks, in place of what memory leaves.
    """

    trouble, exact_prompts = "", True  # a child that computes is in no trouble

    def __init__(
        self,
        config: SimulatedConfig | None = None,
        *,
        step_time: StepTime | None = None,
        memory: Memory | None = None,
        blocks: int | None = None,
    ) -> None:
        self.config = config or SimulatedConfig()
        self.model: ModelFiles | None = None
        self.setup: Setup | None = None
        self.startup_s: float | None = None
        self.ready_since: float | None = None  # CLOCK_MONOTONIC
        self._given: dict[str, Any] = {"step_time": step_time, "memory": memory, "blocks": blocks}
        self._simulator = Simulator()
        self._state: State = "new"
        self._knobs, self._revision = self.envelope.defaults, 0
        self._play: SimulatedPlay | None = None
        self._lock, self._life = threading.RLock(), threading.RLock()
        self._stopping = threading.Event()

    @property
    def label(self) -> Label:
        """Where the numbers come from."""
        return "simulated"

    @property
    def state(self) -> State:
        """What the engine is doing; a ready engine whose child has ended is failed."""
        if self._state == "ready" and not self._simulator.running:
            self._state = "failed"
        return self._state

    @property
    def envelope(self) -> Envelope:
        """Bounds of the hot knobs."""
        return self.config.envelope

    @property
    def knobs(self) -> Knobs:
        """Knobs in force, as last set."""
        return self._knobs

    @property
    def revision(self) -> int:
        """Number of the knobs in force; 0 is what the engine started with."""
        return self._revision

    @property
    def pid(self) -> int | None:
        """None: the memory of the process that simulates says nothing about the engine."""
        return None

    @property
    def keeps_cache(self) -> bool:
        """False: every play starts with an empty one."""
        return False

    def log_tail(self) -> tuple[str, ...]:
        """A simulated engine writes no log."""
        return ()

    def start(self, progress: Progress | None = None) -> None:
        """Look up model, GPU and step-time model, and import vLLM's scheduler in a child.

        Raises:
            InputError: the model, the GPU or a calibration is not there, or the model does not fit.
            VersionError: the installed vLLM is one that the probe was not tested on.
            EngineStartError: the child did not come up, or the start was stopped.
        """
        with self._lock:
            if self._state in ("starting", "ready"):
                raise EngineError(
                    phrase(
                        "engine: got start while {state}, expected a stopped engine; stop it first",
                        state=phrase(self._state),
                    )
                )
            self._state = "starting"
            self._stopping.clear()
        begun = time.monotonic()
        with self._life:
            try:
                self._bring_up(progress)
                self._go_on()
            except BaseException:
                self._shut_down("failed")
                raise
            self.ready_since = time.monotonic()
            self.startup_s = self.ready_since - begun
            self._state = "ready"
        if progress is not None:
            progress(self.startup_s, "ready")

    def stop(self) -> None:
        """End the child, also in mid-play or mid-start; what was simulated is kept."""
        self._stopping.set()
        if self._state == "ready":
            self._state = "stopping"
        self._simulator.close()
        with self._life:
            self._shut_down("stopped")

    def set_knobs(self, knobs: Knobs) -> int:
        """Set the hot knobs; in mid-play they take hold at the present virtual time.

        Raises:
            EnvelopeError: they do not fit what the engine was started with.
            EngineError: the engine does not run.
        """
        self.envelope.check(knobs)
        with self._lock:
            self._ready(phrase("{what}: got a change", what="knobs"))
            self._revision += 1
            self._knobs = knobs
            if self._play is not None and not self._play.done:
                self._play.set_knobs(self._change())
            return self._revision

    def reset_prefix_cache(self) -> None:
        """Nothing to do: every play starts with an empty one.

        Raises:
            ConfigError: the engine was started without a prefix cache.
            EngineError: the engine does not run, or a run is going on.
        """
        if not self.config.enable_prefix_caching:
            raise ConfigError(
                "enable_prefix_caching",
                False,
                phrase("True, to have a prefix cache to reset"),
                phrase("set it and start the engine again"),
            )
        with self._lock:
            self._ready(phrase("prefix cache: got a reset"))
            if self._play is not None and not self._play.done:
                raise EngineError(
                    phrase(
                        "prefix cache: got a reset in mid-run, expected an engine at rest; wait for the run or stop it"
                    )
                )

    def play(self, workload: Workload, sink: Sink, hold_s: float | None = None) -> SimulatedPlay:
        """Start to simulate a workload; the clock stands at ``hold_s`` until it is let go.

        Raises:
            EngineError: the engine does not run, or a play is going on.
        """
        with self._lock:
            self._ready(phrase("{what}: got a workload", what="play"))
            if self._play is not None and not self._play.done:
                raise EngineError(
                    phrase("play: got a second workload, expected one at a time; wait for the first or cancel it")
                )
            pace, tokens = self.config.pace, self.config.enable_prefix_caching
            job = self.job_of(workload, hold_s if pace is None else 0.0)
            play = SimulatedPlay(
                job.number, job.requests, self._simulator, sink, tokens=tokens, hold_s=hold_s, pace=pace
            )
            self._simulator.submit(job, play.hear)
            if pace is not None:
                play.keep_pace()
            self._play = play
            return play

    def job_of(self, workload: Workload, hold_s: float | None = None) -> SimJob:
        """What :meth:`play` orders of the child: the workload on this engine, under the knobs in force.

        Raises:
            EngineError: the engine does not run.
        """
        tokens = self.config.enable_prefix_caching
        return self._ready(phrase("{what}: got a workload", what="job")).job(
            number=self._simulator.number(),
            requests=[ask_of(request, tokens=tokens) for request in workload.requests],
            knobs=self._change(),
            concurrency=dict(workload.concurrency),
            hold_s=hold_s,
            seed=workload.seed,
        )

    def death(self) -> EngineDiedError | None:
        """The error to raise if the child has ended, else none."""
        return None if self._simulator.running else EngineDiedError("the simulator's child has ended; start it again")

    def describe(self) -> dict[str, Any]:
        """Facts for a run's metadata; None is what is not known."""
        return description_of(self, self._simulator.vllm, self._play)

    def compute_facts(self) -> dict[str, Any]:
        """What :func:`workbench.compute.compute_facts` says of a live engine: sizes, and the peak of the datasheet."""
        return compute_facts_of(self.config, self.setup)

    def _bring_up(self, progress: Progress | None) -> None:
        self._shut_down("starting")
        self._simulator = Simulator()
        self._knobs, self._revision, self._play = self.envelope.defaults, 0, None
        self.setup = set_up(self.config, **self._given)
        self._go_on()
        self._simulator.start(progress)
        check_version(self._simulator.vllm or "")
        self.model = made_up_files(self.config, self._simulator.folder)

    def _go_on(self) -> None:
        """A stop may come at any moment of a start."""
        if self._stopping.is_set():
            raise EngineStartError("the start was stopped")

    def _change(self) -> KnobChange:
        return KnobChange(revision=self._revision, **self._knobs.model_dump())

    def _ready(self, what: str) -> Setup:
        if self.state != "ready" or self.setup is None:
            state = phrase(self.state)
            raise EngineError(
                phrase("{what} while the engine is {state}, expected ready; start it first", what=what, state=state)
            )
        return self.setup

    def _shut_down(self, state: State) -> None:
        self._simulator.close()
        self._state = state
