"""Where servers of ours listen: on loopback, unless told otherwise; then they need a key, and say what they open."""

from __future__ import annotations

import errno
import ipaddress
import os
import secrets
import socket
from collections.abc import Iterable

from workbench.errors import ConfigError, InputError
from workbench.redact import know

KEY = "WORKBENCH_API_KEY"  # environment variable of a key that others are given
LEAST = 16  # characters of it
EVERYWHERE = "0.0.0.0"  # noqa: S104  every address of the machine, 127.0.0.1 among them
PORTS = 20  # that are tried, one after the other


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


def token_for(host: str, variable: str, what: str) -> tuple[str, bool]:
    """What opens a page of ours to those who come from other machines, and whether it was made up here.

    Args:
        host: address that others reach.
        variable: of the environment, which may hold a token of one's own.
        what: is opened, for the words of an error.

    Returns:
        One's own token where there is one, else a new one at each call, which whoever made it up must tell.

    Raises:
        ConfigError: others could guess one's own, or it cannot be sent.
    """
    own = os.environ.get(variable, "").strip()
    if not own:
        return secrets.token_urlsafe(24), True
    if not is_strong(own):
        raise ConfigError(
            f"{what}: host {host}",
            f"a token in {variable} that is too short or cannot be sent (hidden)",
            f"{LEAST} or more printable characters, since other machines reach it there",
            "give a longer one, or none: one is made up then",
        )
    know(own)
    return own, False


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


def free_port(host: str, port: int) -> int:
    """The first port from ``port`` on that a server may have on ``host``: known before its address is printed.

    Raises:
        InputError: ``host`` is not of this machine, the user may not listen on such a port, or all of
            :data:`PORTS` are taken.
    """
    for one in range(port, min(port + PORTS, 65_536)):
        try:
            _listen(host, one)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                continue
            if error.errno == errno.EACCES:
                fix = "give one of 1024 or above"
                raise InputError("port", one, "one that you may listen on", fix) from None
            fix = f"give 127.0.0.1, or {EVERYWHERE} for all of this machine's"
            raise InputError("host", host, "an address of this machine", fix) from None
        return one
    last = min(port + PORTS, 65_536) - 1
    raise InputError("port", f"{port} to {last}, all taken", "a free one", "end what listens there, or give another")


def _listen(host: str, port: int) -> None:
    """Try it for a moment, as a server does.

    Raises:
        OSError: it cannot be.
    """
    missing: OSError | None = OSError(errno.EADDRNOTAVAIL, "no such address")
    found = socket.getaddrinfo(host.strip("[]") or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    for family, kind, protocol, _, address in found:
        try:
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                probe.bind(address)
                probe.listen()
            missing = None
        except OSError as error:  # localhost is also ::1, which a machine without IPv6 does not have
            if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                raise
    if missing is not None:
        raise missing
