"""A virtual environment that is being built: pip's progress in one line, its log, and the steps that are done.

Standard library only, and it must parse on Python 3.6 (see machine_check.py). What it says goes to
stderr, what pip says to .venv/setup.log.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class SetupError(Exception):
    """One sentence for the person: what went wrong and what to do."""


def say(text: str) -> None:
    """Prints one line on stderr, over a progress line if there is one."""
    sys.stderr.write(("\r\033[K" if sys.stderr.isatty() else "") + f"setup: {text}\n")
    sys.stderr.flush()


class Environment:
    """A virtual environment, the log of what was done to it and the stamps of the finished steps."""

    def __init__(self, prefix: Path) -> None:
        self.prefix = prefix
        self.python = prefix / "bin" / "python"
        self.log = prefix / "setup.log"

    def version(self) -> "tuple[int, ...]":
        """Python's major and minor version in it; () when there is no virtual environment."""
        config = self.prefix / "pyvenv.cfg"
        text = config.read_text(encoding="utf-8") if config.exists() else ""
        found = re.search(r"^version\s*=\s*(\d+)\.(\d+)", text, re.MULTILINE)
        return tuple(int(part) for part in found.groups()) if found else ()

    def has_pip(self) -> bool:
        """Whether its pip runs."""
        asked = [str(self.python), "-m", "pip", "--version"]
        return self.python.exists() and subprocess.run(asked, capture_output=True).returncode == 0

    def stamp(self, step: str) -> str:
        """What the step was last done for; empty when it never ended."""
        path = self.prefix / f".setup-{step}"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def done(self, step: str, key: str) -> None:
        """Marks a step as done for this key."""
        (self.prefix / f".setup-{step}").write_text(key, encoding="utf-8")

    def pip(self, label: str, *args: str, packages: int = 1) -> None:
        """Runs `pip install` and shows how far it is.

        Args:
            label: the step, as the person sees it.
            args: what follows `pip install`.
            packages: how many it will collect and install, for the bar.

        Raises:
            SetupError: with pip's last error line.
        """
        options = ("--disable-pip-version-check", "--no-input", "--progress-bar=off")
        command = [str(self.python), "-m", "pip", "install", *options, *args]
        start = self.log.stat().st_size if self.log.exists() else 0
        had = self._installed()
        began = shown = time.monotonic()
        with self.log.open("ab") as log:
            unbuffered = {**os.environ, "PYTHONUNBUFFERED": "1"}
            child = subprocess.Popen(
                command, cwd=str(ROOT), env=unbuffered, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )
            try:
                while child.poll() is None:
                    time.sleep(0.2)
                    now = time.monotonic()
                    share, doing = self._progress(start, had, packages)
                    if sys.stderr.isatty():
                        bar = ("#" * round(20 * share)).ljust(20, ".")
                        line = f"setup: {label}  [{bar}] {share:4.0%}  {now - began:.0f} s  {doing}"
                        sys.stderr.write("\r\033[K" + line[: shutil.get_terminal_size().columns - 1])
                        sys.stderr.flush()
                    elif now - shown > 15:
                        shown = now
                        say(f"{label}  {share:.0%}  {now - began:.0f} s  {doing}")
            finally:
                if child.poll() is None:
                    child.terminate()
                    child.wait()
        if child.returncode:
            errors = re.findall(r"^ERROR: (.*)", self._logged(start), re.MULTILINE)
            why = errors[-1] if errors else f"pip ended with exit code {child.returncode}"
            raise SetupError(f"{label} failed: {why}; the whole log is {self.log}")
        say(f"{label}  done in {time.monotonic() - began:.0f} s")

    def _logged(self, start: int) -> str:
        with self.log.open("rb") as log:
            log.seek(start)
            return log.read().decode("utf-8", "replace")

    def _installed(self) -> int:
        return sum(1 for _ in self.prefix.glob("lib/python3*/site-packages/*.dist-info"))

    def _progress(self, start: int, had: int, packages: int) -> "tuple[float, str]":
        """How far pip is, and what it is at: downloading is the first half, installing the second."""
        logged = self._logged(start)
        first = r"^(?:Collecting|Processing|Obtaining|Requirement already satisfied:) +(?:\S*/)?(.+?)(?:-\d|[^\w.-]|$)"
        collected = re.findall(first, logged, re.MULTILINE)
        order = re.search(r"^Installing collected packages: (.*)$", logged, re.MULTILINE)
        if order is None:
            added, doing = 0, f"downloading {collected[-1]}" if collected else "starting pip"
        else:
            names = order[1].split(", ")  # pip installs them in this order
            added = max(self._installed() - had, 0)
            doing = f"installing {names[min(added, len(names) - 1)]}"
        return min((len(collected) + added) / (2 * packages), 1.0), doing
