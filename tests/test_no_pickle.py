"""Nothing that this package reads can run code: what could is not in its source, and no pickle that comes is loaded."""

from __future__ import annotations

import ast
import contextlib
import os
import pickle
import shutil
from pathlib import Path

import msgspec
import pytest
import zmq

import workbench
from workbench.driver.messages import Order, Report
from workbench.engine.collector import Collector
from workbench.engine.probe import wire
from workbench.engine.probe.knob_page import NAME
from workbench.errors import WorkbenchError
from workbench.exchange import read_csv, read_parquet, read_results
from workbench.simulate import kept_calibrations
from workbench.store import RunWriter, catalogue, list_runs, open_run
from workbench.workload.readers import read_trace
from workbench.workload.scenario import load_scenario

PACKAGE = Path(workbench.__file__).parent
MODULES = {
    "pickle", "cPickle", "_pickle", "cloudpickle", "dill", "marshal", "shelve", "joblib", "jsonpickle",
    "multiprocessing", "concurrent.futures.process", "xmlrpc", "code", "codeop",
}  # fmt: skip
NAMES = {"eval", "exec", "compile", "__import__", "ProcessPoolExecutor"}
METHODS = {
    "recv_pyobj", "send_pyobj", "recv_serialized", "send_serialized",  # ZMQ
    "read_pickle", "to_pickle", "read_hdf",  # pandas
    "deserialize", "deserialize_pandas", "deserialize_components",  # pyarrow
    "full_load", "unsafe_load", "load_all", "full_load_all", "unsafe_load_all",  # yaml
    "ProcessPoolExecutor",
}  # fmt: skip
LOADS = {"torch", "np", "numpy", "yaml"}  # whose .load() may run code


def unsafe(source):
    """What in a module could unpickle or evaluate what it is given, with its line."""
    for node in ast.walk(ast.parse(source)):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Import):
            yield from ((line, alias.name) for alias in node.names if MODULES & {alias.name, alias.name.split(".")[0]})
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if MODULES & {module, module.split(".")[0]}:
                yield line, module
            ours = module.startswith("workbench")
            yield from ((line, one.name) for one in node.names if one.name in NAMES | METHODS | MODULES and not ours)
        elif isinstance(node, ast.Call):
            yield from ((line, found) for found in _called(node))


def _called(node):
    call = node.func
    if isinstance(call, ast.Name) and call.id in NAMES | METHODS:
        yield call.id
    elif isinstance(call, ast.Attribute):
        owner = ast.unparse(call.value)
        if call.attr in METHODS or (call.attr == "load" and owner in LOADS) or (owner == "builtins"):
            yield f"{owner}.{call.attr}"
    for word in node.keywords:
        value = ast.unparse(word.value)
        if (word.arg == "allow_pickle" and value != "False") or (
            word.arg == "Loader" and value not in ("yaml.SafeLoader", "SafeLoader")
        ):
            yield f"{word.arg}={value}"


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_nothing_in_the_source_unpickles_or_evaluates(path):
    assert list(unsafe(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle", "from cloudpickle import loads", "import multiprocessing as mp", "from x import y, marshal",
        "from multiprocessing.connection import Client", "socket.recv_pyobj()", "pd.read_pickle(x)", "torch.load(x)",
        "np.load(x, allow_pickle=True)", "yaml.load(x, Loader=yaml.Loader)", "yaml.unsafe_load(x)",
        "eval(x)", "exec(x)",
        "pa.deserialize(x)", "__import__(x)", "yaml.compose(x, Loader=FullLoader)",
    ],
)  # fmt: skip
def test_the_search_finds_what_it_looks_for(source):
    assert list(unsafe(source))


@pytest.mark.parametrize(
    "source",
    [
        "re.compile(x)",
        "yaml.safe_load(x)",
        "json.load(x)",
        "yaml.compose(x, Loader=yaml.SafeLoader)",
        "kept_calibrations.load(x)",
    ],
)
def test_the_search_passes_over_what_is_safe(source):
    assert list(unsafe(source)) == []


class Bomb:
    """Makes a folder when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.fixture
def bomb(tmp_path):
    """A pickle that goes off, and where one would see that."""
    first = tmp_path / "first"
    pickle.loads(pickle.dumps(Bomb(first)))
    assert first.is_dir()  # it does go off
    mark = tmp_path / "gone-off"
    return pickle.dumps(Bomb(mark)), mark


def test_a_pickle_in_the_probes_socket_is_a_fault_and_nothing_more(bomb, tmp_path_factory):
    data, mark = bomb
    folder = tmp_path_factory.mktemp("p")
    collector = Collector(folder)
    push = zmq.Context.instance().socket(zmq.PUSH)
    try:
        push.connect(wire.endpoint(folder))
        push.send(data)
        push.send(msgspec.msgpack.encode(wire.WorkerHello(1, 5, "cpu", 1, 2)))
        for _ in range(2_000):
            if 5 in collector.workers:
                break
            collector._thread.join(0.005)
        assert 5 in collector.workers  # what came after it was taken
        assert collector.fault_count == 1
    finally:
        push.close(0)
        collector.close()
    assert not mark.exists()


@pytest.mark.parametrize("kind", [wire.Record, wire.KnobChange, Order, Report], ids=str)
def test_a_pickle_is_no_message(bomb, kind):
    data, mark = bomb
    with pytest.raises(msgspec.DecodeError):
        msgspec.msgpack.decode(data, type=kind)
    assert not mark.exists()


@pytest.mark.parametrize(
    "read", [load_scenario, read_trace, read_results, kept_calibrations.load], ids=lambda read: read.__name__
)
def test_a_pickle_is_no_file_of_ours(bomb, tmp_path, read):
    data, mark = bomb
    path = tmp_path / "file.yaml"
    path.write_bytes(data)
    with pytest.raises(WorkbenchError):
        read(path)
    assert not mark.exists()


@pytest.mark.parametrize(
    "tag", ["!!python/object/apply:os.mkdir", "!!python/name:os.mkdir", "!!python/object/new:os.mkdir"]
)
def test_a_tag_of_pythons_in_yaml_is_refused(tmp_path, tag):
    mark = tmp_path / "gone-off"
    path = tmp_path / "a.yaml"
    path.write_text(f"name: {tag} ['{mark}']\n")
    with pytest.raises(WorkbenchError):
        load_scenario(path)
    assert not mark.exists()


def test_pickles_all_over_a_run_folder_are_not_loaded(bomb, tmp_path):
    data, mark = bomb
    whole = tmp_path / "whole"
    with RunWriter(whole, {"label": "live CPU"}) as writer:
        writer.rows("tokens", [{"request": "a", "index": 0, "n": 1, "client_s": 1.0}])
    for place in (*sorted(path.name for path in whole.iterdir()), "tokens.pkl", "tokens.arrows", NAME, wire.HELLO):
        folder = tmp_path / "runs" / f"20260101-000000-000-{place}"
        shutil.copytree(whole, folder)
        (folder / place).write_bytes(data)
        list_runs(folder.parent)
        for read in (open_run, read_csv, read_parquet, lambda folder: catalogue(folder.parent)):
            with contextlib.suppress(WorkbenchError):
                read(folder)
        shutil.rmtree(folder)
    assert not mark.exists()
