"""Collects what people read into workbench/locale/zh_CN/LC_MESSAGES/workbench.po, and compiles it.

Run by `make messages` after a change of a text. Messages are those of `translate`, `phrase`, `counted` and `marked` in
the code, in the page's template and in the widgets' scripts, those of the calls that make columns and parts of forms,
the texts of the configurations' fields, and the questions of the scenarios. What is new stands in the catalogue without
a translation, what is gone is dropped. tests/test_i18n.py fails until each message has one.
"""

from __future__ import annotations

import ast
import datetime
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_javascript
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from jinja2.ext import babel_extract

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "workbench" / "locale" / "zh_CN" / "LC_MESSAGES"
PO, MO = FOLDER / "workbench.po", FOLDER / "workbench.mo"
# Which arguments of which calls people read, from 0; of `counted` the two are one message. What makes a column, or a
# part of a form, leaves the translating to who shows it.
_READ: dict[str, tuple[int, ...]] = {
    "translate": (0,),
    "marked": (0,),
    "phrase": (0,),
    "phrases": (0,),
    "ended": (0,),
    "_prompt": (0,),
    "counted": (0, 1),
    "phrase_counted": (0, 1),
    "Column": (1, 2),
    "Button": (1, 2),
    "section": (1, 2),
    "Drawer": (1, 3),
    "Control": (2, 3),
    "choice": (1, 2),
    "_numbers": (1, 2),
    "_amount": (1, 2),
    "_values": (1, 2),
    "Entry": (1, 2),
    "Objective": (4,),
}
_OF_A_CLAIM = ("text", "article", "arithmetic", "untested")  # its sentence has numbers in it
_COUNTED = ("counted", "phrase_counted")
_METHODS = {".js": extract_javascript, ".j2": babel_extract}
_SAME = {"", "%", "ms", "s", "MiB", "P99"}  # in any language
_HEAD = "# The workbench in simplified Chinese; terms as in docs/glossary.md. `make messages` adds what is new.\n"
_WIDTH = 120


def wanted() -> Catalog:
    """Every message there is, without translations."""
    found = Catalog(domain="workbench")
    for file in sorted((ROOT / "workbench").rglob("*")):
        for message in _said(file):
            found.add(message, locations=[(str(file.relative_to(ROOT)), 1)])
    for message, where in (*_fields(), *_values(), *_questions()):
        found.add(message, locations=[(where, 1)])
    return found


def updated() -> Catalog:
    """The catalogue as it is, with what is new and without what is gone."""
    with PO.open("rb") as file:
        known = read_po(file, locale="zh_CN", domain="workbench")
    known.update(wanted(), no_fuzzy_matching=True, update_header_comment=False)
    known.obsolete.clear()
    for message in known:
        message.flags &= {"fuzzy"}  # the others are guesses
        message.locations = sorted(set(message.locations))
    known.header_comment = _HEAD.strip()
    known.project, known.version = "workbench", "1"
    known.copyright_holder = known.msgid_bugs_address = known.last_translator = known.language_team = ""
    # A date in it would make every call a change.
    known.creation_date = known.revision_date = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    return known


def as_text(catalogue: Catalog) -> bytes:
    """The .po file."""
    out = io.BytesIO()
    write_po(out, catalogue, width=_WIDTH, sort_by_file=True, include_lineno=False)
    return out.getvalue()


def compiled(catalogue: Catalog) -> bytes:
    """The .mo file."""
    out = io.BytesIO()
    write_mo(out, catalogue)
    return out.getvalue()


def _said(file: Path) -> Iterator[str | tuple[str, str]]:
    """The messages of a file."""
    if file.suffix == ".py":
        yield from _called(ast.parse(file.read_text(encoding="utf-8")))
    elif file.suffix in _METHODS:
        with file.open("rb") as text:
            for _, _, given, _ in _METHODS[file.suffix](text, ("translate",), (), {}):
                message = given[0] if isinstance(given, list | tuple) else given
                if message:
                    yield message


def _called(code: ast.AST) -> Iterator[str | tuple[str, str]]:
    """The messages among the arguments of a module's calls, in their order."""
    calls = [one for one in ast.walk(code) if isinstance(one, ast.Call)]
    for call in sorted(calls, key=lambda one: (one.lineno, one.col_offset)):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        starred = next((n for n, arg in enumerate(call.args) if isinstance(arg, ast.Starred)), len(call.args))
        places = [call.args[place] for place in _READ.get(name, ()) if place < starred]
        words = [one.value for one in places if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        if name in _COUNTED:
            if len(words) == len(places):
                one, many = words
                yield one, many
        else:
            yield from (one for one in words if one not in _SAME)
        told = [one.value for one in call.keywords if name == "Verdict" and one.arg in _OF_A_CLAIM]
        yield from (one.value for one in told if isinstance(one, ast.Constant) and one.value)


def _fields() -> Iterator[tuple[str, str]]:
    """Labels, units and descriptions of configurations."""
    from workbench.attached_config import AttachedConfig
    from workbench.config import SLO, EngineConfig, Knobs
    from workbench.simulated_config import SimulatedConfig
    from workbench.ui.panel.fields import words_of

    for model in (Knobs, SLO, EngineConfig, SimulatedConfig, AttachedConfig):
        for name, field in model.model_fields.items():
            for message in (*words_of(model, name), field.description):
                if message and message not in _SAME:
                    yield message, f"{model.__module__.replace('.', '/')}.py"


def _values() -> Iterator[tuple[str, str]]:
    """Words that stand in data as they are, and are translated where they are shown."""
    from workbench.claims.verdict import Outcome
    from workbench.metrics import CAUSES
    from workbench.metrics.mfu import KINDS
    from workbench.metrics.phases import PHASES
    from workbench.simulate.memory import Origin
    from workbench.tune.compare.verdict import Kind

    for words, where in (
        (CAUSES, "metrics/stalls"),
        (KINDS, "metrics/mfu"),
        (PHASES, "metrics/phases"),
        (get_args(Origin), "simulate/memory"),
        (get_args(Outcome), "claims/verdict"),
        (get_args(Kind), "tune/compare/verdict"),
        (("primary", "exploratory"), "tune/compare/comparison"),
        (("ok", "warn", "fail", "found", "to do"), "doctor"),
        (("engine", "simulation", "search", "beyond", "confirmation"), "tune/tune"),
        (("live CPU", "live GPU", "simulated", "attached", "recorded", "uncalibrated", "roofline"), "origin"),
        (("complete", "cancelled", "failed", "interrupted"), "store/folder"),
        (("new", "starting", "ready", "stopping", "failed", "stopped"), "engine/protocol"),
        (("loading transformers", "reading the file", "tokenizer", "writing 1 file", "written"), "models/convert"),
    ):
        for word in words:
            yield word, f"workbench/{where}.py"


def _questions() -> Iterator[tuple[str, str]]:
    """What the scenarios are to answer."""
    from workbench.workload.scenario import load_scenario, scenario_names

    for name in scenario_names():
        question = load_scenario(name).question
        if question:
            yield question, f"data/scenarios/{name}.yaml"


def main() -> int:
    """Write both files, and say what is left to translate."""
    catalogue = updated()
    PO.write_bytes(as_text(catalogue))
    MO.write_bytes(compiled(catalogue))
    left = [message.id for message in catalogue if message.id and (message.fuzzy or not message.string)]
    sys.stdout.write(f"{len(catalogue)} messages, {len(left)} to translate: {PO.relative_to(ROOT)}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
