"""The client against truth: tokens, order and ends. Times are printed by the benchmark and asserted nowhere."""

from __future__ import annotations

import json
import socket
import struct
import time
import urllib.error
import urllib.request

import numpy as np
import pytest
from typer.testing import CliRunner

from workbench.cli import meter as cli_meter
from workbench.meter import selftest as selftest_module
from workbench.meter.compare import Errors
from workbench.meter.play import client_of, play, request
from workbench.meter.scripts import SCRIPTS
from workbench.meter.selftest import Case, Selftest, load, scripts
from workbench.meter.stub import Stub

SO_TIMESTAMPNS = 35


@pytest.fixture(scope="module")
def stub():
    with Stub() as stub:
        yield stub


@pytest.fixture(scope="module")
def client(stub):
    client = client_of(stub)
    yield client
    client.close()


def test_every_script_is_counted_and_called_what_it_is(stub, client):
    cases = scripts(stub, client)
    assert {case.name: case.verdict for case in cases} == dict.fromkeys(SCRIPTS, "ok")
    assert sum(case.errors.tokens_ours for case in cases) == sum(script.tokens for script in SCRIPTS.values())


@pytest.mark.parametrize("kind", ["steady", "lockstep"])
def test_no_token_of_many_streams_is_lost_or_invented(stub, client, kind):
    told = []
    case = load(stub, client, kind, 40, 50.0, 1.0, lambda what, share: told.append(share))
    assert (case.wrong, case.errors.tokens_truth, case.errors.tokens_ours) == ("", 2000, 2000)
    assert case.errors.gap_ms.size == 40 * 49
    assert case.waited is None or 0 <= case.waited <= 1
    assert told


def test_a_client_of_a_server_that_is_killed_reports_every_request():
    with Stub() as own:
        client = client_of(own)
        try:
            going = []

            def kill(share):
                if share > 0 and not going:
                    going.append(True)
                    own._process.kill()

            played = play(client, [request(f"steady/500/20/{i}", 500) for i in range(20)], 60.0, kill)
        finally:
            client.close()
    assert len(played.requests) == 20
    assert {row["status"] for row in played.requests.values()} == {"error"}
    for name, row in played.requests.items():
        assert [t["index"] for t in played.tokens[name]] == list(range(row["output_tokens"]))
    assert played.reported_twice == 0


def test_the_stub_tells_the_truth(stub):
    """The kernel's own stamps of a stream lie behind the moment that the server says it began to hand over."""
    with socket.create_connection(("127.0.0.1", stub.port)) as reader:
        reader.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        body = b"{}"
        reader.sendall(
            b"POST /v1/completions HTTP/1.1\r\nHost: stub\r\nX-Request-Id: steady/20/10/kernel\r\n"
            b"Content-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body
        )
        stamps = []
        while True:
            data, notes, _, _ = reader.recvmsg(65536, 64)
            monotonic, wall = time.monotonic_ns(), time.time_ns()
            if not data:
                break
            if b"choices" in data and notes:
                seconds, nanoseconds = struct.unpack("qq", notes[0][2])
                stamps += [(monotonic - (wall - seconds * 10**9 - nanoseconds)) / 1e9] * data.count(b'"text"')
    told = stub.truth()["steady/20/10/kernel"]["arrivals"]
    assert [n for _, _, n in told] == [1] * 20
    assert all(before <= after for before, after, _ in told)
    assert stamps
    before = np.array([b for b, _, _ in told[-len(stamps) :]])
    assert np.all(np.array(stamps) >= before - 1e-4)  # the two clocks are read one after the other


def test_a_client_that_miscounts_is_found_out(stub, client, monkeypatch):
    name = f"script/{next(iter(SCRIPTS))}/liar"
    played = play(client, [request(name, 12)], 60.0)
    truth = stub.truth()
    played.tokens[name].pop(3)
    monkeypatch.setattr(selftest_module, "play", lambda *_: played)
    monkeypatch.setattr(stub, "truth", lambda: truth)
    cases = {case.name: case.verdict for case in scripts(stub, client, mark="liar")}
    assert cases["single tokens"] == "1 tokens lost, 0 invented"
    assert cases["reasoning"] == "no row of the request"


def errors(gap_ms, doubt_ms=0.0):
    return Errors(2, 2, gap_ms=np.array([gap_ms]), ttft_ms=np.array([0.1]), doubt_ms=np.array([doubt_ms]))


@pytest.mark.parametrize(
    ("gap_ms", "doubt_ms", "waited", "part"),
    [
        (0.9, 9.0, 0.9, ""),
        (1.1, 0.6, 0.9, "the stub itself was held up"),
        (1.1, 0.0, 0.06, "waited for a core 6% of the time"),
        (1.1, 0.0, 0.04, "too slow for this load"),
        (1.1, 0.0, None, "its loop ran up to 7 ms late"),
    ],
)
def test_times_that_are_off_come_with_a_reason(gap_ms, doubt_ms, waited, part):
    why = selftest_module._why(errors(gap_ms, doubt_ms), 7.0, waited)
    assert part in why
    assert bool(why) == (gap_ms > 1.0)


@pytest.mark.parametrize(
    ("case", "code", "said"),
    [
        (Case("a", errors(0.5)), 0, "trusted: every token is there"),
        (Case("a", errors(5.0), why="busy"), 1, "tokens are right, times are not"),
        (Case("a", errors(0.5), wrong="1 tokens lost, 0 invented"), 1, "please report it"),
    ],
)
def test_the_command_says_whether_to_trust_it(monkeypatch, case, code, said):
    found = Selftest((case,), 0.5)
    monkeypatch.setattr(selftest_module, "selftest", lambda *_: found)
    text = CliRunner().invoke(cli_meter.meter_verb, [])
    assert text.exit_code == code
    assert said in text.stdout
    document = CliRunner().invoke(cli_meter.meter_verb, ["--json"])
    assert document.exit_code == code
    told = json.loads(document.stdout)
    assert told["trusted"] is (code == 0)
    assert told["cases"][0]["gap_error_p99_ms"] == pytest.approx(case.errors.gap(99))


NONSENSE = [
    ("x", b""), ("x", b"[1]"), ("x", b"[" * 100_000), ("x", b'{"max_tokens": "many"}'), ("x", b'{"max_tokens": [3]}'),
    ("x", b'{"stream_options": 3}'), ("x", b"\xff\xfe"), ("x", b'{"max_tokens": 1e999}'),
    ("script/none", b"{}"), ("script", b"{}"), ("steady/3", b"{}"), ("steady/x/10", b"{}"), ("lockstep/3/0", b"{}"),
    ("lockstep/3/nan", b"{}"), ("load/3/inf", b"{}"), ("flood/x", b"{}"),
]  # fmt: skip


def test_a_stranger_who_asks_for_nonsense_is_told_so_and_nobody_else_hears_of_it(capfd):
    with Stub() as own:
        for name, body in NONSENSE:
            asked = urllib.request.Request(f"http://127.0.0.1:{own.port}/v1/completions", body, {"X-Request-Id": name})
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(asked, timeout=60)
            assert (name, body[:20], refused.value.code) == (name, body[:20], 400)
        assert own.truth() == {}
    assert capfd.readouterr().err == ""
