"""A report of a study, on made-up results and SYNTHETIC traces."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from workbench.config import EngineConfig
from workbench.errors import InputError
from workbench.report.study import shown, write_study_report
from workbench.report.verify import verify_report
from workbench.tune.answer.answer import Answer
from workbench.tune.goal import Goal
from workbench.tune.space import Space

sys.path.insert(0, str(Path(__file__).parents[1] / "tune"))
from made_results import result

SPACE = Space({"budget": (32, 64, 256, 1024, 2048)}, EngineConfig())
GOAL = Goal(("goodput",), {"gap_p99_ms": 200})


def study(folder):
    plays = ((64, 1.0, 50.0), (256, 2.0, 150.0), (1024, 3.0, 400.0), (32, 0.5, 40.0))
    return Answer.of(
        [result(n, {"budget": b}, goodput, gap=gap, run=str(folder)) for n, (b, goodput, gap) in enumerate(plays)], GOAL
    )


def test_it_shows_the_pick_the_runner_up_and_what_a_limit_keeps_out(tmp_path, make_trace, monkeypatch):
    answer = study(tmp_path)
    assert [one.name for one in shown(answer)] == ["budget 256", "budget 64", "budget 1024"]
    monkeypatch.setattr("workbench.report.study.open_run", lambda folder: make_trace())
    path = write_study_report(tmp_path / "study.html", answer, space=SPACE, again="workbench tune --resume night")
    assert verify_report(path) == []
    text = path.read_text()
    assert '<p class="headline">budget 256: goodput 2 (one play) requests/s [live CPU]</p>' in text
    assert '<p class="second">not confirmed yet: it rests on 1 play, and budget 64 may be as good. ' in text
    charts = ("study-map", "study-trials", "study-front", "study-matters")
    drawn = [name for name in charts if f'data-chart="{name}"' in text]
    assert drawn == ["study-map", "study-trials", "study-front"], "what matters is told from eight settings on"
    for words in ("budget 1024 would be 50.0% better", "workbench tune --resume night", "most goodput with gap_p99_ms"):
        assert words in text


def test_without_its_runs_there_is_no_report(tmp_path):
    with pytest.raises(InputError, match="report of a study: got 'no run on disk'"):
        write_study_report(tmp_path / "study.html", study(tmp_path / "gone"))
    assert shown(Answer.of([], GOAL)) == []
