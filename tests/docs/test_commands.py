"""Every command of README and the other pages: run where it can be, and held against the real parser in any case.

Runs are in an empty folder with an empty home. What would start a live engine runs on a simulated one here; the live
class of tests (tests/live/test_readme.py) has the same lines of the README on the real engine.
"""

from __future__ import annotations

import functools
import importlib
import json
import re
import shutil
import signal
import subprocess
import sys

import pytest
import typer
from blocks import ROOT, commands, documents, in_text

from workbench import cli
from workbench.planning.mixes import mix_names
from workbench.workload.scenario import scenario_names

COMMANDS = list(dict.fromkeys(one for page in documents() for one in commands(page)))
MENTIONED = [one for page in documents() for one in in_text(page)]
VERBS = [one for one in COMMANDS if one.program == "workbench"]

# What is not run here, by how it begins, with the reason; its words are parsed all the same.
NOT_RUN = {
    "attach": "needs a server; tests/engine/test_attached.py and tests/live/test_attached.py have one",
    "calibrate": "takes minutes of a live engine; tests/live/test_calibrate.py",
    "validate": "plays what calibrate left; tests/simulate/test_validation.py",
    "plan": "a minute of search; tests/planning",
    "tune": "minutes of search; tests/tune/test_tune.py and tests/tune/ray",
    "selftest": "a minute in which the machine must be quiet; tests/meter/test_selftest.py",
    "notebook": "executes a notebook; tests/notebooks/test_export.py",
    "claims --live": "one engine start and twelve runs; tests/notebooks plays notebook 09",
    "claims --simulated": "plays twelve runs and the article's nine; tests/claims/test_sheet.py has its parts",
    "demo": "the main job on a live engine; tests/live/test_main_job.py",
    "room": "serves pages until it is stopped; tests/browser/test_room.py",
    "sweep chat_and_long --budget 16384 --restart": "an engine for each setting; tests/test_sweep.py",
    "compare policy=qos policy=chunked": "up to 30 rounds of two plays; tests/tune/compare",
    "compare budget=256 defaults": "up to 20 rounds of two plays; tests/tune/compare",
    "compare budget=256 budget=1024,chunk=128": "up to 20 rounds of two plays; tests/tune/compare",
}
# What `ray VERB --help` prints of each verb; importing Ray takes seconds, and so would each of them.
RAY_HELP = """
import json, sys
from click.testing import CliRunner
from ray.scripts.scripts import cli
shown = {verb: CliRunner().invoke(cli, [verb, "--help"], catch_exceptions=False).output for verb in sys.argv[1:]}
print(json.dumps(shown))
"""
# What starts a live engine where nothing else is asked for; here it is a simulated one.
PLAYS = ("run", "sweep", "policies")
SIMULATED = [f"--set={one}" for one in ("engine=simulated", "model=qwen2.5-7b", "gpu=L40S", "count=1")]
# make targets are never run from a test; each must be one, with a recipe that make can make out.
OTHERS = {
    "make": "builds or serves; `make -n` makes out each",
    "pre-commit": "changes the repository's hooks",
    "ray": "joins machines; the flags are held against its help",
    "vllm": "needs 16 GPUs; the flags are held against ours",
    "python": "a server started by hand; the classes it names are looked for, tests/live/test_attached.py starts one",
    "mkdir": "of the shell",
    "export": "of the shell",
}


def why_not(args):
    """The reason that a command is not run, and the entry that says so."""
    line = " ".join(args)
    for begins, reason in NOT_RUN.items():
        if (line + " ").startswith(begins + " "):
            return begins, reason
    return None


# Each once, in the order of the pages; a translation has the same lines.
def options(verb):
    """All options of a verb."""
    module, typers, _ = cli.VERBS[verb]
    group = typer.main.get_group(getattr(importlib.import_module(f"workbench.cli.{module}"), typers))
    return group.commands[verb].params


RUN = list({tuple(one.args): one for one in reversed(VERBS) if why_not(one.args) is None}.values())[::-1]


def parse(args):
    """Give words to the real parser, down to the verb that takes them; nothing is called."""
    command, context = typer.main.get_command(cli.app), None
    while True:
        context = command.make_context(command.name or "workbench", list(args), parent=context, resilient_parsing=False)
        rest = [*context._protected_args, *context.args] if hasattr(context, "_protected_args") else context.args
        if not hasattr(command, "resolve_command"):
            return context
        _, command, args = command.resolve_command(context, rest)


@functools.cache
def made_out(*words):
    """What a program says of a command; pages and their translations have the same ones."""
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("command", VERBS, ids=str)
def test_the_parser_takes_it(command):
    asked = parse(command.args).params.get("scenario")
    if isinstance(asked, str):
        assert asked in {*scenario_names(), *mix_names()}


