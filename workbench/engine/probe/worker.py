"""Worker mix-in that measures the memory peak of each step; ``cpu_worker`` and ``cuda_worker`` say how."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, Protocol

import vllm

from workbench.engine.probe import wire
from workbench.engine.probe.compat import check_version
from workbench.engine.probe.link import RecordLink, now_us

if TYPE_CHECKING:
    from vllm.v1.core.sched.output import SchedulerOutput
    from vllm.v1.worker.worker_base import WorkerBase as _Base
else:
    _Base = object

check_version(vllm.__version__)

STEP_ATTRIBUTE = "workbench_step"


class PeakMeter(Protocol):
    """Measures the highest memory between two calls, in bytes."""

    def begin(self) -> int:
        """Reset the peak and return what is in use now."""

    def end(self) -> tuple[int, int, int]:
        """Return peak, in use now, and reserved (0 where that has no meaning)."""


class ProbedWorker(_Base):
    """Mixed in before one of vLLM's workers; :meth:`_meter` says how its device is measured."""

    _peak: PeakMeter | None = None
    _records: RecordLink
    _weights_bytes = 0
    _running: tuple[int, float, int, float] | None = None  # step, start, bytes before, our own time

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
        if output is not None:
            self._end()
        return output

    def sample_tokens(self, grammar_output: Any) -> Any:
        """Sample, and end the step that ``execute_model`` began."""
        output = super().sample_tokens(grammar_output)
        self._end()
        return output

    def _begin(self, scheduler_output: SchedulerOutput) -> None:
        clock = time.perf_counter()
        self._running = None
        try:
            if self._peak is None:
                self._peak, self._records = self._meter(), RecordLink()
                self._records.send(self._hello())
            step = getattr(scheduler_output, STEP_ATTRIBUTE, None)
            if step is not None:
                before = self._peak.begin()
                self._running = (step, time.monotonic(), before, now_us(clock))
        except Exception as error:  # noqa: BLE001  a measuring fault must not end somebody's engine
            if self._peak is not None:
                self._records.fault("worker begin", error)

    def _end(self) -> None:
        running, self._running = self._running, None
        if running is None or self._peak is None:
            return
        ended, clock = time.monotonic(), time.perf_counter()
        try:
            step, started, before, cost_us = running
            peak, after, reserved = self._peak.end()
            self._records.send(
                wire.Work(
                    step=step,
                    rank=self.rank,
                    start_s=started,
                    end_s=ended,
                    before_bytes=before,
                    peak_bytes=peak,
                    after_bytes=after,
                    reserved_bytes=reserved,
                    probe_us=cost_us + now_us(clock),
                    dropped=self._records.dropped,
                )
            )
        except Exception as error:  # noqa: BLE001
            self._records.fault("worker end", error)

    def _hello(self) -> wire.WorkerHello:
        runner = self.model_runner
        pools = getattr(runner, "kv_caches", None) or []
        tensors = [t for pool in pools for t in (pool if isinstance(pool, list | tuple) else [pool])]
        return wire.WorkerHello(
            pid=os.getpid(),
            rank=self.rank,
            device=str(self.device),
            weights_bytes=self._weights_bytes,
            kv_bytes=sum(t.numel() * t.element_size() for t in tensors),
        )
