from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

from workbench.store import RunWriter, catalogue
from workbench.trace import TABLES


def columns(connection, view):
    return [(name, kind) for name, kind, *_ in connection.execute(f'DESCRIBE "{view}"').fetchall()]


def test_no_runs_is_empty_views_with_the_right_columns(tmp_path, write):
    empty = catalogue(tmp_path / "nothing")
    write(tmp_path / "1")
    full = catalogue(tmp_path)
    for name, schema in TABLES.items():
        assert empty.execute(f'SELECT count(*) FROM "{name}"').fetchone() == (0,)
        assert columns(empty, name) == columns(full, name)
        assert [column for column, _ in columns(empty, name)] == ["run", *schema.names]
    assert columns(empty, "runs") == columns(full, "runs")
    assert dict(columns(full, "steps"))["preempted"] == "VARCHAR[]"
    assert dict(columns(full, "steps"))["kv_use"] == "FLOAT"
    assert dict(columns(full, "batch"))["prefill"] == "BOOLEAN"
    assert empty.execute("SELECT * FROM runs").fetchall() == []


def test_one_query_over_all_runs(tmp_path, write, rows):
    write(tmp_path / "1", meta={"label": "one", "setting": {"budget": 64}})
    write(tmp_path / "2", status="failed", reason="it's broken")
    connection = catalogue(tmp_path)
    for name, those in rows.items():
        counts = connection.execute(f'SELECT run, count(*) FROM "{name}" GROUP BY run ORDER BY run').fetchall()
        assert counts == [("1", len(those)), ("2", len(those))]
    found = connection.execute(
        "SELECT label, request, engine_s FROM tokens JOIN runs USING (run) WHERE status = 'complete' ORDER BY index"
    ).fetchall()
    assert found == [("one", "a", 1.0), ("one", "a", 2.0)]
    assert connection.execute("SELECT setting, reason, dropped FROM runs").fetchall() == [
        ("budget=64", None, 0),
        (None, "it's broken", 0),
    ]
    assert connection.execute("SELECT meta->'setting'->>'budget' FROM runs WHERE run = '1'").fetchone() == ("64",)
    assert connection.execute("SELECT preempted FROM steps WHERE run = '1' ORDER BY step").fetchall() == [
        ([],),
        (["b"],),
    ]


@pytest.mark.parametrize("root", ["it's", 'two "words"', "[a]*?{b}", "x=1/y=2", "百"])
def test_paths_are_taken_as_they_are(tmp_path, write, root):
    write(tmp_path / root / "r'1 [x]*")
    write(tmp_path / "a")  # what the pattern [a]* would find
    connection = catalogue(tmp_path / root)
    assert connection.execute("SELECT DISTINCT run FROM tokens").fetchall() == [("r'1 [x]*",)]
    assert connection.execute("SELECT run FROM runs").fetchall() == [("r'1 [x]*",)]


def test_a_running_run_is_left_out_a_crashed_one_recovered_a_damaged_one_skipped(tmp_path, write):
    write(tmp_path / "crashed", crash=True)
    write(tmp_path / "damaged")
    (tmp_path / "damaged/run.json").write_text("{")
    with RunWriter(tmp_path / "going"):
        connection = catalogue(tmp_path)
    assert connection.execute("SELECT run, status FROM runs").fetchall() == [("crashed", "interrupted")]
    assert connection.execute("SELECT count(*) FROM tokens").fetchone() == (2,)


def test_an_older_run_without_a_column_has_nulls_there(tmp_path, write):
    write(tmp_path / "new")
    folder = write(tmp_path / "old")
    old = pq.ParquetFile(folder / "requests.parquet").read().drop_columns(["priority", "class"])
    pq.write_table(old, folder / "requests.parquet")
    meta = json.loads((folder / "run.json").read_text())
    del meta["rows"]["memory"]
    (folder / "run.json").write_text(json.dumps(meta))
    connection = catalogue(tmp_path)
    query = "SELECT run, class FROM requests WHERE request = 'a' ORDER BY run"
    assert connection.execute(query).fetchall() == [("new", "chat"), ("old", None)]
    assert [name for name, _ in columns(connection, "requests")] == ["run", *TABLES["requests"].names]
    assert connection.execute("SELECT DISTINCT run FROM memory").fetchall() == [("new",)]
