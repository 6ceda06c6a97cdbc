"""The board: one widget that draws all live charts and takes what changed in their rows, at most ten times a second."""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import anywidget
import traitlets

from workbench.i18n import spoken, translate
from workbench.ui.live.busy import answer_while_busy
from workbench.ui.live.changes import BoardChart, Changes, Row, Rows
from workbench.ui.live.kept import bundle

_SCRIPTS = (
    "store.js",
    "plot.js",
    "window.js",
    "header.js",
    "detail.js",
    "view.js",
    "heal.js",
    "board.js",
)  # the last exports the widget


class Board(anywidget.AnyWidget):
    """Charts of a run while it goes on.

    What is shown is kept here as well as in the page: a page that is reloaded or comes late says ``hello``, and gets
    all of it, and so does one that misses one of the numbered pushes. All methods may be called from any thread.

    Attributes:
        paused: the page takes rows but keeps drawing those that it had.
        heard_s: when a page was last heard of, or when the board was made; pages that show it say so every 15 s.
        window_s: length of the time window in s; whoever makes the signals ``t0`` and ``t1`` reads it.
    """

    _esm = traitlets.Unicode().tag(sync=True)
    _css = traitlets.Unicode().tag(sync=True)
    # Goes with the model to a page that loads, which so draws without having to ask.
    first = traitlets.Dict().tag(sync=True, to_json=lambda _, board: board._snapshot())
    words = traitlets.Dict().tag(sync=True)  # what the page says by itself, in the language of whoever made the board
    paused = traitlets.Bool(default_value=False).tag(sync=True)
    window_s = traitlets.Float(30.0, min=1.0).tag(sync=True)

    def __init__(self, **traits: Any) -> None:
        self._lock = threading.RLock()  # state and message are one: a snapshot never stands between them
        self._epoch, self._seq, self._rows_sent = 0, 0, 0
        self._charts: tuple[BoardChart, ...] = ()
        self._rows: Rows = {}
        self._signals: dict[str, float | None] = {}
        self._status: dict[str, Any] = {}
        self._stalls: Mapping[str, Any] = {}
        self._asked: Callable[[Mapping[str, Any]], object] = lambda _: None
        self.heard_s = time.monotonic()
        super().__init__(**traits)
        self.on_msg(self._answer)
        answer_while_busy(self)

    @traitlets.default("_esm")
    def _default_esm(self) -> str:
        return _bundle()

    @traitlets.default("words")
    def _default_words(self) -> dict[str, str]:
        return {} if spoken() == "en" else {message: translate(message) for message in _said()}

    @traitlets.default("_css")
    def _default_css(self) -> str:
        return files(__package__).joinpath("board.css").read_text(encoding="utf-8")

    @property
    def rows(self) -> Rows:
        """A copy of what is shown: chart → dataset → id → row."""
        with self._lock:
            return {
                chart: {name: dict(rows) for name, rows in datasets.items()} for chart, datasets in self._rows.items()
            }

    def show(self, charts: Sequence[BoardChart], signals: Mapping[str, float]) -> None:
        """Put up these charts, without rows; those from before go.

        Args:
            charts: from top to bottom, with distinct ids.
            signals: first values of their parameters.
        """
        with self._lock:
            self._epoch += 1
            self._seq = self._rows_sent = 0
            self._charts = tuple(charts)
            self._rows = {}
            self._signals = {name: _finite(value) for name, value in signals.items()}
            self._stalls = {}
            self._reset()

    def push(self, changes: Changes, status: Mapping[str, Any], stalls: Mapping[str, Any] | None = None) -> None:
        """Show changed rows and the state; also a heartbeat, without which the page calls itself stale after 2 s.

        Args:
            changes: of the charts put up last. Numbers that JSON lacks are shown as missing.
            status: ``kpis`` (list of label, value, hint), ``badge`` (where numbers come from), ``state``,
                ``dropped`` (records lost before they came here), optionally ``stale`` and
                ``lacks`` (what is not shown, and why).
            stalls: once they have changed, as :meth:`workbench.ui.live.figures.LiveFigures.stalls` gives them.
        """
        with self._lock:
            self._seq += 1
            for chart, dropped in changes.drop.items():
                for name, ids in dropped.items():
                    held = self._rows.get(chart, {}).get(name, {})
                    for number in ids:
                        held.pop(number, None)
            add: dict[str, dict[str, dict[str, list[Any]]]] = {}
            for chart, added in changes.add.items():
                for name, rows in added.items():
                    if rows:
                        self._rows.setdefault(chart, {}).setdefault(name, {}).update((row["id"], row) for row in rows)
                        add.setdefault(chart, {})[name] = _columns(rows)
                        self._rows_sent += len(rows)
            self._signals |= {name: _finite(value) for name, value in changes.signals.items()}
            self._status = dict(status)
            told = {}
            if stalls is not None and stalls != self._stalls:
                self._stalls = told["stalls"] = stalls
            self.send(self._message("push", add=add, drop=changes.drop, **told))

    def on_ask(self, asked: Callable[[Mapping[str, Any]], object]) -> None:
        """Call this when a person wants a point explained, with ``t`` (s) and ``stream`` or ``step``, if any."""
        self._asked = asked

    def tell(self, detail: Mapping[str, Any]) -> None:
        """Show an explanation, as :func:`workbench.ui.live.explain.explain` gives it."""
        self.send({"kind": "explained", "detail": dict(detail)})

    def copy(self, text: str) -> None:
        """Put text on the clipboard, and show it, so that a person can copy it where that is not allowed."""
        self.send({"kind": "copy", "text": text})

    def _answer(self, _: Any, content: Any, __: Any) -> None:
        self.heard_s = time.monotonic()
        kind = content.get("kind") if isinstance(content, dict) else None
        if kind == "hello":
            with self._lock:
                self._reset()
        elif kind == "explain":
            self._asked(content)

    def _reset(self) -> None:
        self.send(self._snapshot())

    def _snapshot(self) -> dict[str, Any]:
        """All that is shown, as one message; empty before there are charts."""
        with self._lock:
            return self._whole() if self._epoch else {}

    def _whole(self) -> dict[str, Any]:
        rows = {
            chart: {name: _columns(list(held.values())) for name, held in datasets.items() if held}
            for chart, datasets in self._rows.items()
        }
        charts = [
            {
                "id": c.id,
                "title": c.title,
                "description": c.description,
                "note": c.note,
                "timed": c.timed,
                "light": c.light,
                "dark": c.dark,
            }
            for c in self._charts
        ]
        return self._message("reset", charts=charts, rows=rows, stalls=self._stalls)

    def _message(self, kind: str, **parts: Any) -> dict[str, Any]:
        stamps = {"epoch": self._epoch, "seq": self._seq, "rows_sent": self._rows_sent, "sent_ms": time.time() * 1000}
        return {"kind": kind, **parts, "signals": self._signals, "status": self._status, **stamps}


def _columns(rows: Sequence[Row]) -> dict[str, list[Any]]:
    """Rows as columns: names once instead of in every row; what a row lacks is missing."""
    names = {name: None for row in rows for name in row}
    return {name: [_finite(row.get(name)) for row in rows] for name in names}


def _finite(value: Any) -> Any:
    """None for NaN and infinities, which JSON has no words for."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


@cache
def _bundle() -> str:
    """The page's half as one ES module."""
    return bundle(_own())


@cache
def _own() -> str:
    return "\n".join(files(__package__).joinpath(name).read_text(encoding="utf-8") for name in _SCRIPTS)


@cache
def _said() -> tuple[str, ...]:
    """The messages of the page's half."""
    return tuple(dict.fromkeys(re.findall(r'\btranslate\(\s*"([^"]+)"', _own())))
