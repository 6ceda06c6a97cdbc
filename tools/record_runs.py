"""Makes data/runs: short runs of the scenarios, played on this machine and stripped of what belongs to it alone.

    .venv/bin/python tools/record_runs.py               # all of them, some ten minutes
    .venv/bin/python tools/record_runs.py thrash        # those of one scenario
    .venv/bin/python tools/record_runs.py NAME=FOLDER   # a run that is there already, under this name

A run that is there is replaced. No prompt and no output is in a run; paths, ports and process ids are taken out.
"""

import shutil
import sys
import tempfile
import time
from pathlib import Path

from workbench import Workbench
from workbench.models.presets import PRESETS
from workbench.run import RecordedRun
from workbench.store import snapshot
from workbench.workload.scenario import load_scenario

FOLDER = Path(__file__).resolve().parent.parent / "data" / "runs"
# Scenario: names of the settings that are played.
PLAYED = {
    "chat_and_long": ["budget 256"],
    "policies": ["chunked", "qos"],
    "thrash": ["chunked"],
    "one_long_prompt": ["one step", "chunk 512", "budget 256"],
    "articles_c14": ["monolithic", "chunked with classes"],
}
# Scenario: name, knobs at first, seconds from the run's begin to the others, those.
TURNED = {"chat_and_long": ("budget-512-then-64", {"budget": 512}, 5.0, {"budget": 64})}  # as notebook 00 does
_OF_THE_PROCESS = ("engine_pid", "engine_argv", "startup_s")


def main() -> None:
    """Play, copy, strip."""
    for name in sys.argv[1:] or list(PLAYED):
        if "=" in name:
            own, _, folder = name.partition("=")
            sys.stdout.write(f"{keep(RecordedRun(folder), own)}\n")
            continue
        scenario = load_scenario(name)
        with tempfile.TemporaryDirectory() as scratch, Workbench.of(scenario, runs=Path(scratch)) as bench:
            bench.start(None)
            for setting in (one for one in scenario.settings if one.name in PLAYED[name]):
                run = bench.run(scenario, setting=setting)
                run.wait()
                sys.stdout.write(f"{keep(run, f'{name}-{setting.name}'.replace(' ', '-'))}\n")
            if name in TURNED:
                own, first, after_s, then = TURNED[name]
                bench.knobs(**first)
                run = bench.run(scenario)
                time.sleep(after_s)
                bench.knobs(**then)
                run.wait()
                sys.stdout.write(f"{keep(run, f'{name}-{own}')}\n")


def keep(run: RecordedRun, name: str) -> Path:
    """Copy a run into data/runs under this name, with where and when it was made."""
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    machine, simulated = dict(run.meta["machine"]), run.meta["label"] == "simulated"
    where = [] if simulated else [f"{machine['processor']}, {machine['usable_cores']} cores"]
    meta = {
        "recorded": ", ".join([*where, str(run.meta["created"])[:10]]),
        "machine": {key: value for key, value in machine.items() if key != "system"},
        "engine": _portable(dict(run.meta["engine"])),
        "workload": {**dict(run.meta["workload"]), "traces": {}},
        "writer": None,
    }
    snapshot(run.folder, folder, **meta)
    for file in folder.iterdir():
        file.chmod(0o644)
    folder.chmod(0o755)
    return folder


def _portable(engine: dict) -> dict:
    """Facts about an engine without its process and without paths of this machine."""
    kept = {key: value for key, value in engine.items() if key not in _OF_THE_PROCESS}
    kept["resolved"] = {key: value for key, value in (kept.get("resolved") or {}).items() if key != "pid"}
    words = str(kept.get("serve_command") or "").split(" ")
    name = (kept.get("config") or {}).get("model")
    if len(words) > 2 and words[2].startswith("/") and name in PRESETS:
        kept["serve_command"] = " ".join([*words[:2], PRESETS[name].hub or name, *words[3:]])
    return kept


if __name__ == "__main__":
    main()
