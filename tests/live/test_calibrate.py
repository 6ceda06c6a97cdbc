"""A small calibration of the real engine, and a run of the demo's scenario held against it."""

import pytest

from workbench.simulate.calibrating import calibrate
from workbench.simulate.host import Simulator
from workbench.simulate.validation import validate
from workbench.workload.setting import Setting

pytestmark = pytest.mark.live


def test_a_live_run_is_foretold(bench, short):
    before = bench.engine.knobs
    found = calibrate(bench, seconds=12)
    assert bench.engine.knobs == before
    assert found.label == bench.engine.label
    assert {"decode", "mixed"} <= set(found.fits)
    assert len(found.runs) >= 3
    assert 0 < found.delays["delivery_s"] < 0.5
    chat, long = short.streams
    less = (chat.replace(output_tokens=60), long.replace(prompt_tokens=1000))
    run = bench.run(short.model_copy(update={"streams": less}), setting=Setting.of({"budget": 300}))
    run.wait()
    simulator = Simulator()
    simulator.start()
    try:
        one = validate(run.trace, found, simulator, draws=3)
    finally:
        simulator.close()
    assert {"gap_p50", "gap_p99", "long_ttft", "chat_ttft", "throughput"} <= set(one.error_pct)
    # A load of seconds on a machine that does other things as well: this is about the chain, the benchmark is about %.
    assert abs(one.error_pct["throughput"]) < 60
    assert one.requests["ttft_predicted_s"].notna().all()
