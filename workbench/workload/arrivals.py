"""When requests arrive: open-loop processes, fixed concurrency, and the arrivals of a recorded trace."""

from __future__ import annotations

import math
from abc import abstractmethod
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import BeforeValidator, Field, model_validator

from workbench.config import Frozen
from workbench.workload.lengths import check_kind
from workbench.workload.readers import TraceFormat, TraceRequests, read_trace

MAX_REQUESTS = 1_000_000

Times = npt.NDArray[np.float64]


class AtOnce(Frozen):
    """All in one instant."""

    kind: Literal["at_once"] = "at_once"
    count: int = Field(ge=1, le=MAX_REQUESTS, description="Number of requests.")

    def times(self, rng: np.random.Generator) -> Times:  # noqa: ARG002 - the signature of all kinds
        """Arrivals in seconds from the stream's start, rising."""
        return np.zeros(self.count)


class Concurrency(Frozen):
    """Closed loop: as many in flight as asked for; the next goes out when one ends."""

    kind: Literal["concurrency"] = "concurrency"
    in_flight: int = Field(ge=1, le=MAX_REQUESTS, description="Requests in flight at once.")
    count: int = Field(ge=1, le=MAX_REQUESTS, description="Number of requests.")

    def times(self, rng: np.random.Generator) -> Times:  # noqa: ARG002 - the signature of all kinds
        """When each may go out at the earliest, which is the stream's start; the driver holds back the rest."""
        return np.zeros(self.count)


class Rated(Frozen):
    """Base of the processes with an average rate, ended by a count or a duration."""

    rate: float = Field(ge=0.001, le=10_000, description="Average arrivals.", json_schema_extra={"unit": "1/s"})
    count: int | None = Field(None, ge=1, le=MAX_REQUESTS, description="Number of requests.")
    duration_s: float | None = Field(
        None, gt=0, le=604_800, description="Arrivals stop after this time.", json_schema_extra={"unit": "s"}
    )

    @model_validator(mode="after")
    def _ends(self) -> Self:
        if (self.count is None) == (self.duration_s is None):
            raise ValueError("exactly one of count and duration_s")
        if self.duration_s is not None and self.rate * self.duration_s > MAX_REQUESTS:
            raise ValueError(f"at most {MAX_REQUESTS} requests (rate times duration_s)")
        return self

    @abstractmethod
    def _gaps(self, rng: np.random.Generator, n: int) -> Times:
        """Draw ``n`` times between two arrivals."""

    def times(self, rng: np.random.Generator) -> Times:
        """Arrivals in seconds from the stream's start, rising; the first comes after one gap."""
        if self.duration_s is None:
            return self._gaps(rng, self.count or 0).cumsum()
        batch = math.ceil(self.rate * self.duration_s) + 16
        times = self._gaps(rng, batch).cumsum()
        while times[-1] < self.duration_s:
            times = np.concatenate([times, times[-1] + self._gaps(rng, batch).cumsum()])
        return times[times < self.duration_s]


class Constant(Rated):
    """Evenly spaced, the first at the stream's start."""

    kind: Literal["constant"] = "constant"

    def _gaps(self, rng: np.random.Generator, n: int) -> Times:  # noqa: ARG002 - the signature of all kinds
        return np.full(n, 1 / self.rate)

    def times(self, rng: np.random.Generator) -> Times:  # noqa: ARG002 - the signature of all kinds
        """Arrivals in seconds from the stream's start, rising."""
        if self.duration_s is None:
            return np.arange(self.count or 0) / self.rate
        # Rounded, since 2.2/s for 25 s comes to 55.00000000000001.
        return np.arange(max(1, math.ceil(round(self.rate * self.duration_s, 9)))) / self.rate


class Poisson(Rated):
    """Independent users: the gaps are exponential."""

    kind: Literal["poisson"] = "poisson"

    def _gaps(self, rng: np.random.Generator, n: int) -> Times:
        return rng.exponential(1 / self.rate, n)


class Gamma(Rated):
    """Bursts: the gaps are gamma distributed; a coefficient of variation of 1 is Poisson, above it is burstier."""

    kind: Literal["gamma"] = "gamma"
    cv: float = Field(
        ge=0.01, le=10, description="Coefficient of variation of the gaps: standard deviation over mean; 1 is Poisson."
    )

    def _gaps(self, rng: np.random.Generator, n: int) -> Times:
        shape = 1 / self.cv**2
        return rng.gamma(shape, 1 / (self.rate * shape), n)


class Trace(Frozen):
    """Arrivals and lengths of a recorded trace: Azure LLM CSV, Mooncake JSONL or BurstGPT CSV."""

    kind: Literal["trace"] = "trace"
    path: Path = Field(description="The trace file; a relative path starts at the scenario's folder.")
    format: TraceFormat = Field("auto", description="Format of the file; auto looks at its first line.")
    speed: float = Field(1.0, ge=1e-6, le=1e6, description="Speed-up: 10 plays an hour in six minutes.")
    limit: int | None = Field(
        None, ge=1, le=MAX_REQUESTS, description="Take only the first usable requests of the file."
    )
    too_long: Literal["clip", "drop"] = Field(
        "clip",
        description="A request that exceeds the model's context: clip it or drop it; both are counted.",
    )

    def read(self) -> TraceRequests:
        """Read the file.

        Raises:
            TraceFileError: the file is missing, empty, too large or not in the format; with the line.
        """
        return read_trace(self.path, self.format, speed=self.speed, limit=self.limit, most=MAX_REQUESTS)

    def times(self, rng: np.random.Generator) -> Times:  # noqa: ARG002 - the signature of all kinds
        """Arrivals in seconds from the stream's start, rising."""
        return self.read().times


def _readable(data: Any) -> Any:
    return check_kind(data, ("at_once", "constant", "poisson", "gamma", "concurrency", "trace"))


Arrivals = Annotated[
    AtOnce | Constant | Poisson | Gamma | Concurrency | Trace,
    Field(discriminator="kind"),
    BeforeValidator(_readable),
]
