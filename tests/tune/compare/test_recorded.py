"""What recorded runs can say: from blocks within, from several runs, and never that a setting is better."""

import contextlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from workbench.config import SLO
from workbench.errors import InputError, RunNotFoundError
from workbench.run import RecordedRun
from workbench.store import RunWriter
from workbench.tune.compare import compare_recorded
from workbench.tune.compare.exact import MODELLED

ROOT = Path(__file__).parents[3]


@pytest.fixture
def record(tmp_path, made_trace):
    """Records a run of noisy gaps of about a length, in seconds."""

    def make(name, level, seed=0, parent=tmp_path, n=300, **meta):
        rng = np.random.default_rng([seed, 9])
        trace = made_trace(level * np.exp(rng.normal(0, 0.1, n)))
        about = {"label": "live CPU", "scenario": "burst", "seed": 1, "slo": SLO().model_dump(), **meta}
        with RunWriter(parent / name, about) as writer:
            for table in ("requests", "tokens", "steps"):
                writer.rows(table, trace.tables[table].to_pylist())
        return parent / name

    return make


def test_one_run_of_each_is_compared_from_blocks_within(record):
    found = compare_recorded(record("one", 0.05), record("other", 0.04, seed=1))
    one = found.estimates["gap_p99"]
    assert one.ratio == pytest.approx(1.25, rel=0.05)
    assert one.low < 1.25 < one.high
    assert found.verdict.words.startswith("B's recording better by ")
    assert "from blocks within the runs" in found.verdict.words
    assert "not played in turn" in found.concerns[0]
    assert "gap_max" not in found.estimates, "one maximum of each has no spread"
    assert found.estimates["throughput"].ratio == pytest.approx(0.8, rel=0.05)
    told = json.loads(json.dumps(found.as_dict()))
    assert told["recorded"]
    assert told["a"]["runs"] == ["one"]


def test_each_ratio_is_that_of_the_two_figures_beside_it():
    """Tokens that were computed twice (225 of policies-qos) and what a cache had are in no throughput."""
    table = compare_recorded(ROOT / "data/runs/policies-chunked", ROOT / "data/runs/policies-qos").table
    assert {"throughput", "gap_p50", "gap_p99"} <= set(table.index)
    assert (table["a"] / table["b"]).tolist() == pytest.approx(table["ratio"].tolist(), rel=1e-6)
    # 2,126 prompt and 336 output tokens, nine of them of a prefill, in 18.3 s, from the first arrival to the last token
    assert table.loc["throughput", "a"] == pytest.approx((2126 + 336 - 9) / 18.3, rel=0.02)


def test_runs_that_differ_by_noise_alone_show_no_difference(record):
    found = compare_recorded(record("one", 0.05), record("other", 0.05, seed=2))
    assert found.verdict.kind == "no difference shown"


def test_several_runs_of_each_tell_their_own_spread(record, tmp_path):
    for letter, level in (("a", 0.05), ("b", 0.045)):
        folder = tmp_path / letter
        folder.mkdir()
        for i in range(3):
            record(f"run{i}", level * (1 + 0.01 * i), seed=i, parent=folder)
    found = compare_recorded(tmp_path / "a", tmp_path / "b")
    assert found.how == "from 3 and 3 runs"
    assert found.title == "3 runs against 3 runs, recorded"
    assert found.estimates["gap_max"].pairs == 3
    assert found.estimates["gap_p50"].ratio == pytest.approx(1 / 0.9, rel=0.01)
    assert found.table.loc["gap_p50", "better"] == "B"


def test_what_else_differs_is_said(record):
    other = record("other", 0.05, seed=2, scenario="steady", engine={"config": {"max_num_seqs": 8}})
    said = " ".join(compare_recorded(record("one", 0.05), other).concerns)
    assert "the scenarios differ: burst and steady" in said
    assert "started with other fields" in said


def test_folders_without_runs_are_refused(record, tmp_path):
    one = record("one", 0.05)
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunNotFoundError, match=r"B: got .*empty.*, expected a folder with a complete run"):
        compare_recorded(one, tmp_path / "empty")
    with pytest.raises(RunNotFoundError, match=r"A: got .*nowhere.*, expected a run folder"):
        compare_recorded(tmp_path / "nowhere", one)
    with pytest.raises(InputError, match="primary: got 'speed'"):
        compare_recorded(one, one, primary="speed")


def test_too_few_gaps_say_nothing(record):
    found = compare_recorded(record("one", 0.05, n=8), record("other", 0.04, n=8))
    assert "gap_p99" not in found.estimates
    assert found.verdict.words == "nothing can be said: the runs do not have gap P99"


