"""Debian's Chromium without a network, through Playwright; for browser tests and benchmarks."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from workbench.report.pdf import QUIET

_FLAGS = [*QUIET, "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]


def chromium_path() -> str | None:
    """Debian's Chromium, if there is one."""
    return shutil.which("chromium")


@contextmanager
def chromium(*flags: str) -> Iterator[Any]:
    """Chromium without a network, through Playwright.

    Raises:
        RuntimeError: there is none.
    """
    from playwright.sync_api import sync_playwright

    path = chromium_path()
    if path is None:
        raise RuntimeError("no chromium in PATH; install it (Debian: apt-get install chromium fonts-dejavu)")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=[*_FLAGS, *flags])
        try:
            yield browser
        finally:
            browser.close()
