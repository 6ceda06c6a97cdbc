"""Our client: its processor time an event, at an engine's pace and when a server sends as fast as it can."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import psutil

from benchmarks.parts.meter_rivals import Load, Said
from workbench.driver.host import DriverProcess
from workbench.meter.play import client_of, play, request
from workbench.meter.stub import Stub


def cpu_s(client: DriverProcess) -> float:
    """Processor time of the client so far, of the user and of the system."""
    used = psutil.Process(client.pid).cpu_times()
    return float(used.user + used.system)


def paced(stub: Stub, load: Load, _folder: Path) -> Said:
    """The load that the others get, at once."""
    client = client_of(stub)
    try:
        before = cpu_s(client)
        played = play(client, [request(f"stranger/{i}", load.tokens) for i in range(load.streams)], 600.0)
        took = cpu_s(client) - before
    finally:
        client.close()
    tokens = [row["n"] for rows in played.tokens.values() for row in rows]
    gaps = [
        1e3 * (later["client_s"] - earlier["client_s"])
        for rows in played.tokens.values()
        for earlier, later in pairwise(rows)
    ]
    ttft = [1e3 * (row["first_s"] - row["sent_s"]) for row in played.requests.values() if row["first_s"] is not None]
    failed = sum(row["status"] != "ok" for row in played.requests.values())
    return Said(ttft, gaps, sum(tokens), {"cpu_us_an_event": 1e6 * took / len(tokens), "failed": failed})


def flooded(stub: Stub, load: Load, _folder: Path) -> Said:
    """Events as fast as the client takes them; times mean nothing here."""
    client = client_of(stub)
    try:
        play(client, [request("flood/2/warm", 2)], 600.0)  # not counted: what a first request loads, once a session
        before = cpu_s(client)
        played = play(client, [request(f"flood/{load.tokens}/{i}", load.tokens) for i in range(load.streams)], 600.0)
        took = cpu_s(client) - before
    finally:
        client.close()
    tokens = sum(row["n"] for rows in played.tokens.values() for row in rows)
    return Said([], [], tokens, {"cpu_us_an_event": 1e6 * took / tokens})
