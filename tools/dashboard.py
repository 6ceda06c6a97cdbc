"""`make dashboard`: the quickstart without its code, as pages of Voilà, for whoever has the token.

The token is made up at each start and stands in the address that is printed. Where other machines reach it, one's own
is taken instead, if there is one in the environment variable WORKBENCH_API_KEY.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys

from workbench.errors import InputError
from workbench.listening import KEY, free_port, is_loopback, token_for

NOTEBOOK = "notebooks/00_quickstart.ipynb"


def command(host: str, port: int, more: list[str]) -> tuple[list[str], dict[str, str], str]:
    """The command that serves the dashboard, its environment, and what there is to say.

    Args:
        host: address to listen on.
        port: to listen on; the next free one where it is taken.
        more: arguments for Voilà.

    Raises:
        InputError: others reach it, and one's own token is one that they could guess; or nothing can listen there.
    """
    alone = is_loopback(host)
    token, new = (secrets.token_urlsafe(24), True) if alone else token_for(host, KEY, "dashboard")
    port = free_port(host, port)
    # The token travels in the environment: a command line is seen by every user of the machine.
    argv = [sys.executable, "-m", "voila", NOTEBOOK, f"--Voila.ip={host}", f"--port={port}"]
    argv += ["--Voila.port_retries=0", "--Voila.auto_token=True"]
    environment = {**os.environ, "JUPYTER_TOKEN": token}
    if alone:
        words = f"dashboard: http://127.0.0.1:{port}/?token={token}"
    else:
        shown = f"[{host}]" if ":" in host else host
        words = (
            f"dashboard: open to every machine that reaches this one, at http://{shown}:{port}/?token="
            f"{token if new else f'… (yours, in {KEY})'}; whoever has the token runs the notebook's code as you, and "
            "nothing is encrypted"
        )
    return [*argv, *more], environment, words


def main() -> int:
    """Serve until stopped."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--host", default="127.0.0.1", help="address to listen on")
    options.add_argument("--port", type=int, default=8866, help="port to listen on")
    given, more = options.parse_known_args()
    try:
        argv, environment, words = command(given.host, given.port, more)
    except InputError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return error.exit_code
    print(words, flush=True)  # noqa: T201
    os.execve(argv[0], argv, environment)  # noqa: S606  does not return
    return 0


if __name__ == "__main__":
    sys.exit(main())
