"""MFU from batches whose FLOPs are counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from workbench import metrics
from workbench.architecture import Architecture
from workbench.metrics.mfu import missing
from workbench.trace import Trace

# 1 layer, hidden 4, one head of 4, MLP 8, vocabulary 16.
MODEL = Architecture("tiny", 1, 4, 1, 1, 4, 4, 8, 16)
TOKEN = 2 * (4 * 12 + 4 * 4 + 4 * 16 + 8 * 4)  # QKV, O, gate and up, down
HEAD = 2 * 4 * 16
PAIR = 2 * (4 + 4)
COMPUTE = {"architecture": MODEL.as_dict(), "peak": {"flops_per_s": 1e5, "source": "made up"}}


def step(number, begin, end, prefill, decode):
    return {"step": number, "start_s": begin, "end_s": end, "prefill_tokens": prefill, "decode_tokens": decode}


def part(number, request, tokens, context, prefill=False, emitted=1):
    row = {"step": number, "request": request, "tokens": tokens, "context": context}
    return row | {"prefill": prefill, "emitted": emitted}


@pytest.fixture
def run(trace):
    """Two decodes; the same with the first chunk of a prompt; its second and last chunk alone."""
    made = trace(
        steps=[step(1, 1.0, 1.1, 0, 2), step(2, 1.1, 1.3, 5, 2), step(3, 1.3, 1.4, 3, 0)],
        batch=[
            *(part(1, "a", 1, 10), part(1, "b", 1, 20)),
            *(part(2, "a", 1, 11), part(2, "b", 1, 21), part(2, "doc", 5, 0, prefill=True, emitted=0)),
            part(3, "doc", 3, 5, prefill=True),
        ],
    )
    return Trace(made.tables, {"compute": COMPUTE})


FLOPS = [
    2 * (TOKEN + HEAD) + (11 + 21) * PAIR,
    2 * (TOKEN + HEAD) + (12 + 22) * PAIR + 5 * TOKEN + 15 * PAIR,  # the first chunk makes no output: no head
    3 * TOKEN + (6 + 7 + 8) * PAIR + HEAD,
]


def test_flops_of_each_step(run):
    assert metrics.step_flops(run).tolist() == FLOPS
    assert metrics.step_flops(Trace(run.tables), MODEL).tolist() == FLOPS


def test_each_step_has_its_kind_and_share(run):
    frame = metrics.mfu(run)
    assert list(frame.columns) == ["step", "end_s", "kind", "tokens", "flops", "seconds", "mfu"]
    assert frame["kind"].tolist() == ["decode", "mixed", "prefill"]
    assert frame["tokens"].tolist() == [2, 7, 3]
    assert frame["seconds"].tolist() == pytest.approx([0.1, 0.2, 0.1])
    assert frame["mfu"].tolist() == pytest.approx([FLOPS[0] / 1e4, FLOPS[1] / 2e4, FLOPS[2] / 1e4])
    assert frame.attrs == {"peak": "made up", "missing": ""}


def test_kinds_are_weighted_with_time(trace):
    made = trace(
        steps=[step(1, 0.0, 0.1, 0, 1), step(2, 0.1, 0.4, 0, 1), step(3, 0.4, 0.5, 8, 0)],
        batch=[part(1, "a", 1, 1), part(2, "a", 1, 2), part(3, "b", 8, 0, prefill=True)],
    )
    kinds = metrics.mfu_by_kind(Trace(made.tables, {"compute": COMPUTE}))
    decodes = 2 * (TOKEN + HEAD) + (2 + 3) * PAIR
    assert kinds.index.tolist() == ["decode", "prefill", "all"]
    assert kinds.loc["decode", "mfu"] == pytest.approx(decodes / (0.4 * 1e5))
    assert kinds.loc["decode", "flops_per_s"] == pytest.approx(decodes / 0.4)
    assert kinds.loc["all", "flops"] == decodes + 8 * TOKEN + 36 * PAIR + HEAD
    assert kinds.loc["all", "mfu"] == pytest.approx(kinds.loc["all", "flops"] / (0.5 * 1e5))
    assert kinds["steps"].tolist() == [2, 1, 3]
    assert kinds["tokens_per_step"].tolist() == pytest.approx([1, 8, 10 / 3])


def test_a_step_of_which_a_part_is_missing_is_not_counted(run):
    rows = [row for row in run.tables["batch"].to_pylist() if (row["step"], row["request"]) != (2, "b")]
    lost = Trace({**run.tables, "batch": run.tables["batch"].from_pylist(rows, run.tables["batch"].schema)}, run.meta)
    flops = metrics.step_flops(lost)
    assert np.isnan(flops).tolist() == [False, True, False]
    assert metrics.mfu_by_kind(lost)["steps"].to_dict() == {"decode": 1, "prefill": 1, "all": 2}


def test_an_unknown_context_is_not_taken_for_none(run):
    rows = run.tables["batch"].to_pylist()
    rows[0]["context"] = None
    lost = Trace({**run.tables, "batch": run.tables["batch"].from_pylist(rows, run.tables["batch"].schema)}, run.meta)
    assert np.isnan(metrics.step_flops(lost)).tolist() == [True, False, False]


def test_without_a_peak_flops_are_still_counted(run):
    frame = metrics.mfu(Trace(run.tables, {"compute": COMPUTE | {"peak": None, "missing": {"peak": "no torch"}}}))
    assert frame["flops"].tolist() == FLOPS
    assert frame["mfu"].isna().all()
    assert frame.attrs["missing"] == "no torch"
    kinds = metrics.mfu_by_kind(Trace(run.tables), MODEL)
    assert kinds["flops"]["all"] == sum(FLOPS)
    assert np.isnan(kinds["mfu"]["all"])
    assert metrics.mfu(Trace(run.tables), MODEL, 1e5)["mfu"].tolist() == pytest.approx(metrics.mfu(run)["mfu"].tolist())


def test_a_run_without_facts_says_what_is_missing(run, trace):
    bare = Trace(run.tables)
    assert metrics.mfu(bare)["mfu"].isna().all()
    assert missing(bare) == "the run does not say which model it was; the run does not say what its device can do"
    assert missing(run) == ""
    assert missing(Trace(trace().tables, {"compute": COMPUTE})) == "no step records"
    assert metrics.mfu(trace()).empty
    assert metrics.mfu_by_kind(trace()).empty


def test_a_step_of_no_length_has_no_share(trace):
    made = trace(steps=[step(1, 1.0, 1.0, 0, 1)], batch=[part(1, "a", 1, 1)])
    assert metrics.mfu(made, MODEL, 1e5)["mfu"].isna().all()
