from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import numpy as np
import pytest

from workbench.config import Knobs
from workbench.errors import RunNotFoundError, StoreError
from workbench.store import RunWriter, default_root, delete_run, list_runs, new_run_folder, prepare_root, run_folder
from workbench.store.meta import plain, read_meta, short, write_meta


def test_the_root_is_runs_or_what_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.delenv("WORKBENCH_RUNS", raising=False)
    assert default_root() == Path("runs")
    monkeypatch.setenv("WORKBENCH_RUNS", str(tmp_path / "x"))
    assert default_root() == tmp_path / "x"
    assert new_run_folder(name="a").parent == (tmp_path / "x").resolve()
    assert len(list_runs()) == 0  # an empty folder is no run yet


def test_run_folders_are_unique_ordered_and_private(tmp_path):
    made = [new_run_folder(tmp_path, "same") for _ in range(20)]
    assert len(set(made)) == 20
    assert [path.name for path in made] == sorted(path.name for path in made)
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o700 for path in made)
    assert all(path.name.endswith("-same") for path in made)


@pytest.mark.parametrize(
    ("name", "end"),
    [("budget 256 (chunk 64)", "-budget-256-chunk-64"), ("对话", "-对话"), ("..a"[1:], "-a"), ("$?", "-run")],
)
def test_names_become_safe(tmp_path, name, end):
    folder = new_run_folder(tmp_path, name)
    assert folder.name.endswith(end)
    assert folder.parent == tmp_path.resolve()


@pytest.mark.parametrize("name", ["../x", "..", "a/b", "/etc", "a\\b", "a\0b", "a\nb", "", "  ", "x" * 300])
def test_no_name_leads_elsewhere(tmp_path, name):
    folder = new_run_folder(tmp_path, name)
    assert folder.parent == tmp_path.resolve()
    assert len(folder.name) <= 80
    assert list(tmp_path.iterdir()) == [folder]


def test_a_root_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"cannot make a run folder in .*file"):
        new_run_folder(tmp_path / "file", "x")


def test_list_shows_each_run_with_its_state(tmp_path, write):
    write(tmp_path / "1", meta={"label": "one", "scenario": {"name": "chat"}, "setting": {"budget": 64, "chunk": 8}})
    write(tmp_path / "2", crash=True, meta={})
    write(tmp_path / "3", status="failed", reason="x")
    (tmp_path / "4").mkdir()
    (tmp_path / "4/run.json").write_text("{")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "1")
    with RunWriter(tmp_path / "5", {"label": "now"}):
        runs = list_runs(tmp_path).set_index("id")
    assert runs["status"].to_dict() == {
        "1": "complete",
        "2": "interrupted",
        "3": "failed",
        "4": "damaged",
        "5": "running",
    }
    assert runs.loc["1", ["label", "scenario", "setting"]].tolist() == ["one", "chat", "budget=64 chunk=8"]
    assert runs["created"].isna().tolist() == [False, False, False, True, False]
    assert str(runs["created"].dt.tz) == "UTC"
    assert runs.loc["1", "duration_s"] == json.loads((tmp_path / "1/run.json").read_text())["duration_s"]
    assert runs.loc["1", "size_bytes"] == sum(path.stat().st_size for path in (tmp_path / "1").iterdir())
    assert (tmp_path / "2/tokens.arrows").exists()  # listing converts nothing


def test_list_of_no_runs_has_the_columns(tmp_path):
    for root in (tmp_path, tmp_path / "nothing"):
        runs = list_runs(root)
        assert not len(runs)
        assert list(runs) == ["id", "created", "label", "scenario", "setting", "status", "duration_s", "size_bytes"]


def test_delete_takes_one_run_and_what_an_earlier_delete_left(tmp_path, write):
    write(tmp_path / "1")
    write(tmp_path / "2", crash=True)
    write(tmp_path / ".going-123")
    assert list_runs(tmp_path)["id"].tolist() == ["1", "2"]
    delete_run(tmp_path, "2")
    assert [path.name for path in tmp_path.iterdir()] == ["1"]


@pytest.mark.parametrize(
    "run", ["..", ".", "", "nothing", "../outside", "/", "a\0", "1/../1", "foreign", "link", ".going-1"]
)
def test_delete_stays_in_the_root(tmp_path, write, run):
    root = tmp_path / "root"
    write(root / "1")
    write(root / ".going-1")
    write(tmp_path / "outside")
    (root / "foreign").mkdir()
    (root / "link").symlink_to(tmp_path / "outside")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(RunNotFoundError, match="expected the id of a run in"):
        delete_run(root, run)
    assert sorted(tmp_path.rglob("*")) == before


def test_delete_follows_no_link_out_of_the_run(tmp_path, write):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious/file").touch()
    folder = write(tmp_path / "root/1")
    (folder / "link").symlink_to(tmp_path / "precious")
    delete_run(tmp_path / "root", "1")
    assert (tmp_path / "precious/file").exists()
    assert not folder.exists()


def test_delete_refuses_a_running_run_but_takes_a_damaged_one(tmp_path, write):
    with RunWriter(tmp_path / "1"), pytest.raises(StoreError, match="run 1: still running"):
        delete_run(tmp_path, "1")
    delete_run(tmp_path, "1")
    write(tmp_path / "2")
    (tmp_path / "2/run.json").write_text("{")
    delete_run(tmp_path, "2")
    assert not list(tmp_path.iterdir())


