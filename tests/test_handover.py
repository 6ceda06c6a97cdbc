"""A saved run with its report, and runs side by side (recorded rows are made up, no engine in here)."""

import pytest

from workbench import handover
from workbench.errors import InputError
from workbench.report.verify import verify_report
from workbench.run import RecordedRun
from workbench.store import RunWriter, new_run_folder


@pytest.fixture
def played(tmp_path):
    """Record a run of two chats in which the second token comes ``gap_s`` after the first."""

    def played(gap_s, **meta):
        folder = new_run_folder(tmp_path, "played")
        with RunWriter(folder, {"label": "live CPU", "scenario": "made_up", **meta}) as writer:
            writer.rows(
                "requests", [{"request": "a", "class": "chat", "planned_s": 0.0, "sent_s": 0.0, "status": "ok"}]
            )
            arrivals = (0.1, 0.1 + gap_s)
            writer.rows(
                "tokens", [{"request": "a", "index": i, "n": 1, "client_s": at} for i, at in enumerate(arrivals)]
            )
        return RecordedRun(folder)

    return played


def test_a_saved_run_is_a_run_with_a_report(played, tmp_path):
    saved = handover.save(played(0.5), tmp_path, "before <lunch>")
    assert saved.meta["title"] == "before <lunch>"
    assert saved.kpis.loc["gap_max_ms", "value"] == pytest.approx(500)
    assert verify_report(saved.folder / handover.REPORT) == []
    assert saved.folder.parent == tmp_path


def test_runs_side_by_side_with_the_ratio_of_the_last_two(played):
    frame = handover.side_by_side([played(0.5, setting="one"), played(0.25, setting="two")])
    assert list(frame.columns) == ["one", "two", "ratio"]
    assert frame.loc["gap_max_ms", "ratio"] == pytest.approx(0.5)
    assert frame.loc["stalls"].tolist()[:2] == [1, 1]


def test_runs_of_one_name_are_told_apart(played):
    first, second = played(0.5), played(0.5)
    assert list(handover.side_by_side([first, second]).columns)[:2] == ["made_up", second.folder.name]


def test_one_run_is_no_comparison(played):
    with pytest.raises(InputError, match="at least two"):
        handover.side_by_side([played(0.5)])


def test_the_run_before_is_neither_a_copy_nor_later(played, tmp_path):
    first = played(0.5)
    handover.save(first, tmp_path)
    second = played(0.25)
    played(0.1)
    assert handover.run_before(second).folder == first.folder
    assert handover.run_before(first) is None
