"""Calibrations: prices that are known are found again, in spite of noise, and the error is that of unseen steps."""

import json
from dataclasses import replace

import numpy as np
import pytest
from made_runs import META, PRICES, made_run, price

from workbench.errors import InputError
from workbench.simulate.calibration import Calibration, machine_key
from workbench.simulate.fitting import fit
from workbench.simulate.kept_calibrations import load, match, save, shipped_folder
from workbench.simulate.measured import measured_steps
from workbench.simulate.steptime import StepShape, StepTime, from_spec
from workbench.simulate.steptime.calibrated import Calibrated
from workbench.simulate.steptime.prices import FEATURES, QUANTILES
from workbench.simulate.steptime.varied import Varied, quantile

made = StepShape.made


@pytest.fixture(scope="module")
def clean():
    return fit([made_run("a"), made_run("b", seed=2)], made_at="2026-01-01T00:00:00+00:00")


def off(model, shape):
    wanted = price(list(shape.chunks), shape.decodes, shape.decode_context)
    return abs(model.seconds(shape) / wanted - 1)


SEEN = [made(decodes=4, context=800), made([(300, 1000)], 5, 900), made([(100, 0), (400, 2500)], 3, 500)]


def test_known_prices_are_found_again(clean):
    found = dict(zip(FEATURES, clean.fits["mixed"].prices, strict=True))
    for name, wanted in zip(FEATURES, PRICES["mixed"], strict=False):
        assert found[name] == pytest.approx(wanted, rel=1e-6)
    assert max(off(Calibrated(clean), shape) for shape in SEEN) < 1e-6
    assert clean.residual_pct["decode"] < 1e-6


