"""Stock vLLM: the same build, model and flags as our live engine, without our scheduler, worker and environment."""

from __future__ import annotations

import http.client
import secrets
import shutil
import socket
import tempfile
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from workbench.config import EngineConfig
from workbench.driver.host import DriverProcess, Play
from workbench.engine import command
from workbench.engine.collector import Collector
from workbench.engine.dtype import fitted
from workbench.engine.leftovers import new_log
from workbench.engine.process import EngineProcess
from workbench.errors import EngineDiedError, EngineStartError
from workbench.models import resolve_model
from workbench.trace import Sink
from workbench.workload.request import Workload

_OURS = ("--scheduler-cls", "--worker-cls")
_OUR_ENVIRONMENT = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_")


class StockEngine:
    """An engine as anybody would start it.

    Args:
        config: start-up fields.
        our_malloc: with the allocator's thresholds that our engines get, to tell their cost from the probe's.
        steps: with our scheduler and worker after all, so that the steps are known whoever sends the requests.
    """

    label = "live CPU"

    def __init__(self, config: EngineConfig, *, our_malloc: bool = False, steps: bool = False) -> None:
        self.config = fitted(config, "cpu")  # as ours: emulated bfloat16 is five times slower
        self._our_malloc, self._steps = our_malloc, steps
        self._collector: Collector | None = None

    def start(self) -> None:
        """Start and wait until it answers."""
        model = resolve_model(self.config.model)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        folder, label, self.key = Path(tempfile.mkdtemp(prefix="wb-")), secrets.token_hex(8), secrets.token_urlsafe(24)
        argv = command.server_argv(self.config, model, "cpu", self.port)
        if self._steps:
            self._collector = Collector(folder)
        argv[argv.index("-m") + 1] = command.STOCK_SERVER
        for flag in () if self._steps else _OURS:
            at = argv.index(flag)
            del argv[at : at + 2]
        env = command.server_environment(str(folder), label, self.key, "cpu")
        if not self._our_malloc:
            env = {name: value for name, value in env.items() if name not in _OUR_ENVIRONMENT}
        self.process = EngineProcess(argv=argv, env=env, folder=folder, log=new_log(label), label=label)
        deadline = time.monotonic() + self.config.start_timeout_s
        while self._status() != 200:
            if not self.process.running or time.monotonic() > deadline:
                raise EngineStartError(f"stock engine did not start; see {self.process.log}")
            time.sleep(0.2)
        self.driver = DriverProcess(port=self.port, api_key=self.key, model=self.config.model)

    def play(self, workload: Workload, sink: Sink) -> Play:
        """Play a workload with our client; there are no step records without ``steps``."""
        return self.driver.play(
            workload, sink, recording=lambda play: self.recording(sink, play.zero), died=self._death
        )

    def recording(self, sink: Sink, zero: float) -> AbstractContextManager[None]:
        """Hand what the probe says to ``sink`` inside the block, whoever sends the requests."""
        if self._collector is None:
            return nullcontext()
        return self._collector.into(sink, zero, 0, self.config.envelope.defaults)

    def stop(self) -> None:
        """End it."""
        if hasattr(self, "driver"):
            self.driver.close()
        if hasattr(self, "process"):
            self.process.stop()
            shutil.rmtree(self.process.folder, ignore_errors=True)
        if self._collector is not None:
            self._collector.close()

    def _death(self) -> EngineDiedError | None:
        return None if self.process.running else EngineDiedError("the stock engine died")

    def _status(self) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/health", headers={"Authorization": f"Bearer {self.key}"})
            return connection.getresponse().status
        except OSError:
            return 0
        finally:
            connection.close()


class Rows:
    """A sink that keeps everything in memory."""

    def __init__(self) -> None:
        self.tables: dict[str, list[dict[str, Any]]] = {}

    def rows(self, table: str, rows: list[dict[str, Any]]) -> None:
        """Keep rows."""
        self.tables.setdefault(table, []).extend(rows)
