"""What the client makes of everything that a server can answer, against a stub whose token times are known."""

from __future__ import annotations

import socket

import pytest

OK = {  # script: arrivals (index, n), cached tokens, finish reason
    "plain": ([(0, 1), (1, 1), (2, 1), (3, 1)], 2, "length"),
    "slow_headers": ([(0, 1), (1, 1), (2, 1), (3, 1)], 2, "length"),
    "multi": ([(0, 3), (3, 1)], None, "length"),
    "empty_first": ([(0, 1), (1, 1), (2, 2)], None, "length"),
    "comments": ([(0, 2), (2, 2)], None, "length"),
    "one_packet": ([(0, 1), (1, 1), (2, 1), (3, 1)], None, None),
    "split": ([(0, 1), (1, 3)], None, "length"),
    "crlf": ([(0, 2), (2, 2)], None, "length"),
    "no_usage": ([(0, 1), (1, 1), (2, 1), (3, 1)], None, "stop"),
    "no_done": ([(0, 4)], None, "length"),
    "no_blank_line": ([(0, 1), (1, 3)], None, "length"),
    "cut_when_whole": ([(0, 4)], None, "length"),
}
BAD = {  # script: arrivals, part of the error
    "mid_error": ([(0, 1), (1, 1)], "engine overloaded"),
    "error_text": ([], "out of luck"),
    "error_then_cut": ([(0, 1)], "engine overloaded"),
    "cut": ([(0, 1), (1, 1)], "ClientPayloadError"),
    "reset": ([(0, 1)], "Error"),
    "early": ([(0, 1)], "the stream ended after 1 of 4 tokens"),
    "abort": ([(0, 1)], "finish_reason 'abort'"),
    "malformed": ([(0, 1), (1, 3)], "not a completion chunk"),
    "huge_count": ([], "not a completion chunk"),
    "boundless": ([], "an event of over 1,048,576 bytes"),
    "too_long": ([], "status 400: prompt too long"),
    "unauthorised": ([], "status 401: Unauthorized"),
    "proxy": ([], "status 502: <html> <h1>Bad Gateway</h1>"),
    "crash": ([], "status 500: Internal Server Error"),
    "redirect": ([], "status 307: Temporary Redirect"),
    "not_streamed": ([], 'status 200: {"choices"'),
    "bad_charset": ([], "status 503: busy"),
    "packed": ([], "a compressed answer (gzip), though it was asked for as it is: tokens would come late"),
}


@pytest.fixture
def play(driver, start, request_, patience, server):
    """Plays one script; returns its row, its token rows, the play's zero and what the server knows."""

    def _play(script):
        name = f"{script}/{id(driver)}"
        play, sink = start(driver, request_(name))
        assert play.wait(patience)
        return sink.by_name[name], sink.tokens_of(name), play.zero, server.told()["truth"].get(name)

    return _play


def assert_in_order(row, tokens):
    stamps = [row["planned_s"], row["sent_s"], *(token["client_s"] for token in tokens), row["done_s"]]
    assert stamps == sorted(stamps)
    if tokens:
        assert (row["first_s"], row["last_s"]) == (tokens[0]["client_s"], tokens[-1]["client_s"])
    else:
        assert row["first_s"] is row["last_s"] is None


@pytest.mark.parametrize("script", OK)
def test_a_whole_answer(play, script):
    arrivals, cached, finish = OK[script]
    row, tokens, zero, truth = play(script)
    assert [(token["index"], token["n"]) for token in tokens] == arrivals
    assert (row["status"], row["error"], row["output_tokens"]) == ("ok", None, 4)
    assert (row["cached_tokens"], row["finish_reason"]) == (cached, finish)
    assert (row["class"], row["priority"], row["prompt_tokens"], row["max_tokens"]) == ("chat", 0, 4, 4)
    assert_in_order(row, tokens)
    written = [at - zero for at, n in truth for _ in range(n)]
    read = [token["client_s"] for token in tokens for _ in range(token["n"])]
    assert len(read) == len(written) == 4
    assert all(client > server for client, server in zip(read, written, strict=True))  # no arrival before its writing


def test_a_server_that_counts_at_the_end_only_corrects_the_total_and_no_arrival_is_made_up(play):
    row, tokens, _, _ = play("late_usage")
    assert [(token["index"], token["n"]) for token in tokens] == [(0, 1), (1, 1)]
    assert (row["status"], row["output_tokens"]) == ("ok", 4)


def test_an_answer_that_stops_with_a_reason_is_ok(play):
    row, tokens, _, _ = play("stop")
    assert (row["status"], row["finish_reason"], row["output_tokens"], len(tokens)) == ("ok", "stop", 2, 2)


@pytest.mark.parametrize("script", BAD)
def test_a_failed_answer_is_data(play, script):
    arrivals, error = BAD[script]
    row, tokens, _, _ = play(script)
    assert [(token["index"], token["n"]) for token in tokens] == arrivals
    assert row["output_tokens"] == sum(n for _, n in arrivals)
    assert row["status"] == "error"
    assert error in row["error"]
    assert "\n" not in row["error"]
    assert_in_order(row, tokens)


def test_no_server(drive, start, request_, patience):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        play, sink = start(drive(unused.getsockname()[1]), request_("a"), request_("b"))
        assert play.wait(patience)
    assert {row["status"] for row in sink.requests} == {"error"}
    assert all("ClientConnectorError" in row["error"] for row in sink.requests)
    assert len(sink.by_name) == 2


def test_what_is_sent(play, server):
    row, *_ = play("plain")
    seen = server.told()["seen"][row["request"]]
    assert seen["headers"]["Authorization"] == "Bearer secret-key"
    assert seen["body"] == {
        "model": "stub",
        "prompt": [5, 6, 7, 8],
        "max_tokens": 4,
        "ignore_eos": True,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        "priority": 0,
    }


def test_a_request_name_that_cannot_be_a_header_is_an_error_of_that_request(driver, start, request_, patience):
    play, sink = start(driver, request_("two\nlines"), request_("plain/after"))
    assert play.wait(patience)
    assert sink.by_name["two\nlines"]["status"] == "error"
    assert sink.by_name["plain/after"]["status"] == "ok"
