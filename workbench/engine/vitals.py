"""Whether a live engine lives: its processes run, it does not hang, and it does not say that it is dead."""

from __future__ import annotations

import threading

from workbench.driver.host import Play
from workbench.engine import failures
from workbench.engine.hang import Pulse
from workbench.engine.live_server import LiveServer
from workbench.errors import EngineDiedError
from workbench.i18n import phrase

_LAST_WORDS_S = 3.0


class Vitals:
    """Watches the engine of one start, and ends it when it is found dead or hanging.

    Args:
        held: the engine.
        stopping: set once somebody has stopped it.
    """

    def __init__(self, held: LiveServer, stopping: threading.Event) -> None:
        self._held, self._stopping = held, stopping
        self._play: Play | None = None
        self._pulse: Pulse | None = None  # of the play that is going on
        self._hang: str | None = None  # what was wrong when the engine was ended because it hung
        self._lost = False  # its server says that its engine is dead, and its processes may still be there

    @property
    def good(self) -> bool:
        """Whether it lives, as far as is known without asking it."""
        return self._held.is_whole and not self._lost and self._hang is None

    @property
    def playing(self) -> bool:
        """Whether a play is going on."""
        return self._play is not None and not self._play.done

    def begin(self) -> None:
        """Feel its pulse anew: a play is about to begin."""
        pid = self._held.process.pid
        self._pulse = Pulse(pid) if pid is not None else None

    def follow(self, play: Play) -> None:
        """Watch it while a play goes on, or by the last one."""
        self._play = play

    def look(self) -> None:
        """Ask the server whether its engine is dead; for when requests have failed."""
        self._lost = not self._stopping.is_set() and self._held.server.is_lost()

    def death(self) -> EngineDiedError | None:
        """The error to raise if the engine has ended or hangs, with the likely cause, else none."""
        if self._hangs():
            return EngineDiedError(
                phrase(
                    "the engine hangs: {what}; it was ended and what was measured is kept, start the engine again",
                    what=self._hang,
                )
            )
        if self._held.is_whole and not self._lost:
            return None
        if self._stopping.is_set():
            return EngineDiedError(phrase("the engine was stopped"))
        process = self._held.process
        process.wait(_LAST_WORDS_S)  # its exit code and the end of its log tell why
        cause = failures.explain(failures.read_tail(self._held.prepared.log), process.exit_code)
        if self._held.is_whole:  # dead by its own word, and yet there
            self._end()
        return EngineDiedError(
            phrase(
                "the engine died in mid-run: {cause}; what was measured is kept, start the engine again", cause=cause
            )
        )

    def _hangs(self) -> bool:
        """Whether it was found to hang in the play that is going on, or the last one; it is ended then."""
        play, pulse, collector = self._play, self._pulse, self._held.collector
        if self._hang is None and play and not play.done and pulse and self._held.is_whole:
            self._hang = pulse.look((collector.last_step, play.output_tokens), play.in_flight)
            if self._hang is not None:
                self._end()
        return self._hang is not None

    def _end(self) -> None:
        """End a dead or hung engine while its requests are let go: stopped processes heed no SIGTERM for seconds."""
        threading.Thread(target=self._held.process.stop, name="end a dead engine", daemon=True).start()
