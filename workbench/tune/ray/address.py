"""The address of a Ray cluster: whether it is one of ours or is joined, who answers there, what Ray needs to be told.

A cluster of ours listens on loopback only, takes a token that nobody else has, and reports no usage.
"""

from __future__ import annotations

import secrets
import socket
from typing import Literal

from workbench.errors import InputError

_DEFAULT_PORT = 6379
_PROBE_S = 5.0
_LOCAL_S, _JOIN_S = 240.0, 45.0  # to start a cluster on a busy machine, and to join one

# Ray listens on all interfaces unless a machine's address is 127.0.0.1, and makes it so where it takes clusters of
# several machines for impossible (ray/_private/ray_constants.py, ENABLE_RAY_CLUSTER).
_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DISABLE_IMPORT_WARNING": "1", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}


def environment(address: str) -> dict[str, str]:
    """What the driver's process must have in its environment before it imports Ray.

    Args:
        address: as for :class:`workbench.tune.ray.player.RayPlayer`.
    """
    if kind_of(address) == "joined":
        return dict(_QUIET)
    return {**_QUIET, **_LOOPBACK, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}


def kind_of(address: str) -> Literal["local", "joined"]:
    """Whether a cluster is started or joined."""
    return "local" if address == "local" else "joined"


def check_address(address: str) -> None:
    """Look whether somebody listens there, since Ray itself waits for a minute and more.

    Raises:
        InputError: it is no address, or nobody answers.
    """
    if address in ("local", "auto"):
        return
    host, colon, port = address.rpartition(":")
    if not colon or "/" in address or not port.isdecimal() or not 0 < int(port) < 1 << 16 or not host:
        expected = "local, auto, or HOST:PORT of the cluster's head"
        raise InputError("--ray", address, expected, f"the port is {_DEFAULT_PORT} unless `ray start` was told another")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _PROBE_S).close()
    except OSError as error:
        why = f"a Ray cluster that answers ({error.strerror or error})"
        raise InputError("--ray", address, why, "start one with `ray start --head`, or look at the firewall") from None


def coming_up(address: str) -> tuple[str, float]:
    """What is waited for, in words, and for how many seconds at most."""
    return ("starting Ray", _LOCAL_S) if kind_of(address) == "local" else (f"joining Ray at {address}", _JOIN_S)
