"""A recorded run again and again, in real time, as rows that a live engine would send."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from workbench.trace import Trace

Rows = list[dict[str, Any]]
_TIME = "_s"  # ends the name of every column of times


class Replay:
    """Rows of a trace, each when it was known; after the end it begins again under new names.

    Args:
        trace: a live one.
    """

    def __init__(self, trace: Trace) -> None:
        tables = {name: table.to_pylist() for name, table in trace.tables.items()}
        ends = {row["step"]: row["end_s"] for row in tables["steps"]}
        self.streams = {row["request"]: row["class"] for row in tables["requests"]}
        self.meta = dict(trace.meta)
        self._steps = 1 + max(ends)
        self._revisions = max(row["revision"] for row in tables["knobs"])
        self.length_s = 0.1 + max(row["done_s"] for row in tables["requests"])
        known: list[tuple[float, str, dict[str, Any]]] = []
        for row in tables["requests"]:
            begun = {name: row[name] for name in ("request", "class", "priority", "prompt_tokens", "max_tokens")}
            known.append((row["sent_s"], "requests", begun | {"planned_s": row["planned_s"], "sent_s": row["sent_s"]}))
            known.append((row["done_s"], "requests", row))
        known += [(row["client_s"], "tokens", row) for row in tables["tokens"]]
        known += [(row["end_s"], "steps", row) for row in tables["steps"]]
        known += [(ends[row["step"]], "batch", row) for row in tables["batch"] if row["step"] in ends]
        known += [(row["t_s"], "memory", row) for row in tables["memory"]]
        known += [(max(row["applied_s"] or 0.0, 0.0), "knobs", row) for row in tables["knobs"]]
        self._known = sorted(known, key=lambda item: item[0])
        self._at, self._round = 0, 0

    def until(self, now_s: float) -> Iterator[tuple[str, Rows]]:
        """What became known since the last call, by table."""
        found: dict[str, Rows] = defaultdict(list)
        while True:
            if self._at == len(self._known):
                self._at, self._round = 0, self._round + 1
            known_s, table, row = self._known[self._at]
            if known_s + self._round * self.length_s > now_s:
                break
            found[table].append(self._shifted(row))
            self._at += 1
        yield from found.items()

    def _shifted(self, row: dict[str, Any]) -> dict[str, Any]:
        n = self._round
        if n == 0:
            return row
        late = n * self.length_s
        shifted = {k: v + late if k.endswith(_TIME) and v is not None else v for k, v in row.items()}
        if "request" in row:
            shifted["request"] = f"{row['request']}#{n}"
        if row.get("step") is not None:
            shifted["step"] = row["step"] + n * self._steps
        if row.get("revision") is not None:
            shifted["revision"] = row["revision"] + n * self._revisions
        return shifted
