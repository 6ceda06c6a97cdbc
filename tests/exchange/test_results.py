"""Files that the tools wrote, against the figures that they print themselves; and files that nobody wrote."""

from __future__ import annotations

import json
import math
import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench import metrics
from workbench.config import SLO
from workbench.errors import TraceFileError
from workbench.exchange import import_file, read_results
from workbench.exchange import results as results_module
from workbench.handover import side_by_side
from workbench.run import RecordedRun
from workbench.store import RunWriter

VLLM, GUIDELLM = "vllm-bench-0.32.0.json", "guidellm-0.8.1.json"


def aiperf_record(number, **more):
    record = {
        "metadata": {"request_start_ns": 1_000_000_000_000 + number * 500_000_000, "benchmark_phase": "profiling",
                     "request_end_ns": 1_000_300_000_000 + number * 500_000_000, "was_cancelled": False},
        "metrics": {
            "input_sequence_length": {"value": 550, "unit": "tokens"},
            "output_sequence_length": {"value": 3, "unit": "tokens"},
            "time_to_first_token": {"value": 255.0, "unit": "ms"},
            "inter_chunk_latency": {"value": [5.0, 20.0], "unit": "ms"},
        },
        "error": None,
    }  # fmt: skip
    return record | more


def one_line(error):
    assert "\n" not in str(error)


