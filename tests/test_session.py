"""A workbench on an engine that is none (no vLLM in here)."""

import gc

import pytest

from workbench import Workbench
from workbench.config import SLO, EngineConfig
from workbench.errors import (
    CeilingError,
    ConfigError,
    EngineError,
    EngineStartError,
    EnvelopeError,
    InputError,
    ScenarioError,
    StoreError,
)
from workbench.workload.request import Workload
from workbench.workload.setting import Setting


class DoneWrong:
    """A run whose rows could not be written."""

    done = False

    def cancel(self):
        self.done = True

    def wait(self, _timeout_s):
        raise StoreError("no space left")


@pytest.fixture
def bench(tmp_path, monkeypatch):
    bench = Workbench(runs=tmp_path)
    stopped = []
    monkeypatch.setattr(bench.engine, "stop", lambda: stopped.append(True))
    bench.stopped = stopped
    return bench


def test_the_engine_is_stopped_whatever_became_of_the_run(bench):
    with bench:
        bench._run = DoneWrong()
    assert bench.stopped == [True]


@pytest.mark.parametrize(("cache", "salts"), [(True, [0, 1, 2]), (False, [0, 0, 0])])
def test_with_a_prefix_cache_each_run_has_other_words(tmp_path, fake_engine, monkeypatch, cache, salts):
    bench, seen = Workbench(runs=tmp_path, enable_prefix_caching=cache), []
    bench.engine = fake_engine(config=bench.config)

    def build(_scenario, _seed, salt):
        seen.append(salt)
        raise StoreError("that will do")

    monkeypatch.setattr(bench, "_workload", build)
    for _ in range(3):
        with pytest.raises(StoreError):
            bench.run("shared_prefix")
    assert seen == salts


@pytest.fixture
def ready(tmp_path, fake_engine, fake_drops, monkeypatch):
    """A workbench whose engine is a fake that is ready."""
    bench = Workbench(runs=tmp_path)
    bench.engine = fake_engine(config=bench.config)
    bench._drops = fake_drops
    monkeypatch.setattr(bench, "_tokenizer", lambda: tmp_path)
    monkeypatch.setattr(bench._memory, "sources", lambda _pid: [])
    return bench


def test_start_up_fields_change_while_no_engine_runs(ready):
    engine = ready.engine
    with pytest.raises(EngineError, match="stop the engine first"):
        ready.configure(max_num_seqs=8)
    assert ready.configure().max_num_seqs == 32, "nothing changed: nothing to refuse"
    ready.stop()
    ready.configure(max_num_seqs=8, max_model_len=2048)
    assert (ready.config.max_num_seqs, ready.config.max_model_len) == (8, 2048)
    assert ready.engine is not engine
    assert ready.engine.envelope.max_running == 8
    with pytest.raises(ConfigError, match="max_num_seqs"):
        ready.configure(max_num_seqs=-1)


def test_a_prompt_on_an_idle_engine_is_a_run_of_its_own(ready):
    name = ready.drop_long(500)
    assert ready.playing
    (request,) = ready.engine.workload.requests
    assert (request.request, request.prompt_tokens, request.class_name) == (name, 500, "long")
    ready.drop_long(600)
    assert [one.prompt_tokens for one in ready.engine.playing.added] == [600]
    assert ready.stop_load(10)
    assert not ready.playing
    assert ready.current_run.meta["scenario"] == "dropped"


def test_stopping_a_load_that_is_none_is_no_error(ready):
    assert ready.stop_load()


def test_the_load_stops_and_the_engine_goes_on(ready, monkeypatch):
    played = []
    monkeypatch.setattr(ready, "_workload", lambda scenario, *_: played.append(scenario) or Workload(()))
    run = ready.run("bursty_chat", rate=3.0, slo=SLO(gap_ms=50))
    assert ready.stop_load(10)
    assert run.meta["status"] == "cancelled"
    assert run.meta["slo"]["gap_ms"] == 50
    assert [scenario.rate for scenario in played] == [3.0]
    assert ready.engine.state == "ready"


