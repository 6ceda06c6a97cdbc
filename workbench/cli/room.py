"""The verb that shows one engine to a room, through Voilà."""

from __future__ import annotations

import importlib.util
import ipaddress
import os
import secrets
import sys
from pathlib import Path
from typing import Annotated

import typer

from workbench import listening
from workbench.cli.options import RunsRoot
from workbench.errors import InputError
from workbench.store import default_root, prepare_root

room_verb = typer.Typer()
ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "notebooks" / "instructor.ipynb"
SETTINGS = ROOT / "tools" / "jupyter"
TOKEN, KEY = "WORKBENCH_ROOM_TOKEN", "WORKBENCH_ROOM_KEY"  # read by tools/jupyter/voila.py and by the page


@room_verb.command()
def room(
    host: Annotated[str, typer.Option(help="Address to listen on; any but loopback needs a token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on, or the next free one.", min=1, max=65535)] = 8866,
    runs: RunsRoot = None,
) -> None:
    """Show one engine to a room: pages that only look at its runs, and a teacher's page that drives it."""
    _expect_installed()
    root = (default_root() if runs is None else runs).resolve()
    prepare_root(root)
    token, port = _token(host), listening.free_port(host, port)
    key = os.environ.get(KEY) or secrets.token_urlsafe(16)
    for line in says(host, port, root, token, key):
        typer.echo(line)
    sys.stdout.flush()
    command = [sys.executable, "-m", "voila", str(NOTEBOOK), "--no-browser", f"--Voila.ip={host}", f"--port={port}"]
    command.append("--Voila.port_retries=0")  # the address that was printed, or none
    os.chdir(ROOT)
    os.execve(sys.executable, command, environment(root, token, key))  # noqa: S606  Ctrl-C and the exit code are its


def says(host: str, port: int, root: Path, token: str, key: str) -> list[str]:
    """What is opened, for whom, and what they can do there."""
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{port}/"
    ask = f"token={token}&" if token else ""
    lines = [
        f"viewers  {address}{'?' + ask.rstrip('&') if ask else ''}  look at the runs in {root}; nothing to press",
        f"teacher  {address}?{ask}teacher={key}  the panel: starts, drives and ends the engine",
    ]
    if token:
        lines.append(
            f"opens port {port} on {host}: whoever reaches it and has the token sees the runs, and with the teacher's "
            "address drives the engine. It is plain HTTP: on a network that you do not trust, tunnel it (ssh -L)"
        )
    return lines


def environment(root: Path, token: str, key: str) -> dict[str, str]:
    """What the server and its kernels are told; neither secret stands on a command line."""
    env = {**os.environ, "WORKBENCH_RUNS": str(root), KEY: key, TOKEN: token}
    for name in ("JUPYTER_PATH", "JUPYTER_CONFIG_PATH"):
        env[name] = os.pathsep.join(filter(None, [str(SETTINGS), os.environ.get(name)]))
    return env


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches it.

    Raises:
        InputError: it is neither an address nor localhost.
    """
    if host != "localhost":
        try:
            ipaddress.ip_address(host)
        except ValueError:
            fix = f"give 127.0.0.1, or {listening.EVERYWHERE} for all of this machine's"
            raise InputError("--host", host, "an IP address of this machine", fix) from None
    return listening.is_loopback(host)


def _token(host: str) -> str:
    """What viewers need: a token that was given, or one of its own where others reach it; else nothing."""
    if is_loopback(host):
        return os.environ.get(TOKEN, "")
    return listening.token_for(host, TOKEN, "room")[0]


def _expect_installed() -> None:
    if importlib.util.find_spec("voila") is None:
        raise InputError("room", "no Voilà here", "the package voila, which serves the pages", "run make setup")
    if not NOTEBOOK.is_file():
        raise InputError("room", NOTEBOOK, "a checkout of the workbench, with its notebooks", "run it from one")
