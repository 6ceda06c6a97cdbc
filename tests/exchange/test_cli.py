"""The verbs export, import and attach, without an engine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from workbench import cli
from workbench.store import RunWriter

STUB = Path(__file__).parents[1] / "engine" / "openai_stub.py"


@pytest.fixture
def workbench(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("WORKBENCH_RUNS", str(tmp_path / "runs"))
    monkeypatch.setattr(cli.signal, "signal", lambda *_: None)

    def call(*args):
        monkeypatch.setattr("sys.argv", ["workbench", *map(str, args)])
        with pytest.raises(SystemExit) as left:
            cli.main()
        captured = capsys.readouterr()
        return left.value.code, captured.out, captured.err.strip().splitlines()

    return call


@pytest.fixture
def run(tmp_path, trace):
    with RunWriter(tmp_path / "runs" / "a-run", {"label": "live CPU", "scenario": "made up"}) as writer:
        for name, table in trace.tables.items():
            writer.rows(name, table.to_pylist())
    return "a-run"


@pytest.mark.parametrize("form", ["perfetto", "csv", "parquet"])
def test_a_run_is_exported(workbench, run, tmp_path, form):
    out = tmp_path / f"out.{form}"
    code, said, _ = workbench("export", run, "--format", form, "--out", out, "--json")
    assert code == 0
    assert json.loads(said) == {"run": run, "format": form, "path": str(out)}
    assert out.is_file() if form == "perfetto" else (out / f"requests.{form}").is_file()


def test_a_result_file_is_imported_and_compared(workbench, run, data, tmp_path):
    code, said, _ = workbench("import", data / "vllm-bench-0.32.0.json", "--compare", run, "--json")
    assert code == 0
    found = json.loads(said)
    assert found["compare"]["gap_p50_ms"]["made up"] == pytest.approx(50.0)
    assert Path(found["run"], "tokens.parquet").is_file()
    code, said, err = workbench("import", data / "guidellm-0.8.1.json")
    assert code == 0
    assert "imported (GuideLLM 0.8.1)" in " ".join(said.split())
    assert any("there are no gaps" in line for line in err)
    page = tmp_path / "r.html"
    assert workbench("report", said.splitlines()[-1], "--out", page)[0] == 0
    assert workbench("report", "--verify", page)[0] == 0


BAD = {
    "no such run": (["export", "none"], "the id of a run"),
    "no such format": (["export", "a-run", "--format", "xml"], "one of perfetto, csv, parquet"),
    "no such file": (["import", "/no/such.json"], "/no/such.json"),
    "no run to compare with": (["import", "/no/such.json", "--compare", "none"], "the id of a run"),
    "no URL": (["attach"], "the base of the server's API"),
    "no http": (["attach", "ftp://x"], "an http or https address"),
    "no scenario": (["attach", "http://x", "--scenario", "chat_and_lon"], "did you mean chat_and_long"),
}


@pytest.mark.parametrize(("words", "says"), BAD.values(), ids=BAD)
def test_a_slip_is_one_line_and_code_2(workbench, run, tmp_path, words, says):
    code, out, err = workbench(*words)
    assert (code, out, len(err)) == (2, "", 1)
    assert says in err[0]
    assert [one.name for one in (tmp_path / "runs").iterdir()] == [run]


def test_attach_says_what_a_server_is(workbench, monkeypatch):
    server = subprocess.Popen([sys.executable, STUB, '{"key": "right"}'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        url = f"127.0.0.1:{int(server.stdout.readline())}"
        monkeypatch.setenv("MY_KEY", "right")
        code, out, _ = workbench("attach", url, "--api-key-env", "MY_KEY", "--look", "--json")
        assert code == 0
        assert (json.loads(out)["server"], json.loads(out)["max_model_len"]) == ("vLLM 9.9.9", 4096)
        code, out, err = workbench("attach", url, "--look")
        assert (code, out) == (1, "")
        assert "--api-key-env NAME" in err[-1]
    finally:
        server.kill()
        server.communicate()
    code, out, _ = workbench("attach", "--probe-command", "--probe", "/tmp/wb")
    assert code == 0
    assert out.startswith("mkdir -m 700 -p /tmp/wb && WORKBENCH_PROBE_FOLDER=/tmp/wb ")
