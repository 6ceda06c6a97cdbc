"""How often a comparison finds a difference: of a setting with itself, and of an engine with one 10 % slower.

``live`` on one CPU engine whose steps can be slowed (:mod:`benchmarks.parts.slowed`), ``simulated`` with steps that
vary as measured ones did. Each comparison plays rounds of its own. ``python -m benchmarks.parts.tuner_compare`` prints
both alone; ``AA`` (20), ``PLANTED`` (10) and ``ROUNDS`` (16, at most, of each comparison) scale it, ``ONLY=live`` or
``simulated`` plays one, and ``SECONDS`` (1500) ends a part with the comparisons that there are by then; ``FIRST`` (0),
the number of the one to begin with, goes on from there.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.parts.slowed import KNOB, slowable
from benchmarks.parts.stats import answer, say
from workbench.session import Workbench
from workbench.simulate.calibration import Calibration
from workbench.simulate.engine import SimulatedEngine
from workbench.simulate.steptime.calibrated import Calibrated
from workbench.simulate.steptime.varied import Varied
from workbench.simulated_config import SimulatedConfig
from workbench.tune.compare import Comparing, Comparison
from workbench.workload.scenario import Scenario, Setting, load_scenario

SLOWER = 10  # per cent
PRIMARY = "throughput"
BUDGET = 256
_DATA = Path(__file__).resolve().parents[2] / "data" / "calibrations"
_ALTOGETHER = 1_000_003  # seeds of comparisons are this far apart

_SIZES = {"AA": "20", "PLANTED": "10", "ROUNDS": "16", "FIRST": "0"}

Play = Callable[[int, bool], Comparison]  # number of the comparison, whether B is slowed


def live(aa: int = 20, planted: int = 10, rounds: int = 16, begin: int = 0, seconds: float = 1500.0) -> dict[str, Any]:
    """The rates on one live CPU engine."""
    scenario = load()
    with (
        tempfile.TemporaryDirectory(prefix="wb-compare-") as folder,
        slowable(),
        Workbench.of(scenario, runs=Path(folder)) as bench,
    ):
        say("comparisons: starting an engine")
        bench.start()

        def one(number: int, slowed: bool) -> Comparison:
            a, b = Setting(name="A", budget=BUDGET), Setting(name="B", budget=BUDGET)
            b = b.replace(**{KNOB: SLOWER}) if slowed else b
            first = bench.current_run is None  # later ones find a warm engine
            how: dict[str, Any] = {"rounds": rounds, "primary": PRIMARY, "seed": number, "warm_up": first}
            return Comparing(bench, a, b, scenario, **how).run()

        return rates(one, aa, planted, begin, seconds) | {"label": bench.engine.label}


def simulated(
    aa: int = 20, planted: int = 10, rounds: int = 16, begin: int = 0, seconds: float = 1500.0
) -> dict[str, Any]:
    """The rates on a simulated engine: the committed calibration of SmolLM2, drawn anew for each play."""
    calibration = Calibration.from_dict(json.loads(max(_DATA.glob("smollm2-*.json")).read_text(encoding="utf-8")))
    scenario = load()
    with (
        tempfile.TemporaryDirectory(prefix="wb-compare-") as folder,
        _simulated(scenario, calibration, Path(folder) / "a", 1) as a,
        _simulated(scenario, calibration, Path(folder) / "b", 2) as same,
        _simulated(scenario, slower(calibration, 1 + SLOWER / 100), Path(folder) / "c", 3) as slow,
    ):

        def one(number: int, slowed: bool) -> Comparison:
            setting, other = Setting(name="same", budget=BUDGET), slow if slowed else same
            how: dict[str, Any] = {"rounds": rounds, "primary": PRIMARY, "seed": number, "bench_b": other}
            return Comparing(a, setting, setting, scenario, **how).run()

        return rates(one, aa, planted, begin, seconds) | {"label": a.engine.label}


def compare() -> dict[str, Any]:
    """Both parts, sized by the environment.

    Returns:
        ``aa_difference_rate`` and ``planted_found`` (how many) of the live engine, and all figures under ``compare``.
    """
    sizes = [int(os.environ.get(name, default)) for name, default in _SIZES.items()]
    seconds, only = float(os.environ.get("SECONDS", "1500")), os.environ.get("ONLY")
    parts: dict[str, Callable[..., dict[str, Any]]] = {"simulated": simulated, "live": live}
    figures = {name: part(*sizes, seconds) for name, part in parts.items() if only in (None, name)}
    first = figures.get("live", {})
    return {name: first.get(name) for name in ("aa_difference_rate", "planted_found")} | {"compare": figures}


def load() -> Scenario:
    """The demo's scenario, short: a round of it takes a few seconds on one core."""
    scenario = load_scenario("chat_and_long")
    chat, long = scenario.streams
    streams = (chat.replace(output_tokens=30), long.replace(prompt_tokens=400, output_tokens=4, start_s=0.2))
    return scenario.model_copy(update={"streams": streams, "settings_at_s": 0.0})


