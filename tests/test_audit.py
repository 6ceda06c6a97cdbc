"""The audit of pins: what is affected fails, with a waiver that holds it does not, and an old list only warns."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
from datetime import date
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TODAY = date(2026, 12, 1)
ENTRY = {
    "id": "GHSA-aaaa-bbbb-cccc", "cve": "CVE-2026-1", "packages": ["Some_Package"],
    "affected": [">=1.0,<1.4.2", "==2.0"],
    "fixed": "1.4.2", "about": "it leaks", "touches": "yes", "reviewed": date(2026, 11, 30),
}  # fmt: skip
WAIVER = {"id": ENTRY["id"], "package": "some.package", "reason": "not called", "expires": date(2026, 12, 31)}


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("audit", ROOT / "tools" / "audit.py")
    module = sys.modules["audit"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules["audit"]


@pytest.fixture
def found(tool):
    def look(version, *, waivers=(), today=TODAY, **changed):
        listed = {"reviewed": date(2026, 11, 30), "days": 120, "advisory": [ENTRY | changed], "waiver": list(waivers)}
        return tool.audit(listed, {"some-package": [(version, "cpu.txt")]}, today)

    return look


@pytest.mark.parametrize("version", ["1.0", "1.4.1", "1.4.1rc1", "2.0", "1.3+cpu"])
def test_an_affected_pin_fails_and_says_what_to_pin(found, version):
    (problem,) = found(version).problems
    assert problem.startswith(
        f"cpu.txt: some-package=={version} is affected by GHSA-aaaa-bbbb-cccc (CVE-2026-1: it leaks)"
    )
    assert "pin 1.4.2 or later" in problem


@pytest.mark.parametrize("version", ["0.9", "1.4.2", "1.10", "2.0.1"])
def test_a_pin_beside_the_range_passes(found, version):
    assert found(version).problems == found(version).borne == []


def test_a_waiver_bears_it_until_its_day(found):
    assert found("1.0", waivers=[WAIVER], today=date(2026, 12, 31)).problems == []
    assert "borne until 2026-12-31: not called" in found("1.0", waivers=[WAIVER]).borne[0]
    assert "waiver ended on 2026-12-31" in found("1.0", waivers=[WAIVER], today=date(2027, 1, 1)).problems[0]


@pytest.mark.parametrize(
    "odd", [{"reason": ""}, {"expires": "never"}, {"id": "GHSA-other"}, {"package": "other"}, {"more": 1}]
)
def test_a_waiver_without_reason_or_day_or_for_something_else_is_none(found, odd):
    assert found("1.0", waivers=[WAIVER | odd]).problems


def test_a_waiver_that_nothing_needs_is_to_be_removed(found):
    assert "no pin is affected any more" in found("1.4.2", waivers=[WAIVER]).problems[0]


def test_an_entry_that_cannot_be_read_is_no_entry_that_passes(found):
    assert "no set of versions" in found("1.0", affected=["before 1.4"]).problems[0]
    assert "affected is []" in found("1.0", affected=[]).problems[0]


def test_an_old_list_warns_and_no_more(found):
    late = found("1.4.2", today=date(2027, 3, 31))
    assert (late.problems, len(late.warnings)) == ([], 1)
    assert "121 days ago" in late.warnings[0]
    assert found("1.4.2", today=date(2027, 3, 30)).warnings == []


def run(*options):
    command = [sys.executable, "tools/audit.py", *map(str, options)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_pins_of_this_repository_pass():
    done = run()
    assert done.returncode == 0, done.stderr
    pins, advisories = map(int, re.search(r"(\d+) pins against (\d+) advisories: 0 to mend", done.stdout).groups())
    assert pins > 200
    assert advisories == len(tomllib.loads((ROOT / "requirements" / "advisories.toml").read_text())["advisory"]) > 40


def test_a_planted_pin_fails(tmp_path):
    planted = tmp_path / "cpu.txt"
    planted.write_text("aiohttp[speedups]==3.9.1 ; python_version > '3'\npyarrow==14.0.1\nray==2.60.0\n")
    done = run("--pins", planted)
    assert done.returncode == 1
    assert "aiohttp==3.9.1 is affected by GHSA-5h86-8mv2-jq9f" in done.stderr
    assert "pyarrow" not in done.stderr


def test_every_advisory_names_a_package_that_is_pinned(tool):
    pins = tool.read_pins()
    listed = tomllib.loads((ROOT / "requirements" / "advisories.toml").read_text())
    names = {tool.canonicalize_name(name) for one in listed["advisory"] for name in one["packages"]}
    assert names <= pins.keys()
    ids = [one["id"] for one in listed["advisory"]]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"GHSA(-[23456789cfghjmpqrvwx]{4}){3}", one) for one in ids)


def test_the_linters_run_the_audit():
    rule = (ROOT / "Makefile").read_text().split("\nlint: setup\n")[1].split("\n\n")[0]
    assert "tools/audit.py" in rule
    assert "make lint" in (ROOT / ".ci" / "run").read_text()