def lines(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_vllm_bench_says_the_same_figures_as_its_trace(data):
    said = json.loads((data / VLLM).read_text())
    results = read_results(data / VLLM)
    found = metrics.summary(results.trace(), SLO())
    assert found["requests"] == found["ok"] == said["completed"] == 5
    assert found["tokens"] == said["total_output_tokens"]
    assert found["ttft_sent_p50_s"] * 1e3 == pytest.approx(said["median_ttft_ms"])
    assert found["gap_p50_ms"] == pytest.approx(said["median_itl_ms"])
    assert found["gap_p99_ms"] == pytest.approx(said["p99_itl_ms"])
    assert found["tpot_p50_ms"] == pytest.approx(said["median_tpot_ms"])
    assert found["ttft_p50_s"] is None  # the planned arrival is not in the file
    assert found["steps"] is None
    assert found["goodput_per_s"] is None  # without a TTFT nobody knows: not 0
    assert found["classes"]["imported"]["goodput_per_s"] is None
    assert found["prompt_tokens_per_s"] == pytest.approx(said["total_input_tokens"] / found["duration_s"])
    assert found["stalls"] == sum(gap > 0.2 for gaps in said["itls"] for gap in gaps) == 0
    assert any("planned arrival" in missing for missing in results.missing)


def test_guidellm_has_first_and_last_tokens_and_no_gaps(data):
    said = json.loads((data / GUIDELLM).read_text())["benchmarks"][0]["requests"]["successful"]
    trace = read_results(data / GUIDELLM).trace()
    assert trace.meta["label"] == "imported (GuideLLM 0.8.1)"
    found = metrics.request_metrics(trace, SLO())
    assert (found["ttft_sent_s"] * 1e3).tolist() == pytest.approx(
        [one["time_to_first_token_ms"] for one in said], abs=1e-3
    )
    assert found["tpot_ms"].tolist() == pytest.approx([one["inter_token_latency_ms"] for one in said], abs=1e-3)
    assert trace.tables["tokens"].num_rows == 0
    assert trace.requests["prompt_tokens"].tolist() == [one["prompt_tokens"] for one in said]
    assert metrics.summary(trace, SLO())["tokens"] == 40
    assert metrics.summary(trace, SLO())["stalls"] is None  # without arrivals nobody knows: not 0
    assert trace.requests["sent_s"].min() == 0.0


def test_guidellm_plans_arrivals_under_a_rate(data, tmp_path):
    whole = json.loads((data / GUIDELLM).read_text())
    whole["benchmarks"][0]["config"]["strategy"]["type_"] = "poisson"
    (tmp_path / "g.json").write_text(json.dumps(whole))
    trace = read_results(tmp_path / "g.json").trace()
    timings = [one["info"]["timings"] for one in whole["benchmarks"][0]["requests"]["successful"]]
    lag = [one["request_start"] - one["targeted_start"] for one in timings]
    assert metrics.request_metrics(trace, SLO())["schedule_lag_s"].tolist() == pytest.approx(lag, abs=1e-6)
    figures = metrics.summary(trace, SLO())
    assert (figures["ttft_count"], figures["goodput_per_s"], figures["stalls"]) == (5, None, None)  # gaps are not known
    assert metrics.by_class(trace, SLO())["stalls"].isna().all()


def test_guidellm_with_several_benchmarks_asks_which(data, tmp_path):
    whole = json.loads((data / GUIDELLM).read_text())
    whole["benchmarks"] *= 2
    (tmp_path / "g.json").write_text(json.dumps(whole))
    with pytest.raises(TraceFileError, match="2 benchmarks"):
        read_results(tmp_path / "g.json")
    assert len(read_results(tmp_path / "g.json", 1).requests) == 5
    with pytest.raises(TraceFileError, match=r"benchmark 7.*0 to 1"):
        read_results(tmp_path / "g.json", 7)


def test_aiperf_records_become_requests_and_arrivals(tmp_path):
    failed = aiperf_record(1, metrics={"error_isl": {"value": 550, "unit": "tokens"}},
                           error={"code": 499, "type": "Cancelled", "message": "was\ncancelled"})  # fmt: skip
    failed["metadata"]["was_cancelled"] = True
    warm = aiperf_record(0)
    warm["metadata"] = warm["metadata"] | {"benchmark_phase": "warmup"}
    results = read_results(lines(tmp_path / "profile_export.jsonl", warm, aiperf_record(0), failed))
    trace = results.trace()
    assert results.about == {"warm_up_requests_left_out": 1}
    rows = trace.requests
    assert rows["status"].tolist() == ["ok", "cancelled"]
    assert rows["error"].tolist()[1] == "was cancelled"
    assert (rows["sent_s"].tolist(), rows["first_s"].tolist()[0]) == ([0.0, 0.5], pytest.approx(0.255))
    assert rows["last_s"].tolist()[0] == pytest.approx(0.28)
    assert rows["done_s"].tolist()[0] == pytest.approx(0.3)
    assert trace.tokens["client_s"].tolist() == pytest.approx([0.255, 0.26, 0.28])
    assert metrics.gaps(trace)["gap_ms"].tolist() == pytest.approx([5.0, 20.0])
    assert math.isnan(rows["first_s"].tolist()[1])


def test_aiperf_itself_says_the_same(data):
    said = [json.loads(line) for line in (data / "aiperf-0.13.0.jsonl").read_text().splitlines()]
    trace = read_results(data / "aiperf-0.13.0.jsonl").trace()
    found = metrics.request_metrics(trace, SLO())
    assert (found["ttft_sent_s"] * 1e3).tolist() == pytest.approx(
        [one["metrics"]["time_to_first_token"]["value"] for one in said], abs=1e-5
    )
    assert found["tpot_ms"].tolist() == pytest.approx(
        [one["metrics"]["inter_token_latency"]["value"] for one in said], abs=1e-5
    )
    assert found["output_tokens"].tolist() == [50, 50, 50]
    begun = [one["metadata"]["request_start_ns"] for one in said]
    assert trace.requests["sent_s"].tolist() == pytest.approx([(at - min(begun)) / 1e9 for at in begun], abs=1e-9)
    gaps = sorted(gap for one in said for gap in one["metrics"]["inter_chunk_latency"]["value"])
    assert sorted(metrics.gaps(trace)["gap_ms"]) == pytest.approx(gaps, abs=1e-5)


def test_a_vllm_request_that_failed_has_no_first_token(data, tmp_path):
    whole = json.loads((data / VLLM).read_text())
    whole["ttfts"][2], whole["itls"][2], whole["output_lens"][2], whole["errors"][2] = 0.0, [], 0, "Bad\nGateway"
    (tmp_path / "v.json").write_text(json.dumps(whole))
    rows = read_results(tmp_path / "v.json").trace().requests
    assert rows["status"].tolist() == ["ok", "ok", "error", "ok", "ok"]
    assert rows["error"].tolist()[2] == "Bad Gateway"
    assert math.isnan(rows["first_s"].tolist()[2])


def test_an_imported_run_stands_beside_a_run_of_ours(data, tmp_path, trace):
    ours = tmp_path / "runs" / "ours"
    with RunWriter(ours, {"label": "live CPU", "scenario": "ours"}) as writer:
        for name in ("requests", "tokens"):
            writer.rows(name, trace.tables[name].to_pylist())
    run = import_file(data / VLLM, tmp_path / "runs")
    assert run.meta["label"] == "imported (vllm bench serve)"
    assert run.meta["imported"]["request_rate"] == 20.0
    said = json.loads((data / VLLM).read_text())
    frame = side_by_side([RecordedRun(ours), run])
    assert frame.iloc[:, 1]["gap_p50_ms"] == pytest.approx(said["median_itl_ms"])
    assert frame.iloc[:, 0]["gap_p50_ms"] == pytest.approx(50.0)
    gaps = [gap for gaps in said["itls"] for gap in gaps]
    assert frame.loc["gap_p50_ms", "ratio"] == pytest.approx(statistics.median(gaps) * 1e3 / 50.0)


NOT_RESULTS = {
    "an empty file": ("", "an empty file"),
    "text": ("hello\nworld", "hello world"),
    "another JSON": ('{"a": 1}', "expected a result file of"),
    "a list": ("[1]", "expected a result file of"),
    "no details": ('{"num_prompts": 3, "mean_ttft_ms": 2}', "saved with --save-detailed"),
    "columns of two lengths": (
        '{"num_prompts": 1, "ttfts": [1, 2], "itls": [[]], "start_times": [0], "input_lens": [1], "output_lens": [1], '
        '"errors": [""]}',
        "as many of each",
    ),
    "a time that is none": (
        '{"num_prompts": 1, "ttfts": ["soon"], "itls": [[]], "start_times": [0], "input_lens": [1], '
        '"output_lens": [1], '
        '"errors": [""]}',
        "request 0: ttfts: got 'soon', expected a number",
    ),
    "not a number": (
        '{"num_prompts": 1, "ttfts": [NaN], "itls": [[]], "start_times": [0], "input_lens": [1], "output_lens": [1], '
        '"errors": [""]}',
        "request 0: ttfts",
    ),
    "years between two requests": (
        '{"num_prompts": 2, "ttfts": [1, 1], "itls": [[], []], "start_times": [0, 1e300], "input_lens": [1, 1], '
        '"output_lens": [1, 1], "errors": ["", ""]}',
        "times of one run",
    ),
    "nested too deeply": ("[" * 200_000, "expected a result file of"),
}


@pytest.mark.parametrize(("text", "says"), NOT_RESULTS.values(), ids=NOT_RESULTS)
def test_what_is_no_result_file_is_one_line_with_its_place(tmp_path, text, says):
    path = tmp_path / "mine.json"
    path.write_text(text)
    with pytest.raises(TraceFileError, match=r"mine\.json") as refused:
        import_file(path, tmp_path / "runs")
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "runs").exists()  # nothing is recorded


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(TraceFileError, match="No such file"):
        read_results(tmp_path / "none.json")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def mutated(draw, value, depth=0):
    """The value with one place in it replaced by anything."""
    if depth < 8 and isinstance(value, dict) and value and draw(st.integers(0, 5)):
        key = draw(st.sampled_from(sorted(value)))
        return value | {key: mutated(draw, value[key], depth + 1)}
    if depth < 8 and isinstance(value, list) and value and draw(st.integers(0, 5)):
        at = draw(st.integers(0, len(value) - 1))
        return [*value[:at], mutated(draw, value[at], depth + 1), *value[at + 1 :]]
    return draw(_JSON)


