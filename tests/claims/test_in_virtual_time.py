"""The scenarios of the policy lab and the claims about them, on vLLM's own scheduler without a model.

Steps take what they take on a CPU core (or a slower, or a faster one), so that this tells whether a scenario shows on
other machines too what its notebook is about.
"""

from types import SimpleNamespace

import pytest

from workbench import metrics
from workbench.claims import preemption_cost, qos_classes, step_order
from workbench.engine.probe import wire
from workbench.engine.probe.scheduler import ProbeScheduler
from workbench.engine_stamps import join_engine_stamps
from workbench.simulate.bare import make_request, make_scheduler
from workbench.simulate.loop import VirtualLoop
from workbench.trace import TABLES, Trace, table_of
from workbench.workload.scenario import load_scenario
from workbench.workload.stream import plan


def seconds(parts, speed):
    """A step of SmolLM2 on one CPU core: 28 ms, and 2.5 ms a token of prefill."""
    prefill = sum(part.tokens for part in parts if part.prefill)
    return (0.028 + 0.0025 * prefill + 0.0004 * len(parts)) / speed


@pytest.fixture
def virtual(tmp_path):
    """Plays a scenario under one of its settings."""

    def run(name, setting, speed=1.0):
        scenario = load_scenario(name)
        config, block = scenario.engine_config, scenario.engine.get("block_size") or 128
        scheduler = make_scheduler(
            ProbeScheduler,
            tmp_path / setting,
            budget=config.max_num_batched_tokens,
            max_model_len=config.max_model_len,
            seqs=config.max_num_seqs,
            blocks=int(config.extra_args[-1]) if config.extra_args else 4000,  # thrash says how many
            block_size=block,
        )
        rows, requests = [], []
        for place, stream in enumerate(scenario.streams):
            for n, one in enumerate(plan(stream, place, scenario.seed, config.max_model_len)[0]):
                name, at = f"{stream.class_name}-{n}", one.arrival_s
                requests.append(make_request(name, one.prompt_tokens, one.output_tokens, at, stream.priority))
                row = {"request": name, "class": stream.class_name, "priority": stream.priority, "status": "ok"}
                rows.append(row | {"prompt_tokens": one.prompt_tokens, "planned_s": at, "sent_s": at})
        knobs = next(one for one in scenario.settings if one.name == setting).knobs(config.envelope).model_dump()
        change = wire.KnobChange(revision=1, **knobs)
        loop = VirtualLoop(scheduler, lambda parts: seconds(parts, speed), requests, changes=[(0.0, change)])
        played = loop.run()
        assert played.faults == []
        tables = {"requests": rows, "knobs": [{"revision": 1, **knobs}], **rows_of(played)}
        tables = {name: table_of(name, tables.get(name, [])) for name in TABLES}
        tables["tokens"] = join_engine_stamps(tables["tokens"], tables["batch"], tables["steps"])
        return SimpleNamespace(trace=Trace(tables, {"label": "simulated"}), slo=scenario.slo)

    return run


def rows_of(played):
    """Rows of steps, batch and tokens."""
    steps, batch = [], []
    for one in played.steps:
        prefill = sum(part.tokens for part in one.parts if part.prefill)
        decode = sum(part.tokens for part in one.parts if not part.prefill)
        row = {"step": one.step, "scheduled_s": one.scheduled_s, "end_s": one.end_s, "revision": one.revision}
        row |= {"prefill_tokens": prefill, "decode_tokens": decode, "kv_use": one.kv_use, "preempted": one.preempted}
        steps.append(row)
        batch += [
            {"step": one.step, "request": part.request, "tokens": part.tokens, "context": part.context}
            | {"prefill": part.prefill, "emitted": part.emitted}
            for part in one.parts
        ]
    tokens = [
        {"request": name, "index": n, "n": 1, "client_s": at}
        for name, times in played.tokens_s.items()
        for n, at in enumerate(times)
    ]
    return {"steps": steps, "batch": batch, "tokens": tokens}


@pytest.mark.parametrize("speed", [0.3, 1.0, 3.0])
def test_thrash_preempts_vips_excepted(virtual, speed):
    stock, qos = (virtual("thrash", setting, speed) for setting in ("chunked", "qos"))
    assert preemption_cost(stock).outcome == "holds in part"
    assert len(metrics.preemptions(stock.trace)) >= 5
    verdict = qos_classes(qos, against=stock)
    assert verdict.outcome == "holds"
    assert "(VIP 0, " in verdict.sentence
    assert step_order(stock, qos).outcome == "holds"


@pytest.mark.parametrize("speed", [0.3, 1.0, 3.0])
def test_policies_shows_the_classes(virtual, speed):
    qos, stock = (virtual("policies", setting, speed) for setting in ("qos", "priority"))
    assert qos_classes(qos, against=stock).outcome == "holds"


@pytest.mark.parametrize("setting", ["monolithic", "decode_first", "chunked", "priority", "qos", "target_gap"])
def test_decodes_come_first_under_every_policy(virtual, setting):
    run = virtual("policies", setting)
    steps = run.trace.steps
    assert int(steps["prefill_tokens"].sum()) >= 3 * 640 + 3 * 48
    if setting != "decode_first":  # it never computes prefill beside a decode
        assert step_order(run).outcome == "holds"


def test_a_vip_overtakes_a_running_prefill(virtual):
    """TTFT under qos is at most a third of that under stock priority."""
    found = {}
    for setting in ("qos", "priority"):
        run = virtual("vip_overtakes", setting)
        found[setting] = metrics.by_class(run.trace, run.slo).loc["vip", "ttft_p50_s"]
    assert found["qos"] <= found["priority"] / 3