@pytest.mark.parametrize("what", ["save_run", "compare"])
def test_without_a_run_there_is_nothing_to_hand_over(ready, what):
    with pytest.raises(EngineError, match="run a load first"):
        getattr(ready, what)()


def test_the_serve_command_makes_the_knobs_permanent(ready):
    ready.knobs(budget=256, chunk=128)
    command = ready.serve_command()
    assert "--max-num-batched-tokens 256" in command
    assert "--long-prefill-token-threshold 128" in command


def test_starting_an_engine_that_is_ready_changes_nothing(ready, monkeypatch):
    monkeypatch.setattr(ready.engine, "start", lambda _progress: pytest.fail("started again"))
    assert ready.start() is ready


SLIPS = {
    "scenario": (lambda bench: bench.run("bursty_cha"), ScenarioError, "did you mean bursty_chat"),
    "rate": (lambda bench: bench.run("bursty_chat", rate=-1.0), InputError, "rate: got '-1"),
    "setting": (
        lambda bench: bench.run("bursty_chat", setting=Setting(name="s", budget=9000)),
        CeilingError,
        r"budget: got '9000', expected at most 8192 .*start again with max_num_batched_tokens=9000",
    ),
    "prompt": (lambda bench: bench.drop_long(-3), InputError, r"tokens: got '-3', expected 1 to 4080"),
    "answer": (lambda bench: bench.drop_long(5, 4096), InputError, "output_tokens: got '4096', expected 1 to 4095"),
    "policy": (lambda bench: bench.compare_policies("policies", ["foo"]), EnvelopeError, "policy: got 'foo'"),
    "scenario of policies": (lambda bench: bench.compare_policies("polices"), ScenarioError, "did you mean policies"),
    "policies twice": (
        lambda bench: bench.compare_policies("policies", ["qos"], settings=()),
        InputError,
        "policies and settings: got 'both'",
    ),
    "knob": (lambda bench: bench.knobs(budget="x"), EnvelopeError, "budget: got 'x', expected a whole number"),
}


