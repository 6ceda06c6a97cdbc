"""A page as PDF, printed by a headless Chromium that has no network."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

from workbench.errors import InputError, StoreError

BROWSER = "WORKBENCH_BROWSER"  # environment variable: another browser of this family
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
QUIET = (  # of a headless Chromium that talks to nobody of its own accord
    "--headless",
    "--no-sandbox",  # its pages are ours, and containers have no sandbox to give
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_FLAGS = (*QUIET, "--host-resolver-rules=MAP * ~NOTFOUND", "--no-pdf-header-footer")
_STATIC = "#static"  # asks a report's script to leave the drawings that are in the page (report.js)
_LONGEST_S = 180.0


def find_browser() -> str:
    """Path of the browser that prints.

    Raises:
        InputError: there is none.
    """
    asked = os.environ.get(BROWSER)
    found = shutil.which(asked) if asked else next((path for name in _NAMES if (path := shutil.which(name))), None)
    if found is None:
        raise InputError(
            "browser for a PDF",
            asked or "none",
            "Chromium, Chrome or Edge in PATH",
            f"install one (Debian: apt-get install chromium fonts-dejavu), name it in {BROWSER}, or print the HTML",
        )
    return found


def write_pdf(page: Path | str, path: Path | str) -> Path:
    """Print an HTML file on A4 or letter, as its style says, and return the PDF's path.

    Args:
        page: the HTML file.
        path: of the PDF; a file that is there is replaced once the new one is complete.

    Raises:
        InputError: there is no browser.
        StoreError: the browser wrote no PDF, or not within three minutes.
    """
    browser, page, path = find_browser(), Path(page).resolve(), Path(path)
    try:
        with tempfile.TemporaryDirectory(prefix="wb-pdf-", ignore_cleanup_errors=True) as scratch:
            draft = Path(scratch) / "page.pdf"
            said = _run(
                [
                    browser,
                    *_FLAGS,
                    f"--user-data-dir={scratch}/profile",
                    f"--print-to-pdf={draft}",
                    f"{page.as_uri()}{_STATIC}",
                ]
            )
            if not draft.is_file() or draft.read_bytes()[:5] != b"%PDF-":
                last = " ".join(said.split()[-40:]) or "it said nothing"
                raise StoreError(f"PDF {path}: {Path(browser).name} wrote none ({last}); print the HTML from a browser")
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(draft, path)
    except OSError as error:
        raise StoreError(f"PDF {path}: {error.strerror or error}; choose a folder that can be written") from None
    return path


def _run(command: list[str]) -> str:
    """Run a browser in a group of its own, all of which ends with it; what it said."""
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    ) as process:
        try:
            said, _ = process.communicate(timeout=_LONGEST_S)
        except subprocess.TimeoutExpired:
            said = b"it took too long"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return said.decode(errors="replace")
