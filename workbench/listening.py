"""Where servers of ours listen: on loopback, unless told otherwise; then they need a key, and say what they open."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterable

from workbench.errors import ConfigError
from workbench.redact import know

KEY = "WORKBENCH_API_KEY"  # environment variable of a key that others are given
LEAST = 16  # characters of it
EVERYWHERE = "0.0.0.0"  # noqa: S104  every address of the machine, 127.0.0.1 among them


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches it there."""
    if host.strip("[]").lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:  # a name: who knows where it leads
        return False


def is_strong(key: str) -> bool:
    """Whether others may be given this key: long enough not to be guessed, and fit for a header or an address."""
    return len(key) >= LEAST and key.isascii() and key.isprintable() and " " not in key


def key_for(host: str, what: str) -> str | None:
    """The key that a server needs which listens on ``host``; none on loopback, where it makes up its own.

    Raises:
        ConfigError: others would reach it, and there is no key that they could not guess.
    """
    if is_loopback(host):
        return None
    key = os.environ.get(KEY, "").strip()
    if not is_strong(key):
        said = "a key that is too short or cannot be sent (hidden)" if key else f"no key in {KEY}"
        raise ConfigError(
            f"{what}: host {host}",
            said,
            f"127.0.0.1, or a key of {LEAST} or more printable characters, since other machines reach it there",
            f"leave the host out, or export {KEY} (`openssl rand -hex 24` makes one) and hand it to whom you trust",
        )
    know(key)
    return key


def host_in(argv: Iterable[str]) -> str | None:
    """The last ``--host`` of a command line, which is the one that counts; none where it has none."""
    found, follows = None, False
    for word in argv:
        flag, equals, value = word.partition("=")
        if follows:
            found, follows = word, False
        elif flag in ("--ho", "--hos", "--host"):  # argparse takes the beginnings too
            found, follows = (value, False) if equals else (found, True)
    return found
