"""What the verbs of the command line have in common: their options, and start-up fields from ``name=value`` texts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from workbench.config import POLICIES, Knobs
from workbench.errors import ConfigError, InputError
from workbench.i18n import phrase
from workbench.json_file import parse_json
from workbench.workload.scenario import MAX_SEED

_NAMES = ", ".join(Knobs.model_fields)
POLICY_HELP = f"{', '.join(POLICIES[:-1])} or {POLICIES[-1]}."

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of a table.")]
RunsRoot = Annotated[Path | None, typer.Option("--runs", help="Folder of the runs (WORKBENCH_RUNS, else ./runs).")]
ScenarioArg = Annotated[str, typer.Argument(help="A scenario's name (data/scenarios) or a YAML file.")]
Seed = Annotated[int | None, typer.Option(help="Replaces the scenario's seed.", min=0, max=MAX_SEED)]
StartUp = Annotated[
    list[str] | None, typer.Option("--set", help="Start-up field as name=value, such as max_model_len=8192.")
]
KnobOption = Annotated[
    list[str] | None, typer.Option("--knob", help=f"Hot knob as name=value, such as policy=qos; one of {_NAMES}.")
]
KnobValues = Annotated[
    list[str] | None, typer.Option("--knob", help=f"Values of a hot knob to try, such as watermark=0,0.1; {_NAMES}.")
]
Lang = Annotated[str | None, typer.Option("--lang", help="Language: en or zh (WORKBENCH_LANG, else en).")]


def target(path: Path | None) -> Path | None:
    """A file that is written in the end: refused now, before anything is played or drawn, where it cannot be.

    Raises:
        StoreError: its folder cannot be made or written.
        InputError: it is a folder.
    """
    from workbench.store import prepare_root  # here: help has no use for what reads tables

    if path is None:
        return None
    if path.is_dir():
        fix = phrase("name one in it: {file}", file=path / "page.html")
        raise InputError(phrase("file to write"), path, phrase("a file, and this is a folder"), fix)
    prepare_root(path.parent)
    return path


ReportPath = Annotated[
    Path | None, typer.Option("--report", help="Also write a self-contained HTML report here.", callback=target)
]


def start_up_fields(given: Sequence[str] | None) -> dict[str, Any]:
    """Start-up fields from ``name=value`` texts; JSON where it parses, else text."""
    fields: dict[str, Any] = {}
    for text in given or ():
        name, sign, value = text.partition("=")
        if not sign or not name:
            fix = phrase("write it like {example}", example="--set max_model_len=8192")
            raise ConfigError("--set", text, phrase("name=value"), fix)
        try:
            fields[name.strip()] = parse_json(value)
        except ValueError:
            fields[name.strip()] = value
    return fields