@pytest.mark.parametrize(("slip", "kind", "says"), SLIPS.values(), ids=SLIPS)
def test_a_slip_is_told_before_an_engine_has_to_be_started(tmp_path, slip, kind, says):
    with pytest.raises(kind, match=says):
        slip(Workbench(runs=tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_each_method_says_its_own_name_while_no_engine_runs(tmp_path):
    bench = Workbench(runs=tmp_path)
    said = "got a workload while the engine is new, expected ready; start it first"
    with pytest.raises(EngineError, match=f"^run: {said}"):
        bench.run("bursty_chat")
    with pytest.raises(EngineError, match=f"^compare_policies: {said}"):
        bench.compare_policies("policies")
    assert bench.compared is None


@pytest.mark.parametrize("what", [lambda bench: bench.run("bursty_chat"), lambda bench: bench.drop_long(500)])
def test_without_an_engine_nothing_is_played_and_no_folder_is_left(ready, tmp_path, what):
    ready.stop()
    with pytest.raises(EngineError, match="engine is stopped, expected ready"):
        what(ready)
    assert list(tmp_path.iterdir()) == []


def test_a_prompt_that_comes_just_after_the_end_is_a_run_of_its_own(ready, monkeypatch):
    ready.drop_long(500)
    first = ready.current_run

    def too_late(_request):
        ready.engine.playing.over.set()
        raise EngineError("add: got a request after the end")

    monkeypatch.setattr(first, "add", too_late)
    ready.drop_long(600)
    assert first.done
    assert ready.current_run is not first
    assert [request.prompt_tokens for request in ready.engine.workload.requests] == [600]


def test_a_stop_also_ends_a_start_that_has_not_come_to_the_engine_yet(tmp_path, monkeypatch):
    bench, started = Workbench(runs=tmp_path), []
    monkeypatch.setattr(bench.engine, "start", started.append)
    monkeypatch.setattr("workbench.session.prepare_root", lambda _root: bench.stop())
    with pytest.raises(EngineStartError, match="the start was stopped"):
        bench.start()
    assert started == []


def test_an_engine_that_died_is_cleared_away_before_it_is_replaced(ready):
    ready.engine.state = "failed"
    old = ready.engine
    ready.configure(max_num_seqs=8)
    assert old.state == "stopped"


def test_a_reset_of_the_prefix_cache_waits_for_no_run_and_gives_the_first_words_again(ready, fake_engine, monkeypatch):
    ready.engine = fake_engine(config=ready.config.replace(enable_prefix_caching=True))
    salts, resets = [], []
    monkeypatch.setattr(ready, "_workload", lambda _scenario, _seed, salt: salts.append(salt) or Workload(()))
    ready.engine.reset_prefix_cache = lambda: resets.append(len(salts))
    for _ in range(2):
        ready.run("shared_prefix")
        with pytest.raises(EngineError, match="prefix cache: got a reset in mid-run"):
            ready.reset_prefix_cache()
        assert ready.stop_load(10)
    ready.reset_prefix_cache()
    ready.run("shared_prefix")
    assert resets == [2]
    assert salts == [0, 1, 0]


def test_what_is_known_of_model_and_machine_stands_in_each_run(ready):
    ready._compute = {"architecture": None, "peak": {"flops_per_s": 1e9, "source": "made up"}}
    ready.drop_long(500)
    assert ready.stop_load(10)
    assert ready.current_run.meta["compute"] == ready._compute
    ready.stop()
    assert ready._compute is None


def test_compute_facts_are_found_once_the_engine_is_up(tmp_path, fake_engine, monkeypatch):
    bench = Workbench(runs=tmp_path)
    bench.engine = fake_engine(config=bench.config)
    bench.engine.state = "new"
    assert bench.start()._compute == {"peak": None, "state": "ready"}


def test_the_field_engine_tells_the_two_kinds_apart(tmp_path):
    bench = Workbench(engine="simulated", gpu="A100", count=4, runs=tmp_path)
    assert (bench.config.model, bench.config.gpu, bench.config.tensor_parallel_size) == ("llama-3.1-70b", "A100", 4)
    assert bench.engine.label == "simulated"
    assert bench.configure(gpu="H100").gpu == "H100"
    live = bench.configure(engine="live", model="smollm2", tensor_parallel_size=1)
    assert (type(live), live.max_model_len, bench.engine.label) == (EngineConfig, 16384, "live CPU")
    assert bench.configure(engine="simulated", gpu="L40S").max_model_len == 16384
    assert Workbench(runs=tmp_path).config.model == "smollm2"
    with pytest.raises(ConfigError, match="engine: got 'both', expected live, simulated or attached"):
        Workbench(engine="both")
    with pytest.raises(ConfigError, match="gpu: got 'gpu', expected a known field"):
        Workbench(gpu="H100")


def test_the_current_workbench_is_the_one_that_was_started_last(tmp_path, fake_engine):
    first, second = (Workbench(runs=tmp_path) for _ in range(2))
    for bench in (first, second):
        bench.engine = fake_engine(config=bench.config)
    assert Workbench.current() not in (first, second), "making one is not starting it"
    first.start()
    assert Workbench.current() is first
    with second.start():
        assert Workbench.current() is second
        with first:
            pass
        assert Workbench.current() is second, "another one was left"
    assert Workbench.current() is None
    first.start()
    del first, bench
    gc.collect()
    assert Workbench.current() is None, "it is not kept alive"


def test_what_is_measured_has_the_engine_for_itself(bench):
    with bench.held("study one"):
        for do in (lambda: bench.knobs(budget=64), lambda: bench.drop_long(100), bench.held("study two").__enter__):
            with pytest.raises(EngineError, match="study one goes on"):
                do()
    assert not bench.held_by
    with pytest.raises(EngineError, match="engine"):  # of its own: it does not run
        bench.drop_long(100)
