"""The calibration load: it fits any engine, and the prices of an engine that has some are found with it."""

import pytest
from live_runs import CONFIG, PRICES, ask, live

from workbench.config import EngineConfig
from workbench.errors import EngineError, InputError
from workbench.simulate.calibrating import calibrate, first_piece, pieces, play_load, prefill_rate
from workbench.simulate.made_up_files import write_tokenizer
from workbench.simulate.measured import measured_steps
from workbench.simulate.steptime import StepShape
from workbench.simulate.steptime.calibrated import Calibrated
from workbench.workload.build import build_workload

ENGINES = [
    (EngineConfig(), 150.0),
    (EngineConfig(max_model_len=1024, max_num_batched_tokens=512, max_num_seqs=8), 400.0),
    (EngineConfig(max_model_len=16_384, max_num_seqs=256), 40_000.0),
    (EngineConfig(max_model_len=64, max_num_batched_tokens=16, max_num_seqs=2), 30.0),
    (EngineConfig(max_model_len=16, max_num_batched_tokens=1, max_num_seqs=1), 30.0),
]


@pytest.mark.parametrize(("config", "rate"), ENGINES)
def test_every_engine_can_play_it(config, rate, tmp_path):
    tokenizer = write_tokenizer(tmp_path)
    load = [first_piece(config), *pieces(config, rate)]
    assert len(load) >= 4  # with the first; three runs or more make it possible to leave each out in turn
    assert len({one.setting.name for one in load}) == len(load)
    for one in load:
        one.setting.knobs(config.envelope)
        assert len(build_workload(one.scenario, tokenizer, config.max_model_len).requests) >= 1


def test_it_has_budgets_chunks_depths_and_streams_enough():
    load = pieces(EngineConfig(), 150.0)
    budgets = [one.setting.budget for one in load if any(s.class_name == "long" for s in one.scenario.streams)]
    assert len(set(budgets)) >= 6
    assert max(budgets) > 10 * min(budgets)
    assert sum(bool(one.setting.chunk) for one in load) == 1
    chats = [sum(s.arrivals.count for s in one.scenario.streams if s.class_name == "chat") for one in load]
    assert len(set(chats)) >= 5
    tokens = sum(s.arrivals.count * s.prompt_tokens.longest for one in load for s in one.scenario.streams)
    assert 60 < tokens / 150 < 120  # seconds of prefill


def test_a_fast_engine_gets_more_and_longer_prompts():
    slow, fast = (pieces(EngineConfig(max_model_len=16_384), rate)[-2].scenario for rate in (150.0, 20_000.0))
    assert fast.streams[1].prompt_tokens.longest > slow.streams[1].prompt_tokens.longest
    assert fast.streams[1].arrivals.count > slow.streams[1].arrivals.count


class Bench:
    """A workbench whose engine takes what known prices say."""

    label, state = "live CPU", "ready"

    def __init__(self, folder, tmp_path, ends_as="complete"):
        self.engine, self.config = self, EngineConfig(**CONFIG)
        self.knobs = self.config.envelope.defaults
        self.folder, self.tokenizer, self.ends_as = folder, write_tokenizer(tmp_path), ends_as
        self.played = []

    def set_knobs(self, knobs):
        self.knobs = knobs

    def run(self, scenario, *, setting):
        from workbench.engine.probe.wire import KnobChange

        knobs = setting.knobs(self.config.envelope)
        self.set_knobs(knobs)
        requests = build_workload(scenario, self.tokenizer, 1024).requests
        asks = [ask(r.request, len(r.prompt), r.output_tokens, at=r.arrival_s, cls=r.class_name) for r in requests]
        name = f"run-{len(self.played)}"
        change = KnobChange(revision=0, **knobs.model_dump())
        trace = live(self.folder, asks, name, knobs=change, meta={"status": self.ends_as})
        self.played.append(setting)
        return type("Done", (), {"wait": lambda *_: True, "meta": trace.meta, "trace": trace})()

    def stop_load(self, timeout_s):
        pass


def test_the_prices_of_an_engine_are_found(model_folder, tmp_path):
    bench = Bench(model_folder, tmp_path)
    before, heard = bench.knobs.replace(budget=77), []
    bench.set_knobs(before)
    found = calibrate(bench, follow=lambda setting, _: heard.append(setting.name), seconds=40)
    assert bench.knobs == before
    assert heard == [one.name for one in bench.played]
    assert found.runs == tuple(f"run-{i}" for i in range(1, len(heard)))  # all but the first, which warms up
    assert found.held_out == "runs left out in turn"
    model = Calibrated(found)
    for shape in (
        StepShape.made(decodes=3, context=200),
        StepShape.made([(90, 333)], 2, 150),
        StepShape.made([(256, 0)]),
        StepShape.made([(30, 600), (60, 0)], 6, 80),
    ):
        wanted = PRICES["base_s"] + PRICES["prefill_token_s"] * shape.prefill_tokens
        wanted += PRICES["prefill_pair_s"] * shape.prefill_pairs + PRICES["decode_s"] * shape.decodes
        wanted += PRICES["decode_context_s"] * shape.decode_context
        assert model.seconds(shape) == pytest.approx(wanted, rel=2e-3)
        assert not model.outside(shape)


def test_the_rate_of_the_first_run_is_that_of_its_prefill(model_folder, tmp_path):
    first, *_ = play_load(Bench(model_folder, tmp_path), seconds=5)
    design, seconds, kinds = measured_steps(first)
    assert design[kinds != "decode", 1].tolist() == [96.0, 96.0]
    assert prefill_rate(first) == pytest.approx(192 / seconds[kinds != "decode"].sum())


def test_a_load_that_was_stopped_is_no_calibration(model_folder, tmp_path):
    bench = Bench(model_folder, tmp_path, ends_as="cancelled")
    before = bench.knobs
    with pytest.raises(EngineError, match="calibrate: run run-0 is cancelled, expected complete"):
        calibrate(bench)
    assert bench.knobs == before
    assert len(bench.played) == 1


def test_a_simulated_engine_has_nothing_to_measure(model_folder, tmp_path):
    bench = Bench(model_folder, tmp_path)
    bench.label = "simulated"
    with pytest.raises(InputError, match="calibrate: got 'a simulated engine', expected a live one"):
        calibrate(bench)
    assert bench.played == []