@pytest.mark.parametrize("name", [VLLM, GUIDELLM, "aiperf"])
@given(pick=st.data())
@settings(max_examples=60, deadline=None)
def test_a_file_with_anything_wrong_in_it_is_a_named_error_or_a_trace(tmp_path_factory, name, pick):
    from pathlib import Path

    whole = (
        aiperf_record(3) if name == "aiperf" else json.loads((Path(__file__).parents[1] / "data" / name).read_text())
    )
    path = tmp_path_factory.mktemp("r") / "mine.json"
    path.write_text(json.dumps(mutated(pick.draw, whole)))
    try:
        trace = read_results(path).trace()
    except TraceFileError as error:
        one_line(error)
    else:
        metrics.summary(trace, SLO())
        assert len(trace.requests) == len(set(trace.requests["request"]))


@given(st.binary(max_size=300))
@settings(max_examples=60, deadline=None)
def test_any_bytes_are_a_named_error(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("r") / "mine.json"
    path.write_bytes(content)
    with pytest.raises(TraceFileError):
        read_results(path)


def guidellm_with(data, tmp_path, **timings):
    whole = json.loads((data / GUIDELLM).read_text())
    whole["benchmarks"][0]["requests"]["successful"][1]["info"]["timings"] |= timings
    (tmp_path / "g.json").write_text(json.dumps(whole))
    return tmp_path / "g.json"


@pytest.mark.parametrize("wrong", ["first_token_iteration", "last_token_iteration", "request_end"])
def test_a_time_before_the_one_that_it_follows_is_named(data, tmp_path, wrong):
    with pytest.raises(TraceFileError, match=r"successful-1: got 'a step of \d.* s back in time', expected its send"):
        import_file(guidellm_with(data, tmp_path, **{wrong: 1.0}), tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


FAR = dict.fromkeys(("request_start", "first_token_iteration", "last_token_iteration", "request_end"), 4e9)


@pytest.mark.parametrize("far", [FAR, {"request_end": 4e9}, {"request_end": 1e308}], ids=["all", "end", "never"])
def test_a_time_that_is_in_no_run_is_named(data, tmp_path, far):
    with pytest.raises(TraceFileError, match=r"s between two times', expected times of one run"):
        read_results(guidellm_with(data, tmp_path, **far))


def test_a_request_that_ends_before_its_send_is_named_with_its_line(tmp_path):
    record = aiperf_record(1)
    record["metadata"]["request_end_ns"] = record["metadata"]["request_start_ns"] - 2_000_000_000
    with pytest.raises(TraceFileError, match=r"request-1: got 'a step of 2\.28 s back in time'"):
        read_results(lines(tmp_path / "a.jsonl", aiperf_record(0), record))


def test_names_that_move_a_cursor_are_recorded_as_letters_and_the_run_opens(data, tmp_path):
    bad = "0.8\x1b[31m\u202e"
    whole = json.loads((data / GUIDELLM).read_text())
    whole["metadata"]["guidellm_version"] = bad
    whole["benchmarks"][0]["config"]["backend"] = {"model": bad}
    (tmp_path / "g.json").write_text(json.dumps(whole))
    run = import_file(tmp_path / "g.json", tmp_path / "runs", name=bad)
    assert (run.meta["label"], run.meta["scenario"]) == ("imported (GuideLLM 0.8?[31m?)", "0.8?[31m?")
    assert run.meta["imported"]["model_id"] == "0.8?[31m?"
    assert run.summary["requests"] == 5


def test_a_file_of_more_values_than_memory_holds_is_refused_before_it_is_parsed(tmp_path, monkeypatch):
    monkeypatch.setattr(results_module, "MOST_VALUES", 1_000)
    monkeypatch.setattr(results_module, "parse_json", lambda _: pytest.fail("parsed"))
    path = tmp_path / "mine.json"
    path.write_text('{"num_prompts": 1, "ttfts": [' + "[]," * 600 + "[]]}")
    with pytest.raises(TraceFileError, match="some 1,204 values', expected at most 1,000"):
        read_results(path)
