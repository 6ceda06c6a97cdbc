"""Out and back again, exactly; and files that are damaged."""

from __future__ import annotations

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workbench.errors import StoreError, TraceFileError
from workbench.exchange import read_csv, read_parquet, to_pandas, write_csv, write_parquet
from workbench.trace import TABLES, Trace, table_of

WAYS = {"csv": (write_csv, read_csv), "parquet": (write_parquet, read_parquet)}


def one_line(error, place=""):
    assert place in str(error)
    assert "\n" not in str(error)


way = pytest.mark.parametrize(("write", "read"), WAYS.values(), ids=WAYS)


def same(one, other):
    return all(one.tables[name].equals(other.tables[name], check_metadata=False) for name in TABLES)


@way
def test_a_trace_comes_back_exactly(trace, tmp_path, write, read):
    back = read(write(trace, tmp_path / "out"))
    assert same(trace, back)
    assert back.meta == dict(trace.meta)


_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12)
_OF = {
    "string": _TEXT,
    "double": st.floats(allow_nan=False),
    "float": st.floats(width=32, allow_nan=False),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "bool": st.booleans(),
}


def rows_of(name):
    columns = {
        field.name: st.none()
        | (st.lists(_TEXT, max_size=3) if str(field.type).startswith("list") else _OF[str(field.type)])
        for field in TABLES[name]
    }
    return st.lists(st.fixed_dictionaries(columns), max_size=3)


@way
@given(data=st.data())
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_whatever_a_trace_holds_comes_back_exactly(tmp_path_factory, write, read, data):
    tables = {
        name: table_of(name, data.draw(rows_of(name)) if name in ("requests", "steps", "knobs") else [])
        for name in TABLES
    }
    trace = Trace(tables)
    assert same(trace, read(write(trace, tmp_path_factory.mktemp("t") / "out")))


def test_null_and_the_empty_text_stay_apart(trace, tmp_path):
    back = read_csv(write_csv(trace, tmp_path / "out"))
    assert back.tables["requests"]["error"].to_pylist() == [None, 'cut, "here"\nand there', ""]


def test_pandas_frames_keep_whole_numbers_and_say_where_they_come_from(trace):
    frames = to_pandas(trace)
    assert set(frames) == set(TABLES)
    assert frames["knobs"]["budget"].tolist()[0] == 64
    assert str(frames["knobs"]["budget"].dtype) == "Int32"
    assert frames["requests"].attrs["meta"]["label"] == "live CPU"
    assert math.isnan(frames["requests"]["sent_s"].tolist()[-1])


@way
def test_nothing_is_written_over(trace, tmp_path, write, read):
    (tmp_path / "mine").write_text("x")
    with pytest.raises(StoreError, match="not empty"):
        write(trace, tmp_path)
    assert (tmp_path / "mine").read_text() == "x"


@way
def test_a_folder_without_tables_is_named(tmp_path, write, read):
    with pytest.raises(TraceFileError, match="no table"):
        read(tmp_path)


BAD = [
    "",
    "request,clas\n1,2\n",
    "request,request\na,b\n",
    "request,sent_s\na,soon\n",
    'request\n"never closed',
    "\x00\x01",
]


@pytest.mark.parametrize("text", BAD)
def test_a_damaged_csv_is_one_line_with_its_place(tmp_path, text):
    (tmp_path / "requests.csv").write_text(text)
    try:
        read_csv(tmp_path)
    except TraceFileError as error:
        one_line(error, "requests.csv")


@given(st.binary(max_size=200))
@settings(max_examples=60, deadline=None)
def test_any_bytes_are_a_named_error_or_a_trace(tmp_path_factory, content):
    folder = tmp_path_factory.mktemp("t")
    for name in ("requests.csv", "requests.parquet"):
        (folder / name).write_bytes(content)
    for read in (read_csv, read_parquet):
        try:
            found = read(folder)
        except TraceFileError as error:
            one_line(error)
        else:
            assert found.tables["requests"].schema.equals(TABLES["requests"])