def test_run_folder_finds_a_run_by_its_id(tmp_path, write, monkeypatch):
    write(tmp_path / "1")
    monkeypatch.setenv("WORKBENCH_RUNS", str(tmp_path))
    assert run_folder(None, "1") == (tmp_path / "1").resolve()


def test_metadata_is_replaced_in_one_go(tmp_path, monkeypatch):
    write_meta(tmp_path, {"schema": 1, "status": "running"})
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "full")))
        with pytest.raises(OSError, match="full"):
            write_meta(tmp_path, {"schema": 1, "status": "complete"})
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]
    assert read_meta(tmp_path)["status"] == "running"


def test_metadata_holds_what_json_can():
    value = {"a": (1, {2}), "n": np.float32(1.5), "v": np.arange(2), "inf": float("inf"), "p": Path("x"), 3: None}
    assert plain(value) == {"a": [1, [2]], "n": 1.5, "v": [0, 1], "inf": None, "p": "x", "3": None}
    assert plain(Knobs(budget=64, max_running=8))["budget"] == 64
    assert [short(v) for v in (None, "x", {"name": "y", "seed": 1}, {"b": 1}, 7)] == [None, "x", "y", "b=1", "7"]


def test_a_root_is_made_and_left_as_it_was(tmp_path):
    root = prepare_root(tmp_path / "a" / "runs")
    assert root.is_dir()
    assert list(root.iterdir()) == []


def test_a_root_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"cannot write to .*file"):
        prepare_root(tmp_path / "file")


@pytest.mark.parametrize(
    "name",
    [
        "../../up",
        "/etc/cron.d/x",
        "..",
        ".",
        "",
        "a/b/c",
        "a\x00b",
        "x" * 5000,
        "~root",
        "\ud800",
        "a\nb",
        "-rf",
        "𠀀" * 60,
    ],
    ids=range(13),
)
def test_a_name_never_leads_out_of_the_root(tmp_path, name):
    root = tmp_path / "runs"
    folder = new_run_folder(root, name)
    assert folder.parent == root.resolve()
    assert folder.is_dir()
    assert folder.stat().st_mode & 0o077 == 0
    assert list(tmp_path.iterdir()) == [root]


@pytest.mark.parametrize(
    "odd", [5, "x", [], {"schema": 1}, {"schema": "1", "status": "complete"}, {"schema": True, "status": "x"}], ids=str
)
def test_a_run_json_of_another_shape_is_damaged(tmp_path, odd):
    (tmp_path / "run.json").write_text(json.dumps(odd))
    with pytest.raises(StoreError, match="damaged, expected what a run leaves there"):
        read_meta(tmp_path)


@pytest.mark.parametrize(
    ("field", "value", "place"),
    [
        ("label", 5, r"\$\.label"),
        ("label", "\x1b]0;owned\x07", r"\$\.label"),
        ("rows", {"tokens": -1}, r"\$\.rows"),
        ("rows", ["tokens"], r"\$\.rows"),
        ("slo", {"gap_ms": -1}, "gap_ms"),
        ("duration_s", 1e300, r"\$\.duration_s"),
        ("engine", [], r"\$\.engine"),
        ("compute", {"peak": 1e12}, r"\$\.compute\.peak"),
        ("compute", {"peak": {"flops_per_s": -1.0, "source": "x"}}, r"\$\.compute\.peak\.flops_per_s"),
        ("compute", {"architecture": {"name": "m"}}, "architecture"),
        ("workload", {"scenario": "chat"}, r"\$\.workload\.scenario"),
    ],
)  # fmt: skip
def test_a_field_that_is_read_and_is_of_another_type_is_named(tmp_path, field, value, place):
    good = {"schema": 1, "status": "complete"}
    (tmp_path / "run.json").write_text(json.dumps(good))
    assert read_meta(tmp_path)["status"] == "complete"
    (tmp_path / "run.json").write_text(json.dumps(good | {field: value}))
    with pytest.raises(StoreError, match=place):
        read_meta(tmp_path)


def test_numbers_that_json_has_not_are_refused(tmp_path):
    (tmp_path / "run.json").write_text('{"schema": 1, "status": "complete", "more": NaN}')
    with pytest.raises(StoreError, match="damaged"):
        read_meta(tmp_path)


def test_keys_do_not_reach_the_disk_and_half_a_character_does_no_harm(tmp_path):
    more = {"env": {"HF_TOKEN": "abc"}, "reason": "a\ud800b https://u:p@h/"}
    write_meta(tmp_path, {"schema": 1, "status": "complete"} | more)
    found = read_meta(tmp_path)
    assert found["env"] == {"HF_TOKEN": "HIDDEN"}
    assert found["reason"] == "a?b https://HIDDEN@h/"


def test_a_run_whose_texts_move_a_cursor_is_written_so_that_it_opens(tmp_path):
    bad = "a\x1b[31m\u202eb\x9b"
    more = {"label": bad, "question": bad, "setting": {"name": bad, bad: [bad]}, "reason": f"two\nlines {bad}"}
    write_meta(tmp_path, {"schema": 1, "status": "complete"} | more)
    found = read_meta(tmp_path)
    assert found["label"] == found["question"] == "a?[31m?b?"
    assert found["setting"] == {"name": "a?[31m?b?", "a?[31m?b?": ["a?[31m?b?"]}
    assert found["reason"] == "two\nlines a?[31m?b?"
