"""Runs and a report for the tests, from the synthetic traces of the chart tests, and a browser without a network."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from benchmarks.parts.chromium import chromium, chromium_path
from workbench.config import SLO
from workbench.report.html import write_report
from workbench.report.run import ReportRun

_spec = importlib.util.spec_from_file_location("synthetic", Path(__file__).parent.parent / "ui" / "conftest.py")
_synthetic = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_synthetic)


@pytest.fixture(scope="session")
def make_trace():
    """The builder of SYNTHETIC traces."""
    return _synthetic.synthetic_trace


@pytest.fixture(scope="session")
def make_crowded():
    """The builder of SYNTHETIC traces with preemptions."""
    return _synthetic.crowded_trace


@pytest.fixture(scope="session")
def runs(make_trace):
    """The six settings of the demo as report runs; SYNTHETIC."""
    slo = SLO()
    return [
        ReportRun(
            label, make_trace(*setting, revision=n), dict(zip(("policy", "budget", "chunk"), setting, strict=True)), slo
        )
        for n, (label, setting) in enumerate(_synthetic.SETTINGS.items(), start=1)
    ]


@pytest.fixture(scope="session")
def report(runs, tmp_path_factory):
    """The demo's report, written once."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    rows = [run.row() | {"engine_pid": 4242} for run in runs]
    return write_report(
        path,
        runs,
        title="Long prompt among chats",
        question="What does it cost?",
        rows=rows,
        reproduce="workbench demo",
    )


@pytest.fixture(scope="module")  # two Playwrights at a time cannot be, see tests/browser
def browser():
    """Debian's Chromium through Playwright."""
    if chromium_path() is None:
        pytest.skip("no Chromium: apt-get install chromium")
    pytest.importorskip("playwright.sync_api", reason="no playwright in this environment")
    with chromium() as opened:
        yield opened
