"""Rows of the live charts that are made of steps: what they were made of, their memory, and the queue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from workbench.ui.charts.knobs import RULES
from workbench.ui.charts.memory import lines_of, stacked
from workbench.ui.charts.memory_marks import PARTS
from workbench.ui.charts.queue import CROSSES
from workbench.ui.charts.queue_marks import RUNNING, WAITING
from workbench.ui.charts.step_marks import DECODE, NAMED, REST
from workbench.ui.charts.steps import IDLE, SHORTEST
from workbench.ui.live.changes import Row
from workbench.ui.live.chart_rows import ChartRows, Window, bar_end, number, reach_s
from workbench.ui.live.slots import Slots
from workbench.ui.live.steps_in import Step
from workbench.units import GIB, MIB

_BREAKS = 100  # most rows that break the line of step time
_RULE_ROWS = 2 * RULES  # rules and their labels


class MakeUpRows(ChartRows):
    """Datasets ``bars``, ``times``, ``slots``.

    Args:
        limit: most rows.
    """

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._steps = self.thinner(limit - _RULE_ROWS - _BREAKS - NAMED, series=2, weight=NAMED + 3)
        self._breaks = self.thinner(_BREAKS, weight=2)
        self._slots = Slots()
        self._prompts: dict[str, int] = {}
        self._before: Step | None = None

    def requests(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Take rows of the ``requests`` table, as far as they are filled in."""
        self._prompts.update((row["request"], row["prompt_tokens"]) for row in rows if row.get("prompt_tokens"))

    def step(self, step: Step, window: Window) -> None:
        """Take a step, after those before it."""
        t, ms, reach = round(step.start_s, 4), round(step.ms, 2), reach_s(self._steps)
        end = bar_end(step.start_s, step.end_s, window, reach)
        if end < window.low:
            self._before = step
            return
        common = {"t": t, "t2": round(end, 4), "step": step.step, "ms": ms}
        rows: list[tuple[str, Row]] = []
        below = 0
        for kind, what, tokens in self._kinds(step, end):
            if tokens > 0:
                bar = {**common, "y": below, "y2": below + tokens, "kind": kind, "what": what, "tokens": tokens}
                rows.append(("bars", bar))
                below += tokens
        rows.append(("times", {"t": t, "ms": max(ms, SHORTEST)}))
        values = {"tokens": float(step.tokens), "ms": step.ms}
        self._steps.offer(step.start_s, values, self.group(*rows), len(rows), until_s=end)
        before, self._before = self._before, step
        if before is not None and (idle := step.start_s - before.end_s) > max(IDLE, reach):
            close = {"t": round(before.end_s, 4), "ms": max(round(before.ms, 2), SHORTEST)}
            off: Row = {"t": round(before.end_s + 1e-4, 4), "ms": None}
            self._breaks.offer(before.end_s, {"idle": idle}, self.group(("times", close), ("times", off)), 2)

    def trim(self, before_s: float) -> None:
        """Let go of what has left the window, slots included."""
        super().trim(before_s)
        self._slots.release(before_s)

    def settle(self) -> None:
        """Work out which request a slot stands for."""
        self.show("slots", [{"kind": slot, "name": name} for slot, name in self._slots.names.items()])

    def tops(self) -> tuple[float, float, float]:
        """Most tokens of a step, shortest and longest step (ms), of those in sight; 0 where there is none."""
        longest = self._steps.largest("ms") or 0.0
        shortest = min((group[-1][1]["ms"] for group in self._steps.groups()), default=0.0)
        return self._steps.largest("tokens") or 0.0, shortest, longest

    def _kinds(self, step: Step, until_s: float) -> list[tuple[str, str, int]]:
        """Kind, what and tokens of a step's bars, from the bottom up."""
        named: dict[str, tuple[str, int]] = {}
        for part in step.parts:
            if not part.prefill:
                continue
            prompt = self._prompts.get(part.request, part.context + part.tokens)
            slot = self._slots.slot(part.request, prompt, until_s, self._in_sight)
            if slot is not None:
                named[slot] = (part.request, part.tokens)
        rest = max(0, step.prefill_tokens - sum(tokens for _, tokens in named.values()))
        inner = [(slot, *named[slot]) for slot in sorted(named)]
        return [(DECODE, DECODE, step.decode_tokens), *inner, (REST, REST, rest)]

    def _in_sight(self) -> int:
        rows = (row for group in self._steps.groups() for dataset, row in group if dataset == "bars")
        return sum(row["tokens"] for row in rows if row["kind"] != DECODE)


