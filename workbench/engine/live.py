"""The live engine: vLLM in a child process with our probe in it."""

from __future__ import annotations

import contextlib
import http.client
import secrets
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from workbench.config import EngineConfig, Envelope, Knobs
from workbench.driver.host import DriverProcess, Play
from workbench.engine import command, failures
from workbench.engine.collector import Collector
from workbench.engine.leftovers import new_log
from workbench.engine.probe import wire
from workbench.engine.probe.compat import check_version, installed_vllm
from workbench.engine.process import EngineProcess
from workbench.engine.protocol import Label, Progress, State
from workbench.errors import ConfigError, EngineDiedError, EngineError, EngineStartError
from workbench.models import ModelFiles, resolve_model
from workbench.proc import Identity, identity, is_same
from workbench.redact import redact
from workbench.trace import Sink
from workbench.workload.request import Workload

_POLL_S = 0.1
_LAST_WORDS_S = 3.0


class LiveEngine:
    """One vLLM engine that we start, turn the knobs of, play workloads on, and stop.

    Args:
        config: start-up fields.
    """

    def __init__(self, config: EngineConfig | None = None) -> None:
        self.config = config or EngineConfig()
        self.model: ModelFiles | None = None
        self.argv: list[str] = []
        self.log: Path | None = None
        self.startup_s: float | None = None
        self.ready_since: float | None = None  # CLOCK_MONOTONIC
        self._state: State = "new"
        self._device: command.Device = "cpu"
        self._knobs = self.config.envelope.defaults
        self._revision = 0
        self._process: EngineProcess | None = None
        self._core: Identity | None = None  # of EngineCore
        self._collector: Collector | None = None
        self._driver: DriverProcess | None = None
        self._port = 0
        with contextlib.suppress(EngineStartError):  # said when it is started
            self._device = command.installed_device(installed_vllm())
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
            EnvelopeError: they do not fit what the engine was started with.
            EngineError: the engine does not run.
        """
        self.envelope.check(knobs)
        with self._lock:
            if self._collector is None or self.state != "ready":
                raise EngineError(
                    f"knobs: got a change while the engine is {self.state}, expected ready; start it first"
                )
            self._revision += 1
            self._knobs = knobs
            self._collector.send_knobs(self._revision, knobs)
            return self._revision

    def play(self, workload: Workload, sink: Sink, hold_s: float | None = None) -> Play:
        """Start to play a workload; see :meth:`workbench.engine.protocol.Engine.play`.

        Raises:
            EngineError: the engine does not run, or a play is going on.
        """
        with self._lock:
            if self.state != "ready" or self._driver is None or self._collector is None or self._process is None:
                raise EngineError(
                    f"play: got a workload while the engine is {self.state}, expected ready; start it first"
                )
            collector, revision, knobs = self._collector, self._revision, self._knobs
            return self._driver.play(
                workload,
                sink,
                recording=lambda play: collector.into(sink, play.zero, revision, knobs, lambda: play.output_tokens),
                died=self.death,
                hold_s=hold_s,
            )

    def describe(self) -> dict[str, Any]:
        """Facts for a run's metadata; None is what is not known, or not any more."""
        collector = self._collector  # a stop in another thread takes it away
        hello = collector.scheduler if collector else None
        workers = list(collector.workers.values()) if collector else []
        facts = {
            "label": self.label,
            "vllm": "=".join(installed_vllm() or ("vllm", "not installed")),
            "engine_pid": self.pid,
            "engine_argv": self.argv,
            "serve_command": command.serve_command(self.config, self.model, self._knobs),
            "startup_s": self.startup_s,
            "config": self.config.model_dump(mode="json"),
            "model_origin": self.model.origin if self.model else None,
            "resolved": {field: getattr(hello, field) for field in hello.__struct_fields__} if hello else None,
            # Of the one rank whose output vLLM hands back. On CPU the weights are what loading them made resident.
            "memory_split": {
                "rank": workers[0].rank,
                "weights_bytes": workers[0].weights_bytes,
                "kv_bytes": workers[0].kv_bytes,
            }
            if workers
            else None,
            "probe_faults": list(collector.faults) if collector else None,  # since the engine started
            "probe_dropped": collector.dropped if collector else None,  # since the run began
        }
        shown: dict[str, Any] = redact(facts)  # extra_args may hold a key, and this goes to disk
        return shown

    def _launch(self, tell: Callable[[str], None]) -> None:
        distribution = installed_vllm()
        installed = command.installed_device(distribution)
        if self.config.device not in ("auto", installed):
            raise ConfigError(
                "device",
                self.config.device,
                f"{installed}, which the installed vLLM was built for",
                "set device to auto",
            )
        if distribution:
            check_version(distribution[1])
        self._device, self._core = installed, None
        self._knobs, self._revision = self.envelope.defaults, 0
        self.model = resolve_model(self.config.model, progress=tell)
        self._check_length(self.model)
        self._port = self._take_port()
        folder = Path(tempfile.mkdtemp(prefix="wb-"))  # mkdtemp makes it 0700; the path must stay short for ipc
        label, self._api_key = secrets.token_hex(8), secrets.token_urlsafe(24)
        self.log = new_log(label)
        try:
            self._collector = Collector(folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        self.argv = command.server_argv(self.config, self.model, self._device, self._port)
        tell("starting vLLM")
        self._process = EngineProcess(
            argv=self.argv,
            env=command.server_environment(str(folder), label, self._api_key, self._device),
            folder=folder,
            log=self.log,
            label=label,
        )
        self._driver = DriverProcess(port=self._port, api_key=self._api_key, model=self.config.model)

    def _check_length(self, model: ModelFiles) -> None:
        if model.max_positions is not None and self.config.max_model_len > model.max_positions:
            raise ConfigError(
                "max_model_len",
                self.config.max_model_len,
                f"at most {model.max_positions}, the positions of {model.name}",
                "lower it or choose another model",
            )

    def _take_port(self) -> int:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", self.config.port or 0))
            except OSError as error:
                raise ConfigError(
                    "port", self.config.port, "a free port on 127.0.0.1", f"leave it unset or choose another ({error})"
                ) from None
            return int(probe.getsockname()[1])

    def _await_ready(self, begun: float, tell: Callable[[str], None]) -> None:
        deadline = begun + self.config.start_timeout_s
        while True:
            process, collector = self._process, self._collector
            if process is None or collector is None:
                raise AssertionError("launched, and only the holder of the life lock shuts down")
            if not process.running:
                raise self._start_error(process.error)
            if collector.scheduler is not None and self._ask("/health") == 200:
                process.mark_ready()
                self._core = identity(collector.scheduler.pid)
                self._check_resolved(collector.scheduler)
                return
            if time.monotonic() > deadline:
                raise self._start_error(
                    f"not ready after start_timeout_s = {self.config.start_timeout_s:g} s; raise it, or see the log"
                )
            tell(self._stage())
            time.sleep(_POLL_S)

    def _check_resolved(self, hello: wire.SchedulerHello) -> None:
        """Refuse an engine that extra_args made another than the configuration, its envelope and its charts say."""
        config = self.config
        asked = {
            "max_num_batched_tokens": (hello.max_num_batched_tokens, config.max_num_batched_tokens),
            "max_num_seqs": (hello.max_num_seqs, config.max_num_seqs),
            "max_model_len": (hello.max_model_len, config.max_model_len),
            "enable_prefix_caching": (hello.prefix_caching, config.enable_prefix_caching),
            "async_scheduling": (hello.async_scheduling, command.is_async(config, self._device)),
            "enable_chunked_prefill": (hello.chunked_prefill, True),
            "long_prefill_token_threshold": (hello.chunk, 0),
        }
        for field, (found, expected) in asked.items():
            if found != expected:
                hot = {"enable_chunked_prefill": "policy", "long_prefill_token_threshold": "chunk"}.get(field)
                way = f"turn the hot knob {hot}" if hot else f"set {field}"
                raise ConfigError(field, found, f"{expected}, as the engine was configured", f"{way}, not extra_args")

    def _stage(self) -> str:
        """What a starting engine is doing, as its log tells."""
        text = failures.read_tail(self.log) if self.log else ""
        for mark, stage in _STAGES:
            if mark in text:
                return stage
        return "importing vLLM"

    def _start_error(self, why: str | None) -> EngineStartError:
        text = failures.read_tail(self.log) if self.log else ""
        code = self._process.exit_code if self._process else None
        return EngineStartError(why or f"engine start: {failures.explain(text, code)}", failures.useful_lines(text))

    def death(self) -> EngineDiedError | None:
        """The error to raise if the engine has ended, with the likely cause, else none."""
        if self._is_whole():
            return None
        process = self._process
        if self._stopping.is_set():
            return EngineDiedError("the engine was stopped")
        if process is not None:
            process.wait(_LAST_WORDS_S)  # its exit code and the end of its log tell why
        text = failures.read_tail(self.log) if self.log else ""
        cause = failures.explain(text, process.exit_code if process else None)
        self._state = "failed"
        return EngineDiedError(
            f"the engine died in mid-run: {cause}; what was measured is kept, start the engine again"
        )

    def _is_whole(self) -> bool:
        """Whether API server and engine core run; the server outlives a killed core by some seconds."""
        return self._process is not None and self._process.running and (self._core is None or is_same(self._core))

    def _ask(self, path: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=5)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {self._api_key}"})
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return 0
        finally:
            connection.close()

    def _shut_down(self, state: State) -> None:
        self._state = "stopping"
        driver, process, collector = self._driver, self._process, self._collector
        self._driver = self._process = self._collector = None
        if driver is not None:
            driver.close()
        if process is not None:
            process.stop()
            shutil.rmtree(process.folder, ignore_errors=True)
        if collector is not None:
            collector.close()
        self._state = state


_STAGES = (
    ("Application startup complete", "answering"),
    ("Starting vLLM server", "opening the port"),
    ("init engine", "opening the port"),
    ("GPU KV cache size", "warming up"),
    ("Loading weights took", "making the KV pool"),
    ("Starting to load model", "loading weights"),
    ("Initializing a V1 LLM engine", "starting the engine core"),
)
