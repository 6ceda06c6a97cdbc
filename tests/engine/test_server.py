"""What we ask of the API server ourselves, from a server of the standard library."""

import http.server
import json
import threading

import pytest

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
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.status, server.asked, server.keys = 200, [], []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_health_is_its_answer(api):
    ours = Server(api.server_port, "key", "smollm2")
    assert ours.is_healthy()
    api.status = 503
    assert not ours.is_healthy()
    assert api.keys == ["Bearer key"] * 2


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
    with pytest.raises(EngineError, match=r"engine: got no answer \(.*refused"):
        ours.make_one_step()
