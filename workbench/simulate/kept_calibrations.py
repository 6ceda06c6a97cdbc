"""Calibrations as files: the user's own and those that come with the workbench, found by model and machine."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import platformdirs

from workbench.errors import InputError, StoreError
from workbench.json_file import read_json
from workbench.simulate.calibration import SETTINGS, Calibration
from workbench.whole_file import draft_of


def shipped_folder() -> Path:
    """Calibrations that come with the workbench."""
    return Path(__file__).resolve().parents[2] / "data" / "calibrations"


def own_folder() -> Path:
    """Calibrations that the user made."""
    state = os.environ.get("WORKBENCH_STATE") or platformdirs.user_state_dir("tuning-workbench")
    return Path(state) / "calibrations"


def save(calibration: Calibration, folder: Path | None = None, name: str | None = None) -> Path:
    """Keep it as JSON, by default among the user's own; the file is there whole or not at all.

    Args:
        calibration: what to keep.
        folder: where; it is made if need be.
        name: of the file; by default of model, machine and time.

    Raises:
        StoreError: it cannot be written.
    """
    folder = own_folder() if folder is None else folder
    where = calibration.machine.get("device") or calibration.machine.get("processor") or "machine"
    words = [calibration.model, str(where), str(calibration.settings.get("dtype") or ""), calibration.made_at]
    path = folder / (name or f"{re.sub(r'[^a-z0-9.]+', '-', ' '.join(words).lower()).strip('-')}.json")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with draft_of(path, mode=0o644) as draft:
            draft.write_text(json.dumps(calibration.as_dict(), indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}; choose another folder") from None
    return path


def load(path: Path | str) -> Calibration:
    """Read one.

    Raises:
        InputError: there is no such file, or it is no calibration.
    """
    try:
        facts = read_json(path)
    except (OSError, ValueError) as error:
        raise InputError("calibration", path, f"a JSON file ({error})", "calibrate again") from None
    return Calibration.from_dict(facts if isinstance(facts, dict) else {})


def match(
    model: str,
    machine: Mapping[str, Any],
    settings: Mapping[str, Any] | None = None,
    folders: Sequence[Path] | None = None,
) -> Calibration | None:
    """The newest calibration of this model on this machine; None where there is none, and the rest is uncalibrated.

    Args:
        model: as it is asked for.
        machine: see :func:`workbench.simulate.calibration.machine_key`.
        settings: start-up fields that must be as they were; those left out, None or "auto" may be anything, as may
            those that a calibration left at "auto".
        folders: by default the user's own and those that come with the workbench.
    """
    asked = {
        name: value for name, value in (settings or {}).items() if name in SETTINGS and value not in (None, "auto")
    }
    return max(
        (
            one
            for one in every(folders)
            if one.model == model
            and dict(one.machine) == dict(machine)
            and all(one.settings.get(name) in (value, None, "auto") for name, value in asked.items())
        ),
        key=lambda one: one.made_at,
        default=None,
    )


def every(folders: Sequence[Path] | None = None) -> Iterator[Calibration]:
    """All calibrations that are kept, the user's own first; damaged files are left out.

    Args:
        folders: by default the user's own and those that come with the workbench.
    """
    for folder in (own_folder(), shipped_folder()) if folders is None else folders:
        for path in sorted(folder.glob("*.json")):
            with suppress(InputError):
                yield load(path)
