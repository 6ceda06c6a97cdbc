"""What keeps a setting from more, by figures made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from workbench.planning.capacity import Capacity
from workbench.planning.limits import limiting

CALM = {"preemptions": 0.0, "kv_max": 0.5, "waiting_mean": 0.0, "running_max": 3.0, "at_cap": 0.0, "prefill_time": 0.8}


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        ({"late": 0.4, "stalled": 0.1}, "TTFT: steps with prefill"),
        ({"late": 0.4, "stalled": 0.3}, "TTFT and gap: steps with prefill"),
        ({"late": 0.0, "stalled": 0.4, "facts": CALM | {"prefill_time": 0.1}}, "gap: steps with prefill"),
        ({"late": 0.4, "stalled": 0.1, "facts": CALM | {"prefill_time": 0.1}}, "TTFT: decode steps"),
        ({"late": 0.01, "stalled": 0.0, "growth": 0.2}, "throughput: steps with prefill"),
        ({"late": 0.4, "stalled": 0.1, "facts": CALM | {"preemptions": 3.0}}, "TTFT: KV pool full"),
        ({"late": 0.4, "failed": 0.4, "why": "out of memory"}, "errors: out of memory"),
    ],
)
def test_the_part_of_the_promise_that_breaks_and_what_is_used_up_then(made_verdict, verdict, words):
    over = replace(made_verdict(2.0, False), **{"facts": CALM, "failed": 0.0, "growth": 0.0, **verdict})
    assert limiting(Capacity(1.5, 2.0, 3, "", over, over), 8) == words


def test_where_nothing_was_missed_or_a_lone_request_misses_it(made_verdict):
    over = replace(made_verdict(2.0, False), facts=CALM, late=0.4, stalled=0.0, failed=0.0)
    assert limiting(Capacity(0.0, 2.0, 3, "", None, over), 8) == "TTFT: even a lone request"
    assert limiting(Capacity(12.5, None, 3, "", over, None), 8) == "nothing up to 12.5/s"