def test_a_run_beside_itself_and_one_that_was_stopped_are_said(record, tmp_path):
    one = record("one", 0.05)
    assert "A and B share one: a run is no different from itself" in compare_recorded(one, one).concerns
    cut, about = tmp_path / "cut", {"label": "live CPU", "scenario": "burst", "seed": 1}
    with contextlib.suppress(KeyboardInterrupt), RunWriter(cut, about) as writer:
        for table in ("requests", "tokens", "steps"):
            writer.rows(table, RecordedRun(one).trace.tables[table].to_pylist())
        raise KeyboardInterrupt
    assert "cut did not come to its end (cancelled)" in compare_recorded(one, cut).concerns


@pytest.fixture
def pair(tmp_path, made_trace):
    """Records two runs of the same load: 3 of A's 200 gaps are 1 s and the others 20 ms, all of B's are 40 ms."""

    def make(label, seeds=(1, 1)):
        folders = []
        for name, seed, gaps in (
            ("a", seeds[0], [0.02] * 100 + [1.0] * 3 + [0.02] * 97),
            ("b", seeds[1], [0.04] * 200),
        ):
            trace, about = made_trace(gaps), {"label": label, "scenario": "burst", "seed": seed}
            with RunWriter(tmp_path / name, about) as writer:
                for table in ("requests", "tokens", "steps"):
                    writer.rows(table, trace.tables[table].to_pylist())
            folders.append(tmp_path / name)
        return folders

    return make


def test_a_percentile_at_the_edge_of_a_few_huge_gaps_is_said_to_tell_nothing(pair):
    """1.5 % of A's gaps are huge: its P99 is one of them, and a resample with fewer has one of 20 ms: half of B's."""
    found = compare_recorded(*pair("live CPU"))
    assert found.verdict.kind == "needs more rounds"
    assert found.verdict.words == (
        "these runs cannot tell: gap P99 of A -50.0 to +2400.0 % beside B's "
        "(95 % interval, from blocks within the runs)"
    )
    assert "gap_max" not in found.estimates


def test_two_simulated_runs_of_one_load_are_compared_exactly(pair):
    found = compare_recorded(*pair("simulated"))
    for name, ratio in (("gap_p50", 20 / 40), ("gap_p99", 1000 / 40), ("gap_max", 1000 / 40)):
        row = found.table.loc[name]
        assert (row["ratio"], row["low"], row["high"]) == pytest.approx([ratio] * 3, rel=1e-6), name
        assert row["level"] == 1.0
    # 2 streams of 8 + 201 tokens in 0.1 + 197 * 0.02 + 3 s and in 0.1 + 200 * 0.04 s, from the arrival on
    assert found.table.loc["throughput", "ratio"] == pytest.approx(8.1 / 7.04, rel=1e-6)
    assert found.verdict.words == (
        "B's recording better by a factor of 25 (gap P99 lower) (simulated: the same each time)"
    )
    assert replace(found, primary="gap_p50").verdict.words == (
        "A's recording better by a factor of 2 (gap P50 lower) (simulated: the same each time)"
    )
    assert replace(found, primary="throughput").verdict.words.startswith("A's recording better by 15.1 % (prompt and")
    assert found.concerns == (MODELLED,)


def test_an_exact_ratio_of_one_is_no_difference(pair):
    a, _ = pair("simulated")
    assert compare_recorded(a, a).verdict.words == (
        "no difference: gap P99 is the same in both (simulated: the same each time)"
    )


@pytest.mark.parametrize(("label", "seeds"), [("simulated", (1, 2)), ("live CPU", (1, 1)), ("simulated", (None, None))])
def test_nothing_is_exact_where_chance_or_another_load_has_a_part(pair, label, seeds):
    found = compare_recorded(*pair(label, seeds))
    assert found.estimates["gap_p50"].level == 0.95
    assert MODELLED not in found.concerns


def test_the_recorded_simulation_of_the_articles_load_is_told_as_its_figures_are():
    runs = [ROOT / f"data/runs/articles_c14-{name}" for name in ("monolithic", "chunked-with-classes")]
    longest = [float(RecordedRun(run).tokens.groupby("request")["engine_s"].diff().max()) for run in runs]
    found = compare_recorded(*runs, primary="gap_max")
    assert found.estimates["gap_max"].ratio == pytest.approx(longest[0] / longest[1], rel=1e-6)
    assert found.verdict.kind == "B better"
    assert f"by a factor of {longest[0] / longest[1]:.3g} (longest gap lower)" in found.verdict.words
