"""``workbench compare`` on the simulated engine and on folders: what is printed, and what is refused."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from workbench.cli import app, main
from workbench.cli.compare import show
from workbench.errors import InputError
from workbench.tune.compare import Comparing, Comparison, Round, setting_of
from workbench.ui.charts.theme import FONT, FONT_ZH

FIELDS = ("engine=simulated", "model=qwen2.5-7b", "gpu=H100", "step_time=roofline")
SIMULATED = [word for field in FIELDS for word in ("--set", field)]


def run(*words):
    return CliRunner().invoke(app, ["compare", *words])


@pytest.fixture(scope="module")
def played(tmp_path_factory, shared_simulator):
    """One comparison of two budgets, with its chart."""
    folder = tmp_path_factory.mktemp("compare")
    words = [
        "budget=64",
        "budget=1024",
        "--rounds",
        "4",
        "--primary",
        "long_ttft",
        "--runs",
        str(folder),
        "--chart",
        str(folder / "c.svg"),
    ]
    return folder, run(*words, *SIMULATED, "--json")


def test_the_smaller_budget_keeps_the_long_prompt_waiting(played):
    folder, result = played
    assert result.exit_code == 0
    told = json.loads(result.stdout)
    assert told["verdict"]["kind"] == "B better"
    assert told["verdict"]["words"].startswith("B better by a factor of ")
    assert len(told["rounds"]) == 4
    assert {one["order"] for one in told["rounds"]} == {"AB", "BA"}
    assert told["warm_up_plays"] == 0, "a simulated engine has nothing to warm up"
    assert told["origin"] == "simulated · roofline, uncalibrated"
    assert {row["measure"] for row in told["measures"]} >= {"throughput", "gap_p99", "gap_max", "long_ttft"}
    assert len([one for one in folder.iterdir() if one.is_dir()]) == 8, "every play is kept"
    drawn = (folder / "c.svg").read_text()
    assert "B better" in drawn
    assert f'<svg font-family="{FONT}"' in drawn, "there is no page around it to name one"


def test_a_chart_in_chinese_has_words_and_a_font_for_them(played, tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_LANG", "zh")
    one, other = json.loads(played[1].stdout)["rounds"][0]["runs"]
    assert run(one, other, "--chart", str(tmp_path / "zh.svg")).exit_code == 0
    drawn = (tmp_path / "zh.svg").read_text(encoding="utf-8")
    assert f'<svg font-family="{FONT_ZH}"' in drawn
    assert "，已记录的运行" in drawn
    assert "gap P99" not in drawn


def test_two_of_its_runs_are_compared_again_from_disk(played):
    told = json.loads(played[1].stdout)
    result = run(*told["rounds"][0]["runs"])
    assert result.exit_code == 0
    said = "no difference: gap P99 is the same in both (simulated: the same each time)"
    assert said in result.stdout, "the chats had ended when the prompt came"
    assert "the figures are exact for this load and this step-time model" in result.stdout
    assert "not played in turn" not in result.stdout
    assert "exploratory" in result.stdout


def test_an_interruption_shows_what_there_is(tmp_path, monkeypatch, shared_simulator):
    play, count = Comparing._play, []

    def interrupted(self, *args):
        count.append(1)
        if len(count) > 5:
            raise KeyboardInterrupt
        return play(self, *args)

    monkeypatch.setattr(Comparing, "_play", interrupted)
    result = run("budget=64", "budget=64", "--runs", str(tmp_path), *SIMULATED)
    assert result.exit_code == 130
    assert "needs 2 more rounds before anything can be said" in result.stdout
    assert "stopped: this is what the rounds until then say" in result.stdout
    assert "A and B are the same setting" in result.stdout
    assert len(list(tmp_path.iterdir())) == 5


def test_one_round_says_how_many_more_are_needed_and_has_no_table(capsys):
    sides = (setting_of("A", "budget=64"), setting_of("B", "budget=128"))
    one = Round(0, 1, "AB", {"gap_p99": 1.0}, {"gap_p99": 2.0})
    found = Comparison(*sides, "tuning", 4, origin="live CPU", rounds=[one])
    show(found, as_json=False)
    said = capsys.readouterr().out
    assert "needs 3 more rounds before anything can be said" in said
    assert "A / B" not in said
    found.rounds.append(replace(one, number=1))
    show(found, as_json=False)
    assert "A / B" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["budget=64", "budget=99999"], "B: budget: got '99999', expected at most 8192"),
        (["budget=64", "budget=128", "--rounds", "0"], "rounds: got '0', expected 1 to 200"),
        (["budget=64", "speed=1"], "B: got 'speed', expected one of budget"),
        (["budget=64", "max_model_len=1"], "B: got 'max_model_len=1', expected hot knobs"),
        (["budget=64", "."], "A and B: got 'budget=64 and .', expected two settings, or two folders"),
        (["budget=64", "budget=128", "--primary", "speed"], "primary: got 'speed'"),
        (["budget=64", "budget=128", "--resolve", "0"], "--resolve: got '0', expected per cent"),
        (["budget=64", "budget=128", "--resolve", "nan"], "--resolve: got 'nan', expected per cent"),
        (["budget=64", "budget=128", "--chart", "nowhere/c.svg"], "--chart: got 'nowhere/c.svg', expected a file in"),
    ],
)
def test_what_is_wrong_is_one_line(words, says):
    result = run(*words)
    assert isinstance(result.exception, InputError)
    assert str(result.exception).startswith(says)


def test_the_side_of_a_wrong_knob_is_said_on_the_command_line(monkeypatch, capsys):
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr("sys.argv", ["workbench", "compare", "budget=64", "chunk=-1"])
    with pytest.raises(SystemExit):
        main()
    assert "B: chunk: got '-1', expected 0 or more" in capsys.readouterr().err
