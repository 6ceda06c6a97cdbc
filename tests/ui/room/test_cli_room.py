"""`workbench room`: loopback without a token, anything else with one, and no secret on a command line."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from workbench import cli
from workbench.cli import room as verb
from workbench.errors import InputError


@pytest.fixture
def started(monkeypatch, tmp_path, capsys):
    """Calls the verb; gives what would be executed, with its environment, and what was said."""
    monkeypatch.setattr(verb, "_expect_installed", lambda: None)
    monkeypatch.setattr(os, "chdir", lambda _: None)
    monkeypatch.delenv(verb.TOKEN, raising=False)
    monkeypatch.delenv(verb.KEY, raising=False)

    def call(*args):
        found = []
        monkeypatch.setattr(os, "execve", lambda path, words, env: found.append((words, env)))
        monkeypatch.setattr("sys.argv", ["workbench", "room", "--runs", str(tmp_path / "runs"), *args])
        with pytest.raises(SystemExit) as left:
            cli.main()
        said = capsys.readouterr()
        return left.value.code, found, said.out, said.err

    return call


def test_on_loopback_there_is_no_token_but_a_key(started, tmp_path):
    code, [(words, env)], out, _ = started()
    assert code == 0
    assert "--Voila.ip=127.0.0.1" in words
    assert env[verb.TOKEN] == ""
    assert env["WORKBENCH_RUNS"] == str(tmp_path / "runs")
    assert f"teacher={env[verb.KEY]}" in out
    assert "opens port" not in out


def test_elsewhere_it_needs_a_token_and_says_what_it_opens(started):
    code, [(_, env)], out, _ = started("--host", "0.0.0.0", "--port", "9000")
    assert code == 0
    assert len(env[verb.TOKEN]) >= 16
    viewers, teacher, warning = out.splitlines()
    assert f"http://0.0.0.0:9000/?token={env[verb.TOKEN]}" in viewers
    assert env[verb.KEY] not in viewers
    assert f"teacher={env[verb.KEY]}" in teacher
    assert "opens port 9000 on 0.0.0.0" in warning
    assert "HTTP" in warning


def test_elsewhere_one_s_own_token_is_taken_unless_it_can_be_guessed(started, monkeypatch):
    monkeypatch.setenv(verb.TOKEN, "0123456789abcdef")
    code, [(_, env)], out, _ = started("--host", "0.0.0.0")
    assert (code, env[verb.TOKEN]) == (0, "0123456789abcdef")
    assert "/?token=0123456789abcdef" in out
    monkeypatch.setenv(verb.TOKEN, "t0ken")
    code, found, _, err = started("--host", "0.0.0.0")
    assert (code, found) == (2, [])
    assert f"a token in {verb.TOKEN} that is too short" in err
    assert "t0ken" not in err


def test_the_addresses_have_the_port_that_is_served(started):
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        taken = holder.getsockname()[1]
        _, [(words, _)], out, _ = started("--port", str(taken))
    port = next(int(word.removeprefix("--port=")) for word in words if word.startswith("--port="))
    assert port != taken
    assert [line.split()[1].split("?")[0] for line in out.splitlines()] == [f"http://127.0.0.1:{port}/"] * 2
    assert "--Voila.port_retries=0" in words


def test_no_secret_is_on_the_command_line(started):
    _, [(words, env)], _, _ = started("--host", "0.0.0.0")
    line = " ".join(words)
    assert env[verb.TOKEN] not in line
    assert env[verb.KEY] not in line


def test_a_name_is_no_address(started):
    code, found, _, err = started("--host", "classroom")
    assert (code, found) == (2, [])
    assert "--host: got 'classroom'" in err


@pytest.mark.parametrize(
    ("host", "is_so"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("10.0.0.3", False)],
)
def test_what_is_loopback(host, is_so):
    assert verb.is_loopback(host) is is_so


def test_nonsense_is_refused():
    with pytest.raises(InputError):
        verb.is_loopback("")


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A real server with a token; gives its address."""
    tmp_path = tmp_path_factory.mktemp("served")
    pytest.importorskip("voila", reason="no Voilà in this environment")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    places = ("JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR")
    env = os.environ | {name: str(tmp_path / name) for name in places} | {verb.TOKEN: "t0ken", verb.KEY: "k3y"}
    command = [sys.executable, "-m", "workbench.cli", "room", f"--port={port}", "--runs", str(tmp_path / "runs")]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, env=env, stdout=log, stderr=log, start_new_session=True)
    until = time.monotonic() + 300
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        assert process.poll() is None, (tmp_path / "log").read_text()
        assert time.monotonic() < until, "it does not answer"
        time.sleep(0.2)
    yield f"http://127.0.0.1:{port}/"
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class Stay(urllib.request.HTTPRedirectHandler):
    """Does not go where it is sent."""

    def redirect_request(self, *_):
        return None


@pytest.mark.parametrize("path", ["", "?token=guessed", "?teacher=k3y", "api/kernels", "voila/render/instructor.ipynb"])
def test_the_server_shows_nothing_without_the_token(served, path):
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.build_opener(Stay).open(served + path, timeout=120)
    asked_to_log_in = refused.value.code == 302 and "/login" in refused.value.headers["Location"]
    assert asked_to_log_in or refused.value.code in (401, 403, 404)
