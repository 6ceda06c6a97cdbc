"""The CPU worker that vLLM loads, with the resident high-water mark of each step."""

from __future__ import annotations

from vllm.v1.worker.cpu_worker import CPUWorker

from workbench.engine.probe.resident import ResidentPeak
from workbench.engine.probe.worker import PeakMeter, ProbedWorker


class ProbeCPUWorker(ProbedWorker, CPUWorker):
    """vLLM's CPU worker with the resident high-water mark of each step."""

    def _meter(self) -> PeakMeter:
        return ResidentPeak()
