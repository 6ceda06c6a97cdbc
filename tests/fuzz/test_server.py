"""What somebody else's server may say: pages of metrics, lists of models, streams of events."""

from __future__ import annotations

import json
import math
import socket
import threading

import pytest
from damage import FUZZ, NUMBERS, encoded, mangled, misshapen, named, odd
from hypothesis import given
from hypothesis import strategies as st

from workbench.attached_config import AttachedConfig
from workbench.driver.messages import Item
from workbench.driver.stream import Stream
from workbench.engine.attached_http import Answer, Caller
from workbench.engine.attached_look import Found, look
from workbench.errors import WorkbenchError
from workbench.telemetry.metrics_page import Page, quantiles, server_row
from workbench.trace import table_of

PAGE = b"""# HELP vllm:num_requests_running Number of requests
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 4.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:prompt_tokens_total{engine="0",model_name="m"} 1000.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.1",model_name="m"} 2.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.5",model_name="m"} 5.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf",model_name="m"} 6.0
process_resident_memory_bytes 1.0e9
"""
values = st.sampled_from([*map(str, NUMBERS), "1e999", "NaN", "+Inf", "-Inf", "1.7e308", "x", "1_0"])


def check_page(text):
    now, before = Page.parse(text), Page.parse(PAGE.decode())
    for a, b in ((now, before), (before, now), (now, now)):
        row = server_row(a, b)
        assert table_of("server", [{"t_s": 0.0, **row}]).num_rows == 1  # every number fits its column
        assert all(math.isfinite(value) for value in row.values())
        for one in quantiles(a, b).values():
            json.dumps(one, allow_nan=False)  # a report can hold it
    assert now.resident_bytes is None or isinstance(now.resident_bytes, int)


@FUZZ
@given(mangled(PAGE))
def test_a_page_of_metrics_that_was_mangled(data):
    check_page(data.decode(errors="replace"))


@FUZZ
@given(st.data())
def test_a_page_of_metrics_with_values_that_no_server_counts(data):
    lines = PAGE.decode().splitlines()
    text = "\n".join(
        f"{line.rsplit(' ', 1)[0]} {data.draw(values)}" if data.draw(st.booleans()) else line for line in lines
    )
    check_page(text)


def test_ranks_whose_sum_no_machine_holds_say_nothing():
    line = 'vllm:num_requests_running{{engine="{}"}} 1.7e308\n'
    assert server_row(Page.parse(line.format(0) + line.format(1)), Page.parse("")) == {}


@pytest.mark.parametrize("piece", ["}", "{", '{a="', '",', "\\", " ", "a ", '{a="b"}', " 1"])
def test_a_line_of_metrics_takes_no_longer_than_its_length(piece):
    Page.parse("vllm:x" + piece * 200_000 + "\n" + PAGE.decode())


MODELS = {
    "object": "list",
    "data": [
        {"id": "m", "owned_by": "sglang", "max_model_len": 4096, "root": "/models/m"},
        {"id": "n", "owned_by": "vllm"},
    ],
}
INFO = {"version": "0.5", "dtype": "auto", "tp_size": 1, "max_running_requests": 8}


class Told:
    """Stands for the connection: answers are given, not asked for."""

    def __init__(self, answers, otherwise):
        self.answers, self.otherwise = answers, otherwise

    def ask(self, url, body=None, timeout_s=None):
        tail = url.rsplit("/", 1)[-1]
        return self.answers.get(tail, self.otherwise)


@FUZZ
@given(data=st.data())
def test_what_a_server_says_of_itself(data):
    config = AttachedConfig(url="http://127.0.0.1:1")
    bodies = {"models": data.draw(misshapen(MODELS).map(encoded) | mangled(encoded(MODELS)))}
    bodies |= {
        "server_info": data.draw(misshapen(INFO).map(encoded)),
        "version": encoded(data.draw(odd)),
        "metrics": data.draw(mangled(PAGE)),
    }
    status = data.draw(st.sampled_from([200, 200, 200, 404, 500, 302, 401]))
    answers = {name: Answer(status if name == "models" else 200, body, "//[") for name, body in bodies.items()}
    found = named(lambda: look(config, Told(answers, Answer(404, b"no"))))
    if isinstance(found, Found):
        assert isinstance(found.model, str)
        named(lambda: (found.words, found.local_tokenizer))


@pytest.fixture
def raw_server():
    """Sends bytes to whoever connects, then closes."""
    listener = socket.create_server(("127.0.0.1", 0))
    said = []

    def serve():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(1 << 16)
                connection.sendall(said[-1])

    threading.Thread(target=serve, daemon=True).start()
    yield listener.getsockname()[1], said
    listener.close()


@FUZZ
@given(data=st.data())
def test_answers_that_are_no_http(raw_server, data):
    port, said = raw_server
    whole = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 40\r\n\r\n" + encoded(MODELS)[:40]
    said.append(data.draw(mangled(whole)))
    config = AttachedConfig(url=f"http://127.0.0.1:{port}", start_timeout_s=2.0)
    found = named(lambda: look(config, Caller(config)))
    assert isinstance(found, Found | WorkbenchError)


EVENTS = b"".join(
    b"data: "
    + json.dumps({"choices": [{"text": "x", "finish_reason": None}], "usage": {"completion_tokens": n}}).encode()
    + b"\n\n"
    for n in range(1, 5)
)


@FUZZ
@given(data=st.data())
def test_event_streams(data):
    tokens = []
    stream = Stream(Item("r", "chat", 0, 0.0, (1, 2), 4), 100.0, 0.0, tokens.append)
    body = data.draw(mangled(EVENTS))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=4)))
    for number, (a, b) in enumerate(zip([0, *cuts], [*cuts, len(body)], strict=True), 1):
        stream._arrived.append((100.0 + number, body[a:b]))
        stream.parse()
    stream._closed = True
    row = stream.finish()
    assert row.status in ("ok", "error")
    assert (row.error is None) == (row.status == "ok")
    assert sum(token.n for token in tokens) <= 4


def test_settings_that_no_file_can_hold_are_left_out():
    info = b'{"version": "0.5", "tp_size": NaN, "pp_size": 1e999, "page_size": 1' + b"0" * 400 + b', "dtype": "auto"}'
    models = {"data": [{"id": "m", "owned_by": "sglang", "max_model_len": 10**400}]}
    answers = {"models": Answer(200, encoded(models)), "server_info": Answer(200, info)}
    found = look(AttachedConfig(url="http://127.0.0.1:1"), Told(answers, Answer(404, b"no")))
    assert (found.settings, found.version, found.max_model_len) == ({"dtype": "auto"}, "0.5", None)
