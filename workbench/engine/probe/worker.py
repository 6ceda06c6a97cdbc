"""Worker mix-in that measures the memory peak of each step; ``cpu_worker`` and ``cuda_worker`` say how."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import vllm
from vllm.v1.outputs import AsyncModelRunnerOutput

from workbench.engine.probe import wire
from workbench.engine.probe.compat import check_version
from workbench.engine.probe.link import now_us

if TYPE_CHECKING:
    from vllm.v1.core.sched.output import SchedulerOutput
    from vllm.v1.worker.worker_base import WorkerBase as _Base
else:
    _Base = object

check_version(vllm.__version__)

_log = logging.getLogger(__name__)


class PeakMeter(Protocol):
    """Measures the highest memory between two calls, in bytes."""

    def begin(self) -> int:
        """Reset the peak and return what is in use now."""

    def end(self) -> tuple[int, int, int]:
        """Return peak, in use now, and reserved (0 where that has no meaning)."""


class ProbedWorker(_Base):
    """Mixed in before one of vLLM's workers; :meth:`_meter` says how its device is measured.

    What is measured rides back to the scheduler on the step's own output: a socket here would wake a thread on the
    very core that computes.
    """

    _peak: PeakMeter | None = None
    _weights_bytes = 0
    _said_hello = False
    _running: tuple[float, int, float] | None = None  # start, bytes before, our own time so far

    def _meter(self) -> PeakMeter:
        raise NotImplementedError

    def load_model(self, *args: Any, **kwargs: Any) -> None:
        """Load the weights between two readings of memory: prepacked weights are no parameters any more."""
        meter = self._meter()
        before = meter.begin()
        super().load_model(*args, **kwargs)
        self._weights_bytes = max(0, meter.end()[1] - before)

    def execute_model(self, scheduler_output: SchedulerOutput) -> Any:
        """Run the model between two readings of memory; a step that still has to sample ends later."""
        self._begin(scheduler_output)
        output = super().execute_model(scheduler_output)
        return output if output is None else self._end(output)

    def sample_tokens(self, grammar_output: Any) -> Any:
        """Sample, and end the step that ``execute_model`` began."""
        return self._end(super().sample_tokens(grammar_output))

    def _begin(self, scheduler_output: SchedulerOutput) -> None:
        self._running = None
        if not hasattr(scheduler_output, wire.STEP_ATTRIBUTE) or not is_near():
            return
        clock = time.perf_counter()
        with _harmless():
            self._peak = self._peak or self._meter()
            before = self._peak.begin()
            self._running = (time.monotonic(), before, now_us(clock))

    def _end(self, output: Any) -> Any:
        running, self._running = self._running, None
        if running is None or self._peak is None or output is None:
            return output
        ended, clock = time.monotonic(), time.perf_counter()
        with _harmless():
            started, before, cost_us = running
            peak, after, reserved = self._peak.end()
            extra: dict[str, Any] = {
                wire.WORK_ATTRIBUTE: wire.Work(started, ended, before, peak, after, reserved, cost_us + now_us(clock))
            }
            if not self._said_hello:
                extra[wire.HELLO_ATTRIBUTE] = self._hello()
                self._said_hello = True
            _attach(output, extra)
        return output

    def _hello(self) -> wire.WorkerHello:
        pools = getattr(self.model_runner, "kv_caches", None) or []
        tensors = [t for pool in pools for t in (pool if isinstance(pool, list | tuple) else [pool])]
        return wire.WorkerHello(
            pid=os.getpid(),
            rank=self.rank,
            device=str(self.device),
            weights_bytes=self._weights_bytes,
            kv_bytes=sum(t.numel() * t.element_size() for t in tensors),
        )


@functools.cache
def is_near() -> bool:
    """Whether the scheduler is on this machine; a clock of another one has another zero, and a step none of its times.

    vLLM's Ray executor hands its environment to workers everywhere; the folder that it names is on one machine only.
    """
    folder = os.environ.get(wire.ENV_FOLDER)
    return folder is None or Path(folder).is_dir()


def _attach(output: Any, extra: dict[str, Any]) -> None:
    """Put attributes on a step's output; one that is still to come (async scheduling) gets them when it is fetched."""
    if not isinstance(output, AsyncModelRunnerOutput):
        output.__dict__.update(extra)
        return
    fetch = output.get_output

    def fetch_and_attach() -> Any:
        result = fetch()
        result.__dict__.update(extra)
        return result

    output.__dict__["get_output"] = fetch_and_attach


@contextlib.contextmanager
def _harmless() -> Iterator[None]:
    """A measuring fault must not end somebody's engine; it shows as steps without memory figures, and in the log."""
    try:
        yield
    except Exception:  # noqa: BLE001  whatever it is
        _log.exception("workbench: a step's memory was not measured")
