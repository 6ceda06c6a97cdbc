"""`workbench calibrate` and `workbench validate` on runs that are on disk; no engine and no child is started."""

import json

import pytest
from live_runs import InProcess, asks, knobs, live, slower

from workbench import cli
from workbench.cli import simulator as cli_simulator
from workbench.engine.live import LiveEngine
from workbench.simulate import kept_calibrations
from workbench.store import RunWriter


@pytest.fixture(autouse=True)
def no_engine(monkeypatch, tmp_path, model_folder):
    monkeypatch.setattr(LiveEngine, "start", lambda *_: pytest.fail("an engine was started"))
    monkeypatch.setattr(cli_simulator, "Simulator", lambda: InProcess(model_folder))
    monkeypatch.setattr(kept_calibrations, "shipped_folder", lambda: tmp_path / "shipped")
    monkeypatch.setenv("WORKBENCH_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("WORKBENCH_STATE", str(tmp_path / "state"))


@pytest.fixture
def workbench(monkeypatch, capsys):
    def call(*args):
        monkeypatch.setattr("sys.argv", ["workbench", *map(str, args)])
        with pytest.raises(SystemExit) as left:
            cli.main()
        captured = capsys.readouterr()
        return left.value.code, captured.out, captured.err.strip().splitlines()

    return call


@pytest.fixture
def recorded(tmp_path, model_folder):
    """Four runs on disk that a calibration is made of, one under another budget, and one with the load's name."""

    def record(name, trace, **facts):
        with RunWriter(tmp_path / "runs" / name, {**trace.meta, **facts}) as writer:
            for table, columns in trace.tables.items():
                writer.rows(table, columns.to_pylist())
        return name

    shapes = [(64, 6, 500), (128, 3, 700), (200, 8, 300), (512, 2, 600)]
    seen = [
        record(f"seen-{i}", live(model_folder, asks(i, count, long), knobs=knobs(budget)))
        for i, (budget, count, long) in enumerate(shapes)
    ]
    record("fresh", live(model_folder, asks(7, 4, 450), prices=slower(1.25), knobs=knobs(160)), setting="budget 160")
    record("made-up", live(model_folder, asks(9), knobs=knobs(96)), label="simulated")
    record("load", live(model_folder, asks(8), knobs=knobs(96)), scenario="calibration")
    return seen


def test_from_runs_to_a_calibration_to_its_errors(workbench, recorded, tmp_path):
    code, out, _ = workbench("calibrate", *recorded)
    assert code == 0
    assert "error on runs left out in turn" in out
    assert "live CPU, smollm2 on Made-up 9000" in out
    assert "client and front end: 12.0 ms to the scheduler, 6.0 ms back" in out
    path = tmp_path / "state" / "calibrations"
    assert out.splitlines()[-1] == str(next(path.glob("*.json")))

    code, out, _ = workbench("validate", "--json")  # the fresh one: others were fitted, or are the load's
    told = json.loads(out)
    assert (code, told["label"]) == (0, "simulated")
    assert [run["run"] for run in told["runs"]] == ["fresh"]
    assert told["runs"][0]["setting"] == "made budget 160"
    assert told["errors"]["gap_p50"]["median_pct"] == pytest.approx(20, abs=0.7)
    kept = kept_calibrations.load(next(path.glob("*.json")))
    assert len(list(path.glob("*.json"))) == 1
    assert kept.checks["fresh"]["gap_p50"] == pytest.approx(-20, abs=0.7)
    assert kept.error_label.startswith("gap P50 ±20 %")


def test_the_table_names_metrics_and_requests(workbench, recorded, tmp_path):
    workbench("calibrate", *recorded, "--out", tmp_path / "mine")
    file = next((tmp_path / "mine").glob("*.json"))
    code, out, _ = workbench("validate", "fresh", "--calibration", file, "--no-keep")
    assert code == 0
    assert "fresh · made budget 160" in out
    assert "long-0" in out
    assert "throughput" in out
    assert kept_calibrations.load(file).checks == {}


def test_steps_that_were_not_calibrated_are_said_to_be_extrapolated(workbench, recorded, tmp_path):
    workbench("calibrate", *recorded[:2], "--out", tmp_path / "mine")  # budgets of 64 and 128
    file = next((tmp_path / "mine").glob("*.json"))
    code, _, err = workbench("validate", recorded[3], "--calibration", file, "--no-keep")  # of 512
    assert code == 0
    said = next(line for line in err if line.startswith("seen-3: "))
    assert "of the steps are beyond those that were calibrated, such as " in said
    assert "prompt tokens (measured: " in said


def test_a_calibration_can_be_told_as_json(workbench, recorded, tmp_path):
    code, out, _ = workbench("calibrate", *recorded, "--out", tmp_path / "mine", "--json")
    assert code == 0
    assert json.loads(out)["fits"]["decode"]["held_out"] is True


def test_a_run_that_was_fitted_is_refused(workbench, recorded):
    workbench("calibrate", *recorded)
    code, out, err = workbench("validate", "seen-2")
    assert (code, out) == (2, "")
    assert "run to validate: got 'seen-2', expected one that the calibration was not fitted to" in err[-1]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["validate"], "runs: got 'none in"),
        (["validate", "nope"], "nope"),
        (["validate", "fresh"], "run fresh: got 'no calibration', expected one of its model and settings on Made-up"),
        (["validate", "made-up"], "run made-up: got 'simulated', expected a live run; play one with workbench run"),
        (["calibrate", "made-up"], "calibration: got 'simulated', expected live runs"),
        (["calibrate", "--out", "/proc/nowhere"], "cannot write to /proc/nowhere"),
        (["validate", "fresh", "--calibration", "no.json"], "calibration: got 'no.json'"),
        (["calibrate", "seen-0", "--set", "model=smollm2"], "--set: got 'model=smollm2', expected no start-up field"),
        (["calibrate", "--set", "engine=simulated"], "calibrate: got 'a simulated engine', expected a live one"),
        (["calibrate", "--set", "max_model_len=1"], "max_model_len"),
    ],
)
def test_bad_calls_are_one_line(workbench, recorded, args, says):
    code, out, err = workbench(*args)
    assert (code, out) == (1 if "cannot write" in says else 2, "")
    assert says in err[-1]
    assert len(err) == 1


def test_rough_prices_are_said_to_be(workbench, recorded, monkeypatch):
    assert "rough" not in " ".join(workbench("calibrate", *recorded)[2])
    monkeypatch.setattr(cli_simulator, "_ROUGH", -1.0)
    code, _, err = workbench("calibrate", *recorded)
    assert (code, err[-1]) == (
        0,
        "these prices are rough: calibrate again while nothing else runs here, or for longer (--seconds)",
    )
