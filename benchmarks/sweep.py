"""What one more setting costs beyond its workload's own time, three ways on the same model, load and settings.

``hot_extra_s``: our sweep on one running engine. ``restart_extra_s``: our engine restarted for each setting (eager).
``vllm_sweep_extra_s``: ``vllm bench sweep serve`` with compilation on, as it comes.

The extra of a way is (time for all settings - time in which its workload was really going on - what is paid once) per
setting: hot pays its engine start once, the other two pay one for each setting. ``SETTINGS`` (6) and ``RIVAL`` (1, 0
leaves the third way out) scale it. The third way needs a distribution called vllm, which the CPU build is not: a
shim with its name, version and console entry stands in, in a temporary folder.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from benchmarks.parts.shim import make_shim
from benchmarks.parts.stats import answer, say
from workbench import sweep
from workbench.models import resolve_model
from workbench.proc import shared_memory
from workbench.run import Run
from workbench.session import Workbench
from workbench.workload.scenario import Scenario, Setting

SHARED_MEMORY = Path("/dev/shm")
BUDGETS = (8192, 4096, 2048, 1024, 512, 256)
PROMPTS, PROMPT_TOKENS, OUTPUT_TOKENS = 4, 128, 32


def main() -> None:
    """Measure the three ways and print them."""
    count = int(os.environ.get("SETTINGS", "6"))
    settings = [Setting(name=f"budget {budget}", budget=budget) for budget in BUDGETS[:count]]
    with tempfile.TemporaryDirectory(prefix="wb-sweep-") as folder:
        runs = Path(folder)
        hot = _hot(settings, runs)
        restart = _restart(settings, runs)
        rival = _rival(BUDGETS[:count], runs) if os.environ.get("RIVAL", "1") != "0" else None
    answer(
        {
            "bench": "sweep",
            "hot_extra_s": hot,
            "restart_extra_s": restart,
            "vllm_sweep_extra_s": rival,
            "hot_times_cheaper": rival / hot if rival else None,
            "settings": count,
            "label": "live CPU",
        }
    )


def _scenario() -> Scenario:
    stream = {
        "class": "chat",
        "arrivals": {"kind": "at_once", "count": PROMPTS},
        "prompt_tokens": PROMPT_TOKENS,
        "output_tokens": OUTPUT_TOKENS,
    }
    return Scenario.model_validate({"name": "sweep-load", "seed": 1, "streams": [stream]})


def _load_s(run: Run) -> float:
    """The workload's own time: first planned arrival to the end of the last request."""
    return float(run.trace.requests["done_s"].max() - run.trace.requests["planned_s"].min())


def _follow(setting: Setting, run: Run) -> None:
    run.wait()
    say(f"{setting.name}: {_load_s(run):.2f} s of load")


def _hot(settings: list[Setting], runs: Path) -> float:
    say("hot: one engine")
    scenario = _scenario()
    with Workbench.of(scenario, runs=runs) as bench:
        bench.start()
        list(sweep.hot(bench, scenario, settings[:1], _follow))  # not counted: first steps fault memory in
        begun = time.monotonic()
        played = list(sweep.hot(bench, scenario, settings, _follow))
        took = time.monotonic() - begun
    return (took - sum(_load_s(one.run) for one in played)) / len(settings)


def _restart(settings: list[Setting], runs: Path) -> float:
    say("restart: an engine for each setting")
    scenario = _scenario()
    config = Workbench.of(scenario).config
    begun = time.monotonic()
    played = list(sweep.with_restarts(scenario, settings, _follow, config=config, runs=runs))
    took = time.monotonic() - begun
    return (took - sum(_load_s(one.run) for one in played)) / len(settings)


def _rival(budgets: tuple[int, ...], folder: Path) -> float:
    """``vllm bench sweep serve``; the load's own time is what its benchmark reports as duration."""
    say("rival: vllm bench sweep serve, compilation on")
    model = resolve_model("smollm2")
    shim = make_shim(folder / "shim")
    parameters = folder / "budgets.json"
    parameters.write_text(json.dumps([{"max_num_batched_tokens": budget} for budget in budgets]))
    serve = f"vllm serve {model.path} --max-model-len 4096 --max-num-seqs 32 --kv-cache-memory-bytes {1 << 30}"
    bench = (
        f"vllm bench serve --model {model.path} --dataset-name random --random-input-len {PROMPT_TOKENS} "
        f"--random-output-len {OUTPUT_TOKENS} --num-prompts {PROMPTS} --ignore-eos --num-warmups 0"
    )
    results = folder / "rival"
    argv = [str(shim.vllm), "bench", "sweep", "serve", "--serve-cmd", serve, "--bench-cmd", bench]
    argv += ["--serve-params", str(parameters), "--num-runs", "1", "--output-dir", str(results)]
    argv += ["--server-ready-timeout", "900"]
    env = {**os.environ, **shim.env, "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1"}
    env["VLLM_CACHE_ROOT"] = str(folder / "vllm-cache")  # as on the first day: every budget compiles
    before = set(SHARED_MEMORY.iterdir())
    begun = time.monotonic()
    done = subprocess.run(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    took = time.monotonic() - begun
    _sweep_up(before)
    loads = [float(json.loads(path.read_text())["duration"]) for path in _results(results)]
    if done.returncode or len(loads) != len(budgets):
        sys.stderr.write(done.stdout[-4000:])
        raise SystemExit(f"vllm bench sweep serve: got status {done.returncode} and {len(loads)} results")
    shutil.rmtree(folder / "vllm-cache", ignore_errors=True)
    return (took - sum(loads)) / len(budgets)


def _sweep_up(before: set[Path]) -> None:
    """Remove the shared memory of the servers that it killed: 400 MB each would stay."""
    mapped = {path for pid in psutil.pids() for path in shared_memory(pid)}
    for path in set(SHARED_MEMORY.iterdir()) - before:
        if path.name.startswith(("psm_", "sem.mp-")) and str(path) not in mapped:
            path.unlink(missing_ok=True)


def _results(folder: Path) -> list[Path]:
    """The result files of single runs; summaries beside them are lists."""
    return [path for path in folder.rglob("*.json") if isinstance(json.loads(path.read_text()), dict)]


if __name__ == "__main__":
    main()
