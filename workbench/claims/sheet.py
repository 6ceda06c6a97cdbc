"""The verdict sheet: every claim with what became of it, from as few runs as that takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, get_args

import pandas as pd

from workbench.claims import gather
from workbench.claims.evidence import Evidence, Source
from workbench.claims.gather import Tell
from workbench.claims.judging import Judged
from workbench.claims.table import CLAIMS, Claim
from workbench.claims.verdict import OUTCOME_COLOUR, Verdict
from workbench.engine.probe.compat import installed_vllm
from workbench.errors import InputError, WorkbenchError
from workbench.i18n import marked, phrase, phrase_of, phrases, translate

NOT_JUDGED = marked("not judged")
HEADINGS = (marked("claim"), marked("says"), marked("verdict"), marked("numbers"), marked("from"))
_SOURCES: tuple[Source, ...] = get_args(Source)
_NEEDS_VLLM = ("live", "simulated")
_CELL = '<td style="text-align:left;vertical-align:top">{}</td>'
COLOUR: Mapping[str, str] = {**{str(word): colour for word, colour in OUTCOME_COLOUR.items()}, NOT_JUDGED: "#999999"}


@dataclass(frozen=True)
class Row:
    """One claim on the sheet.

    Attributes:
        claim: what was asked.
        judged: the verdict and its runs; none where there is none.
        source: live, recorded or simulated; empty without a verdict.
        why_not: what it would need, and what was in the way; empty with a verdict.
        evidence: that it was judged from.
    """

    claim: Claim
    judged: Judged | None
    source: str = ""
    why_not: str = ""
    evidence: Evidence | None = field(default=None, repr=False)

    @property
    def verdict(self) -> Verdict | None:
        """What became of the claim; none where that is not known."""
        return self.judged.verdict if self.judged else None

    @property
    def word(self) -> str:
        """Holds, holds in part, does not hold here, or not judged."""
        return self.verdict.outcome if self.verdict else NOT_JUDGED

    @property
    def numbers(self) -> str:
        """The measured numbers, or why there are none."""
        return self.verdict.sentence if self.verdict else self.why_not

    @property
    def origin(self) -> str:
        """Where the numbers come from, with the error of simulated ones."""
        return self.verdict.origin if self.verdict else ""


@dataclass(frozen=True, repr=False)
class Sheet:
    """All claims, judged or not.

    Attributes:
        rows: one a claim, C1 to C16.
        trouble: what went wrong while the runs were played, one line each.
        interrupted: whether a person ended it before all runs were played.
    """

    rows: Sequence[Row]
    trouble: Sequence[str] = ()
    interrupted: bool = False

    @property
    def summary(self) -> str:
        """How many claims hold, and how many were not judged."""
        count = Counter(row.word for row in self.rows)
        words = (*(word for word in ("holds", "holds in part", "does not hold here") if count[word]), NOT_JUDGED)
        return phrases(" · ", [phrase("{word}: {count}", word=phrase(word), count=count[word]) for word in words])

    @property
    def table(self) -> pd.DataFrame:
        """One row a claim, index its number: ``says``, ``verdict``, ``numbers``, ``from``."""
        rows = [[row.claim.text, row.word, row.numbers, row.origin] for row in self.rows]
        index = pd.Index([row.claim.id for row in self.rows], name="claim")
        return pd.DataFrame(rows, index=index, columns=list(HEADINGS[1:]))

    def __getitem__(self, claim: str) -> Row:
        """The row of a claim, by its number.

        Raises:
            InputError: there is no such claim.
        """
        for row in self.rows:
            if row.claim.id == claim:
                return row
        raise InputError("claim", claim, f"{self.rows[0].claim.id} to {self.rows[-1].claim.id}", "choose one of these")

    def __str__(self) -> str:
        lines = [str(row.verdict) if row.verdict else _unjudged(row) for row in self.rows]
        return "\n".join([*lines, *map(translate, self.trouble), translate(self.summary)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = "".join(f'<th style="text-align:left">{translate(name)}</th>' for name in HEADINGS)
        rows = "".join(_html(row) for row in self.rows)
        trouble = "".join(f"<div>{escape(translate(line))}</div>" for line in self.trouble)
        return (
            f'<table style="max-width:120ch"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{trouble}'
            f"<p><strong>{escape(translate(self.summary))}</strong></p>"
        )


def _unjudged(row: Row) -> str:
    said = f"{row.claim.id} {translate(NOT_JUDGED)}{translate(': ')}{translate(row.why_not)}"
    return f"{said} [{translate(row.claim.text)}]"


def check_claims(
    sources: Sequence[Source] | None = None,
    tell: Tell = lambda _stage, _what: None,
    *,
    runs: Path | str | None = None,
    start_up: Mapping[str, Any] | None = None,
) -> Sheet:
    """Judge all claims, each from the first source that can tell.

    Ctrl-C ends the playing; what was played by then is judged, and so it is after an error.

    Args:
        sources: live (one engine start, some ten runs), recorded or simulated; tried in this order. By default live,
            and recorded where vLLM is not installed. C14 and C16 are simulated with either of the other two.
        tell: of each stage, and what of it comes next.
        runs: folder that live and simulated runs are recorded in; for recorded ones the folder that they are read
            from, by default data/runs.
        start_up: fields of the live engine in place of those of the scenarios.

    Raises:
        InputError: a source is unknown, or has nothing to judge by.
    """
    chosen = _chosen(sources)
    root = None if runs is None else Path(runs)
    found: list[Evidence] = []
    trouble: list[str] = []
    interrupted = False
    try:
        for source in (one for one in _SOURCES if one in chosen):
            for work in _works(source, root, start_up, found, tell):
                try:
                    work()
                except InputError:
                    raise
                except WorkbenchError as error:
                    trouble.append(str(error))
    except KeyboardInterrupt:
        interrupted = True
        trouble.append(marked("interrupted before all runs were played; judged is what there was by then"))
    tell(marked("sheet"), marked("judging"))
    return Sheet([_row(claim, found, interrupted) for claim in CLAIMS], trouble, interrupted)


def judge(evidence: Iterable[Evidence]) -> Sheet:
    """The sheet from evidence that is there already; each claim from the first that can tell."""
    found = list(evidence)
    return Sheet([_row(claim, found) for claim in CLAIMS])


def _chosen(sources: Sequence[Source] | None) -> Sequence[Source]:
    if sources is None:
        return ("live",) if installed_vllm() else ("recorded",)
    unknown = [one for one in sources if one not in _SOURCES]
    if unknown or not sources:
        raise InputError("sources", unknown[0] if unknown else "none", ", ".join(_SOURCES), "choose one or more")
    needy = [one for one in sources if one in _NEEDS_VLLM]
    if needy and installed_vllm() is None:
        fix = "run make setup, or judge from recorded runs"
        raise InputError(f"source {needy[0]}", "no vLLM here", "vLLM, whose scheduler it runs", fix)
    return sources


def _works(
    source: Source, root: Path | None, start_up: Mapping[str, Any] | None, found: list[Evidence], tell: Tell
) -> Iterator[Callable[[], object]]:
    """What has to be done for a source, each of which may fail without the others."""
    if source == "recorded":
        yield lambda: found.extend(gather.recorded(root))
        return
    evidence = Evidence(source)
    found.append(evidence)
    if source == "live":
        yield lambda: gather.live(evidence, tell, root, start_up)
    else:
        yield lambda: _ask(evidence, tell)
        yield lambda: gather.simulated(evidence, tell, root)
    if not any(one.article for one in found):
        yield lambda: gather.articles(evidence, tell)


def _ask(evidence: Evidence, tell: Tell) -> None:
    evidence.asked = gather.ask(tell)


def _row(claim: Claim, found: Sequence[Evidence], interrupted: bool = False) -> Row:
    """Judged from the first evidence that can tell."""
    why: InputError | None = None
    for evidence in found:
        try:
            return Row(claim, claim.judge(evidence), evidence.source, evidence=evidence)
        except InputError as error:
            why = why or error
    reason = phrase("interrupted before they were there") if interrupted else phrase_of(why) if why else ""
    needs = phrase("needs {what}", what=claim.needs)
    return Row(claim, None, why_not=needs + (phrase(" ({reason})", reason=reason) if reason else ""))


def _html(row: Row) -> str:
    notes = "".join(
        f'<div style="opacity:.8;font-size:.9em"><em>{escape(translate(heading))}:</em> {escape(translate(text))}</div>'
        for heading, text in (row.verdict.notes if row.verdict else ())
    )
    word = escape(translate(row.word))
    cells = (
        f"<strong>{row.claim.id}</strong>",
        escape(translate(row.claim.text)),
        f'<strong style="border-left:4px solid {COLOUR[row.word]};padding-left:6px">{word}</strong>',
        escape(translate(row.numbers)) + notes,
        f"<small>{escape(translate(row.origin))}</small>",
    )
    return f"<tr>{''.join(_CELL.format(cell) for cell in cells)}</tr>"
