from __future__ import annotations

import numpy as np
import pytest

from workbench.meter.compare import compare, pool

ZERO = 100.0
TRUTH = {"read": 100.2, "held_up": 0, "arrivals": [(100.5, 100.501, 1), (100.6, 100.6, 2), (100.9, 100.9, 1)]}


def token(index, n, at):
    return {"request": "r", "index": index, "n": n, "client_s": at}


GOOD = [token(0, 1, 0.502), token(1, 2, 0.601), token(3, 1, 0.904)]
ROW = {"sent_s": 0.1}


def test_errors_of_a_faithful_client():
    errors = compare(TRUTH, ROW, GOOD, ZERO)
    assert (errors.tokens_truth, errors.tokens_ours, errors.lost, errors.invented) == (4, 4, 0, 0)
    assert errors.faithful
    assert errors.arrival_ms == pytest.approx([2, 1, 4])
    assert errors.gap_ms == pytest.approx([-1, 3])
    assert errors.ttft_ms == pytest.approx([2])
    assert errors.send_ms == pytest.approx([100])
    assert errors.tpot_ms == pytest.approx([(402 - 400) / 3])
    assert errors.doubt_ms == pytest.approx([1, 0, 0])
    assert errors.gap(50) == pytest.approx(2)


@pytest.mark.parametrize(
    ("tokens", "lost", "invented"),
    [
        (GOOD[:2], 1, 0),
        (GOOD[1:], 1, 0),
        ([*GOOD, token(4, 2, 0.95)], 0, 2),
        ([*GOOD[:2], token(2, 2, 0.904)], 0, 1),  # one twice
        ([], 4, 0),
    ],
)
def test_what_is_lost_or_invented_is_counted_and_no_time_is_compared(tokens, lost, invented):
    errors = compare(TRUTH, ROW, tokens, ZERO)
    assert (errors.lost, errors.invented) == (lost, invented)
    assert not errors.faithful
    assert errors.gap_ms.size == 0


@pytest.mark.parametrize(
    "tokens",
    [
        [GOOD[1], GOOD[0], GOOD[2]],
        [token(0, 1, 0.7), token(1, 2, 0.6), token(3, 1, 0.904)],
        [token(0, 3, 0.6), token(3, 1, 0.904)],  # two events taken for one
    ],
)
def test_order_and_events_must_be_those_of_the_server(tokens):
    errors = compare(TRUTH, ROW, tokens, ZERO)
    assert (errors.lost, errors.invented, errors.in_order) == (0, 0, False)
    assert not errors.faithful


def test_a_request_that_was_never_sent_has_no_send():
    assert compare(TRUTH, {"sent_s": None}, GOOD, ZERO).send_ms.size == 0


def test_many_as_one():
    both = pool([compare(TRUTH, ROW, GOOD, ZERO), compare(TRUTH, ROW, GOOD[:2], ZERO)])
    assert (both.tokens_truth, both.tokens_ours, both.lost) == (8, 7, 1)
    assert both.gap_ms == pytest.approx([-1, 3])
    assert pool([]).gap(99) is None
    assert np.isfinite(both.gap(99))
