"""`workbench room`: loopback without a token, anything else with one, and no secret on a command line."""

import os

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