class MemoryRows(ChartRows):
    """Datasets ``peaks``, ``levels``, ``split``.

    Args:
        limit: most rows.
        split: bytes of what the engine's memory is made of, once they are known.
    """

    def __init__(self, limit: int, split: Mapping[str, Any] | None) -> None:
        super().__init__()
        self.split = split
        self._levels = self.thinner(limit // 4, series=16)
        self._peaks = self.thinner(limit - limit // 4 - _RULE_ROWS - len(PARTS))
        self._sources: frozenset[str] = frozenset()  # that the line shows
        self._seen: set[str] = set()
        self._most = 0.0  # largest activation peak so far, bytes
        self._held = 0.0  # top of the bar of parts, GiB

    def step(self, step: Step, window: Window) -> None:
        """Take a step, after those before it."""
        size = number(step.row, "activation_bytes")
        if size is None:
            return
        self._most = max(self._most, size)
        end = bar_end(step.start_s, step.end_s, window, reach_s(self._peaks))
        row = {"t": round(step.start_s, 4), "t2": round(end, 4), "mib": round(size / MIB, 3)}
        row |= {"tokens": step.tokens, "step": step.step}
        self._peaks.offer(step.start_s, {"mib": size / MIB}, self.group(("peaks", row)), until_s=end)

    def samples(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Take rows of the ``memory`` table."""
        known = [(row, size) for row in rows if (size := number(row, "bytes")) is not None]
        new = {row["source"] for row, _ in known} - self._seen
        if new:
            self._seen |= new
            sources, _ = lines_of(self._seen)
            if sources != self._sources and not sources >= self._sources:
                self._levels.clear()  # a device has been found: its line takes the place
            self._sources = sources
        for row, size in known:
            if row["source"] in self._sources:
                gib = size / GIB
                level = {"t": round(row["t_s"], 4), "gib": round(gib, 4), "source": row["source"]}
                self._levels.offer(row["t_s"], {row["source"]: gib}, self.group(("levels", level)))

    def settle(self) -> None:
        """Work out the bar of parts."""
        rows = stacked(self.split, self._most)
        self._held = max((row["y2"] for row in rows), default=0.0)
        self.show("split", rows)

    def tops(self) -> tuple[float, float]:
        """Largest activation peak in sight (MiB) and most memory held (GiB); 0 where there is none."""
        return self._peaks.largest("mib") or 0.0, max(self._levels.largest(*self._sources) or 0.0, self._held)


class QueueRows(ChartRows):
    """Datasets ``kv``, ``requests``, ``losses``.

    Args:
        limit: most rows.
    """

    def __init__(self, limit: int) -> None:
        super().__init__()
        losses = min(CROSSES, limit // 8)
        self._steps = self.thinner(limit - losses - _RULE_ROWS, series=3, weight=3)
        self._losses = self.thinner(losses)

    def step(self, step: Step) -> None:
        """Take a step, after those before it."""
        victims = step.row.get("preempted") or ()
        self.state(step.start_s, step.end_s, step.row, len(victims), ", ".join(victims))

    def state(self, at_s: float, until_s: float, row: Mapping[str, Any], victims: int, who: str) -> None:
        """Take the state at a moment, after those before it.

        Args:
            at_s: that moment.
            until_s: how long it holds at least.
            row: with ``kv_use`` (0..1), ``running`` and ``waiting``; what is missing is not drawn.
            victims: how many were preempted.
            who: their names.
        """
        t, kv = round(at_s, 4), number(row, "kv_use")
        rows: list[tuple[str, Row]] = []
        values: dict[str, float] = {}
        if kv is not None:
            values["kv"] = kv * 100
            rows.append(("kv", {"t": t, "kv": round(kv * 100, 2)}))
        for series in (RUNNING, WAITING):
            many = number(row, series)
            if many is not None:
                values[series] = many
                rows.append(("requests", {"t": t, "series": series, "requests": many}))
        self._steps.offer(at_s, values, self.group(*rows), len(rows), until_s=until_s)
        if victims:
            loss: Row = {"t": t, "victims": victims, "who": who}
            self._losses.offer(at_s, {"victims": victims}, self.group(("losses", loss)))

    def top(self) -> float:
        """Most requests running or waiting, of what is in sight; 0 where there is none."""
        return self._steps.largest(RUNNING, WAITING) or 0.0
