"""Servers that are not what a person meant, attached to from the command line: one line each, nothing left running."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import psutil
import pytest

from workbench import Workbench, cli, redact
from workbench.engine.attached_http import one_line
from workbench.errors import EngineStartError

STUB = Path(__file__).with_name("openai_stub.py")
OK = "HTTP/1.1 200 OK\r\n"
EMPTY = json.dumps({"object": "list", "data": []})
LOGIN = "<!DOCTYPE html><html><head><title>Please log in</title></head></html>"


def answer(body, status="200 OK", **headers):
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body.encode())}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", body]).encode()


@pytest.fixture
def server():
    """Start one that does this with each connection: its port. It gets the connection, and the event of the end."""
    over, listeners = threading.Event(), []

    def start(act):
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def meet(peer):
            with peer, contextlib.suppress(OSError):
                act(peer, over)

        def accept():
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=meet, args=(peer,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        return listener.getsockname()[1]

    yield start
    over.set()
    for listener in listeners:
        listener.close()


def says(data):
    """Answers every request with these bytes."""

    def act(peer, _over):
        peer.recv(65536)
        peer.sendall(data)

    return act


def hangs(data=b""):
    def act(peer, over):
        peer.recv(65536)
        peer.sendall(data)
        over.wait(60)

    return act


def trickles(peer, over):
    """A byte now and then: no packet is ever late, and the answer never there."""
    peer.recv(65536)
    peer.sendall(f"{OK}Content-Length: 100000\r\n\r\n".encode())
    while not over.wait(0.05):
        peer.sendall(b" ")


def closes(_peer, _over):
    pass


@pytest.fixture
def workbench(monkeypatch, capsys, tmp_path):
    """Run the command line: exit code, standard output, lines of standard error, and what was left behind."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("WORKBENCH_RUNS", str(tmp_path / "runs"))

    def call(*words):
        before = {one.pid for one in psutil.Process().children(recursive=True)}
        monkeypatch.setattr("sys.argv", ["workbench", *map(str, words)])
        with pytest.raises(SystemExit) as left:
            cli.main()
        said = capsys.readouterr()
        after = {one.pid for one in psutil.Process().children(recursive=True)}
        assert after <= before
        assert list(temporary.iterdir()) == []
        lines = said.err.strip().splitlines()
        return left.value.code, said.out, [line for line in lines if "engine start" not in line]  # the bar, in a pipe

    return call


BROKEN = {
    "an HTML page": (says(answer(LOGIN)), "got \"an HTML page, 'Please log in'\", expected a list of models"),
    "an HTML error": (says(answer(LOGIN, "404 Not Found")),
                      "got status 404 (an HTML page, 'Please log in'), expected 200; check the base path"),
    "words that move the cursor": (says(answer("\x1b[2Jno", "500 Oops")), "got status 500 (?[2Jno), expected 200"),
    "closes at once": (closes, "it closed the connection without an answer; give an https:// address if"),
    "closes in its answer": (says(f"{OK}Content-Length: 99\r\n\r\n{{".encode()), "in the middle of its answer"),
    "hangs": (hangs(), "no answer within 0.5 s; check the address, or raise --set start_timeout_s"),
    "hangs after its headers": (hangs(f"{OK}Content-Length: 9\r\n\r\n".encode()), "no answer within 0.5 s"),
    "trickles": (trickles, "no answer within 0.5 s"),
    "redirects": (says(answer("", "308 Permanent Redirect", Location="https://other.invalid/v1/models?key=s3cret")),
                  "it redirects to https://other.invalid/v1/models, and a key is never carried elsewhere; give the"),
    "redirects to itself": (says(answer("", "302 Found", Location="/v1/models")), "it redirects to http://127.0.0.1:"),
    "redirects nowhere": (says(answer("", "302 Found", Location="//[")), "it redirects to nowhere"),
    "redirects to a file": (says(answer("", "302 Found", Location="file:///etc/passwd")),
                            "redirects to file:///etc/passwd, and a key is never carried elsewhere; check the address"),
    "no model": (says(answer(EMPTY)), "got an empty list of models, expected at least one; wait until it has loaded"),
    "cards without names": (says(answer('{"data": [{"id": 3}]}')), "expected a list of models; this is no OpenAI"),
    "a refused key": (says(answer('{"error": {"message": "bad key"}}', "401 Unauthorized")),
                      "it refused the key (status 401); name its key with --api-key-env NAME"),
    "a chunk of less than nothing": (says(f"{OK}Transfer-Encoding: chunked\r\n\r\n-5\r\n{{}}\r\n0\r\n\r\n".encode()),
                                     "what answers there does not speak HTTP (HTTPException); check the address"),
    "another protocol": (says(b"SSH-2.0-OpenSSH_9.6\r\n"), "does not speak plain HTTP"),
}  # fmt: skip


@pytest.mark.parametrize(("act", "words"), BROKEN.values(), ids=BROKEN)
def test_a_server_that_is_none_is_one_line(workbench, server, act, words):
    patience = 0.5 if "0.5 s" in words else 60
    code, out, err = workbench("attach", f"http://127.0.0.1:{server(act)}", "--set", f"start_timeout_s={patience}")
    assert (code, out, len(err)) == (1, "", 1), err
    assert words in err[0]
    assert "127.0.0.1" in err[0]
    assert "s3cret" not in err[0]


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (says(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "give an http:// address"),
        (closes, "give an http:// address"),
    ],
    ids=["plain HTTP", "closes"],
)
def test_https_where_there_is_none_is_one_line(workbench, server, act, words):
    code, out, err = workbench("attach", f"https://127.0.0.1:{server(act)}", "--set", "start_timeout_s=60")
    assert (code, out, len(err)) == (1, "", 1), err
    assert words in err[0]


