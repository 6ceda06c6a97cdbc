"""Every Python block of README and the other pages: compiled and held against the package, and run where it can be."""

from __future__ import annotations

import ast
import importlib
import os
import shutil
from pathlib import Path

import pytest
from blocks import ROOT, blocks, documents

from workbench import Workbench
from workbench.workload.scenario import load_scenario

RECORDED = ROOT / "data" / "runs" / "chat_and_long-budget-256"
BLOCKS = [one for page in documents() for one in blocks(page) if one.language == "python"]
YAML = [one for page in documents() for one in blocks(page) if one.language in ("yaml", "yml")]

# What is not run here: a text that the block has, and why. Imports, names and methods are looked up all the same.
NOT_RUN = {
    'with Workbench(model="smollm2") as wb:': "a live engine; tests/live",
    'engine="attached"': "needs a server; tests/engine/test_attached.py",
    "RayPlayer": "joins a cluster; tests/tune/ray/test_player.py",
    'distributed_executor_backend="ray"': "needs 16 GPUs",
    "plan(": "a minute of search; tests/planning",
    "tune(Question.of": "minutes of search; tests/tune/test_tune.py",
    "write_folder(": "goes on from a search; tests/tune/answer/test_emit.py",
    "import_file(": "goes on from a run of ours; tests/exchange/test_results.py",
    "read_csv(": "goes on from an export; tests/exchange/test_tables.py",
    "wb.tuner()": "a form; tests/ui/tuner/test_tuner.py",
}


def why_not(block):
    """The reason that a block is not run."""
    return next((reason for text, reason in NOT_RUN.items() if text in block.text), None)


def in_english(found):
    """Without the pages in other languages, which have the same blocks."""
    return [one for one in found if ".zh-CN" not in one.page]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda one: one.id)
def test_what_it_imports_and_calls_is_there(block):
    tree = ast.parse(block.text)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            module = importlib.import_module(node.module)
            assert [one.name for one in node.names if not hasattr(module, one.name)] == []
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("wb", "bench"):
            assert hasattr(Workbench, node.attr) or node.attr in vars(Workbench(model="smollm2")), node.attr


@pytest.mark.parametrize("block", YAML, ids=lambda one: one.id)
def test_a_scenario_can_be_read(block, tmp_path):
    if "streams:" not in block.text:
        pytest.skip("no scenario")
    file = tmp_path / "mine.yaml"
    file.write_text(block.text)
    assert load_scenario(file).name


@pytest.fixture(scope="module")
def names(tmp_path_factory, shared_simulator):
    """What blocks take for given: a workbench whose engine runs (simulated), and a run. One for each page."""
    root = tmp_path_factory.mktemp("python")
    shutil.copytree(ROOT / "data" / "runs" / "thrash-chunked", root / "data" / "runs" / "thrash-chunked")
    before = Path.cwd()
    os.chdir(root)
    bench = Workbench.of(
        load_scenario("policies"), engine="simulated", model="qwen2.5-7b", gpu="L40S", count=1, runs=root / "runs"
    )
    bench.start()
    run = Workbench.open(RECORDED)
    pages = {}
    yield lambda page: pages.setdefault(page, {"wb": bench, "run": run, "Workbench": Workbench})
    os.chdir(before)
    bench.stop()


@pytest.mark.parametrize("block", [one for one in in_english(BLOCKS) if why_not(one) is None], ids=lambda one: one.id)
def test_it_runs(block, names):
    space = names(block.page)
    exec(compile(block.text, block.id, "exec"), space)  # what a reader would do with it
    if "wb.panel()" in block.text:
        space["wb"].panel().close()


def test_nothing_is_left_out_without_a_reason():
    assert [text for text in NOT_RUN if not any(text in block.text for block in BLOCKS)] == []
    assert len([one for one in in_english(BLOCKS) if why_not(one) is None]) >= 6
