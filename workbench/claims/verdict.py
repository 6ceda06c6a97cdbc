"""A verdict: what became of one claim here, in one line with its numbers and where they came from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Literal, Protocol

from workbench.config import SLO
from workbench.i18n import marked, phrase, phrases, translate
from workbench.origin import in_phrases, origin_words
from workbench.trace import Trace

Outcome = Literal["holds", "holds in part", "does not hold here"]
UNTESTED = marked("Not tested here")
_SIGN: dict[Outcome, str] = {"holds": "✔", "holds in part": "◐", "does not hold here": "✘"}
# Okabe-Ito, as on the charts: no meaning by colour alone, the sign and the words say it too.
OUTCOME_COLOUR: dict[Outcome, str] = {"holds": "#009e73", "holds in part": "#e69f00", "does not hold here": "#d55e00"}


class Measured(Protocol):
    """What a claim is judged from: a :class:`workbench.run.RecordedRun`, or anything with its trace and SLO."""

    @property
    def trace(self) -> Trace:
        """All tables of the run."""

    @property
    def slo(self) -> SLO:
        """The latency promise that the run is held against."""


@dataclass(frozen=True, repr=False)
class Verdict:
    """What became of a claim.

    Attributes:
        claim: its number, such as C1.
        text: what it says, short.
        outcome: holds, holds in part, or does not hold here.
        sentence: why, with the measured numbers; in English, as are all texts here until they are shown.
        origin: where the numbers come from: live CPU, live GPU or simulated, and the model.
        article: the article's own numbers, in its units.
        arithmetic: what follows from physical limits, without a measurement.
        untested: what of the claim could not be tested here.
    """

    claim: str
    text: str
    outcome: Outcome
    sentence: str
    origin: str
    article: str = ""
    arithmetic: str = ""
    untested: str = ""

    @property
    def notes(self) -> list[tuple[str, str]]:
        """What stands behind the sentence, as (heading, text), without what is empty."""
        every = (
            (marked("The article says"), self.article),
            (marked("Arithmetic"), self.arithmetic),
            (UNTESTED, self.untested),
        )
        return [(heading, text) for heading, text in every if text]

    def __str__(self) -> str:
        """The whole verdict on one line."""
        rest = "".join(f" · {translate(heading)}{translate(': ')}{translate(text)}" for heading, text in self.notes)
        said, origin = translate(self.sentence), translate(self.origin)
        return f"{self.claim} {translate(self.outcome)}{translate(': ')}{said} [{origin}]{rest}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        notes = "".join(
            f"<div><em>{escape(translate(heading))}{translate(': ')}</em>{escape(translate(text))}</div>"
            for heading, text in self.notes
        )
        return (
            f'<div style="border-left:4px solid {OUTCOME_COLOUR[self.outcome]};padding:4px 12px;max-width:100ch">'
            f"<div>{escape(self.claim)}: “{escape(translate(self.text))}”</div>"
            f"<div><strong>{_SIGN[self.outcome]} {escape(translate(self.outcome))}{translate(': ')}</strong>"
            f"{escape(translate(self.sentence))} <small>[{escape(translate(self.origin))}]</small></div>"
            f'<div style="opacity:.8;font-size:.9em">{notes}</div></div>'
        )


def ended(between: str, parts: Sequence[str]) -> str:
    """Parts as a sentence, with a full stop; empty where there are none."""
    return phrases(between, parts) + phrase(".") if parts else ""


def origin_of(runs: Iterable[Measured]) -> str:
    """Where the numbers of these runs come from, in words: "live CPU, tiny-long"; see :func:`origin_words`."""
    return origins(run.trace.meta for run in runs)


def origins(metas: Iterable[Mapping[str, Any]]) -> str:
    """The same from the metadata of the runs."""
    found: dict[str, None] = {}
    for meta in metas:
        label, where = in_phrases(origin_words(meta)), _where(meta.get("engine") or {})
        found[phrase("{one}, {other}", one=label, other=where) if where else label] = None
    return phrases(" and ", found)


def on_gpu(runs: Iterable[Measured]) -> bool:
    """Whether all runs were made live on a GPU."""
    return all(run.trace.meta.get("label") == "live GPU" for run in runs)


def _where(engine: Mapping[str, Any]) -> str:
    """The model, and the hardware where that is not this machine."""
    model, simulated = str((engine.get("config") or {}).get("model") or ""), engine.get("simulated") or {}
    if not simulated.get("gpu"):
        return model
    return phrase("{model} on {gpus} x {gpu}", model=model, gpus=simulated["gpus"], gpu=simulated["gpu"])
