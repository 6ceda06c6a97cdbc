import os

import pytest

from workbench.errors import ScenarioError
from workbench.workload.strict_yaml import load_yaml


@pytest.fixture
def load(tmp_path):
    path = tmp_path / "s.yaml"

    def loader(data):
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return load_yaml(path)

    return loader


def test_plain_data_is_read(load):
    assert load("\ufeffa: [1, 2.5, yes, x]\r\nb: {c: null}\r\n") == {"a": [1, 2.5, True, "x"], "b": {"c": None}}
    assert load("") is None


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("a: 1\nb: [1\n", "line 3 column 1", "expected ',' or ']'"),
        ("a: 1\n\tb: 2\n", "line 2 column 1", "cannot start any token"),
        ("a: 1\nb: 2\na: 3\n", "line 3 column 1", "a, it stands here twice"),
        ("x:\n  - {k: 1, 'k': 2}\n", "line 2 column 12", "k, it stands here twice"),
        ("a: &x [1]\nb: *x\n", "line 1 column 4", "aliases are not used here"),
        ("a: &x [*x]\n", "line 1 column 4", "aliases are not used here"),
        ("a: *nowhere\n", "line 1 column 4", "undefined alias"),
        ("a: !!python/object:os.system x\n", "line 1 column 4", "could not determine a constructor"),
        ("a: 1\nb: x\0y\n", "line 2 column 5", "remove the character 0x0"),
        ("? [1]\n: 2\n", "line 1 column 3", "unhashable"),
        ("a: 1\n---\nb: 2\n", "line 2 column 1", "another document"),
    ],
)
def test_a_fault_is_named_by_line_and_column(load, text, place, said):
    with pytest.raises(ScenarioError) as bad:
        load(text)
    assert place in str(bad.value)
    assert said in str(bad.value)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"a: 1\nb: \xff\n", "line 2: got 'bytes that are not UTF-8'"),
        ("a: 2023-99-99\n", "put it in quotes"),
        ("a: " + "9" * 5000, "put it in quotes"),
        ("[" * 50_000, "nest it less deeply"),
        ("#" * (256 << 10) + "\n", "at most 256 KiB"),
    ],
)
def test_what_is_no_scenario_is_refused(load, data, said):
    with pytest.raises(ScenarioError, match=said):
        load(data)


def test_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "none.yaml", tmp_path / "pipe", tmp_path / ("x" * 300)):
        with pytest.raises(ScenarioError, match="a file that exists"):
            load_yaml(path)
