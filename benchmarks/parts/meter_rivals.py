"""What other clients say of a load whose truth is known: one stub server each, the same streams for all."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.parts.stats import say
from workbench.meter.stub import Stub
from workbench.models import resolve_model
from workbench.models.cache import cache_root

PERIOD_MS = 20.0
PATIENCE_S = 1200  # importing a rival takes minutes on a busy machine


@dataclass(frozen=True)
class Load:
    """Streams of single tokens, 20 ms apart, that all begin at once."""

    streams: int
    tokens: int


@dataclass(frozen=True)
class Said:
    """What a client found; ms.

    Args:
        ttft: of each request.
        gaps: that it keeps of all requests: between two events, or one mean a request.
        tokens: of all requests.
        more: further figures of its own.
    """

    ttft: Sequence[float]
    gaps: Sequence[float]
    tokens: int
    more: Mapping[str, float] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Percentiles of both."""
        found: dict[str, Any] = {"tokens": self.tokens}
        for name, values in (("ttft", self.ttft), ("gap", self.gaps)):
            for percentile in (50, 99, 100):
                key = f"{name}_max_ms" if percentile == 100 else f"{name}_p{percentile}_ms"
                found[key] = float(np.percentile(values, percentile)) if len(values) else None
        return {**found, **(self.more or {})}


def truth_of(told: Mapping[str, Any]) -> Said:
    """The server's own: from the request that it had read to its first token, and between two of its events."""
    records = [one for one in told.values() if one["arrivals"]]
    gaps = np.concatenate([np.diff([at for at, _, _ in one["arrivals"]]) for one in records]) * 1e3
    ttft = [(one["arrivals"][0][0] - one["read"]) * 1e3 for one in records]
    return Said(ttft, gaps.tolist(), sum(n for one in records for _, _, n in one["arrivals"]))


def against(play: Callable[[Stub, Load, Path], Said], load: Load, folder: Path, name: str) -> dict[str, Any]:
    """Play a load with one client; a client that fails is reported, and the others go on."""
    say(f"{name}: {load.streams} streams of {load.tokens} tokens")
    folder.mkdir(parents=True)
    try:
        with Stub(PERIOD_MS) as stub:
            said = play(stub, load, folder)
            truth = truth_of(stub.truth())
    except (OSError, subprocess.SubprocessError, KeyError, ValueError) as error:
        return {"failed": " ".join(f"{type(error).__name__}: {error}".split())[:300]}
    return {"said": said.as_dict(), "truth": truth.as_dict(), "load_1min": os.getloadavg()[0]}


def call(argv: Sequence[str], log: Path, env: Mapping[str, str] | None = None) -> None:
    """Run a client to its end.

    Raises:
        OSError: it failed; with the last lines that it said.
        subprocess.TimeoutExpired: it did not end.
    """
    with log.open("wb") as said:
        done = subprocess.run(
            argv,
            env={**os.environ, "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE_S,
            check=False,
        )
    if done.returncode:
        raise OSError(f"exit code {done.returncode}: {log.read_text(errors='replace')[-250:]}")


def environment(package: str, version: str, *more: str) -> Path:
    """The folder of the commands of an environment with one package, built when it is not there.

    Raises:
        OSError: pip failed.
    """
    folder = cache_root().parent / "clients" / f"{package}-{version}"
    done = folder / "installed"
    if not done.exists():
        say(f"{package} {version}: building an environment of its own, once")
        folder.mkdir(parents=True, exist_ok=True)
        call([sys.executable, "-m", "venv", "--clear", str(folder)], folder.with_suffix(".log"))
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q"]
        call([*pip, f"{package}=={version}", *more], folder.with_suffix(".log"))
        done.touch()
    return folder / "bin"


def tokenizer() -> str:
    """The folder of one, since all of them want to count."""
    return str(resolve_model("smollm2").path)
