"""What is held of a live engine from start to stop: its process, our end of the probe, the server, the client."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass

from workbench.driver.host import DriverProcess
from workbench.engine import failures
from workbench.engine.checks import check_resolved
from workbench.engine.collector import Collector
from workbench.engine.command import server_environment
from workbench.engine.facts import stage
from workbench.engine.prepared import Prepared
from workbench.engine.process import EngineProcess
from workbench.engine.scratch import in_one_line, socket_folder
from workbench.engine.server import Server
from workbench.errors import EngineStartError
from workbench.i18n import phrase
from workbench.proc import Identity, identity, is_same

_POLL_S = 0.1


@dataclass
class LiveServer:
    """One vLLM that we started; :func:`launch` makes it.

    Attributes:
        prepared: how it was launched.
        process: of the API server, under its guard.
        collector: takes what the probe in it sends, and sends it knobs.
        server: asks it.
        driver: the client.
        core: the process of EngineCore, once the engine is ready.
    """

    prepared: Prepared
    process: EngineProcess
    collector: Collector
    server: Server
    driver: DriverProcess
    _held: contextlib.ExitStack
    core: Identity | None = None
    _closed: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether API server and engine core run; the server outlives a killed core by some seconds."""
        return not self._closed and self.process.running and (self.core is None or is_same(self.core))

    def await_ready(self, begun: float, tell: Callable[[str], None]) -> None:
        """Wait until it answers.

        Args:
            begun: when the start began, CLOCK_MONOTONIC.
            tell: told what is going on; it may raise to end this.

        Raises:
            EngineStartError: it did not come up; the message names the likely cause.
            ConfigError: it took other values than it was given.
        """
        config = self.prepared.config
        while True:
            if not self.process.running:
                raise self._start_error(self.process.error)
            if (scheduler := self.collector.scheduler) is not None and self.server.is_healthy():
                self.process.mark_ready()
                self.core = identity(scheduler.pid)
                check_resolved(config, scheduler, self.prepared.device)
                return
            if time.monotonic() > begun + config.start_timeout_s:
                raise self._start_error(
                    phrase(
                        "not ready after start_timeout_s = {limit:g} s; raise it, or see the log",
                        limit=config.start_timeout_s,
                    )
                )
            tell(stage(failures.read_tail(self.prepared.log)))
            time.sleep(_POLL_S)

    def close(self) -> None:
        """End all of it; nothing is left behind. A second call does nothing."""
        self._closed = True  # first: what the client hears meanwhile is that the engine was stopped
        self._held.close()

    def _start_error(self, why: str | None) -> EngineStartError:
        text = failures.read_tail(self.prepared.log)
        said = why or phrase("engine start: {cause}", cause=failures.explain(text, self.process.exit_code))
        return EngineStartError(said, failures.useful_lines(text))


def launch(prepared: Prepared) -> LiveServer:
    """Start vLLM under its guard, and what listens to it; nothing is left behind if that fails.

    Raises:
        EngineStartError: a socket cannot be made.
    """
    one, name = prepared, prepared.config.model
    with contextlib.ExitStack() as held:
        with in_one_line("the engine's sockets", "TMPDIR"):
            folder = socket_folder()
            held.callback(lambda: shutil.rmtree(folder, ignore_errors=True))
            collector = Collector(folder)
        held.callback(collector.close)
        environment = server_environment(str(folder), one.label, one.api_key, one.device)
        process = EngineProcess(argv=one.argv, env=environment, folder=folder, log=one.log, label=one.label)
        held.callback(process.stop)
        with in_one_line("the client's socket", "TMPDIR"):
            driver = DriverProcess(port=one.port, api_key=one.api_key, model=name)
        held.callback(driver.close)
        server = Server(one.port, one.api_key, name)
        return LiveServer(prepared, process, collector, server, driver, held.pop_all())
