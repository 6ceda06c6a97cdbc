from __future__ import annotations

import math

import pytest

from workbench.config import SLO
from workbench.metrics import request_metrics


def test_by_hand(chat_and_long):
    found = request_metrics(chat_and_long, SLO(ttft_ms=1000, gap_ms=300)).set_index("request")
    assert found["class"].to_dict() == {"chat-0": "chat", "chat-1": "chat", "doc": "long"}
    assert found["ttft_s"].tolist() == pytest.approx([0.112, 0.022, 0.792])  # from the planned arrival
    assert found["ttft_sent_s"].tolist() == pytest.approx([0.012, 0.022, 0.762])
    assert found["schedule_lag_s"].tolist() == pytest.approx([0.1, 0, 0.03])
    assert found["output_tokens"].tolist() == [8, 7, 2]
    # chat-0: 1.012 to 1.812 over 7; chat-1: 1.022 to 1.812 over 6; doc: one gap of 10 ms
    assert found["tpot_ms"].tolist() == pytest.approx([800 / 7, 790 / 6, 10])
    assert found["e2e_s"].tolist() == pytest.approx([0.92, 0.82, 0.81])
    assert found["gaps"].tolist() == [7, 5, 1]
    assert found["worst_gap_ms"].tolist() == pytest.approx([500, 500, 10])
    assert found["slo_gap_ms"].tolist() == pytest.approx([500, 500, 10])
    assert found["meets_slo"].tolist() == [False, False, True]


def test_the_slo_may_look_at_a_percentile_of_the_gaps(chat_and_long):
    found = request_metrics(chat_and_long, SLO(ttft_ms=1000, gap_ms=300, gap_percentile=75)).set_index("request")
    # chat-1 has 10 10 20 250 500: the third quartile is the fourth of five; chat-0 10x5 250 500: place 4.5 of 0..6
    assert found["slo_gap_ms"].tolist() == pytest.approx([130, 250, 10])
    assert found["worst_gap_ms"].tolist() == pytest.approx([500, 500, 10])
    assert found["meets_slo"].tolist() == [True, True, True]


@pytest.mark.parametrize(("ttft_ms", "meets"), [(791, False), (793, True)])
def test_ttft_counts_for_the_slo(chat_and_long, ttft_ms, meets):
    found = request_metrics(chat_and_long, SLO(ttft_ms=ttft_ms, gap_ms=300)).set_index("request")
    assert found.loc["doc", "meets_slo"] == meets


def test_the_row_of_the_request_goes_before_its_arrivals(trace, build):
    stream, _, _ = build
    row = {"request": "a", "planned_s": 1.0, "first_s": 1.5, "last_s": 2.5, "output_tokens": 11, "status": "ok"}
    found = request_metrics(trace(requests=[row], tokens=stream("a", 1.6, 2.4)), SLO()).iloc[0]
    assert found["ttft_s"] == 0.5
    assert found["tpot_ms"] == 100
    assert found["output_tokens"] == 11


def test_one_token_meets_the_slo_by_its_ttft_alone(trace, build):
    stream, _, _ = build
    rows = [{"request": "a", "planned_s": 0.0, "sent_s": 0.0, "status": "ok"}]
    found = request_metrics(trace(requests=rows, tokens=stream("a", 0.5)), SLO()).iloc[0]
    assert found["ttft_s"] == 0.5
    assert math.isnan(found["tpot_ms"])
    assert math.isnan(found["worst_gap_ms"])
    assert found["gaps"] == 0
    assert bool(found["meets_slo"])


@pytest.mark.parametrize("status", ["error", "cancelled", "unfinished", None])
def test_what_did_not_end_well_never_meets_the_slo(trace, build, status):
    stream, _, _ = build
    rows = [{"request": "a", "planned_s": 0.0, "status": status}, {"request": "b", "planned_s": 0.0, "status": status}]
    found = request_metrics(trace(requests=rows, tokens=stream("a", 0.1, 0.2)), SLO())
    assert found["meets_slo"].tolist() == [False, False]
    assert found["output_tokens"].tolist() == [2, 0]
    assert found["ttft_s"].isna().tolist() == [False, True]
    assert found["e2e_s"].isna().all()


def test_no_requests(trace, build):
    stream, _, _ = build
    for empty in (trace(), trace(tokens=stream("a", 1.0, 2.0))):
        found = request_metrics(empty, SLO())
        assert not len(found)
        assert "meets_slo" in found
