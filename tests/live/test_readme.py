"""Lines of the README that start a live engine, typed as they stand there, on the session's engine."""

from __future__ import annotations

import json
import signal

import pytest

from tests.docs import blocks
from workbench import Workbench, cli

pytestmark = [pytest.mark.live, pytest.mark.timeout(600)]
README = blocks.ROOT / "README.md"
RUNS = [one for one in blocks.commands(README) if one.args[:2] == ["run", "chat_and_long"]]
PYTHON = [one for one in blocks.blocks(README) if 'with Workbench(model="smollm2") as wb:' in one.text]


@pytest.fixture
def shared(bench, monkeypatch):
    """Whoever makes a workbench gets the session's, and leaving it does not end its engine."""
    monkeypatch.setattr(Workbench, "of", classmethod(lambda *_, **__: bench))
    monkeypatch.setattr(Workbench, "__exit__", lambda *_: None)
    monkeypatch.setattr("workbench.Workbench", lambda **_: bench)
    before = {signum: signal.getsignal(signum) for signum in (signal.SIGTERM, signal.SIGHUP)}
    knobs = bench.engine.knobs
    yield bench
    bench.knobs(**knobs.model_dump())
    for signum, handler in before.items():
        signal.signal(signum, handler)


def test_the_readme_has_them():
    assert len(RUNS) >= 2
    assert len(PYTHON) == 1


@pytest.mark.parametrize("command", RUNS, ids=str)
def test_a_run_of_the_readme(command, shared, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["workbench", *command.args, "--json"])
    with pytest.raises(SystemExit) as left:
        cli.main()
    said = json.loads(capsys.readouterr().out)
    assert left.value.code == 0
    assert (said["label"], said["status"], said["scenario"]) == ("live CPU", "complete", "chat_and_long")


@pytest.mark.parametrize("block", PYTHON, ids=lambda one: one.id)
def test_the_python_of_the_readme(block, shared, capsys):
    space = {}
    exec(compile(block.text, block.id, "exec"), space)
    run = space["run"]
    assert run.meta["status"] == "complete"
    assert run.trace.knobs["budget"].tolist()[-1] == 256
    assert len(run.trace.requests) == 4 + 1 + 1  # chats, the scenario's long prompt and the dropped one
    assert "gap_p50_ms" in capsys.readouterr().out
