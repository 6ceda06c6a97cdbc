"""The command line without an engine: bad input is one line and exit code 2, and nothing is started."""

import json
import signal

import pytest

from workbench import cli
from workbench.engine.live import LiveEngine


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
    "unknown policy": (["run", "chat_and_long", "--policy", "magic"], "magic"),
    "unknown start-up field": (["run", "chat_and_long", "--set", "max_sequences=3"], "max_num_seqs"),
    "start-up field without a value": (["run", "chat_and_long", "--set", "model"], "name=value"),
    "not a number": (["sweep", "chat_and_long", "--budget", "64,many"], "64,many"),
    "a setting outside the envelope": (["sweep", "chat_and_long", "--budget", "64,16384"], "at most 8192"),
    "unknown run": (["runs", "show", "nope"], "nope"),
    "a run that leads elsewhere": (["runs", "delete", "../../etc"], "../../etc"),
    "unknown verb": (["frobnicate"], "frobnicate"),
    "unknown option": (["run", "chat_and_long", "--budgte", "3"], "budgte"),
}


@pytest.mark.parametrize(("args", "says"), BAD_CALLS.values(), ids=BAD_CALLS)
def test_a_bad_call_is_one_line(workbench, args, says):
    code, _, err = workbench(*args)
    assert code == 2
    assert says in err[-1]
    assert not any("Traceback" in line for line in err)


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
    for verb in ("demo", "run", "sweep", "runs", "doctor", "reap"):
        assert verb in out


def test_a_demo_that_cannot_be_written_fails_before_an_engine_is_started(workbench, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, err = workbench("demo", "--out", tmp_path / "file")
    assert code == 1
    assert "file" in err[-1]


def test_an_unforeseen_error_is_one_line_too(workbench, monkeypatch):
    monkeypatch.delenv("WORKBENCH_DEBUG", raising=False)
    monkeypatch.setattr(cli, "list_runs", lambda *_: {}["gone"])
    code, _, err = workbench("runs", "list")
    assert code == 1
    assert len(err) == 1
    assert "KeyError" in err[0]
