"""Settings as people write them to compare: ``budget=256,chunk=128,policy=qos``."""

from __future__ import annotations

from workbench.config import Knobs
from workbench.errors import InputError
from workbench.knob_options import single_knobs
from workbench.simulated_config import SimulatedConfig
from workbench.workload.setting import Setting

AS_STARTED = "defaults"  # no knob is turned


def setting_of(letter: str, given: Setting | str) -> Setting:
    """The setting that a text stands for.

    Args:
        letter: whose it is, for the words of an error.
        given: ``name=value`` with commas between, or "defaults" for the knobs that an engine starts with.

    Raises:
        InputError: it is none, names a start-up field, or a knob is wrong.
    """
    if isinstance(given, Setting):
        return given
    text = given.strip()
    if text == AS_STARTED:
        return Setting(name="as started")
    parts = [part.strip() for part in text.split(",") if part.strip()]
    names = [part.partition("=")[0].strip().replace("-", "_") for part in parts]
    if not parts or any("=" not in part for part in parts):
        expected = f"name=value with commas between, or {AS_STARTED}"
        raise InputError(letter, given, expected, "write it like budget=256,chunk=128,policy=qos, or name a run folder")
    for name, part in zip(names, parts, strict=True):
        if name not in Knobs.model_fields and name in {"engine", *SimulatedConfig.model_fields}:
            raise InputError(
                letter,
                part,
                f"hot knobs ({', '.join(Knobs.model_fields)}), since both settings are played on one engine",
                f"give {name} to both with --set, or record a run of each and compare the folders",
            )
    try:
        return Setting.of(single_knobs(parts))
    except InputError as bad:
        raise type(bad)(*_of_letter(letter, bad)) from None


def _of_letter(letter: str, bad: InputError) -> tuple[str, object, str, str]:
    what = bad.what.removeprefix("--knob").strip()
    return f"{letter}: {what}" if what else letter, bad.value, bad.expected, bad.fix
