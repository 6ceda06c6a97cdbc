"""A copy of a run as it is now."""

import pytest

from workbench.errors import RunNotFoundError
from workbench.store import RunWriter, list_runs, new_run_folder, open_run, snapshot


def test_a_run_that_goes_on_is_copied_as_one_that_ended_now(tmp_path, rows):
    source, copy = new_run_folder(tmp_path, "going"), new_run_folder(tmp_path, "copy")
    writer = RunWriter(source, {"label": "small"})
    for name, those in rows.items():
        writer.rows(name, those)
    writer.flush()
    made = snapshot(source, copy, title="before lunch")
    writer.rows("tokens", [{"request": "a", "index": 2, "n": 1, "client_s": 3.0}])
    writer.close()
    there = open_run(copy)
    assert there.meta["status"] == "cancelled"
    assert there.meta["reason"] == "saved while it went on"
    assert there.meta["title"] == "before lunch"
    assert there.meta["saved_from"] == source.name
    assert there.meta["id"] == copy.name
    assert len(there.tokens) == len(made.tokens) == 2
    assert there.tokens["engine_s"].tolist() == [1.0, 2.0]
    assert len(open_run(source).tokens) == 3, "the run itself went on"
    assert set(list_runs(tmp_path)["status"]) == {"complete", "cancelled"}


def test_an_ended_run_keeps_its_status(tmp_path, write):
    write(tmp_path / "a")
    assert snapshot(tmp_path / "a", new_run_folder(tmp_path)).meta["status"] == "complete"


def test_what_is_no_run_is_not_copied(tmp_path):
    with pytest.raises(RunNotFoundError):
        snapshot(tmp_path / "nothing", new_run_folder(tmp_path))
