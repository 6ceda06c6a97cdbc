"""`workbench claims` on the command line, from recorded runs."""

import json

import pytest

from workbench import cli


@pytest.fixture
def workbench(monkeypatch, capsys):
    def call(*args):
        monkeypatch.setattr("sys.argv", ["workbench", *map(str, args)])
        with pytest.raises(SystemExit) as left:
            cli.main()
        captured = capsys.readouterr()
        return left.value.code, captured.out, captured.err

    return call


def test_recorded_runs_as_json(workbench):
    code, out, _ = workbench("claims", "--recorded", "--json")
    said = json.loads(out)
    assert code == 0
    assert [row["claim"] for row in said["rows"]] == [f"C{n}" for n in range(1, 17)]
    assert said["rows"][9]["numbers"].startswith("36 preemptions")
    assert said["trouble"] == []
    assert said["rows"][9]["notes"]["Not tested here"].startswith("swap: vLLM V1 preempts by recompute only")
    assert said["rows"][13]["notes"] == {}, "C14 is not judged from recorded runs alone"


def test_a_line_for_each_claim(workbench):
    code, out, _ = workbench("claims", "--recorded")
    assert code == 0
    assert "C10 holds in part" in out
    assert "[bold]" not in out, "the console takes no markup"
    assert "C14 not judged" in out
    assert max(len(line) for line in out.splitlines()) <= 120, "wrapped at the width of a pipe"
    c10 = " ".join(out[out.index("C10 ") : out.index("C11 ")].split())
    assert c10.endswith("Not tested here: swap: vLLM V1 preempts by recompute only, and KV offload needs a GPU.")


def test_a_folder_without_runs_is_one_line(workbench, tmp_path):
    code, out, err = workbench("claims", "--recorded", "--runs", tmp_path)
    assert code == 2
    assert out == ""
    assert "expected a folder with recorded runs" in err
