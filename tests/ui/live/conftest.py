"""A recorded trace as an engine's sink would have got it, and a board that only keeps rows."""

from __future__ import annotations

import json

import pytest


class Kept:
    """What a board shows: applies changes, and checks on them what every board relies on."""

    def __init__(self):
        self.rows = {}
        self.signals = {}

    def push(self, changes):
        json.dumps([changes.add, changes.drop, changes.signals], allow_nan=False)
        for chart, datasets in changes.drop.items():
            for name, ids in datasets.items():
                for number in ids:
                    del self.rows[chart][name][number]  # it was there
        for chart, datasets in changes.add.items():
            for name, rows in datasets.items():
                shown = self.rows.setdefault(chart, {}).setdefault(name, {})
                for row in rows:
                    assert row["id"] not in shown
                    shown[row["id"]] = row
        self.signals = changes.signals

    def plain(self, chart, name):
        """The rows of a dataset without their ids, in the order of time."""
        rows = self.rows.get(chart, {}).get(name, {}).values()
        plain = [{key: value for key, value in row.items() if key != "id"} for row in rows]
        return sorted(plain, key=lambda row: row.get("t", 0.0))

    def count(self, chart):
        return sum(len(rows) for rows in self.rows.get(chart, {}).values())


def events(trace):
    """Time, table and row, in the order in which a sink gets them; requests once when planned and once when ended."""
    steps = {row["step"]: row for row in trace.tables["steps"].to_pylist()}
    found = []
    for row in trace.tables["requests"].to_pylist():
        planned = {name: row[name] for name in ("request", "class", "priority", "prompt_tokens", "planned_s")}
        found += [(-1.0, 0, "requests", planned), (row["done_s"], 5, "requests", row)]
    for row in trace.tables["knobs"].to_pylist():
        sent = {name: value for name, value in row.items() if name not in ("applied_s", "step")}
        applied = {name: row[name] for name in ("revision", "applied_s", "step")}
        found += [(row["sent_s"], 1, "knobs", sent), (row["applied_s"], 1, "knobs", applied)]
    found += [(row["end_s"], 2, "steps", row) for row in steps.values()]
    found += [(steps[row["step"]]["end_s"], 3, "batch", row) for row in trace.tables["batch"].to_pylist()]
    found += [(row["client_s"], 4, "tokens", row) for row in trace.tables["tokens"].to_pylist()]
    found += [(row["t_s"], 4, "memory", row) for row in trace.tables["memory"].to_pylist()]
    return [(at, table, row) for at, _, table, row in sorted(found, key=lambda event: event[:2])]


def play(trace, rows, until_s, tick_s=0.1, board=None):
    """Feed a trace to live rows tick by tick; returns the board."""
    board, waiting, now = board or Kept(), events(trace), 0.0
    while now < until_s:
        now = min(now + tick_s, until_s)
        batches = {}
        while waiting and waiting[0][0] <= now:
            _, table, row = waiting.pop(0)
            batches.setdefault(table, []).append(row)
        for table, some in batches.items():
            rows.take(table, some)
        board.push(rows.changes(now))
    return board


@pytest.fixture(scope="session")
def kept():
    """The board: :class:`Kept`."""
    return Kept


@pytest.fixture(scope="session")
def played():
    """Plays a trace on a new board: :func:`play`."""
    return play


@pytest.fixture(scope="session")
def sink_events():
    """What a sink gets: :func:`events`."""
    return events
