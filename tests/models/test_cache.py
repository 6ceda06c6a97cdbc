"""The cache on its own: no conversion, a few bytes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from workbench.errors import ModelError
from workbench.models import cache

RECIPE = {"converter": 1}


def _obtain(folder: Path, text: str = "contents", recipe=RECIPE, **options) -> tuple[Path, list[str]]:
    said: list[str] = []

    def make(place: Path, _lock: int | None) -> dict[str, str]:
        (place / "file").write_text(text)
        return {}

    options = {"space": 1, "progress": said.append} | options
    return cache.obtain(folder, recipe, make, **options), said


def test_made_once(tmp_path):
    folder, _ = _obtain(tmp_path / "m")
    first = (folder / "file").stat().st_ino
    _obtain(tmp_path / "m", "other")
    assert (folder / "file").stat().st_ino == first


def test_root_follows_the_environment(monkeypatch):
    monkeypatch.setenv("WORKBENCH_CACHE", "~/somewhere")
    assert cache.cache_root() == Path("~/somewhere/models").expanduser()
    monkeypatch.setenv("WORKBENCH_CACHE", " ")
    assert cache.cache_root().parent.name == "tuning-workbench"


def test_another_recipe_is_made_anew(tmp_path):
    _obtain(tmp_path / "m")
    folder, said = _obtain(tmp_path / "m", "new", {"converter": 2})
    assert (folder / "file").read_text() == "new"
    assert "another version" in said[0]


def test_a_copy_is_accepted_after_its_contents_were_compared(tmp_path):
    _obtain(tmp_path / "m")
    shutil.copytree(tmp_path / "m", tmp_path / "n", copy_function=shutil.copyfile)
    os.utime(tmp_path / "n/file", (1, 1))
    assert cache.faults(tmp_path / "n", RECIPE) == []
    assert b'"mtime_ns": 1000000000' in (tmp_path / "n" / cache.MANIFEST).read_bytes()


def _flip(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1] + b"?")


@pytest.mark.parametrize(
    ("damage", "file", "said"),
    [
        (lambda path: os.truncate(path, 3), "file", "file has 3 bytes instead of 8"),
        (_flip, "file", "file has other contents"),
        (Path.unlink, "file", "file is missing"),
        (Path.unlink, cache.MANIFEST, "its manifest is missing"),
        (lambda path: os.truncate(path, 3), cache.MANIFEST, "its manifest cannot be read"),
    ],
)
def test_damage_is_said_and_mended(tmp_path, damage, file, said):
    folder, _ = _obtain(tmp_path / "m")
    damage(folder / file)
    _, told = _obtain(tmp_path / "m")
    assert said in told[0]
    assert "making it anew" in told[0]
    assert (folder / "file").read_text() == "contents"
    assert not _obtain(tmp_path / "m")[1]


@pytest.mark.parametrize("junk", [b"", b"[]", b"null", b'{"recipe": 1}', b'{"recipe": {}, "files": []}', b"\xff"])
def test_a_manifest_of_nonsense_is_made_anew(tmp_path, junk):
    _obtain(tmp_path / "m")
    (tmp_path / "m" / cache.MANIFEST).write_bytes(junk)
    folder, said = _obtain(tmp_path / "m", "new")
    assert said
    assert (folder / "file").read_text() == "new"


def test_a_file_or_a_link_in_its_place_is_replaced(tmp_path):
    (tmp_path / "m").write_text("a file")
    (tmp_path / "n").symlink_to(tmp_path / "gone")
    for name in "mn":
        folder, _ = _obtain(tmp_path / name)
        assert (folder / "file").read_text() == "contents"


def test_what_an_open_file_holds_survives_a_rebuild(tmp_path):
    folder, _ = _obtain(tmp_path / "m")
    with (folder / "file").open() as held:
        _obtain(tmp_path / "m", "new", {"converter": 2})
        assert held.read() == "contents"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".m.lock", "m"]


def test_a_failure_leaves_the_old_folder(tmp_path):
    folder, _ = _obtain(tmp_path / "m")

    def fail(_place: Path, _lock: int | None) -> dict[str, str]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.obtain(folder, {"converter": 2}, fail, space=1, progress=lambda _line: None)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".m.lock", "m"]


def test_a_full_disk_is_an_error_of_one_line(tmp_path):
    with pytest.raises(ModelError, match=r"MiB free .* WORKBENCH_CACHE"):
        _obtain(tmp_path / "m", space=1 << 60)


def test_a_cache_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match="WORKBENCH_CACHE"):
        _obtain(tmp_path / "file" / "m")
