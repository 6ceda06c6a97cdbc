"""This machine's processor as a device to simulate, by what it is measured to do. A calibration is nearer, though."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from workbench.compute import peaks_folder
from workbench.machine import machine_facts, processor
from workbench.simulate.presets import Device, this_cpu
from workbench.telemetry import peak

_BYTES = 64 << 20  # a thread: more than its share of any cache
_ROUNDS = 5


def measured_cpu() -> Device:
    """The processor with the threads that a vLLM worker would have; the first call takes seconds, later ones do not.

    Raises:
        PeakError: the matrix product could not be measured.
    """
    threads = peak.engine_threads()
    product = peak.matmul_peak(threads, peaks_folder())
    memory = float(machine_facts()["memory_bytes"])
    return this_cpu(product.per_s, read_rate(threads), memory, product.source, processor())


def read_rate(threads: int) -> float:
    """Bytes/s that so many threads read from memory together: the best of five sums over arrays larger than caches."""
    blocks = [np.ones(_BYTES // 4, dtype=np.float32) for _ in range(threads)]
    best = 0.0
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(_ROUNDS):
            begin = time.perf_counter()
            list(pool.map(np.sum, blocks))
            best = max(best, threads * _BYTES / (time.perf_counter() - begin))
    return best
