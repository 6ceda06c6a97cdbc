"""How far the simulator is off: live runs on this machine against what it foretold of them, by metric.

One engine, hot: a calibration load, and ``SEEDS`` (2) times six hold-out settings, of which the fit sees nothing: two
budgets, a policy, an arrival rate and a prompt length that were not in the load, and a mix of these. Runs of the load
and hold-outs take turns, so that both meet the machine as it is in these minutes, and by root the engine runs before
other programs (nice -15): the question is how true the model is, not how even the machine. Then the fit is made from
the load alone, and each hold-out is played in virtual time and compared.

``median_error_pct`` and ``p90_error_pct``: of the absolute error, by metric, over all ``runs``; none is left out.
``signed_error_pct``: the median with its sign. ``stolen_pct``: CPU time that the hypervisor took while the hold-outs
ran; ``client_late_max_s``: how long the client's process stood still at most. Both say how noisy the machine was.
``seeds_apart_pct``: how far the measured figures of one setting's seeds lie apart, as median over settings: what the
machine and the draw of the load do by themselves, without any simulator.

``RUNS=folder`` keeps the runs there, or takes them from there if it holds some, without an engine. ``LOAD_S`` sizes
the calibration load, ``DRAWS`` are the virtual plays behind a prediction, ``SAVE=folder`` saves the calibration with
its errors.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from benchmarks.parts.holdouts import holdouts
from benchmarks.parts.stats import answer, say
from workbench.proc import descendants
from workbench.run import Run
from workbench.session import Workbench
from workbench.simulate import calibrating, kept_calibrations
from workbench.simulate.calibrating import Piece
from workbench.simulate.fitting import fit
from workbench.simulate.host import Simulator
from workbench.simulate.validation import DRAWS, Validation, checked, validate
from workbench.store import open_run
from workbench.trace import Trace

ENGINE: dict[str, Any] = {"model": "smollm2", "max_model_len": 4096, "max_num_batched_tokens": 4096, "max_num_seqs": 16}
SHOWN = ("gap_p50", "gap_p99", "long_ttft", "throughput")
CALIBRATION, HOLDOUT = calibrating.SCENARIO, "holdout"
_NICE = -15


def main() -> None:
    """Play or read, foretell, compare, print."""
    given = os.environ.get("RUNS")
    begun = time.monotonic()
    figures: dict[str, Any] = {"bench": "validate"}
    with ExitStack() as stack:
        root = Path(given or stack.enter_context(tempfile.TemporaryDirectory(prefix="wb-validate-")))
        traces = _read(root)
        if not traces[HOLDOUT]:
            figures |= _play(root)
            traces = _read(root)
        warm, *load = traces[CALIBRATION]
        fitted = fit(load)
        say(fitted.source)
        simulator = Simulator()
        stack.callback(simulator.close)
        simulator.start()
        found = []
        for trace in traces[HOLDOUT]:
            one = validate(trace, fitted, simulator, draws=int(os.environ.get("DRAWS", DRAWS)))
            found.append(one)
            told = ", ".join(f"{name} {error:+.1f} %" for name, error in one.error_pct.items())
            say(f"{one.setting}: {told}")
    fitted = checked(fitted, found)
    errors = fitted.errors
    if os.environ.get("SAVE"):
        say(f"saved {kept_calibrations.save(fitted, Path(os.environ['SAVE']))}")
    answer(
        figures
        | {
            "label": fitted.label,
            "runs": len(found),
            "median_error_pct": {name: errors[name]["median_pct"] for name in errors},
            "p90_error_pct": {name: errors[name]["p90_pct"] for name in errors},
            "signed_error_pct": {
                name: statistics.median(one.error_pct[name] for one in found if name in one.error_pct)
                for name in errors
            },
            "seeds_apart_pct": _apart(found),
            "met": all(errors[name]["median_pct"] <= 9 and errors[name]["p90_pct"] <= 20 for name in SHOWN),
            "step_error_pct": fitted.residual_pct,
            "client_late_max_s": max(_late_s(trace) for trace in traces[HOLDOUT]),
            "calibration_runs": len(load),
            "prefill_tokens_per_s": calibrating.prefill_rate(warm),
            "wall_s": time.monotonic() - begun,
        }
    )


def _play(root: Path) -> dict[str, Any]:
    """Record the load and the hold-outs in turns, the load's first two before all."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, _NICE)  # what is started inherits it
    _ahead_of_others()
    with Workbench(**ENGINE, runs=root) as bench:
        say(f"starting an engine at nice {os.getpriority(os.PRIO_PROCESS, 0)}")
        bench.start()
        _ahead_of_others()
        config = bench.engine.config
        first = calibrating.first_piece(config)
        rate = calibrating.prefill_rate(_recorded(bench, first).trace)
        begun, stolen = time.monotonic(), _stolen()
        load = calibrating.pieces(config, rate, float(os.environ.get("LOAD_S", calibrating.SECONDS)))
        judged = [
            piece for seed in range(1, int(os.environ.get("SEEDS", "2")) + 1) for piece in holdouts(config, rate, seed)
        ]
        for piece in _in_turns(load, judged):
            _recorded(bench, piece)
        seconds = {
            name: sum(float(trace.meta["duration_s"]) for trace in traces) for name, traces in _read(root).items()
        }
        return {
            "start_s": bench.engine.startup_s,
            "calibration_s": seconds[CALIBRATION],
            "holdout_s": seconds[HOLDOUT],
            "play_s": time.monotonic() - begun,
            "stolen_pct": _since(stolen),
            "nice": os.getpriority(os.PRIO_PROCESS, 0),
        }


