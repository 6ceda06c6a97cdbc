"""The GPU worker that vLLM loads, with torch's allocator peak of each step. Not run on a GPU yet."""

from __future__ import annotations

import torch
from vllm.v1.worker.gpu_worker import Worker

from workbench.engine.probe.worker import PeakMeter, ProbedWorker


class AllocatorPeak:
    """Peak of torch's caching allocator on one CUDA device.

    Read as the nested dict that torch keeps: its other functions flatten and sort that, each time.

    The allocator keeps its books on the host when a tensor is made, so the peak is right without a
    synchronisation, though the step itself runs asynchronously.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def begin(self) -> int:
        """Reset the peak; return allocated bytes now."""
        torch.cuda.reset_peak_memory_stats(self._device)
        return int(torch.cuda.memory_stats_as_nested_dict(self._device)["allocated_bytes"]["all"]["current"])

    def end(self) -> tuple[int, int, int]:
        """Return peak, allocated and reserved bytes."""
        books = torch.cuda.memory_stats_as_nested_dict(self._device)
        allocated, reserved = books["allocated_bytes"]["all"], books["reserved_bytes"]["all"]
        return allocated["peak"], allocated["current"], reserved["current"]


class ProbeGPUWorker(ProbedWorker, Worker):
    """vLLM's GPU worker with the allocator's peak of each step."""

    def _meter(self) -> PeakMeter:
        return AllocatorPeak(self.device)
