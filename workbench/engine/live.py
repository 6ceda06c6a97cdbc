"""The live engine: vLLM in a child process with our probe in it."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from workbench.compute import compute_facts
from workbench.config import EngineConfig, Envelope, Knobs
from workbench.driver.host import DriverProcess, Play
from workbench.engine import command, failures, prefix_cache
from workbench.engine.checks import (
    check_device,
    check_extra_args,
    check_length,
    check_resolved,
    open_key,
    opened,
    take_port,
)
from workbench.engine.collector import Collector
from workbench.engine.dtype import fitted
from workbench.engine.facts import facts_of, stage
from workbench.engine.hang import Pulse
from workbench.engine.leftovers import new_log
from workbench.engine.probe.compat import check_version, installed_vllm
from workbench.engine.process import EngineProcess
from workbench.engine.protocol import Label, Progress, State
from workbench.engine.scratch import in_one_line, socket_folder
from workbench.engine.server import Server
from workbench.errors import ConfigError, EngineDiedError, EngineError, EngineStartError
from workbench.i18n import marked, phrase
from workbench.models import ModelFiles, resolve_model
from workbench.proc import Identity, identity, is_same
from workbench.redact import redact
from workbench.trace import Sink
from workbench.workload.request import Workload

_POLL_S = 0.1
_LAST_WORDS_S = 3.0


class _Parts(NamedTuple):
    """What belongs to one start."""

    collector: Collector
    driver: DriverProcess
    server: Server


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
        self._process: EngineProcess | None = None
        self._core: Identity | None = None  # of EngineCore
        self._collector: Collector | None = None
        self._driver: DriverProcess | None = None
        self._server: Server | None = None
        self._play: Play | None = None
        self._pulse: Pulse | None = None  # of the play that is going on
        self._hang: str | None = None  # what was wrong when the engine was ended because it hung
        self._lost = False  # its server says that its engine is dead, and its processes may still be there
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
        if self._state == "ready" and not self._is_whole():
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
        return self._process.pid if self._process else None

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
                raise EngineError(f"engine: got start while {self._state}, expected a stopped engine; stop it first")
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
                self._launch(tell)
                self._await_ready(begun, tell)
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
            collector = self._ready("knobs: got a change").collector
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
                "True, to have a prefix cache to reset",
                "set it and start the engine again",
            )
        with self._lock:
            parts = self._ready("prefix cache: got a reset")
            if self._play is not None and not self._play.done:
                raise EngineError(
                    "prefix cache: got a reset in mid-run, expected an engine at rest; wait for the run or stop it"
                )
            prefix_cache.reset(parts.collector, self._revision, self._knobs, parts.server.make_one_step)

    def play(self, workload: Workload, sink: Sink, hold_s: float | None = None) -> Play:
        """Start to play a workload; see :meth:`workbench.engine.protocol.Engine.play`.

        Raises:
            EngineError: the engine does not run, or a play is going on.
        """
        with self._lock:
            parts, revision, knobs = self._ready("play: got a workload"), self._revision, self._knobs
            self._pulse = Pulse(self.pid) if self.pid is not None else None
            self._play = parts.driver.play(
                workload,
                sink,
                recording=lambda play: parts.collector.into(
                    sink, play.zero, revision, knobs, lambda: play.output_tokens
                ),
                died=self.death,
                hold_s=hold_s,
                look=self._look,
            )
            return self._play

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
        shown: dict[str, Any] = redact(mine | facts_of(self._collector))  # extra_args may hold a key; this goes to disk
        return shown

    def compute_facts(self) -> dict[str, Any]:
        """Sizes of the model and peak of the machine, see :func:`workbench.compute.compute_facts`."""
        devices = self.config.tensor_parallel_size * self.config.pipeline_parallel_size
        return compute_facts(self.model, self.label, devices=devices)

    def _ready(self, what: str) -> _Parts:
        """The parts of an engine that is ready, for something that was asked of it."""
        collector, driver, server = self._collector, self._driver, self._server
        if self.state != "ready" or collector is None or driver is None or server is None:
            raise EngineError(f"{what} while the engine is {self.state}, expected ready; start it first")
        return _Parts(collector, driver, server)

    def _launch(self, tell: Callable[[str], None]) -> None:
        distribution = installed_vllm()
        installed = command.installed_device(distribution)
        check_device(self.config, installed)
        check_extra_args(self.config)
        shared_key = open_key(self.config)
        if distribution:
            check_version(distribution[1])
        self._device, self._core, self._hang, self._lost = installed, None, None, False
        self._knobs, self._revision = self.envelope.defaults, 0
        self.model = resolve_model(self.config.model, progress=tell)
        check_length(self.config, self.model)
        port = take_port(self.config.port)
        label, api_key = secrets.token_hex(8), shared_key or secrets.token_urlsafe(24)
        with in_one_line("the engine's log", "WORKBENCH_STATE"):
            self.log = new_log(label)
        with in_one_line("the engine's sockets", "TMPDIR"):
            folder = socket_folder()
            try:
                self._collector = Collector(folder)
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)
                raise
        self.argv = command.server_argv(self.config, self.model, self._device, port)
        self._opened = opened(port) if shared_key else ""
        tell(phrase("starting vLLM, {opened}", opened=self._opened) if shared_key else marked("starting vLLM"))
        self._process = EngineProcess(
            argv=self.argv,
            env=command.server_environment(str(folder), label, api_key, self._device),
            folder=folder,
            log=self.log,
            label=label,
        )
        self._server = Server(port, api_key, self.config.model)
        with in_one_line("the client's socket", "TMPDIR"):
            self._driver = DriverProcess(port=port, api_key=api_key, model=self.config.model)

    def _await_ready(self, begun: float, tell: Callable[[str], None]) -> None:
        deadline = begun + self.config.start_timeout_s
        while True:
            process, collector, server = self._process, self._collector, self._server
            if process is None or collector is None or server is None:
                raise AssertionError("launched, and only the holder of the life lock shuts down")
            if not process.running:
                raise self._start_error(process.error)
            if collector.scheduler is not None and server.is_healthy():
                process.mark_ready()
                self._core = identity(collector.scheduler.pid)
                check_resolved(self.config, collector.scheduler, self._device)
                return
            if time.monotonic() > deadline:
                raise self._start_error(
                    f"not ready after start_timeout_s = {self.config.start_timeout_s:g} s; raise it, or see the log"
                )
            tell(stage(failures.read_tail(self.log) if self.log else ""))
            time.sleep(_POLL_S)

    def _start_error(self, why: str | None) -> EngineStartError:
        text = failures.read_tail(self.log) if self.log else ""
        code = self._process.exit_code if self._process else None
        return EngineStartError(why or f"engine start: {failures.explain(text, code)}", failures.useful_lines(text))

    def death(self) -> EngineDiedError | None:
        """The error to raise if the engine has ended or hangs, with the likely cause, else none."""
        if self._hangs():
            return EngineDiedError(
                f"the engine hangs: {self._hang}; it was ended and what was measured is kept, start the engine again"
            )
        if self._is_whole() and not self._lost:
            return None
        process = self._process
        if self._stopping.is_set():
            return EngineDiedError("the engine was stopped")
        if process is not None:
            process.wait(_LAST_WORDS_S)  # its exit code and the end of its log tell why
        text = failures.read_tail(self.log) if self.log else ""
        cause = failures.explain(text, process.exit_code if process else None)
        self._state = "failed"
        if process is not None and self._is_whole():  # dead by its own word, and yet there
            self._end(process)
        return EngineDiedError(
            f"the engine died in mid-run: {cause}; what was measured is kept, start the engine again"
        )

    def _hangs(self) -> bool:
        """Whether it was found to hang in the play that is going on, or the last one; it is ended then."""
        play, pulse, process, collector = self._play, self._pulse, self._process, self._collector
        if self._hang is None and play and not play.done and pulse and process and collector and self._is_whole():
            self._hang = pulse.look((collector.last_step, play.output_tokens), play.in_flight)
            if self._hang is not None:
                self._state = "failed"
                self._end(process)
        return self._hang is not None

    def _look(self) -> None:
        """Ask the server whether its engine is dead; for when requests have failed."""
        server = self._server
        self._lost = server is not None and not self._stopping.is_set() and server.is_lost()

    @staticmethod
    def _end(process: EngineProcess) -> None:
        """End a dead or hung engine while its requests are let go: stopped processes heed no SIGTERM for seconds."""
        threading.Thread(target=process.stop, name="end a dead engine", daemon=True).start()

    def _is_whole(self) -> bool:
        """Whether API server and engine core run; the server outlives a killed core by some seconds."""
        return self._process is not None and self._process.running and (self._core is None or is_same(self._core))

    def _shut_down(self, state: State) -> None:
        self._state = "stopping"
        driver, process, collector = self._driver, self._process, self._collector
        self._driver = self._process = self._collector = self._server = None
        if driver is not None:
            driver.close()
        if process is not None:
            process.stop()
            shutil.rmtree(process.folder, ignore_errors=True)
        if collector is not None:
            collector.close()
        self._state = state
