"""Many streams through the client and the recorder: nothing is lost, and what is lost is reported. No vLLM in here."""

from __future__ import annotations

import math

import pytest

from benchmarks.parts.load_memory import growth
from benchmarks.parts.load_play import counts, play, workload
from workbench.store import RunWriter, open_run, writer

STREAMS, MINUTES, RATE = 200, 0.05, 20.0  # 3 s of 60 tokens a stream, or as long as this machine takes for them


def test_two_hundred_streams_lose_no_token_and_take_few_bytes_a_token(tmp_path):
    got = play(STREAMS, MINUTES, RATE, tmp_path / "run", panel=False, late=math.inf)
    assert (got["tokens_sent"], got["tokens"]) == (12_000, 12_000)
    assert (got["invented"], got["reported_drops"], got["unreported_drops"]) == (0, 0, 0)
    assert got["requests"] == {"ok": 200}
    assert got["bytes_per_token"] <= 50
    tokens = open_run(tmp_path / "run").tokens
    assert tokens["client_s"].is_monotonic_increasing
    assert all(of["index"].tolist() == list(range(60)) for _, of in tokens.groupby("request"))


def test_tokens_that_the_disk_does_not_take_are_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "MAX_PENDING", 5)  # rows between two writes
    got = play(STREAMS, MINUTES, RATE, tmp_path / "run", panel=False, late=math.inf)
    assert got["tokens_sent"] == 12_000
    assert got["tokens"] < 12_000
    assert got["reported_drops"] >= 12_000 - got["tokens"]
    assert got["unreported_drops"] == 0
    assert any("rows came faster than the disk took them" in fault for fault in got["faults"])
    assert open_run(tmp_path / "run").meta["status"] == "failed"


def test_a_token_that_nobody_reports_is_found(tmp_path):
    with RunWriter(tmp_path / "run") as made:
        made.rows("requests", [{"request": "a", "status": "ok"}, {"request": "b", "status": "ok"}])
        made.rows("tokens", [{"request": "a", "index": 0, "n": 3, "client_s": 1.0}])
        made.rows("tokens", [{"request": "b", "index": 0, "n": 2, "client_s": 1.0}])
    got = counts(tmp_path / "run", {"a": {"sent": 5}, "b": {"sent": 1}})
    assert (got["tokens_sent"], got["tokens"]) == (6, 5)
    assert (got["unreported_drops"], got["invented"]) == (2, 1), "one too many makes up for none that is missing"


def test_a_load_has_requests_for_its_time():
    load = workload(3, 2.0, 5.0)  # 120 s in requests of 30 s and 150 tokens
    assert len(load.requests) == 3 * 4
    assert {request.output_tokens for request in load.requests} == {150}
    assert dict(load.concurrency) == {"load": 3}
    assert len({request.request for request in load.requests}) == 12


@pytest.mark.parametrize(
    ("readings", "grown"),
    [
        ([1.0, 2.0], None),
        ([9.0] * 60 + [100.0] * 60 + [500.0] * 600 + [103.0] * 60, 3.0),
        ([9.0, 9.0, 20.0, 20.0, 21.0, 21.0], 1.0),
    ],
)
def test_growth_leaves_the_warm_up_out(readings, grown):
    assert growth(readings) == grown
