"""Attaching to the session's own engine, as to somebody else's server: its pages are vLLM's, and so are its counts."""

import pytest

from workbench import Workbench
from workbench.workload.scenario import Scenario

pytestmark = pytest.mark.live


def test_an_attached_run_on_the_real_server_agrees_with_its_metrics(bench, tmp_path, monkeypatch):
    server = bench.engine._held.server
    monkeypatch.setenv("LIVE_KEY", server._key)
    stream = {"class": "chat", "arrivals": {"kind": "at_once", "count": 2}, "prompt_tokens": 40, "output_tokens": 8}
    url = f"http://127.0.0.1:{server._port}"
    with Workbench(engine="attached", url=url, api_key_env="LIVE_KEY", runs=tmp_path) as attached:
        attached.start()
        run = attached.run(Scenario.model_validate({"name": "s", "streams": [stream]}))
        assert run.wait(120)
    said, trace = run.meta["engine"]["attached"], run.trace
    assert (said["server"], said["max_model_len"], said["metrics"]) == ("vLLM 0.32.0", bench.config.max_model_len, True)
    assert said["prompts"].startswith("token ids")  # the model's folder is on this machine
    assert trace.requests["status"].tolist() == ["ok", "ok"]
    assert trace.requests["prompt_tokens"].tolist() == [40, 40]
    assert trace.tokens["n"].sum() == 16
    last = trace.server.iloc[-1]
    assert (last["prompt_tokens"], last["output_tokens"], last["requests"]) == (80, 16, 2)
    assert said["histograms"]["ttft_s"]["count"] == 2
    assert trace.tables["steps"].num_rows == 0
