"""Telemetry: device memory through NVML, host memory, and the thread that samples them."""

from workbench.telemetry.devices import Nvml
from workbench.telemetry.reading import Every, Reading, Source
from workbench.telemetry.sampler import Sampler
from workbench.telemetry.sources import baseline, cuda_devices, device_sources, host_sources
from workbench.telemetry.watch import EngineMemory

__all__ = [
    "EngineMemory",
    "Every",
    "Nvml",
    "Reading",
    "Sampler",
    "Source",
    "baseline",
    "cuda_devices",
    "device_sources",
    "host_sources",
]
