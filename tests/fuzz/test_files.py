"""Files that people write or other tools leave, damaged by machine: a named error or a right result, nothing else."""

from __future__ import annotations

import json
import os
from itertools import count
from pathlib import Path

import pytest
from damage import DEEP_JSON, FUZZ, encoded, mangled, misshapen, named, tree
from hypothesis import given
from hypothesis import strategies as st

import workbench
from workbench.exchange import import_file, read_results
from workbench.simulate import kept_calibrations
from workbench.workload.readers import read_trace
from workbench.workload.scenario import Scenario, load_scenario

ROOT = Path(workbench.__file__).parents[1]
SCENARIOS = sorted((ROOT / "data" / "scenarios").glob("*.yaml"))
RESULTS = [ROOT / "tests" / "data" / name for name in ("vllm-bench-0.32.0.json", "guidellm-0.8.1.json")]
AIPERF = ROOT / "tests" / "data" / "aiperf-0.13.0.jsonl"
TRACES = {
    "azure": b"""TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,374,44
2023-11-16 18:15:50.9951690,396,109
""",
    "burstgpt": b"""Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
5,ChatGPT,472,18,490,Conversation log
45,GPT-4,1,2,3,API log
""",
    "mooncake": b"""{"timestamp": 0, "input_length": 6755, "output_length": 500, "hash_ids": [46, 47]}
{"timestamp": 3000, "input_length": 20, "output_length": 0}
""",
}
numbers = count()


def put(folder, data, suffix):
    path = folder / f"{next(numbers)}{suffix}"
    path.write_bytes(data)
    return path


@FUZZ
@given(data=st.data())
def test_scenario_bytes(tmp_path, data):
    path = put(tmp_path, data.draw(mangled(data.draw(st.sampled_from(SCENARIOS)).read_bytes())), ".yaml")
    named(lambda: load_scenario(path))


@FUZZ
@given(data=st.data())
def test_scenario_values(tmp_path, data):
    good = load_scenario(data.draw(st.sampled_from(SCENARIOS))).model_dump(
        mode="json", by_alias=True, exclude_none=True
    )
    path = put(tmp_path, encoded(data.draw(misshapen(good))), ".yaml")
    found = named(lambda: load_scenario(path))
    if isinstance(found, Scenario):
        named(lambda: found.engine_config)
        named(lambda: found.rate)
        named(lambda: found.at_rate(2.0))


@pytest.mark.parametrize("kind", TRACES)
@FUZZ
@given(data=st.data())
def test_trace_bytes(tmp_path, kind, data):
    path = put(tmp_path, data.draw(mangled(TRACES[kind])), ".trace")
    named(lambda: read_trace(path))
    named(lambda: read_trace(path, kind))


@FUZZ
@given(data=st.data())
def test_trace_values(tmp_path, data):
    row = {"timestamp": 0, "input_length": 6755, "output_length": 500, "hash_ids": [46, 47]}
    lines = data.draw(st.lists(misshapen(row), min_size=1, max_size=3))
    named(lambda: read_trace(put(tmp_path, b"\n".join(map(encoded, lines)), ".jsonl")))


@pytest.mark.parametrize("file", [*RESULTS, AIPERF], ids=lambda path: path.stem)
@FUZZ
@given(data=st.data())
def test_result_bytes(tmp_path, file, data):
    path = put(tmp_path, data.draw(mangled(file.read_bytes())), ".json")
    found = named(lambda: read_results(path))
    if not isinstance(found, Exception):
        named(found.trace)


@pytest.mark.parametrize("file", [*RESULTS, AIPERF], ids=lambda path: path.stem)
@FUZZ
@given(data=st.data())
def test_result_values_up_to_the_figures(tmp_path, file, data):
    if file == AIPERF:
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        text = b"\n".join(encoded(data.draw(misshapen(row))) for row in rows)
    else:
        text = encoded(data.draw(misshapen(json.loads(file.read_text()))))
    path, runs = put(tmp_path, text, ".json"), tmp_path / "runs"
    before = tree(tmp_path) - tree(runs)
    run = named(lambda: import_file(path, runs))
    if not isinstance(run, Exception):
        named(lambda: (run.summary, run.kpis, run.stalls, run.requests, repr(run)))
    assert tree(tmp_path) - tree(runs) == before


GOOD = sorted((ROOT / "data" / "calibrations").glob("*.json"))


@FUZZ
@given(data=st.data())
def test_calibration_bytes(tmp_path, data):
    path = put(tmp_path, data.draw(mangled(GOOD[0].read_bytes())), ".json")
    named(lambda: kept_calibrations.load(path))


@FUZZ
@given(data=st.data())
def test_calibration_values(tmp_path, data):
    path = put(tmp_path, encoded(data.draw(misshapen(json.loads(GOOD[0].read_text())))), ".json")
    found = named(lambda: kept_calibrations.load(path))
    if not isinstance(found, Exception):
        named(lambda: (found.source, found.error_label, found.errors, found.residual_pct, found.as_dict()))
        named(lambda: kept_calibrations.match(found.model, found.machine, found.settings, [tmp_path]))
        path.unlink()


@pytest.mark.parametrize("deep", DEEP_JSON, ids=["lists", "objects", "closed"])
@pytest.mark.parametrize(
    "read", [load_scenario, read_trace, read_results, kept_calibrations.load], ids=lambda call: call.__name__
)
def test_nesting_without_end(tmp_path, read, deep):
    error = named(lambda: read(put(tmp_path, deep.encode(), ".yaml")))
    assert isinstance(error, Exception)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "read", [load_scenario, read_trace, read_results, kept_calibrations.load], ids=lambda call: call.__name__
)
def test_a_pipe_that_nobody_writes_to_is_not_waited_for(tmp_path, read):
    path = tmp_path / "pipe.yaml"
    os.mkfifo(path)
    assert isinstance(named(lambda: read(path)), Exception)
    assert isinstance(named(lambda: read(Path("/dev/zero"))), Exception)