def _apart(found: list[Validation]) -> dict[str, float]:
    """Largest over smallest measured figure of each setting - 1, %; the median over settings, by metric."""
    settings: dict[str, list[Validation]] = {}
    for one in found:
        settings.setdefault(one.setting, []).append(one)
    apart: dict[str, float] = {}
    for name in SHOWN:
        of = [[one.measured[name] for one in some if name in one.measured] for some in settings.values()]
        ratios = [max(some) / min(some) for some in of if len(some) > 1]
        if ratios:
            apart[name] = (statistics.median(ratios) - 1) * 100
    return apart


def _ahead_of_others() -> None:
    """The same for each session of ours: where the kernel shares time by session, nice counts within one only."""
    for pid in (os.getpid(), *descendants(os.getpid())):
        with suppress(OSError):
            Path(f"/proc/{pid}/autogroup").write_text(f"{_NICE}", encoding="ascii")


def _in_turns(load: list[Piece], judged: list[Piece]) -> list[Piece]:
    """Both lists in their order, evenly among each other."""
    places = [(place / len(some), piece) for some in (load, judged) for place, piece in enumerate(some)]
    return [piece for _, piece in sorted(places, key=lambda one: one[0])]


def _recorded(bench: Workbench, piece: Piece) -> Run:
    run = bench.run(piece.scenario, setting=piece.setting)
    run.wait()
    say(f"{run.scenario}, {piece.setting.name}: {run.elapsed_s:.1f} s")
    return run


def _read(root: Path) -> dict[str, list[Trace]]:
    """Complete runs by scenario, oldest first."""
    found: dict[str, list[Trace]] = {CALIBRATION: [], HOLDOUT: []}
    for path in sorted(root.glob("*/run.json")):
        trace = open_run(path.parent)
        if trace.meta["status"] == "complete" and trace.meta["scenario"] in found:
            found[trace.meta["scenario"]].append(trace)
    return found


def _late_s(trace: Trace) -> float:
    return float(max(trace.tables["client"]["late_s"].to_pylist(), default=0.0))


def _stolen() -> list[int]:
    """Clock ticks of all cores: stolen, and in all."""
    with Path("/proc/stat").open(encoding="ascii") as file:
        ticks = [int(one) for one in file.readline().split()[1:9]]
    return [ticks[7], sum(ticks)]


def _since(before: list[int]) -> float:
    now = _stolen()
    return 100 * (now[0] - before[0]) / max(1, now[1] - before[1])


if __name__ == "__main__":
    main()