def rates(play: Play, aa: int, planted: int, begin: int, seconds: float) -> dict[str, Any]:
    """Play the comparisons from number ``begin`` on, planted ones among the others, and count; those begun in time."""
    found: dict[bool, list[Comparison]] = {False: [], True: []}
    begun = time.monotonic()
    for number, slowed in list(enumerate(_mixed(aa, planted)))[begin:]:
        if time.monotonic() - begun > seconds:
            say(f"comparisons: {seconds:g} s are over after {number} of {aa + planted}")
            break
        comparison = play(number * 1009 + 7, slowed)
        found[slowed].append(comparison)
        say(f"comparison {number + 1}/{aa + planted}, {'slowed' if slowed else 'A/A'}: {comparison.verdict.words}")
    differ = sum(one.verdict.kind in ("A better", "B better") for one in found[False])
    right = sum(one.verdict.kind == "A better" for one in found[True])
    played = [one for side in found.values() for one in side]
    known = [one.estimates for one in played]
    spread = {
        name: statistics.median(some[name].spread for some in known if name in some)
        for name in (PRIMARY, "gap_p50", "gap_p99")
        if any(name in some for some in known)
    }
    return {
        "aa_difference_rate": differ / len(found[False]) if found[False] else None,
        "aa_runs": len(found[False]),
        "planted_found": right,
        "planted_runs": len(found[True]),
        "planted_ratio": [one.estimates[PRIMARY].ratio for one in found[True]],
        "verdicts": {
            name: [one.verdict.kind for one in found[side]] for name, side in (("aa", False), ("planted", True))
        },
        "rounds_mean": statistics.fmean([len(one.rounds) for one in played] or [0]),
        "spread_median": spread,  # standard deviation of a pair's log ratio
        "seconds": time.monotonic() - begun,
    }


def slower(calibration: Calibration, factor: float) -> Calibration:
    """The same machine with every price times a factor; what varies, varies as before."""
    fits = {
        kind: replace(fit, prices=tuple(price * factor for price in fit.prices))
        for kind, fit in calibration.fits.items()
    }
    return replace(calibration, fits=fits)


def _mixed(aa: int, planted: int) -> Iterator[bool]:
    """Planted ones spread evenly among the others."""
    for place in range(aa + planted):
        yield (place + 1) * planted // (aa + planted) > place * planted // (aa + planted)


class _Drawn(SimulatedEngine):
    """A simulated engine whose steps vary otherwise in each play."""

    def __init__(self, config: SimulatedConfig, calibration: Calibration, seed: int) -> None:
        self._of, self._draw = calibration, seed * _ALTOGETHER
        super().__init__(config, step_time=Varied(Calibrated(calibration), self._draw))

    def job_of(self, *given: Any, **named: Any) -> Any:
        """As always, with another draw."""
        job = super().job_of(*given, **named)
        self._draw += 1
        job.step_time = Varied(Calibrated(self._of), self._draw).spec()
        return job


@contextmanager
def _simulated(scenario: Scenario, calibration: Calibration, runs: Path, seed: int) -> Iterator[Workbench]:
    fields = {**scenario.engine, "engine": "simulated", "model": "smollm2-135m", "gpu": "cpu"}
    with Workbench.of(scenario, runs=runs, **fields) as bench:
        config = bench.config
        if not isinstance(config, SimulatedConfig):
            raise TypeError(type(config))
        bench.engine = _Drawn(config, calibration, seed)
        yield bench.start()


if __name__ == "__main__":
    answer(compare())
