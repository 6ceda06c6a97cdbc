"""JSON from outside: what is right comes through, what is not is one of two kinds of error."""

import os

import pytest

from workbench.json_file import parse_json, read_bytes, read_json, regular


def test_plain_data_comes_through(tmp_path):
    (tmp_path / "a").write_bytes('\ufeff{"a": [1, 2.5, null, "é"]}'.encode()[3:])
    assert read_json(tmp_path / "a") == {"a": [1, 2.5, None, "é"]}


@pytest.mark.parametrize(
    "text", ["", "{", "[1,]", "[" * 100_000, '{"a":' * 100_000, b"\xff", b'"\xc3\x28"', "1" * 5_000], ids=range(8)
)
def test_what_is_no_json_is_a_value_error(text):
    with pytest.raises(ValueError):
        parse_json(text)


def test_numbers_of_pythons_are_refused_where_that_is_asked():
    assert parse_json("[Infinity]") == [float("inf")]
    for word in ("NaN", "Infinity", "-Infinity"):
        with pytest.raises(ValueError, match="is no JSON"):
            parse_json(f"[{word}]", strict=True)


def test_half_a_character_becomes_a_question_mark_and_a_whole_one_stays():
    assert parse_json(r'["a\ud800b", "\uD83D\uDE00"]') == ["a?b", "😀"]


def test_a_file_is_regular_and_of_bounded_size(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"12345")
    assert read_bytes(path, 5) == b"12345"
    with pytest.raises(ValueError, match="more than 4 bytes"):
        read_bytes(path, 4)
    with pytest.raises(FileNotFoundError):
        read_json(tmp_path / "none")


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_what_is_no_file_is_not_waited_for(tmp_path, kind):
    path = tmp_path / "a"
    os.mkfifo(path) if kind == "pipe" else path.mkdir() if kind == "folder" else path.symlink_to("/dev/zero")
    for read in (read_json, regular):
        with pytest.raises(OSError):
            read(path)
