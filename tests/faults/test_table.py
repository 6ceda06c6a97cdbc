"""docs/faults.md: each fault has a test that injects it, and each test that it names is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/faults.md").read_text()


def rows(text):
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    return {first: rest for first, *rest in cells if first != "fault" and not first.startswith("---")}


def tables():
    seen, injected = TEXT.split("## Which test injects it")
    return rows(seen), rows(injected)


def named(cell):
    return re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", cell)


def test_every_fault_has_tests_and_they_are_there():
    seen, injected = tables()
    assert list(seen) == list(injected)
    assert len(seen) >= 20
    for fault, (cell,) in injected.items():
        assert named(cell), f"no test injects: {fault}"
        assert cell == " ".join(f"`{path}::{test}`" for path, test in named(cell)), f"not only tests: {fault}"
        for path, test in named(cell):
            tree = ast.parse((ROOT / path).read_text())
            there = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
            assert test in there, f"{path} has no {test}"


def test_every_fault_says_what_is_seen_and_what_is_kept():
    for fault, cells in tables()[0].items():
        assert len(cells) == 2, fault
        assert all(cells), fault


def test_every_test_of_a_fault_is_in_the_table():
    in_table = {test for (cell,) in tables()[1].values() for _, test in named(cell)}
    files = [*(ROOT / "tests/faults").glob("test_*.py"), ROOT / "tests/live/test_faults.py"]
    for path in files:
        if path != Path(__file__):
            tests = re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE)
            assert set(tests) & in_table, f"{path.name} injects nothing that the table tells of"