@pytest.mark.parametrize(
    ("url", "code", "words"),
    [
        ("http://127.0.0.1:9", 1, "nothing listens there"),
        ("http://no-such-host.invalid", 1, "there is no host of that name"),
        ("http://a..b", 2, "an http or https address"),
        ("http://127.0.0.1:99999", 2, "an http or https address"),
        ("http:/127.0.0.1", 2, "an http or https address"),
        ("http://user:s3cret@127.0.0.1", 2, "(hidden)"),
    ],
)
def test_an_address_that_leads_nowhere_is_one_line(workbench, url, code, words):
    found, out, err = workbench("attach", url)
    assert (found, out, len(err)) == (code, "", 1), err
    assert words in err[0]
    assert "s3cret" not in err[0]


def test_a_path_that_is_not_ascii_is_asked_for_as_browsers_do(workbench, server):
    asked = []

    def act(peer, _over):
        asked.append(peer.recv(65536).split(b"\r\n")[0])
        peer.sendall(answer("", "404 Not Found"))

    code, _, err = workbench("attach", f"http://127.0.0.1:{server(act)}/é/v1")
    assert (code, len(err)) == (1, 1)
    assert asked == [b"GET /%C3%A9/v1/models HTTP/1.1"]


@pytest.fixture
def stub():
    """A stub as somebody else's server, with these settings: its port."""
    started = []

    def start(**settings):
        process = subprocess.Popen(
            [sys.executable, STUB, json.dumps(settings)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        started.append(process)
        return int(process.stdout.readline())

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_keys_base_paths_and_models_that_are_not_the_servers(workbench, stub, monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-wrong-5521")
    url = f"http://127.0.0.1:{stub(key='right', prefix='/api')}"
    code, out, err = workbench("attach", f"{url}/api/v1", "--api-key-env", "MY_KEY")
    assert (code, out, len(err)) == (1, "", 1)
    assert "it refused the key (status 401); check the value of MY_KEY" in err[0]
    assert "sk-wrong" not in err[0]
    code, out, err = workbench("attach", f"{url}/ap/v1", "--api-key-env", "MY_KEY")
    assert (code, out, len(err)) == (1, "", 1)
    assert f"attach {url}/ap/v1/models: got status 404 (404: Not Found), expected 200; check the base path" in err[0]
    monkeypatch.setenv("MY_KEY", "right")
    code, out, err = workbench("attach", f"{url}/api", "--api-key-env", "MY_KEY", "--look")
    assert (code, out, len(err)) == (1, "", 1)
    code, out, err = workbench("attach", f"{url}/api/v1", "--api-key-env", "MY_KEY", "--model", "third")
    assert (code, out, len(err)) == (2, "", 1)
    assert "model: got 'third', expected one that the server has (served, second)" in err[0]


def test_of_two_models_the_first_is_taken_and_the_other_is_named(workbench, stub):
    port = stub()
    code, out, _ = workbench("attach", f"127.0.0.1:{port}", "--look")
    assert code == 0
    assert "vLLM 9.9.9, served, " in out
    assert "1 more served: second; --model NAME takes another." in out
    code, out, _ = workbench("attach", f"127.0.0.1:{port}", "--look", "--model", "second", "--json")
    assert (code, json.loads(out)["model"], json.loads(out)["other_models"]) == (0, "second", ["served"])


def test_a_run_in_which_no_request_was_answered_is_a_failure(workbench, stub, tmp_path):
    scenario = tmp_path / "short.yaml"
    stream = "{class: chat, arrivals: {kind: at_once, count: 2}, prompt_tokens: 20, output_tokens: 3}"
    scenario.write_text(f"name: short\nstreams:\n- {stream}\n")
    code, _, err = workbench("attach", f"127.0.0.1:{stub(streams=503)}", "--scenario", scenario)
    assert code == 1
    assert [line for line in err if "2 of 2 requests failed" in line and "no streams here" in line]
    code, _, err = workbench("attach", f"127.0.0.1:{stub()}", "--scenario", scenario)
    assert code == 0
    assert not [line for line in err if "failed" in line]


def test_stop_ends_a_start_that_waits_for_a_server(server, tmp_path):
    asked = threading.Event()

    def act(peer, over):
        peer.recv(65536)
        asked.set()
        over.wait(60)

    bench = Workbench(engine="attached", url=f"http://127.0.0.1:{server(act)}", start_timeout_s=600, runs=tmp_path)
    failed = []

    def start():
        try:
            bench.start()
        except EngineStartError as error:
            failed.append(str(error))

    thread = threading.Thread(target=start, daemon=True)
    thread.start()
    assert asked.wait(30)
    bench.stop()
    thread.join(30)
    assert failed == ["the start was stopped"]
    assert bench.engine.state == "stopped"


def test_half_of_a_key_that_a_server_says_again_is_not_shown(monkeypatch):
    monkeypatch.setattr(redact, "_known", {})
    redact.know("correct-horse-battery")
    assert one_line("x" * 150 + " correct-horse-battery") == "x" * 150 + " HIDDEN"
    assert one_line("correct-horse-battery, and more", 10) == "HIDDEN, an"
