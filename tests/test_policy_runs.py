"""Comparisons of policies on an engine that is none (no vLLM in here): order, refusals, errors, knobs put back."""

import threading

import pytest

from workbench import Workbench
from workbench.config import POLICIES, SLO, EngineConfig
from workbench.errors import EngineDiedError, EngineError, EnvelopeError, InputError
from workbench.policy_runs import PolicyRuns, choose
from workbench.workload.request import Request, Workload
from workbench.workload.scenario import Scenario, Setting, load_scenario

STREAM = {"class": "chat", "arrivals": {"kind": "at_once", "count": 1}, "prompt_tokens": 8, "output_tokens": 2}
PLAIN = Scenario.model_validate({"name": "plain", "streams": [STREAM]})
SET = Scenario.model_validate(
    {
        "name": "set",
        "streams": [STREAM],
        "settings": [
            {"name": "stock", "budget": 128},
            {"name": "aged", "policy": "qos", "aging_s": 5},
            {"name": "aged twice", "policy": "qos", "aging_s": 10},
        ],
    }
)
ENVELOPE = EngineConfig().envelope


def names(settings):
    return [(setting.name, setting.policy) for setting in settings]


def test_all_policies_where_nobody_says_which():
    assert names(choose(PLAIN, None, ENVELOPE)) == [(name, name) for name in POLICIES]


def test_the_scenarios_own_settings_where_they_name_policies():
    assert choose(SET, None, ENVELOPE) == list(SET.settings)
    prefix = load_scenario("shared_prefix")
    assert prefix.settings
    assert len(choose(prefix, None, ENVELOPE)) == len(POLICIES), "its settings are about something else"


def test_a_policy_is_played_as_the_scenario_has_it_else_with_the_knobs_given():
    chosen = choose(SET, ["priority", "qos", "chunked"], ENVELOPE, {"budget": 64, "policy": "monolithic"})
    assert names(chosen) == [("priority", "priority"), ("aged", "qos"), ("stock", None)]
    assert [(setting.budget, setting.aging_s) for setting in chosen] == [(64, None), (None, 5), (128, None)]


@pytest.mark.parametrize(
    ("policies", "error", "says"),
    [
        (["quos"], EnvelopeError, "policy: got 'quos'"),
        (["qos", "qos"], InputError, "policies: got 'qos, qos', expected names that differ"),
        ([], InputError, "policies: got 'none'"),
    ],
)
def test_what_cannot_be_compared_is_refused(policies, error, says):
    with pytest.raises(error, match=says):
        choose(PLAIN, policies, ENVELOPE)


def test_a_policy_that_was_named_must_fit_the_engine():
    small = EngineConfig(max_num_batched_tokens=1024).envelope
    with pytest.raises(EnvelopeError, match="monolithic with budget 1024"):
        choose(PLAIN, ["monolithic"], small)
    assert len(choose(PLAIN, None, small)) == 6, "among all, it is left to the play to note it"


@pytest.fixture
def bench(tmp_path, fake_engine, monkeypatch):
    """A workbench on a fake engine whose plays end at once."""
    bench = Workbench(runs=tmp_path, max_num_batched_tokens=1024)
    bench.engine = fake_engine(config=bench.config)
    bench.engine.knobs = bench.engine.envelope.defaults.replace(budget=512)
    played = bench.words = []
    workload = Workload((Request("chat-0", "chat", 1, 0.0, (1, 2), 2),), seed=3)

    def build(_scenario, seed, salt):
        played.append((seed, salt))
        return workload

    monkeypatch.setattr(bench, "_workload", build)
    monkeypatch.setattr(bench._memory, "sources", lambda _pid: [])
    play = bench.engine.play

    def play_and_end(*args):
        playing = play(*args)
        playing.over.set()
        return playing

    monkeypatch.setattr(bench.engine, "play", play_and_end)
    return bench


def sent(bench):
    return [knobs.policy for knobs in bench.engine.sent]


def test_each_policy_gets_the_same_seeded_words_and_the_knobs_are_put_back(bench):
    before, followed = bench.engine.knobs, []
    runs = bench.compare_policies(PLAIN, ["chunked", "qos"], seed=9, follow=lambda s, r: followed.append((s.name, r)))
    assert sent(bench) == ["chunked", "qos", "chunked"]
    assert bench.words == [(9, 0), (9, 0)]
    assert bench.engine.knobs == before
    assert [knobs.budget for knobs in bench.engine.sent] == [512, 512, 512], "the knobs in force go with a bare policy"
    assert [setting.name for setting in runs.settings] == ["chunked", "qos"]
    assert [run for _, run in followed] == list(runs)
    assert [run.meta["setting"] for run in runs] == ["chunked", "qos"]
    assert (len(runs), runs[-1], runs[:1], runs.label) == (2, followed[1][1], [followed[0][1]], "live CPU")
    assert list(runs.traces) == ["chunked", "qos"]
    assert bench.compared is runs
    assert repr(runs) == "<policies of plain, live CPU: chunked, qos>"


