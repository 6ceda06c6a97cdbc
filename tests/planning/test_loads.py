"""A scenario's requests at any rate."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from workbench.config import parse
from workbench.errors import InputError, ScenarioError
from workbench.planning.loads import Load
from workbench.planning.mixes import mix_names, traffic, traffic_names
from workbench.workload.scenario import Scenario

AZURE = Path(__file__).resolve().parents[3] / "shared" / "data" / "traces" / "azure_llm_2023_code.csv"


def scenario(*streams, **fields):
    made = [
        {"class": f"c{i}", "prompt_tokens": 40, "output_tokens": 4, "arrivals": {"kind": "constant", "count": 3} | one}
        for i, one in enumerate(streams)
    ]
    return parse(Scenario, {"name": "made", "streams": made} | fields)


def test_streams_keep_their_shares_and_their_own_clock():
    load = Load.of(scenario({"rate": 9.0}, {"rate": 3.0}), 400, 1024)
    asks = load.asks(2.0, 400)
    assert len(asks) == 400
    assert sum(one.class_name == "c0" for one in asks) == 300
    assert asks[-1].arrival_time == pytest.approx(200, rel=0.02), "400 requests at two a second"
    first = [one.arrival_time for one in asks if one.class_name == "c1"]
    assert np.diff(first) == pytest.approx(2.0), "a quarter of two a second"


def test_rates_differ_in_nothing_but_the_clock():
    load = Load.of(traffic("azure-like"), 300, 16_384)
    slow, fast = load.asks(1.0, 300), load.asks(8.0, 200)
    for one, other in zip(slow, fast, strict=False):
        assert one.arrival_time == pytest.approx(8 * other.arrival_time)
        assert (one.prompt_tokens, one.output_tokens) == (other.prompt_tokens, other.output_tokens)
    longer = Load.of(traffic("azure-like"), 600, 16_384)
    assert longer.requests[:300] == load.requests


@pytest.mark.parametrize(
    ("mix", "prompt", "output"), [("azure-like", 1020, 130), ("azure-like-code", 1500, 13)], ids=["chat", "code"]
)
def test_a_mix_has_the_medians_that_it_is_named_after(mix, prompt, output):
    load = Load.of(traffic(mix), 4000, 16_384)
    assert np.median([one.prompt_tokens for one in load.requests]) == pytest.approx(prompt, rel=0.05)
    assert np.median([one.output_tokens for one in load.requests]) == pytest.approx(output, rel=0.08)
    assert load.asks(1.0, 1)[0].prompt == b"", "nobody looks at the tokens"
    assert (load.concerns, load.whole) == ("", False)


@pytest.mark.skipif(not AZURE.is_file(), reason="the recorded trace is not on this machine")
def test_the_code_mix_is_like_the_recorded_trace():
    recorded = parse(Scenario, {"name": "t", "streams": [
        {"class": "code", "arrivals": {"kind": "trace", "path": str(AZURE)}}]})  # fmt: skip
    true, made = (Load.of(one, 20_000, 16_384) for one in (recorded, traffic("azure-like-code")))
    assert len(true.requests) == 8819
    assert made.prompt_tokens == pytest.approx(true.prompt_tokens, rel=0.12), "2,048 on average"
    assert made.output_tokens == pytest.approx(true.output_tokens, rel=0.12), "27.9"
    for share in (50, 99):
        for name, off in (("prompt_tokens", 0.05), ("output_tokens", 0.1)):
            lengths = [np.percentile([getattr(r, name) for r in load.requests], share) for load in (made, true)]
            assert lengths[0] == pytest.approx(lengths[1], rel=off)


def test_prompts_share_tokens_where_the_scenario_says_so():
    load = Load.of(traffic("shared_prefix"), 8, 2048)
    words = [np.frombuffer(one.prompt, "<i4") for one in load.asks(1.0, 8, tokens=True)]
    assert [len(one) for one in words] == [one.prompt_tokens for one in load.requests]
    assert (words[0][:512] == words[2][:512]).all(), "two groups in turn"
    assert (words[0][:512] != words[1][:512]).any()
    assert (words[0][512:540] != words[2][512:540]).any()


def test_a_recorded_trace_keeps_its_bursts_at_another_speed(tmp_path):
    rows = ["TIMESTAMP,ContextTokens,GeneratedTokens"]
    rows += [f"2023-11-16 18:00:{second:02d}.0000000,{100 + second},7" for second in (5, 6, 6, 15)]
    (tmp_path / "azure.csv").write_text("\n".join(rows))
    recorded = parse(Scenario, {"name": "t", "streams": [
        {"class": "code", "arrivals": {"kind": "trace", "path": str(tmp_path / "azure.csv")}}]})  # fmt: skip
    load = Load.of(recorded, 100, 1024)
    asks = load.asks(0.6, 100)
    assert [one.arrival_time for one in asks] == pytest.approx([0, 0.5, 0.5, 5.0]), "three gaps in 5 s are 0.6/s"
    assert [one.prompt_tokens for one in asks] == [105, 106, 106, 115]
    assert load.whole, "pieces of it have other rates"
    assert load.concerns == "a recorded trace at another speed: bursts stay, closer together at a higher rate"
    assert Load.of(recorded, 3, 1024).concerns.startswith("the first 3 of 4 requests at another speed")


def test_what_nobody_knows_of_prefix_hits_is_said():
    shares, alone = traffic("shared_prefix"), traffic("azure-like")
    assert "cache is off (enable_prefix_caching=true): nothing is saved" in Load.of(shares, 8, 2048).concerns
    assert "yours are not known yet" in Load.of(shares, 8, 2048, prefix_cache=True).concerns
    assert "no hits are counted" in Load.of(alone, 8, 16_384, prefix_cache=True).concerns
    assert not Load.of(alone, 8, 16_384).concerns
    assert "prefix" not in Load.of(shares, 2, 2048).concerns, "one of each group shares with nobody"


def test_blocks_of_a_mooncake_trace_are_shared(tmp_path):
    rows = [{"timestamp": i * 1000, "input_length": 1024, "output_length": 2, "hash_ids": [7, i]} for i in range(3)]
    (tmp_path / "m.jsonl").write_text("\n".join(map(json.dumps, rows)))
    recorded = parse(Scenario, {"name": "t", "streams": [
        {"class": "chat", "arrivals": {"kind": "trace", "path": str(tmp_path / "m.jsonl")}}]})  # fmt: skip
    load = Load.of(recorded, 10, 4096, prefix_cache=True)
    assert "yours are not known yet" in load.concerns
    first, second, _ = (np.frombuffer(one.prompt, "<i4") for one in load.asks(1.0, 3, tokens=True))
    assert (first[:512] == second[:512]).all()
    assert (first[512:] != second[512:]).any()


def test_traffic_without_a_rate_is_refused_with_the_stream():
    with pytest.raises(ScenarioError, match=r"interactive: streams.0 \(class chat\): got 'arrivals of kind concurr"):
        Load.of(traffic("interactive"), 10, 4096)
    with pytest.raises(ScenarioError, match="arrivals of kind at_once"):
        Load.of(traffic("chat_and_long"), 10, 4096)
    with pytest.raises(InputError, match=r"^rate: got '0'"):
        Load.of(traffic("azure-like"), 10, 16_384).asks(0, 10)


def test_a_request_longer_than_the_context_is_refused():
    with pytest.raises(ScenarioError, match="max_model_len"):
        Load.of(traffic("azure-like"), 10, 4096)


def test_names_are_mixes_and_scenarios_that_have_a_rate():
    names = traffic_names()
    assert names[: len(mix_names())] == list(mix_names())
    assert "bursty_chat" in names
    assert not {"interactive", "chat_and_long"} & set(names)
    for name in names:
        found = traffic(name)
        assert Load.of(found, 50, max(found.engine.get("max_model_len", 0), 4096)).requests
    with pytest.raises(ScenarioError, match=r"got 'nothing', expected a mix \(azure-like, .*interactive"):
        traffic("nothing")
