"""A page of metrics against Prometheus' own parser, and quantiles against what was put into the buckets."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from workbench.telemetry.metrics_page import Page, quantiles, server_row


class Server:
    """The metrics of a vLLM server, made by the library that vLLM uses."""

    def __init__(self):
        self.registry = CollectorRegistry()
        labels = {"labelnames": ["engine", "model_name"], "registry": self.registry}
        self.running = Gauge("vllm:num_requests_running", "", **labels)
        self.kv = Gauge("vllm:kv_cache_usage_perc", "", **labels)
        self.prompt = Counter("vllm:prompt_tokens", "", **labels)
        self.ttft = Histogram("vllm:time_to_first_token_seconds", "", buckets=[0.1, 0.2, 0.5, 1.0], **labels)

    def page(self):
        return Page.parse(generate_latest(self.registry).decode())


MODEL = 'a "model", {odd}\\name\nof two lines'


@pytest.fixture
def server():
    return Server()


def test_every_sample_is_as_prometheus_reads_it(server):
    server.running.labels("0", MODEL).set(3)
    server.ttft.labels("0", MODEL).observe(0.15)
    text = generate_latest(server.registry).decode()
    known = {
        (
            sample.name,
            repr(sorted((k, v) for k, v in sample.labels.items() if k != "le")),
            sample.labels.get("le"),
        ): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert server.page().samples == known


def test_ranks_are_added_up_and_shares_averaged_and_counters_count_from_the_first_page(server):
    server.prompt.labels("0", "m").inc(1000)
    first = server.page()
    for rank, (running, kv) in enumerate([(3, 0.2), (4, 0.4)]):
        server.running.labels(str(rank), "m").set(running)
        server.kv.labels(str(rank), "m").set(kv)
        server.prompt.labels(str(rank), "m").inc(7)
    row = server_row(server.page(), first)
    assert row == {"running": 7, "kv_use": pytest.approx(0.3), "prompt_tokens": 14}


def test_a_counter_that_was_set_back_says_nothing(server):
    server.prompt.labels("0", "m").inc(1000)
    assert "prompt_tokens" not in server_row(Server().page(), server.page())
    fresh = Server()
    fresh.prompt.labels("0", "m").inc(5)
    assert "prompt_tokens" not in server_row(fresh.page(), server.page())


def test_sglang_has_names_of_its_own():
    text = (
        "sglang:num_running_reqs 2\nsglang:num_queue_reqs 1\nsglang:token_usage 0.5\nsglang:generation_tokens_total 9\n"
    )
    page = Page.parse(text)
    assert page.knows
    assert server_row(page, Page({})) == {"running": 2, "waiting": 1, "kv_use": 0.5, "output_tokens": 9}


@given(st.lists(st.floats(0.0, 0.99), min_size=1, max_size=40), st.lists(st.floats(0.0, 3.0), max_size=10))
def test_the_true_quantile_lies_in_the_stated_bucket(values, before):
    server = Server()
    for value in before:
        server.ttft.labels("0", "m").observe(value)
    first = server.page()
    for value in values:
        server.ttft.labels("0", "m").observe(value)
    found = quantiles(server.page(), first)["ttft_s"]
    assert found["count"] == len(values)
    for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99)):
        true = sorted(values)[max(0, math.ceil(share * len(values)) - 1)]
        one = found[name]
        assert one["low"] <= true <= one["high"]
        assert one["low"] <= one["value"] <= one["high"]


def test_in_the_open_bucket_only_the_lower_bound_is_known(server):
    first = server.page()
    server.ttft.labels("0", "m").observe(30.0)
    found = quantiles(server.page(), first)["ttft_s"]
    assert found["p50"] == {"value": None, "low": 1.0, "high": None}


def test_interpolation_is_that_of_prometheus(server):
    server.ttft.labels("0", "m")
    first = server.page()
    for value in (0.05, 0.15, 0.15, 0.3):
        server.ttft.labels("0", "m").observe(value)
    # rank 2 of 4 lies in the bucket 0.1..0.2, which holds ranks 1..3: half way
    assert quantiles(server.page(), first)["ttft_s"]["p50"] == {"value": pytest.approx(0.15), "low": 0.1, "high": 0.2}


@pytest.mark.parametrize("value", ["+Inf", "NaN", "1e300", "-Inf"])
def test_a_value_that_no_count_has_is_left_out(value):
    names = ("num_requests_running", "kv_cache_usage_perc", "prompt_tokens_total")
    text = "".join(f"vllm:{name} {value}\n" for name in names) + f"process_resident_memory_bytes {value}\n"
    text += f'vllm:time_to_first_token_seconds_bucket{{le="1"}} {value}\n' * 2
    page = Page.parse(text)
    assert server_row(page, Page({})) == {}
    assert page.resident_bytes is None
    assert quantiles(page, Page({})) == {}


@given(st.text(max_size=400))
def test_any_text_is_a_page(text):
    page = Page.parse(text)
    server_row(page, page)
    quantiles(page, page)
