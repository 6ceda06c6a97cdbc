"""The GPU worker that vLLM loads, with torch's allocator peak of each step. Not run on a GPU yet."""

from __future__ import annotations

import torch
from vllm.v1.worker.gpu_worker import Worker

from workbench.engine.probe.worker import PeakMeter, ProbedWorker


class AllocatorPeak:
    """Peak of torch's caching allocator on one CUDA device.

    The allocator keeps its books on the host when a tensor is made, so the peak is right without a
    synchronisation, though the step itself runs asynchronously.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def begin(self) -> int:
        """Reset the peak; return allocated bytes now."""
        torch.cuda.reset_peak_memory_stats(self._device)
        return int(torch.cuda.memory_allocated(self._device))

    def end(self) -> tuple[int, int, int]:
        """Return peak, allocated and reserved bytes."""
        return (
            int(torch.cuda.max_memory_allocated(self._device)),
            int(torch.cuda.memory_allocated(self._device)),
            int(torch.cuda.memory_reserved(self._device)),
        )


class ProbeGPUWorker(ProbedWorker, Worker):
    """vLLM's GPU worker with the allocator's peak of each step."""

    def _meter(self) -> PeakMeter:
        return AllocatorPeak(self.device)