def test_a_policy_that_does_not_fit_is_noted_and_the_others_are_played(bench):
    runs = bench.compare_policies(PLAIN)
    assert [setting.name for setting in runs.settings] == [name for name in POLICIES if name != "monolithic"]
    assert runs.refused["monolithic"].startswith("policy and budget: got 'monolithic with budget 512'")


def test_a_setting_that_the_engine_refuses_later_is_noted_too(bench, monkeypatch):
    take = bench.engine.set_knobs

    def below_the_floor(knobs):
        if knobs.policy == "target_gap":
            raise EnvelopeError("target_gap_ms", 1, "at least 30", "choose more")
        return take(knobs)

    monkeypatch.setattr(bench.engine, "set_knobs", below_the_floor)
    runs = bench.compare_policies(PLAIN, ["target_gap", "qos"])
    assert names(runs.settings) == [("qos", "qos")]
    assert list(runs.refused) == ["target_gap"]


def test_an_engine_that_dies_keeps_the_runs_before_and_its_error_is_the_one_that_is_raised(bench, monkeypatch):
    play = bench.engine.play

    def die_at_the_second(*args):
        playing = play(*args)
        if len(bench.words) == 2:
            playing.error = EngineDiedError("the engine died in mid-run: out of memory")
            monkeypatch.setattr(bench.engine, "set_knobs", lambda _knobs: refuse())
        return playing

    def refuse():
        raise EngineError("knobs: got a change while the engine is failed")

    monkeypatch.setattr(bench.engine, "play", die_at_the_second)
    with pytest.raises(EngineDiedError, match="out of memory"):
        bench.compare_policies(PLAIN, ["chunked", "qos", "priority"])
    assert names(bench.compared.settings) == [("chunked", "chunked")]


def test_an_interruption_ends_the_run_keeps_those_before_and_puts_the_knobs_back(bench, monkeypatch):
    before = bench.engine.knobs

    def interrupt(setting, _run):
        if setting.name == "qos":
            raise KeyboardInterrupt

    monkeypatch.setattr(bench.engine, "play", type(bench.engine).play.__get__(bench.engine))  # plays go on
    ending = threading.Timer(0.2, lambda: bench.engine.playing.over.set())  # of the first
    ending.start()
    with pytest.raises(KeyboardInterrupt):
        bench.compare_policies(PLAIN, ["chunked", "qos", "priority"], follow=interrupt)
    assert names(bench.compared.settings) == [("chunked", "chunked")]
    assert not bench.playing
    assert bench.current_run.meta["status"] == "cancelled"
    assert sent(bench) == ["chunked", "qos", "chunked"]
    assert bench.engine.knobs == before


def test_a_load_that_somebody_stops_ends_the_comparison(bench):
    def stop(setting, run):
        if setting.name == "qos":
            run.cancel()

    runs = bench.compare_policies(PLAIN, ["chunked", "qos", "priority"], follow=stop)
    assert names(runs.settings) == [("chunked", "chunked")]
    assert sent(bench) == ["chunked", "qos", "chunked"]


def test_with_a_prefix_cache_each_run_begins_with_an_empty_one(bench, monkeypatch):
    bench.engine.config = bench.engine.config.replace(enable_prefix_caching=True)
    resets = []
    bench.engine.reset_prefix_cache = lambda: resets.append(len(bench.words))
    bench.compare_policies(PLAIN, ["chunked", "qos"])
    assert resets == [0, 1]
    assert bench.words == [(None, 0), (None, 0)]


def test_settings_take_the_place_of_policies(bench):
    mine = [Setting(name="mine", policy="qos", aging_s=1)]
    assert bench.compare_policies(PLAIN, settings=mine).settings == mine
    with pytest.raises(InputError, match="policies and settings: got 'both'"):
        bench.compare_policies(PLAIN, ["qos"], settings=mine)


def test_without_an_engine_nothing_is_compared(bench):
    bench.engine.state = "stopped"
    with pytest.raises(EngineError, match="engine is stopped, expected ready"):
        bench.compare_policies(PLAIN)
    assert bench.compared is None


def test_a_comparison_of_nothing_says_so():
    runs = PolicyRuns("plain", SLO())
    assert (len(runs), runs.label, runs.traces) == (0, None, {})
    assert "nothing yet" in repr(runs)
