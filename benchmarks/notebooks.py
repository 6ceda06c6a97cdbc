"""The whole workshop without a person: seconds that each notebook takes, executed and exported, and of all.

One after the other, as ``workbench notebook NAME --html`` does; where the kernel lets a process have a network of its
own, with loopback alone in it (``offline``). Of each page: charts that are in it, and what it would fetch. ``NAMES``
(00,01,...,09) plays some of them. Two cores may take 25 minutes for the set.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.parts.stats import answer, say
from workbench.report.parsed import outside

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
_LOOPBACK = ("unshare", "--user", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")


def main() -> None:
    """Execute, export, look, print."""
    every = sorted(path.stem for path in FOLDER.glob("[0-9][0-9]_*.ipynb"))
    chosen = os.environ.get("NAMES", "").split(",") if os.environ.get("NAMES") else [name[:2] for name in every]
    names = [name for name in every if name[:2] in chosen]
    offline = subprocess.run([*_LOOPBACK, "true"], capture_output=True, check=False).returncode == 0
    load_before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="wb-notebooks-") as scratch:
        found = {name: _played(name, Path(scratch), _LOOPBACK if offline else ()) for name in names}
    answer(
        {
            "bench": "notebooks",
            "minutes": sum(one["seconds"] for one in found.values()) / 60,
            "failed": [name for name, one in found.items() if one["failed"]],
            "offline": offline,
            "notebooks": found,
            "load_1min_before": load_before,
        }
    )


def _played(name: str, folder: Path, within: tuple[str, ...]) -> dict[str, Any]:
    """One notebook, its page written into ``folder``."""
    say(name)
    workbench = [sys.executable, "-m", "workbench.cli", "notebook", name, "--html", "--out", str(folder)]
    begun = time.monotonic()
    done = subprocess.run([*within, *workbench], capture_output=True, text=True, check=False)
    seconds = time.monotonic() - begun
    page = folder / f"{name}.html"
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    failed = "" if done.returncode == 0 else " ".join(done.stderr.split())[-300:] or f"exit code {done.returncode}"
    return {"seconds": seconds, "charts": text.count("<svg"), "fetches": outside(text), "failed": failed}


if __name__ == "__main__":
    main()
