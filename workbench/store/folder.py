"""Run folders: where they are, what they are called, and what is said of a disk that refuses them."""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from workbench.errors import RunNotFoundError, StoreError
from workbench.i18n import phrase
from workbench.store.meta import META
from workbench.units import MIB

_TRIAL_BYTES = 1 << 18  # a short run's worth
GOING = ".going-"  # prefix of a folder that is being deleted


def default_root() -> Path:
    """Where runs are kept: the environment variable ``WORKBENCH_RUNS``, else ``runs`` in the current folder."""
    return Path(os.environ.get("WORKBENCH_RUNS") or "runs")


def handed_over(folder: Path | str) -> Path:
    """A run folder as it was given; one of ``data/runs`` that is not here is taken from the checkout.

    So a notebook finds the recorded runs that come with the workbench from whatever folder it runs in.
    """
    folder = Path(folder).expanduser()
    if not folder.is_absolute() and folder.parts[:2] == ("data", "runs") and not (folder / META).is_file():
        return Path(__file__).resolve().parents[2] / folder
    return folder


def prepare_root(root: Path | str | None = None) -> Path:
    """Make the folder that runs go into and try whether it can be written; worth a look before an engine is started.

    Raises:
        StoreError: it cannot be made or written, or the disk is full.
    """
    root = default_root() if root is None else Path(root)
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=root, prefix=".trial-") as trial:
            trial.write(b"\0" * _TRIAL_BYTES)
            trial.flush()
    except OSError as error:
        raise disk_error("cannot write to", root, error) from None
    return root


def new_run_folder(root: Path | str | None = None, name: str = "run") -> Path:
    """Make an empty folder for a run, readable by its owner only.

    Folders sort by time: ``20260131-175959-123-name``. Spaces and signs in ``name`` become dashes, so that it is
    one folder's name whatever it was; beyond 60 characters or 180 bytes it is cut.

    Raises:
        StoreError: the folder cannot be made.
    """
    root = default_root() if root is None else Path(root)
    slug = re.sub(r"[^\w.-]+", "-", name)[:60].encode()[:180].decode(errors="ignore").strip(".-") or "run"
    try:
        root.mkdir(parents=True, exist_ok=True)
        while True:
            now = datetime.now(UTC)
            folder = root / f"{now:%Y%m%d-%H%M%S}-{now.microsecond // 1000:03d}-{slug}"
            try:
                folder.mkdir(mode=0o700)
            except FileExistsError:
                time.sleep(0.001)
            else:
                return folder.resolve()
    except OSError as error:
        raise disk_error("cannot make a run folder in", root, error) from None


def run_folder(root: Path | str | None, run: str) -> Path:
    """Return the folder of the run with id ``run``, which lies directly in ``root``.

    Raises:
        RunNotFoundError: there is none, or ``run`` points elsewhere.
    """
    root = (default_root() if root is None else Path(root)).resolve()
    folder = root / run
    try:
        inside = run not in ("", ".", "..") and folder.parent == root and not folder.is_symlink()
        there = inside and not run.startswith(GOING) and (folder / META).is_file()
    except (OSError, ValueError):  # too long, a NUL, half a character: no name of a file
        there = False
    if not there:
        raise RunNotFoundError(
            phrase("run"), run, phrase("the id of a run in {root}", root=root), phrase("see `workbench runs list`")
        )
    return folder


def disk_error(what: str, path: Path, error: BaseException) -> StoreError:
    """One line for a disk that refused: what, where, why, how much is free, and what to do."""
    near = path
    while not near.exists() and near != near.parent:
        near = near.parent
    try:
        free = f"{shutil.disk_usage(near).free / MIB:,.0f} MiB free"
    except OSError:
        free = "free space unknown"
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    fix = "free some space there" if full else "make it writable"
    reason = (isinstance(error, OSError) and error.strerror) or " ".join(str(error).split()) or type(error).__name__
    return StoreError(f"{what} {path}: {reason} ({free}); {fix}, or choose another folder")
