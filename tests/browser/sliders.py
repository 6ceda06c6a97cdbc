"""Sliders turned by keys, on a page that may be busy or draw them anew at any moment."""

from __future__ import annotations

import time
from typing import Any

LOST_S = 2.0  # after which a press that changed nothing was lost: the slider was off, or drawn anew


def slider(page: Any, name: str) -> Any:
    """A locator: it looks the slider up anew at each use, unlike a handle."""
    return page.get_by_role("slider", name=name)


def says(page: Any, name: str, value: str, seconds: float = 60.0) -> None:
    """Wait until the slider says the value."""
    end = time.monotonic() + seconds
    while (said := _said(page, name)) != value:
        assert time.monotonic() < end, f"{name} says {said}, expected {value}"
        time.sleep(0.05)


def slide(page: Any, name: str, value: str, seconds: float = 60.0) -> None:
    """Move a slider with the arrow keys, as often as it takes, until it says the value."""
    end = time.monotonic() + seconds
    while (said := _said(page, name)) != value:
        assert time.monotonic() < end, f"{name} does not reach {value}, it says {said}"
        if said is None:
            time.sleep(0.05)
            continue
        slider(page, name).press("ArrowLeft" if _number(said) > _number(value) else "ArrowRight", timeout=60_000)
        lost = time.monotonic() + LOST_S
        while _said(page, name) == said and time.monotonic() < lost:
            time.sleep(0.05)


def _said(page: Any, name: str) -> str | None:
    said = slider(page, name).get_attribute("aria-valuetext", timeout=60_000)
    return None if said is None else str(said)


def _number(words: str) -> int:
    """Of a stop; what is no number, as "off", is the first."""
    digits = words.replace(",", "")
    return int(digits) if digits.isdigit() else -1
