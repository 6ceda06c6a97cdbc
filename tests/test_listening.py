"""Who reaches a server of ours: this machine, or whoever has a key that was chosen for that."""

from __future__ import annotations

import importlib.util
import socket
from pathlib import Path

import pytest

from workbench import listening
from workbench.config import EngineConfig
from workbench.engine.checks import open_key, opened
from workbench.engine.command import server_argv, server_environment
from workbench.errors import ConfigError, InputError
from workbench.listening import KEY, free_port, host_in, is_loopback, is_strong, key_for, token_for
from workbench.models import ModelFiles

ROOT = Path(__file__).resolve().parents[1]
GOOD = "0123456789abcdef"


@pytest.fixture(autouse=True)
def _no_key(monkeypatch):
    monkeypatch.delenv(KEY, raising=False)


@pytest.fixture(scope="module")
def dashboard():
    spec = importlib.util.spec_from_file_location("dashboard", ROOT / "tools" / "dashboard.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("host", "alone"),
    [("127.0.0.1", True), ("127.8.8.8", True), ("localhost", True), ("::1", True), ("[::1]", True), ("0.0.0.0", False),
     ("::", False), ("192.168.1.7", False), ("my-machine", False), ("127.0.0.1.nip.io", False), ("", False)],
)  # fmt: skip
def test_what_is_loopback(host, alone):
    assert is_loopback(host) is alone


@pytest.mark.parametrize("key", ["", "a-key", "0123456789abcde", "with a space in it", "ÄÖÜäöüßÄÖÜäöüßÄÖÜ"])
def test_another_address_needs_a_key_and_the_refusal_does_not_show_it(monkeypatch, key):
    monkeypatch.setenv(KEY, key)
    with pytest.raises(ConfigError, match=f"127.0.0.1, or a key of 16 .*export {KEY}") as refused:
        key_for("0.0.0.0", "engine")
    assert not key or key not in str(refused.value)


def test_a_key_is_taken_from_the_environment_and_loopback_asks_for_none(monkeypatch):
    assert key_for("127.0.0.1", "engine") is None
    monkeypatch.setenv(KEY, GOOD)
    assert key_for("0.0.0.0", "engine") == GOOD
    assert key_for("localhost", "engine") is None


@pytest.mark.parametrize(
    ("argv", "host"),
    [([], None), (["--host", "a"], "a"), (["--host=a"], "a"), (["--hos=a"], "a"), (["--host", "a", "--host=b"], "b"),
     (["--port", "1"], None), (["--host"], None)],
)  # fmt: skip
def test_the_host_that_counts(argv, host):
    assert host_in(argv) == host


@pytest.mark.parametrize(
    ("extra", "says"),
    [
        (["--host", "0.0.0.0"], f"no key in {KEY}"),
        (["--host=0.0.0.0"], f"no key in {KEY}"),
        (["--host", "192.168.1.7"], "127.0.0.1 or 0.0.0.0"),
        (["--host", "::"], "127.0.0.1 or 0.0.0.0"),
        (["--api-key", "theirs"], f"export {KEY}"),
        (["--api_key=theirs"], f"export {KEY}"),
        (["--config", "file.yaml"], "write them out"),
    ],
)
def test_an_engine_that_extra_args_would_open_is_refused(extra, says):
    with pytest.raises(ConfigError, match=says) as refused:
        open_key(EngineConfig(extra_args=tuple(extra)))
    assert "theirs" not in str(refused.value)


def test_an_engine_with_a_key_is_opened_and_says_what_it_opens(monkeypatch):
    monkeypatch.setenv(KEY, GOOD)
    config = EngineConfig(extra_args=("--host", "0.0.0.0"))
    assert open_key(config) == GOOD
    words = opened(8123)
    assert all(part in words for part in ("every machine", "8123", KEY, "/metrics", "nothing is encrypted"))
    assert GOOD not in words
    argv = server_argv(config, ModelFiles("m", "m", None, "auto", None, "here", {}), "cpu", 8123)
    assert [argv[i + 1] for i, word in enumerate(argv) if word == "--host"] == ["127.0.0.1", "0.0.0.0"]
    assert server_environment("f", "l", GOOD, "cpu", {})["VLLM_API_KEY"] == GOOD


