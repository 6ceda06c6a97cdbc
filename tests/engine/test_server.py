"""What we ask of the API server ourselves, from a server of the standard library."""

import http.server
import json
import socket
import threading

import pytest

from workbench.engine import server
from workbench.engine.server import Server
from workbench.errors import EngineError


class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer()

    def do_POST(self):
        self.server.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.answer()

    def answer(self):
        self.server.keys.append(self.headers["Authorization"])
        self.send_response(self.server.status)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


@pytest.fixture
def api():
    api = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    api.status, api.asked, api.keys = 200, [], []
    threading.Thread(target=api.serve_forever, daemon=True).start()
    yield api
    api.shutdown()
    api.server_close()


def test_health_is_its_answer(api):
    ours = Server(api.server_port, "key", "smollm2")
    assert ours.is_healthy()
    api.status = 503
    assert not ours.is_healthy()
    assert api.keys == ["Bearer key"] * 2


def test_a_server_is_lost_by_its_own_word(api):
    ours = Server(api.server_port, "key", "smollm2")
    for status, lost in ((200, False), (503, True), (500, False), (404, False)):
        api.status = status
        assert ours.is_lost() is lost, status


def test_one_bad_answer_is_not_the_end(api):
    ours, answers = Server(api.server_port, "key", "smollm2"), iter([503, 200])
    api.status = 200
    ask = ours._ask
    ours._ask = lambda *what: ask(*what) and next(answers)
    assert not ours.is_lost()


def test_a_server_that_is_slow_is_not_lost(monkeypatch):
    monkeypatch.setattr(server, "_TIMEOUT_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it takes connections and never answers
        assert not Server(silent.getsockname()[1], "key", "smollm2").is_lost()


def test_a_step_is_one_token_in_and_one_out(api):
    Server(api.server_port, "key", "smollm2").make_one_step()
    (asked,) = api.asked
    assert (asked["model"], len(asked["prompt"]), asked["max_tokens"]) == ("smollm2", 1, 1)
    api.status = 500
    with pytest.raises(EngineError, match="engine: got status 500, expected a step"):
        Server(api.server_port, "key", "smollm2").make_one_step()


def test_where_nobody_listens(api):
    api.shutdown()
    api.server_close()
    ours = Server(api.server_port, "key", "smollm2")
    assert not ours.is_healthy()
    assert ours.is_lost()
    with pytest.raises(EngineError, match=r"engine: got no answer \(.*refused"):
        ours.make_one_step()
