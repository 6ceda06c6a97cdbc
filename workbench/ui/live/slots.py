"""Which requests have a colour of their own in a live chart, for as long as something of theirs is in sight."""

from __future__ import annotations

from collections.abc import Callable

from workbench.metrics.requests import LONG_PROMPT
from workbench.ui.charts.step_marks import NAMED, SLOTS

_SMALLEST = 128  # tokens; shorter prompts share the colour of the rest
_SHARE = 1 / 20  # of all prefill in sight, from which a prompt is worth a colour: as in the static chart
_FOR_ALL = NAMED // 2  # slots that a prompt may take that is not long; the others wait for a long one


class Slots:
    """First come, first served: a request keeps its slot until the last of its bars has left the window."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[str, float]] = {}  # request → slot, and how far its bars reach

    def slot(self, request: str, prompt_tokens: int, until_s: float, in_sight: Callable[[], int]) -> str | None:
        """Return the request's slot; none when it gets none.

        Args:
            request: that prefills.
            prompt_tokens: of it.
            until_s: end of the bar that is drawn now.
            in_sight: counts the prefill tokens in the window; asked only for a request without a slot.
        """
        slot = self._held[request][0] if request in self._held else self._free(prompt_tokens, in_sight)
        if slot is not None:
            self._held[request] = (slot, until_s)
        return slot

    def release(self, before_s: float) -> None:
        """Take slots back from requests whose bars have all left the window."""
        self._held = {name: held for name, held in self._held.items() if held[1] >= before_s}

    @property
    def names(self) -> dict[str, str]:
        """Slot → request, of those that are held."""
        return {slot: name for name, (slot, _) in sorted(self._held.items(), key=lambda item: item[1][0])}

    def _free(self, prompt_tokens: int, in_sight: Callable[[], int]) -> str | None:
        if prompt_tokens < _SMALLEST or prompt_tokens < _SHARE * in_sight():
            return None
        taken = {slot for slot, _ in self._held.values()}
        within = SLOTS if prompt_tokens >= LONG_PROMPT else SLOTS[-_FOR_ALL:]
        return next((slot for slot in within if slot not in taken), None)