@pytest.mark.parametrize("command", [one for one in MENTIONED if one.program == "workbench"], ids=str)
def test_what_running_text_mentions_is_a_verb_with_these_flags(command):
    args = [word for word in command.args if word != "..."]
    verb = args[0]
    assert verb in cli.VERBS
    if len(args) > 1:
        known = {flag for one in options(verb) for flag in one.opts + one.secondary_opts}
        assert {word.split("=")[0] for word in args[1:] if word.startswith("--")} <= known


@pytest.mark.parametrize("command", [one for one in COMMANDS + MENTIONED if one.program == "make"], ids=str)
def test_make_knows_the_target(command):
    done = made_out("make", "-n", *command.args)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    for word in command.args:
        if word.startswith("NAME="):
            assert (ROOT / "benchmarks" / f"{word[5:]}.py").is_file()


@pytest.mark.parametrize("command", [one for one in COMMANDS if one.program == "ray"], ids=str)
def test_ray_has_the_flags(command):
    said = made_out(sys.executable, "-c", RAY_HELP, *sorted({one.args[0] for one in COMMANDS if one.program == "ray"}))
    assert said.returncode == 0, said.stderr
    shown = json.loads(said.stdout.splitlines()[-1])[command.args[0]]
    assert "Usage: " in shown
    for word in command.args[1:]:
        if word.startswith("--"):
            assert word.split("=")[0] in shown


@pytest.mark.parametrize("command", [one for one in COMMANDS if one.program in ("python", "vllm")], ids=str)
def test_a_server_started_by_hand_has_classes_and_flags_that_are_there(command):
    ours = (ROOT / "workbench" / "config.py").read_text() + (ROOT / "workbench" / "engine" / "command.py").read_text()
    for word, value in zip(command.args, [*command.args[1:], ""], strict=True):
        if word.endswith("-cls"):
            module, _, name = value.rpartition(".")
            assert f"class {name}(" in (ROOT / f"{module.replace('.', '/')}.py").read_text()
        elif word.startswith("--") and command.program == "vllm":
            assert word in ours


def test_nothing_is_left_out_without_a_reason():
    others = {one.program for one in COMMANDS} - {"workbench"}
    assert others <= set(OTHERS), "a command of another program: say how it is checked"
    stale = set(NOT_RUN) - {entry[0] for one in VERBS if (entry := why_not(one.args))}
    assert stale <= {"demo", "room"}, "an entry for a command that no page has"
    assert len(RUN) >= 15
    for reason in [*NOT_RUN.values(), *OTHERS.values()]:
        for path in re.findall(r"tests/[\w/.-]+", reason):
            assert (ROOT / path.rstrip(".")).exists(), path


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """An empty home and folder, with what the commands name: recorded runs and another tool's result."""
    root = tmp_path_factory.mktemp("typed")
    recorded = ROOT / "data" / "runs"
    shutil.copytree(recorded, root / "data" / "runs")
    names = {"ONE": "chats_beside_a_prompt-budget-320", "OTHER": "chats_beside_a_prompt-budget-768"}
    for name, of in {**names, "RUN": "chat_and_long-budget-256"}.items():
        shutil.copytree(recorded / of, root / "runs" / name)
    shutil.copy(ROOT / "tests" / "data" / "vllm-bench-0.32.0.json", root / "result.json")
    (root / "home").mkdir()
    return root


@pytest.fixture
def typed(place, shared_simulator, monkeypatch, capsys):
    """Call the command line as a person does, in that folder."""
    monkeypatch.chdir(place)
    monkeypatch.setenv("HOME", str(place / "home"))
    for name in ("WORKBENCH_RUNS", "WORKBENCH_CACHE", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WORKBENCH_STATE", str(place / "state"))
    before = {signum: signal.getsignal(signum) for signum in (signal.SIGTERM, signal.SIGHUP)}

    def call(args):
        monkeypatch.setattr("sys.argv", ["workbench", *args])
        with pytest.raises(SystemExit) as left:
            cli.main()
        said = capsys.readouterr()
        return left.value.code, said.out, said.err

    yield call
    for signum, handler in before.items():
        signal.signal(signum, handler)


@pytest.mark.parametrize("command", RUN, ids=str)
def test_it_runs(command, typed):
    args = command.args
    if args[:2] == ["report", "--verify"]:
        typed(["report", "data/runs/policies-qos"])  # the line above it in the README writes this file
    more = SIMULATED if args[0] in PLAYS and "articles_c14" not in args else []
    code, out, err = typed([*args, *more])
    allowed = (0, 1) if args[0] == "doctor" else (0,)  # doctor says what is wrong with this machine
    assert code in allowed, err
    assert out.strip()
