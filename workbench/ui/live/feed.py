"""The ticker: ten times a second from the rows of the run to the board, in a thread of its own."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from workbench.attached_config import AttachedConfig
from workbench.errors import EngineError
from workbench.i18n import marked, speaking, spoken, translate
from workbench.origin import in_pieces, origin_words
from workbench.run import Run
from workbench.session import Workbench
from workbench.tail import Place
from workbench.ui.live.board import Board
from workbench.ui.live.changes import Changes
from workbench.ui.live.explain import explain
from workbench.ui.live.figures import Kpi, LiveFigures, no_kpis
from workbench.ui.live.rows import LiveRows
from workbench.ui.live.specs import live_charts

PUSH_S = 0.1
_FIGURES_S = 1.0
_LOOK_S = 0.5
_ASKED = 4  # questions that wait
LACKING = marked(
    "Not here: steps, batches and memory peaks. An attached server shows what its client sees and its /metrics says."
)
_AND_NO_METRICS = marked(
    "Not here: steps, batches, memory peaks, and the server's own figures: it has no /metrics that we know."
)


class Feed:
    """Follows whatever the workbench plays; also a run that was started from a cell.

    Args:
        bench: what is followed.
        board: where it is shown.
        on_error: told of what goes wrong in the thread; the thread goes on.
        state: the engine's state in words.
        on_look: called twice a second, to look at what else may have changed.
    """

    def __init__(
        self,
        bench: Workbench,
        board: Board,
        on_error: Callable[[BaseException], None],
        state: Callable[[], str],
        on_look: Callable[[], None],
    ) -> None:
        self._bench, self._board, self._on_error = bench, board, on_error
        self._state, self._on_look = state, on_look
        self._lang = spoken()
        self._look_due = 0.0
        self._run: Run | None = None
        self._place = Place()
        self._window_s = board.window_s
        self._rows: LiveRows | None = None
        self._figures: LiveFigures | None = None
        self._badge = self._lacks = ""
        self._attached = False  # charts are those of an attached server
        self._kpis: list[Kpi] = []
        self._stalls: dict[str, Any] = {}
        self._asked: deque[Mapping[str, Any]] = deque(maxlen=_ASKED)
        self._fresh = False  # rows have come since the last figures
        self._missed_before = self._lost = self._faults = 0
        self._told: Run | None = None  # whose error was told
        self._failed = ""
        self._kpis_due = 0.0
        self._now_s = 0.0  # of the run
        self._stop = threading.Event()
        board.on_ask(self._asked.append)
        self._thread = threading.Thread(target=self._work, name="panel feed", daemon=True)

    def start(self) -> None:
        """Show empty charts and begin to tick."""
        with speaking(self._lang):
            self._follow(self._bench.current_run)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; what is on the board stays there."""
        self._stop.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(2.0)

    def _work(self) -> None:
        due = time.monotonic()
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            due = max(due + PUSH_S, time.monotonic())  # after a pause it does not catch up
            self._guarded(self._tick)
            if time.monotonic() >= self._look_due:
                self._look_due = time.monotonic() + _LOOK_S
                self._guarded(self._on_look)

    def _guarded(self, do: Callable[[], None]) -> None:
        with speaking(self._lang):
            try:
                do()
            except Exception as error:  # noqa: BLE001  nobody would see it
                if repr(error) != self._failed:  # once, not ten times a second
                    self._failed = repr(error)
                    self._on_error(error)

    def _tick(self) -> None:
        run = self._bench.current_run
        # While the charts are paused they stay what they are; what comes meanwhile is read afterwards.
        other = run is None and self._is_attached(None) != self._attached  # the form has changed what is to be started
        if (other or run is not self._run or self._board.window_s != self._window_s) and not self._board.paused:
            self._tell_error()
            self._follow(run)
        try:
            changes = self._changes(self._run) if self._run is not None else Changes()
        except Exception:
            self._board.push(Changes(), self._status())  # the page must not take the panel for dead
            raise
        self._board.push(changes, self._status(), self._stalls)
        self._tell_error()
        while self._asked:
            self._explain(self._asked.popleft())

    def _explain(self, asked: Mapping[str, Any]) -> None:
        """Answer a person who picked a point; the page rounds its time, and may name anything."""
        run, figures, at_s, step = self._run, self._figures, asked.get("t"), asked.get("step")
        if run is None or figures is None or not isinstance(at_s, int | float):
            return
        stream = asked.get("stream")
        trace = figures.trace(self._now_s)
        self._board.tell(
            explain(
                trace,
                run.slo,
                float(at_s),
                stream if isinstance(stream, str) else None,
                step if isinstance(step, int) else None,
            )
        )

    def _tell_error(self) -> None:
        """An engine that died or a disk that is full ends a run in its own thread: say so, once."""
        run = self._run
        if run is not None and run.done and run.error is not None and run is not self._told:
            self._told = run
            self._on_error(run.error)

    def _follow(self, run: Run | None) -> None:
        """Begin with a run from its first row that is still in memory."""
        self._run, self._place, self._window_s = run, Place(), self._board.window_s
        streams = {} if run is None else {one.request: one.class_name for one in run.workload.requests}
        slo = self._bench.slo if run is None else run.slo
        attached = self._attached = self._is_attached(run)
        self._lacks = translate(LACKING) if attached else ""
        self._rows = LiveRows(self._window_s, slo, streams, attached=attached)
        self._figures = LiveFigures(slo, self._window_s)
        self._kpis, self._kpis_due, self._stalls = no_kpis(slo, self._window_s), 0.0, {}
        self._missed_before, self._failed = -1, ""
        self._badge = self._origin(run)
        charts = live_charts(slo, streams, label=self._badge, attached=attached)
        self._board.show(charts, {"t0": 0.0, "t1": self._window_s})

    def _changes(self, run: Run) -> Changes:
        rows, figures = self._rows, self._figures
        if rows is None or figures is None:
            raise AssertionError("a run is followed before it is ticked")
        batches, self._place = run.tail.since(self._place)
        for table, some in batches:
            told = _arrived(some) if table == "tokens" else some
            rows.take(table, told)
            figures.take(table, told)
        if self._missed_before < 0:  # what went before this panel looked is no loss of it
            self._missed_before = self._place.missed
        self._now_s, self._fresh = run.elapsed_s, self._fresh or bool(batches)
        now = time.monotonic()
        if now >= self._kpis_due and (self._fresh or not run.done):
            self._kpis_due, self._fresh = now + _FIGURES_S, False
            trace = figures.trace(self._now_s)
            self._kpis, self._stalls = figures.kpis_of(trace, self._now_s), figures.stalls(trace)
            self._take_facts(run.engine_facts, rows)
        return rows.changes(self._now_s)

    def _take_facts(self, facts: Mapping[str, Any], rows: LiveRows) -> None:
        """What the engine says of itself while the run goes on."""
        rows.memory_split = facts.get("memory_split") or rows.memory_split  # known with its first step
        if self._attached:
            said = facts.get("attached") or {}
            rows.histograms = said.get("histograms")
            self._lacks = translate(LACKING if said.get("metrics") else _AND_NO_METRICS)
        self._lost = facts.get("probe_dropped") or 0
        faults = facts.get("probe_faults") or []
        for fault in faults[self._faults :]:
            self._on_error(EngineError(f"probe: {fault}"))
        self._faults = len(faults)

    def _status(self) -> dict[str, Any]:
        run = self._run
        words = [self._state()]
        if run is not None and not run.done:
            words.append(translate("playing {scenario}, {now:,.0f} s", scenario=run.scenario, now=self._now_s))
        return {
            "kpis": self._kpis,
            "badge": self._origin(None) if run is None else self._badge,
            "state": " · ".join(words),
            "lacks": self._lacks,
            "dropped": max(0, self._place.missed - max(0, self._missed_before)) + self._lost,
        }

    def _is_attached(self, run: Run | None) -> bool:
        """Whether there are no steps to be had: somebody else's server, without our probe in it."""
        if run is None:
            config = getattr(self._bench, "config", None)  # a room's page has none
            return isinstance(config, AttachedConfig) and config.probe is None
        facts = run.engine_facts
        return "attached" in facts and not (facts.get("config") or {}).get("probe")

    def _origin(self, run: Run | None) -> str:
        """Where the numbers come from; of simulated ones also how good they are."""
        engine = self._bench.engine
        if run is None:
            setup = getattr(engine, "setup", None)  # a simulated engine's, once it was started
            how = {"step_time_label": setup.label} if setup is not None else None
            return in_pieces(origin_words({"label": engine.label, "engine": {"simulated": how}}))
        return in_pieces(run.origin)


def _arrived(tokens: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Output as it arrives: a simulated engine has no client, there that is when the step ends."""
    return [row if row.get("client_s") is not None else {**row, "client_s": row["engine_s"]} for row in tokens]
