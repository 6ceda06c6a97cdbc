"""Where a run has more rows than a page should hold: what stays, and what can still be worked out from it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from workbench.report.download import pack_runs
from workbench.report.packed import unpack_table
from workbench.report.ranked import Ranked
from workbench.report.run import ReportRun
from workbench.report.thinning import thin

SLO_MS = 200.0


@pytest.fixture(scope="module")
def gaps():
    """20,000 gaps around 30 ms, forty stalls among them, and one of 9 s."""
    rng = np.random.default_rng(3)
    gap_ms = rng.normal(30, 2, 20_000).round(3)
    gap_ms[rng.choice(20_000, 40, replace=False)] = rng.uniform(201, 900, 40).round(3)
    gap_ms[12_345] = 9000.0
    return pd.DataFrame({"request": "chat-0", "at_s": np.arange(20_000) * 0.03, "gap_ms": gap_ms})


def test_a_small_table_stays_as_it_is(gaps):
    assert thin("gaps", gaps, 20_000, SLO_MS) is gaps


def test_every_stall_stays_and_percentiles_of_all_gaps_can_be_worked_out(gaps):
    kept = thin("gaps", gaps, 900, SLO_MS)
    assert 300 < len(kept) <= 950
    stalls = gaps[gaps["gap_ms"] > SLO_MS]
    assert set(stalls.index) <= set(kept.index)
    ranked = Ranked.of(kept.to_dict("list"), len(gaps))
    for share in (50, 99, 100):
        assert ranked.percentile(share) == pytest.approx(np.percentile(gaps["gap_ms"], share), rel=1e-12)
    assert ranked.above(SLO_MS) == len(stalls)
    assert kept["rank"].max() == len(gaps) - 1


def test_more_stalls_than_room_are_counted_all_the_same(gaps):
    kept = thin("gaps", gaps, 900, 30.0)  # half of all gaps are above it
    ranked = Ranked.of(kept.to_dict("list"), len(gaps))
    assert ranked.above(30.0) == int((gaps["gap_ms"] > 30.0).sum())
    assert len(kept) < 1_000


def test_ranks_that_contradict_the_lengths_tell_nothing(gaps):
    kept = thin("gaps", gaps, 900, SLO_MS).to_dict("list")
    kept["gap_ms"][kept["rank"].index(19_999)] = 1.0
    ranked = Ranked.of(kept, len(gaps))
    assert not ranked.sound
    assert ranked.percentile(99) is None
    assert ranked.above(SLO_MS) is None
    assert Ranked.of({"gap_ms": [1.0, 9.0], "rank": [0, 5]}, 4).percentile(100) is None, "a rank beyond the count"
    assert Ranked.of({"gap_ms": [1.0, 9.0], "rank": [0, 5]}, 6).percentile(50) is None, "ranks 2 and 3 are not there"


def test_the_largest_step_stays(make_trace):
    from workbench.config import SLO
    from workbench.report.download import tables_of

    steps = tables_of(ReportRun("a", make_trace(), {}, SLO()))["steps"]
    kept = thin("steps", steps, 60, SLO_MS)
    assert len(kept) <= 60 < len(steps)
    assert kept["activation_mib"].max() == steps["activation_mib"].max()
    assert kept["prefill_tokens"].max() == steps["prefill_tokens"].max()
    assert kept["start_s"].is_monotonic_increasing


def test_tables_are_lowered_until_they_fit_and_say_so(runs):
    whole = pack_runs(runs[:1], 10_000_000)[0]
    assert all(table.rows == table.of for table in whole.values())
    small = pack_runs(runs[:1], 3_000)[0]
    assert small["gaps"].rows < small["gaps"].of == whole["gaps"].of
    assert len(unpack_table(small["gaps"].data)["rank"]) == small["gaps"].rows
    assert sum(len(table.data) for table in small.values()) < sum(len(table.data) for table in whole.values())