def test_noise_and_disturbed_steps_do_not_bend_them():
    noisy = fit([made_run(name, seed, noise=0.08, disturbed=0.05) for seed, name in enumerate("abc")])
    assert max(off(Calibrated(noisy), shape) for shape in SEEN) < 0.03
    for kind in ("decode", "mixed"):
        one = noisy.fits[kind]
        assert one.held_out
        assert 2 < one.median_pct < 6  # evenly spread over +-8 %: half are within 4
        assert all(price >= 0 for price in one.prices)
        assert one.ratios[len(QUANTILES) // 2] == pytest.approx(1, abs=0.02)
        assert one.ratios[-1] == pytest.approx(5, rel=0.2)
    assert noisy.held_out == "runs left out in turn"


def slower(run, times):
    """The same run, with all that happened in it so many times as long."""
    steps = run.tables["steps"]
    for name in ("scheduled_s", "start_s", "end_s"):
        column = [10 + times * (steps[name].to_numpy() - 10)]
        steps = steps.set_column(steps.schema.get_field_index(name), name, column)
    return replace(run, tables={**run.tables, "steps": steps})


def test_the_error_is_of_steps_that_the_fit_did_not_see():
    # One of seven runs took twice as long: left out, it is foretold at about half its time. A fit to all of them that
    # was judged by what it saw would call itself better.
    runs = [made_run(name, seed) for seed, name in enumerate("abcdefg")]
    found = fit([slower(runs[0], 2), *runs[1:]])
    assert found.fits["mixed"].p90_pct == pytest.approx(50, abs=3)
    assert fit(runs).fits["mixed"].p90_pct < 1e-6


def test_pauses_are_not_steps(clean):
    paused = fit([made_run("a", pause_s=3.0), made_run("b", 2, pause_s=3.0)])
    assert max(off(Calibrated(paused), shape) for shape in SEEN) < 1e-6


def test_what_the_engine_does_between_steps_counts():
    run = made_run("a")
    design, seconds, kinds = measured_steps(run)
    ends = run.tables["steps"]["end_s"].to_numpy()
    assert seconds[1:] == pytest.approx(np.diff(ends))  # though the worker began a millisecond later
    assert len(design) == len(kinds) == 160


def test_steps_outside_of_what_was_seen_are_named(clean):
    model = Calibrated(clean)
    assert [model.outside(shape) for shape in SEEN] == [""] * 3
    assert "20,000 prompt tokens (measured: " in model.outside(made([(20000, 0)], 2, 100))
    assert model.outside(made(decodes=64, context=100)) == "64 decodes (measured: 1 to 8)"
    assert model.outside(made([(64, 0)])) == "a prefill step (none was measured)"
    # It is priced all the same, as a mixed step without decodes.
    assert model.seconds(made([(64, 0)])) == pytest.approx(price([(64, 0)], 0, 0))


def test_the_band_is_the_90th_percentile_of_the_error():
    noisy = fit([made_run(name, seed, noise=0.08) for seed, name in enumerate("abc")])
    low, seconds, high = Calibrated(noisy).band(SEEN[1])
    assert high / seconds == seconds / low == pytest.approx(1 + noisy.fits["mixed"].p90_pct / 100)


def test_it_says_where_its_numbers_come_from(clean):
    model = Calibrated(clean)
    told = model.describe()
    assert isinstance(model, StepTime)
    assert (told["calibrated"], told["label"]) == (True, "no other run checked yet, steps: decode ±0 %, mixed ±0 %")
    assert told["source"].startswith("live CPU, smollm2 on Made-up 9000, 320 steps of 2 runs; median error on fifths")
    assert told["error_pct"]["decode"]["held_out"] is True
    assert clean.runs == ("a", "b")


def test_varied_steps_repeat_with_the_seed_and_keep_their_median():
    noisy = Calibrated(fit([made_run(name, seed, noise=0.08) for seed, name in enumerate("abc")]))
    shape = SEEN[1]
    drawn = [Varied(noisy, 7).seconds(shape) for _ in range(2)]
    assert drawn[0] == drawn[1]
    model = Varied(noisy, 7)
    many = [model.seconds(shape) for _ in range(400)]
    assert np.median(many) == pytest.approx(noisy.seconds(shape), rel=0.02)
    assert 0.05 < (max(many) - min(many)) / np.median(many) < 0.25
    assert from_spec(model.spec()).seconds(shape) == drawn[0]


def test_quantiles_between_and_beyond():
    ratios = tuple(range(len(QUANTILES)))
    assert quantile(ratios, 0.0) == 0
    assert quantile(ratios, 1.0) == len(QUANTILES) - 1
    assert quantile(ratios, 0.5) == pytest.approx(10)
    assert quantile(ratios, 0.525) == pytest.approx(10.5)


def test_kept_and_found_again(clean, tmp_path):
    older = replace(clean, made_at="2025-01-01T00:00:00+00:00", runs=("old",))
    path = save(clean, tmp_path)
    save(older, tmp_path)
    assert path.name == "smollm2-made-up-9000-bfloat16-2026-01-01t00-00-00-00-00.json"
    assert load(path) == clean
    machine = machine_key(META)
    assert match("smollm2", machine, folders=[tmp_path]) == clean
    assert match("smollm2", machine, {"dtype": "bfloat16", "max_num_seqs": 3}, [tmp_path]) == clean
    assert match("smollm2", machine, {"dtype": "auto", "quantization": None}, [tmp_path]) == clean
    assert match("smollm2", machine, {"dtype": "float32"}, [tmp_path]) is None
    assert match("smollm2", {**machine, "usable_cores": 64}, folders=[tmp_path]) is None
    assert match("other", machine, folders=[tmp_path, tmp_path / "none"]) is None
    assert from_spec(Calibrated(clean).spec()).seconds(SEEN[0]) == Calibrated(clean).seconds(SEEN[0])


def test_the_users_own_come_from_the_state_folder(clean, tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_STATE", str(tmp_path))
    assert save(clean).parent == tmp_path / "calibrations"
    assert match("smollm2", machine_key(META)) == clean


def test_a_damaged_file_is_named_and_is_no_match(tmp_path):
    (tmp_path / "a.json").write_text("[1]")
    (tmp_path / "b.json").write_text(json.dumps({"version": 99, "features": []}))
    with pytest.raises(InputError, match=r"calibration: got .*version"):
        load(tmp_path / "a.json")
    with pytest.raises(InputError, match="got '99', expected version 1"):
        load(tmp_path / "b.json")
    with pytest.raises(InputError, match="calibrate again"):
        load(tmp_path / "none.json")
    assert match("smollm2", {}, folders=[tmp_path]) is None


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([], "calibration: got 'no runs'"),
        ([made_run("a", label="simulated")], "calibration: got 'simulated', expected live runs"),
        ([made_run("a", count=6)], "got '3 decode, 3 mixed, 0 prefill steps in 1 runs'"),
        ([made_run("a"), made_run("b", machine={"processor": "Other", "usable_cores": 2})], "machine of the runs: got"),
    ],
)
def test_runs_that_cannot_be_fitted_are_named(runs, message):
    with pytest.raises(InputError, match=message):
        fit(runs)


def test_a_calibration_without_decode_steps_is_refused(clean):
    with pytest.raises(InputError, match="got 'prices of mixed steps', expected those of decode steps"):
        Calibrated(replace(clean, fits={"mixed": clean.fits["mixed"]}))
    assert isinstance(clean, Calibration)


def test_mixed_steps_that_never_ran_take_decodes_at_the_price_of_decode_steps(clean):
    only = replace(clean, fits={"decode": clean.fits["decode"], "prefill": clean.fits["mixed"]})
    model, shape = Calibrated(only), made([(100, 0)], 4, 500)
    prices = PRICES["mixed"]
    wanted = prices[0] + 100 * prices[1] + 5050 * prices[2] + prices[5] + 4 * 0.0015 + 2000 * 2e-6
    assert model.seconds(shape) == pytest.approx(wanted)


def test_those_that_come_with_the_workbench_can_be_read_and_were_checked_on_other_runs():
    files = list(shipped_folder().glob("*.json"))
    assert files
    for one in map(load, files):
        assert Calibrated(one).seconds(made([(128, 0)], 2, 100)) > 0
        assert len(one.checks) >= 12
        assert not set(one.checks) & set(one.runs)
        assert one.error_label.startswith("gap P50 ±")