def test_an_engine_as_it_comes_keeps_to_itself():
    assert open_key(EngineConfig()) is None
    assert open_key(EngineConfig(extra_args=("--host", "127.0.0.1", "--seed", "1"))) is None


def test_the_dashboard_has_a_token_that_no_command_line_shows(dashboard, monkeypatch):
    argv, environment, words = dashboard.command("127.0.0.1", 8866, ["--no-browser"])
    token = environment["JUPYTER_TOKEN"]
    assert len(token) >= 32
    assert token in words
    assert not any(token in word for word in argv)
    assert {"--Voila.ip=127.0.0.1", "--Voila.auto_token=True", "--no-browser"} <= set(argv)
    assert dashboard.command("127.0.0.1", 8866, [])[1]["JUPYTER_TOKEN"] != token
    monkeypatch.setenv(KEY, GOOD)
    argv, environment, words = dashboard.command("0.0.0.0", 8866, [])
    assert (environment["JUPYTER_TOKEN"], "--Voila.ip=0.0.0.0" in argv) == (GOOD, True)
    assert "runs the notebook's code as you" in words
    assert GOOD not in words


def test_a_dashboard_for_others_makes_a_token_up_and_says_it(dashboard):
    argv, environment, words = dashboard.command("0.0.0.0", 8866, [])
    token = environment["JUPYTER_TOKEN"]
    assert len(token) >= 32
    assert f"at http://0.0.0.0:8866/?token={token};" in words
    assert not any(token in word for word in argv)
    assert dashboard.command("::", 8866, [])[2].count("http://[::]:8866/?token=") == 1


@pytest.mark.parametrize("own", ["a-key", "0123456789abcde", "with a space in it"])
def test_one_s_own_token_is_taken_if_nobody_guesses_it(monkeypatch, own):
    first, new = token_for("0.0.0.0", KEY, "dashboard")
    assert new
    assert is_strong(first)
    assert token_for("0.0.0.0", KEY, "dashboard")[0] != first
    monkeypatch.setenv(KEY, own)
    with pytest.raises(ConfigError, match=r"dashboard: host 0\.0\.0\.0: got .*too short or cannot be sent") as refused:
        token_for("0.0.0.0", KEY, "dashboard")
    assert own not in str(refused.value)
    monkeypatch.setenv(KEY, GOOD)
    assert token_for("0.0.0.0", KEY, "dashboard") == (GOOD, False)


def test_nothing_of_ours_is_bound_to_more_than_loopback():
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for folder in ("workbench", "tools", "benchmarks")
        for path in (ROOT / folder).rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if "0.0.0.0" in line or 'bind(("",' in line or 'bind(("::' in line
    ]
    assert [line for line in found if "EVERYWHERE = " not in line] == []


@pytest.fixture
def taken():
    """A port of loopback on which something listens."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        yield holder.getsockname()[1]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", listening.EVERYWHERE])
def test_the_next_free_port_is_known_before_it_is_said(taken, host):
    port = free_port(host, taken)
    assert taken < port < taken + listening.PORTS
    assert free_port(host, port) == port


def test_a_port_that_cannot_be_had_is_one_line(taken, monkeypatch):
    with pytest.raises(InputError, match=r"^host: got '192\.0\.2\.1', expected an address of this machine"):
        free_port("192.0.2.1", 8866)  # kept for documents, so no machine has it
    monkeypatch.setattr(listening, "PORTS", 1)
    with pytest.raises(InputError, match=f"{taken} to {taken}, all taken"):
        free_port("127.0.0.1", taken)


def test_the_dashboard_says_the_port_that_it_has(dashboard, taken):
    argv, environment, words = dashboard.command("127.0.0.1", taken, [])
    port = next(int(word.removeprefix("--port=")) for word in argv if word.startswith("--port="))
    assert port != taken
    assert words == f"dashboard: http://127.0.0.1:{port}/?token={environment['JUPYTER_TOKEN']}"
    assert "--Voila.port_retries=0" in argv
