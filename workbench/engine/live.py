"""The live engine: vLLM in a child process with our probe in it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from workbench.compute import compute_facts
from workbench.config import EngineConfig, Envelope, Knobs
from workbench.driver.host import Play
from workbench.engine import command, failures, prefix_cache
from workbench.engine.dtype import fitted
from workbench.engine.facts import facts_of
from workbench.engine.live_server import LiveServer, launch
from workbench.engine.prepared import prepare
from workbench.engine.probe.compat import installed_vllm
from workbench.engine.protocol import Label, Progress, State
from workbench.engine.vitals import Vitals
from workbench.errors import ConfigError, EngineDiedError, EngineError, EngineStartError
from workbench.i18n import marked, phrase
from workbench.models import ModelFiles
from workbench.redact import redact
from workbench.trace import Sink
from workbench.workload.request import Workload


class LiveEngine:
    """One vLLM engine that we start, turn the knobs of, play workloads on, and stop.

    Args:
        config: start-up fields.
    """

    trouble = ""  # one that hangs or dies is ended at once, and is failed then
    exact_prompts = True

    def __init__(self, config: EngineConfig | None = None) -> None:
        self._device: command.Device = "cpu"
        with contextlib.suppress(EngineStartError):  # said when it is started
            self._device = command.installed_device(installed_vllm())
        self.config = fitted(config or EngineConfig(), self._device)
        self.model: ModelFiles | None = None
        self.argv: list[str] = []
        self.log: Path | None = None
        self._opened = ""  # what of it other machines reach, in words
        self.startup_s: float | None = None
        self.ready_since: float | None = None  # CLOCK_MONOTONIC
        self._state: State = "new"
        self._knobs = self.config.envelope.defaults
        self._revision = 0
        self._held: LiveServer | None = None  # while it runs
        self._vitals: Vitals | None = None  # the same, until the next start: how it ended
        self._stopping = threading.Event()
        self._lock = threading.RLock()
        self._life = threading.RLock()  # held by a start from its first to its last moment, and by a stop

    @property
    def label(self) -> Label:
        """Where the numbers come from."""
        return "live GPU" if self._device == "cuda" else "live CPU"

    @property
    def state(self) -> State:
        """What the engine is doing; a ready engine of which a process has ended is failed."""
        if self._state == "ready" and not (self._vitals and self._vitals.good):
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
        """Process id of the API server."""
        return self._held.process.pid if self._held else None

    @property
    def keeps_cache(self) -> bool:
        """Whether a run may find KV blocks of the run before."""
        return self.config.enable_prefix_caching

    def log_tail(self) -> tuple[str, ...]:
        """The last useful lines of the engine's log."""
        return failures.useful_lines(failures.read_tail(self.log)) if self.log else ()

    def start(self, progress: Progress | None = None) -> None:
        """Start vLLM and wait until it answers.

        Raises:
            ModelError: the model is not there.
            ConfigError: the port is taken.
            VersionError: the installed vLLM is one that the probe was not tested on.
            EngineStartError: it did not come up; the message names the likely cause.
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

        def tell(what: str) -> None:
            if self._stopping.is_set():  # so that a download or a conversion ends too
                raise EngineStartError("the start was stopped")
            if progress is not None:
                progress(time.monotonic() - begun, what)

        with self._life:
            self._shut_down("starting")  # an engine that died is still held
            try:
                self._launch(tell).await_ready(begun, tell)
                tell("ready")
            except BaseException:
                self._shut_down("failed")
                raise
            self.ready_since = time.monotonic()
            self.startup_s = self.ready_since - begun
            self._state = "ready"

    def stop(self) -> None:
        """End the engine, also one that is starting; nothing of it is left."""
        self._stopping.set()
        with self._life:
            self._shut_down("stopped")

    def set_knobs(self, knobs: Knobs) -> int:
        """Set the hot knobs for the next step.

        Raises:
            EnvelopeError: they do not fit what the engine was started with, or a target gap is below its decode floor.
            EngineError: the engine does not run.
        """
        self.envelope.check(knobs)
        with self._lock:
            collector = self._ready(phrase("{what}: got a change", what="knobs"))[0].collector
            collector.decode_floor.check(knobs)
            self._revision += 1
            self._knobs = knobs
            collector.send_knobs(self._revision, knobs)
            return self._revision

    def reset_prefix_cache(self) -> None:
        """Empty the prefix cache; returns when it is empty, some 50 ms later.

        Raises:
            ConfigError: the engine was started without a prefix cache.
            EngineError: the engine does not run, a run is going on, or the cache could not be emptied.
        """
        if not self.config.enable_prefix_caching:
            raise ConfigError(
                "enable_prefix_caching",
                False,
                phrase("True, to have a prefix cache to reset"),
                phrase("set it and start the engine again"),
            )
        with self._lock:
            held, vitals = self._ready(phrase("prefix cache: got a reset"))
            if vitals.playing:
                raise EngineError(
                    phrase(
                        "prefix cache: got a reset in mid-run, expected an engine at rest; wait for the run or stop it"
                    )
                )
            prefix_cache.reset(held.collector, self._revision, self._knobs, held.server.make_one_step)

    def play(self, workload: Workload, sink: Sink, hold_s: float | None = None) -> Play:
        """Start to play a workload; see :meth:`workbench.engine.protocol.Engine.play`.

        Raises:
            EngineError: the engine does not run, or a play is going on.
        """
        with self._lock:
            (held, vitals), revision, knobs = (
                self._ready(phrase("{what}: got a workload", what="play")),
                self._revision,
                self._knobs,
            )
            vitals.begin()
            play = held.driver.play(
                workload,
                sink,
                recording=lambda play: held.collector.into(
                    sink, play.zero, revision, knobs, lambda: play.output_tokens
                ),
                died=vitals.death,
                hold_s=hold_s,
                look=vitals.look,
            )
            vitals.follow(play)
            return play

    def describe(self) -> dict[str, Any]:
        """Facts for a run's metadata; None is what is not known, or not any more."""
        serve = command.serve_command(self.config, self.model, self._knobs)
        mine = {
            "label": self.label,
            "engine_pid": self.pid,
            "engine_argv": self.argv,
            "serve_command": serve,
            "startup_s": self.startup_s,
            "config": self.config.model_dump(mode="json"),
            "model_origin": self.model.origin if self.model else None,
        }
        if self._opened:
            mine["listens"] = self._opened
        collector = self._held.collector if self._held else None
        shown: dict[str, Any] = redact(mine | facts_of(collector))  # extra_args may hold a key; this goes to disk
        return shown

    def compute_facts(self) -> dict[str, Any]:
        """Sizes of the model and peak of the machine, see :func:`workbench.compute.compute_facts`."""
        devices = self.config.tensor_parallel_size * self.config.pipeline_parallel_size
        return compute_facts(self.model, self.label, devices=devices)

    def death(self) -> EngineDiedError | None:
        """The error to raise if the engine has ended or hangs, with the likely cause, else none."""
        return self._vitals.death() if self._vitals is not None else None

    def _ready(self, what: str) -> tuple[LiveServer, Vitals]:
        """An engine that is ready, for something that was asked of it."""
        held, vitals = self._held, self._vitals
        if self.state != "ready" or held is None or vitals is None:
            state = phrase(self.state)
            raise EngineError(
                phrase("{what} while the engine is {state}, expected ready; start it first", what=what, state=state)
            )
        return held, vitals

    def _launch(self, tell: Callable[[str], None]) -> LiveServer:
        self._knobs, self._revision = self.envelope.defaults, 0
        made = prepare(self.config, tell)
        self._device, self.model, self.argv, self.log = made.device, made.model, made.argv, made.log
        self._opened = made.opened
        tell(phrase("starting vLLM, {opened}", opened=made.opened) if made.opened else marked("starting vLLM"))
        self._held = launch(made)
        self._vitals = Vitals(self._held, self._stopping)
        return self._held

    def _shut_down(self, state: State) -> None:
        self._state = "stopping"
        held, self._held = self._held, None
        if held is not None:
            held.close()
        self._state = state
