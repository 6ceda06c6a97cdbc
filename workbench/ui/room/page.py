"""The page that a room sees, and the one that its teacher drives the engine with."""

from __future__ import annotations

import hmac
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs

import ipywidgets as widgets

from workbench.config import Knobs
from workbench.i18n import marked, told_error, translate
from workbench.session import Workbench
from workbench.store import default_root
from workbench.ui.live.board import Board
from workbench.ui.live.feed import Feed
from workbench.ui.panel.app import LEAVE_AFTER
from workbench.ui.room.watched import Watched

KEY = "WORKBENCH_ROOM_KEY"  # the teacher's; `workbench room` makes it
ZOOM = 1.35  # so that the last row can read it
_STYLE = f"<style>.wb-room .wb-board {{ zoom: {ZOOM}; }}</style>"
_NAMES = {"max_running": marked("running cap")}
_WORDS = 5  # revision, budget, chunk, running cap and policy; the others are on the charts' rules


class Room(widgets.Box):
    """Large live charts of the newest run in a folder; there is nothing to press that reaches the engine.

    Every viewer's page follows the same recorded run: what one does on it, such as a pause, nobody else sees.

    Args:
        root: folder that the engine's owner records into; by default ``WORKBENCH_RUNS``, else ``runs``.
    """

    def __init__(self, root: Path | str | None = None) -> None:
        self._watched = Watched(default_root() if root is None else Path(root))
        self._trouble = ""
        self.board = Board()
        super().__init__([widgets.HTML(_STYLE), self.board], layout=widgets.Layout(flex_flow="column"))
        self.add_class("wb-room")
        # The feed reads of a workbench what a watched folder has too.
        self._feed = Feed(cast("Workbench", self._watched), self.board, self._tell, self._state, self._leave_if_alone)

    def follow(self) -> Room:
        """Begin to look."""
        self._feed.start()
        return self

    def close(self) -> None:
        """Look no more; the engine and the run go on."""
        self._feed.stop()
        super().close()

    def _state(self) -> str:
        """The knobs in force, in words; of a run that failed, why."""
        run = self._watched.current_run
        if self._trouble or run is None:
            return self._trouble or translate("nothing was played yet in {folder}", folder=self._watched.root.name)
        if run.reason:
            return translate("failed: {reason}", reason=run.reason)
        return (translate("ended · ") if run.done else "") + knob_words(run.revision)

    def _tell(self, error: BaseException) -> None:
        self._trouble = told_error(error)

    def _leave_if_alone(self) -> None:
        """A page that is gone says nothing; its kernel then falls silent, and the server ends it."""
        after = float(os.environ.get(LEAVE_AFTER) or 0)
        if after and time.monotonic() - self.board.heard_s > after:
            self.close()


def knob_words(knobs: Mapping[str, Any]) -> str:
    """Knobs as one line: "revision 3 · budget 64 · chunk off · ..."."""
    words = [translate("revision {n}", n=knobs["revision"])] if "revision" in knobs else []
    for name in Knobs.model_fields:
        value = knobs.get(name)
        if value is not None and not isinstance(value, bool):
            shown = (
                translate("off")
                if name == "chunk" and value == 0
                else f"{value:,}"
                if isinstance(value, int)
                else str(value)
            )
            words.append(f"{translate(_NAMES.get(name, name))} {shown}")
    return " · ".join(words[:_WORDS]) or translate("knobs not known")


def room_page(query: str | None = None) -> Any:
    """What the address asks for: the panel with the teacher's key, else the page that only looks.

    Args:
        query: of the address; by default what Voilà says it was.
    """
    asked = parse_qs(os.environ.get("QUERY_STRING", "") if query is None else query).get("teacher", [""])[0]
    key = os.environ.get(KEY, "")
    if key and hmac.compare_digest(asked.encode(), key.encode()):
        return Workbench().panel()
    return Room().follow()
