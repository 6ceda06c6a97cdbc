"""The main module of our API server: each process imports what it needs, and the collector is on again."""

import ast
import inspect
import subprocess
import sys

import pytest

pytest.importorskip("vllm")

LOOK = """
import gc, json, runpy, sys
runpy.run_module("workbench.engine.probe.serve", run_name=sys.argv[1])
named = ("vllm", "vllm.v1.engine.core", "vllm.entrypoints.launchers.api_server.entry")
print(json.dumps([gc.isenabled(), [name for name in named if name in sys.modules]]))
"""


@pytest.mark.parametrize(
    ("name", "imported"),
    [
        ("__mp_main__", '["vllm", "vllm.v1.engine.core"]'),  # as multiprocessing names it in EngineCore and workers
        ("elsewhere", "[]"),
    ],
)
def test_what_each_process_imports(name, imported):
    done = subprocess.run([sys.executable, "-c", LOOK, name], capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.splitlines()[-1] == f"[true, {imported}]"


def test_its_server_is_the_one_that_vllm_starts():
    from vllm.entrypoints.openai import api_server

    (block,) = [node for node in ast.parse(inspect.getsource(api_server)).body if isinstance(node, ast.If)]
    assert "from vllm.entrypoints.launchers.api_server.entry import main\nmain()" in ast.unparse(block).replace(
        "    ", ""
    )
