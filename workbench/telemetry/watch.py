"""What to sample of one engine: its processes, and on CUDA what its devices hold beyond what they held before."""

from __future__ import annotations

from workbench.telemetry.devices import Nvml
from workbench.telemetry.host import Session
from workbench.telemetry.reading import Reading, Source
from workbench.telemetry.sources import baseline, cuda_devices, device_sources, host_sources


class EngineMemory:
    """Memory sources over the life of an engine."""

    def __init__(self) -> None:
        self._nvml: Nvml | None = None
        self._before: dict[str, Reading] | None = None

    def look_before(self) -> dict[str, Reading]:
        """Read what the CUDA devices hold without the engine; hand it to :meth:`engine_is_up` once that is up."""
        self._nvml = self._nvml or Nvml()
        return baseline(self._nvml, cuda_devices(self._nvml)[0])

    def engine_is_up(self, before: dict[str, Reading] | None) -> None:
        """Take the reading from before the start: not one of a start that was refused since an engine runs."""
        self._before = before

    def sources(self, pid: int) -> list[Source]:
        """What a run samples.

        Args:
            pid: of the engine's session leader.
        """
        found = host_sources(Session(pid))
        if self._nvml is not None:
            found += device_sources(self._nvml, before=self._before)
        return found

    def close(self) -> None:
        """Let go of NVML."""
        if self._nvml is not None:
            self._nvml.close()
            self._nvml = None
