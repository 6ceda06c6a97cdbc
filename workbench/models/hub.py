"""Models by hub id: what this machine has already comes first, the network second."""

from __future__ import annotations

import os
import re
from pathlib import Path

from workbench.errors import ModelError
from workbench.i18n import marked, phrase, phrases
from workbench.models import child, fetch
from workbench.models import folder as folders
from workbench.models.child import Progress

_ANOTHER = marked("{do} or use a preset that needs no network: smollm2, tiny-long")
_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)


def is_hub_id(name: str) -> bool:
    """Whether a name has the form ``org/name``."""
    return bool(_ID.fullmatch(name)) and "--" not in name and ".." not in name and not name.endswith((".", "-", ".git"))


def fetch_model(name: str, progress: Progress, *, offline: bool | None = None) -> tuple[Path, str]:
    """Return the folder of a hub model and where it is from, downloaded first where this machine lacks it.

    Args:
        name: the hub id.
        progress: told what happens, a line at a time.
        offline: never use the network; None leaves it to ``HF_HUB_OFFLINE`` and ``TRANSFORMERS_OFFLINE``.

    Raises:
        ModelError: it is neither here nor within reach, or incomplete.
    """
    place = _local(name)
    lacks = folders.missing(place) if place else [marked("every file")]
    if lacks:
        if _offline() if offline is None else offline:
            why = phrase("by request") if offline else phrase("by HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE")
            raise ModelError(
                "model",
                name,
                phrase(
                    "a model in the local hub cache, since the network is off {why} (missing: {lacks})",
                    why=why,
                    lacks=phrases(", ", map(phrase, lacks)),
                ),
                phrase(_ANOTHER, do=phrase("allow the network,")),
            )
        _download(name, progress)
        place = _local(name)
        lacks = folders.missing(place) if place else [marked("every file")]
    if place is None or lacks:
        fix = phrase("it lacks {what}: choose another one", what=phrases(", ", map(phrase, lacks)))
        raise ModelError("model", name, phrase("a whole model on the hub"), fix)
    return place, f"Hugging Face hub {name}, commit {place.name[:12]}; {folders.licence(place)}"


def _download(name: str, progress: Progress) -> None:
    progress(phrase("{model}: not on this machine, asking the hub", model=name))
    try:
        child.run(
            fetch.__name__,
            [name],
            lambda line: progress(phrase("{model}: {what}", model=name, what=phrase(line))),
            environment={"HF_HUB_OFFLINE": "0", "TRANSFORMERS_OFFLINE": "0"},
        )
    except child.ChildError as error:
        kind, _, detail = str(error).partition(" ")
        expected, fix = {
            "unreachable": (
                phrase("a model in the local hub cache or a hub within reach ({why})", why=detail),
                phrase("check network and proxy,"),
            ),
            "unknown": (
                phrase("a model that the hub has"),
                phrase("check the spelling; a private one needs HF_TOKEN,"),
            ),
            "gated": (
                phrase("a model that you may fetch"),
                phrase("accept its terms on the hub and set HF_TOKEN,"),
            ),
            "incomplete": (
                phrase("a repository with a whole model (missing: {lacks})", lacks=detail),
                phrase("choose another one,"),
            ),
            "space": (
                phrase("room for it in the hub cache ({space})", space=detail),
                phrase("free some or set HF_HOME to another disk,"),
            ),
            "answer": (phrase("the hub to answer (HTTP {status})", status=detail), phrase("try later,")),
        }.get(
            kind,
            (
                phrase("the download to succeed ({why})", why=str(error)),
                phrase("try again: it goes on where it stopped,"),
            ),
        )
        raise ModelError("model", name, expected, phrase(_ANOTHER, do=fix)) from None


def _local(name: str) -> Path | None:
    """The newest snapshot in the local hub cache, whole or not."""
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import IncompleteSnapshotError
    except ImportError:
        raise ModelError("model", name, "the package huggingface_hub for a hub id", "run `make setup`") from None
    try:
        return Path(snapshot_download(name, local_files_only=True))
    except IncompleteSnapshotError as error:
        return Path(error.snapshot_path)
    except OSError:  # LocalEntryNotFoundError, or a cache that cannot be read
        return None


def _offline() -> bool:
    values = (os.environ.get(key, "") for key in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"))
    return any(value.strip().upper() in ("1", "ON", "YES", "TRUE") for value in values)
