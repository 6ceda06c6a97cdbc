"""What a step without any prefill takes on an engine: no policy can keep token gaps below that."""

from __future__ import annotations

import threading
from collections import deque

import numpy as np

from workbench.config import Knobs
from workbench.engine.probe.wire import Step
from workbench.errors import EnvelopeError

_KEPT = 512  # decode-only steps: those of the last half minute or so, as the load and the machine are now
_ENOUGH = 20
_PERCENTILE = 10  # a quick step, so that a target is refused only where hardly any step could meet it


class DecodeFloor:
    """Watches the steps of one engine and refuses a target gap that none of them could meet."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seconds: deque[float] = deque(maxlen=_KEPT)
        self._last_end = 0.0

    def see(self, step: Step) -> None:
        """Take a step that is done; one that held prefill is only a step that the next one waited for."""
        # With two steps in flight the second is scheduled before the first has ended.
        begun, self._last_end = max(step.scheduled_s, self._last_end), step.end_s
        if step.parts and not any(part.prefill for part in step.parts):
            with self._lock:
                self._seconds.append(step.end_s - begun)

    @property
    def ms(self) -> float | None:
        """The 10th percentile of the last decode-only steps in milliseconds; none until there are 20 of them."""
        with self._lock:
            seconds = list(self._seconds)
        return float(np.percentile(seconds, _PERCENTILE)) * 1e3 if len(seconds) >= _ENOUGH else None

    def check(self, knobs: Knobs) -> None:
        """Refuse knobs under which the policy would chase a target that cannot be met.

        Raises:
            EnvelopeError: the policy is target_gap and its target lies below the floor; the message gives it.
        """
        floor = self.ms
        if knobs.policy == "target_gap" and floor is not None and knobs.target_gap_ms < floor:
            raise EnvelopeError(
                "target_gap_ms",
                f"{knobs.target_gap_ms:g}",
                f"at least {floor:.1f}, the measured decode floor (P{_PERCENTILE} of its steps without prefill)",
                f"choose {np.ceil(floor * 1.5):.0f} or more, so that prefill finds room, or another policy",
            )
