"""``workbench plan`` as a person sees it, on plays that are made up."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from workbench import cli
from workbench.errors import InputError


class Player:
    """Every setting breaks at 5/s, or at nothing; after some plays somebody may press Ctrl-C. SYNTHETIC."""

    verdict, breaks, interrupt_after, plays = None, 5.0, None, 0

    def __init__(self, told):
        self.told = told

    def start(self, progress):
        pass

    stop = close = lambda self: None

    def play(self, place, rate, residence_s, step_time=None):
        Player.plays += 1
        if Player.plays == Player.interrupt_after:
            raise KeyboardInterrupt
        self.told()
        return Player.verdict(rate, rate <= Player.breaks)


@pytest.fixture
def run(monkeypatch, made_verdict):
    Player.verdict, Player.breaks, Player.interrupt_after, Player.plays = staticmethod(made_verdict), 5.0, None, 0
    monkeypatch.setattr("workbench.planning.planner.Player", Player)
    monkeypatch.setattr("workbench.planning.planner.WORKERS", 1)
    return lambda *words: CliRunner().invoke(cli.app, ["plan", "azure-like", *words])


def test_the_table_says_what_how_sure_and_where_from(run):
    said = run("--budget", "512,2048", "--chunk", "0", "--price", "2.5", "--policy", "qos", "--need", "20").stdout
    assert "azure-like on llama-3.1-70b on 8 x H100 SXM, simulated, roofline, uncalibrated" in said
    rows = [line.split() for line in said.splitlines() if line.lstrip().startswith(("512 /", "2,048 /"))]
    assert [(row[0], row[2], row[4]) for row in rows] == [
        ("512", "off", "chunked"),
        ("2,048", "off", "chunked"),
        ("512", "off", "qos"),
    ]
    assert all("-" in row[6] and row[-4:] == ["TTFT:", "steps", "with", "prefill"] for row in rows)
    for words in (
        "SLO: TTFT 2000 ms, gap 200 ms",
        "capacity: the most requests/s of which 95%",
        "best: vllm serve meta-",
    ):
        assert words in said


def test_json_is_one_document(run):
    shown = json.loads(run("--budget", "512", "--chunk", "0", "--json", "--gap-ms", "150").stdout)
    assert shown["complete"]
    assert shown["slo"]["gap_ms"] == 150
    (row,) = shown["rows"]
    assert row["capacity_low_per_s"] <= row["capacity_per_s"] <= 5 < row["not_met_per_s"]
    assert row["label"] == shown["label"] == "simulated, roofline, uncalibrated"
    assert shown["best"]["serve_command"].startswith("vllm serve")


def test_an_interruption_shows_what_there_is(run):
    Player.interrupt_after = 8
    found = run("--budget", "512,2048", "--chunk", "0")
    assert found.exit_code != 0
    assert "stopped: this is what there was by then" in found.stdout
    assert "(no band yet)" in found.stdout


def test_a_promise_that_nothing_meets_is_a_table_and_one_line(run):
    Player.breaks = 0.0
    found = run("--budget", "512", "--chunk", "0")
    assert isinstance(found.exception, InputError)
    assert str(found.exception).startswith("SLO: got 'TTFT 2000 ms, gap 200 ms', expected one that can be met (at ")
    assert "even a lone request" in found.stdout


@pytest.mark.parametrize("words", [("--budget", "many"), ("--chunk", "-1"), ("--need", "0"), ("--gpu", "H900")])
def test_bad_options_play_nothing(run, words):
    found = run(*words)
    assert isinstance(found.exception, InputError)
    assert Player.plays == 0
