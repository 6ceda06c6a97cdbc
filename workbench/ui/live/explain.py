"""What stands behind a point of the charts: a step with its make-up, a gap with its cause and the prompt behind it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from workbench import metrics
from workbench.config import SLO
from workbench.i18n import counted, translate
from workbench.trace import Trace

_NEAR_S = 0.002  # a chart's times are rounded
_NAMED = 6  # prompts of a step that are named
_SHORTER_MS = 0.05  # a gap is a stall of a promise that is so much shorter
Detail = dict[str, Any]  # title, facts (label and text), t0 and t1 (s), step


def explain(trace: Trace, slo: SLO, at_s: float, stream: str | None = None, step: int | None = None) -> Detail:
    """Explain a gap or a step.

    Args:
        trace: of what is on the charts.
        slo: the promise that makes a gap a stall.
        at_s: a time of the run, s: of a gap its end.
        stream: the request whose gap it is; without one, the step that ran then.
        step: the engine's number of the step, instead of a time.

    Returns:
        ``title``, ``facts`` (pairs of label and text), ``t0`` and ``t1`` (what it covers, s; none where nothing was
        found), ``step`` (its number, or none).
    """
    if stream is not None:
        return _gap(trace, slo, at_s, stream)
    row = _step_at(trace.steps, at_s, step)
    if row is None:
        return _nothing(
            translate("No step is known at {at:,.2f} s", at=at_s),
            translate("The engine has no step record of that time any more."),
        )
    return _of_step(trace, row, [])


def _gap(trace: Trace, slo: SLO, at_s: float, stream: str) -> Detail:
    gaps = metrics.gaps(trace)
    mine = gaps[(gaps["request"] == stream) & ((gaps["at_s"] - at_s).abs() < _NEAR_S)]
    if mine.empty:
        return _nothing(
            translate("No gap of {stream} at {at:,.2f} s", stream=stream, at=at_s), translate("It has left the window.")
        )
    gap = mine.iloc[0]
    gap_ms, end = float(gap["gap_ms"]), float(gap["at_s"])
    found = metrics.stalls(trace, slo.replace(gap_ms=max(gap_ms - _SHORTER_MS, _SHORTER_MS)))
    found = found[(found["request"] == stream) & ((found["at_s"] - end).abs() < _NEAR_S)]
    kind = translate("within the promise")
    if gap_ms > slo.gap_ms:
        kind = translate("a stall: the promise is {gap:,g} ms", gap=slo.gap_ms)
    facts = [(translate("gap"), f"{gap_ms:,.1f} ms, {kind}")]
    number: Any = None
    if len(found):
        why = found.iloc[0]
        cause = translate(str(why["cause"]))
        facts.append((translate("cause"), f"{cause}: {translate(why['detail'])}" if why["detail"] else cause))
        number = why["step"]
        if isinstance(why["because"], str):
            facts.append((translate("behind it"), _request(trace, why["because"])))
    begin = end - gap_ms / 1e3
    row = _step_at(trace.steps, end, None if number is None or pd.isna(number) else int(number))
    title = translate("Gap of {stream} at {at:,.2f} s", stream=stream, at=end)
    if row is None or (pd.isna(number) and not begin <= float(row["end_s"]) <= end + _NEAR_S):
        return {"title": title, "facts": facts, "t0": begin, "t1": end, "step": None}
    told = _of_step(trace, row, facts)
    return told | {"title": title, "t0": begin, "t1": end}


def _of_step(trace: Trace, row: pd.Series[Any], facts: list[tuple[str, str]]) -> Detail:
    number, begin, end = int(row["step"]), _begin(row), float(row["end_s"])
    took = f"{(end - begin) * 1e3:,.1f} ms"
    if pd.notna(row.get("predicted_ms")):
        took += translate(", predicted {ms:,.1f} ms", ms=float(row["predicted_ms"]))
    batch = trace.tables["batch"].to_pandas()
    parts = batch[batch["step"] == number]
    prompts = parts[parts["prefill"].fillna(False).astype(bool)].sort_values("tokens", ascending=False)
    facts = [*facts, (translate("step {number:,}", number=number), f"{took}; {_make_up(row)}")]
    if len(prompts):
        told = [
            translate(
                "{request} {tokens:,} after {context:,}",
                request=part["request"],
                tokens=part["tokens"],
                context=part["context"],
            )
            for _, part in prompts.iterrows()
        ]
        more = translate(" and {n} more", n=len(told) - _NAMED) if len(told) > _NAMED else ""
        facts.append((translate("prefill"), ", ".join(told[:_NAMED]) + more))
        behind = str(prompts.iloc[0]["request"])
        if not any(label == translate("behind it") for label, _ in facts):
            facts.append((translate("prompt"), _request(trace, behind)))
    victims = row.get("preempted")
    if victims is not None and len(victims):
        facts.append((translate("preempted"), ", ".join(map(str, victims))))
    facts.append((translate("engine"), _engine(trace, row)))
    return {
        "title": translate("Step {number:,} at {at:,.2f} s", number=number, at=begin),
        "facts": facts,
        "t0": begin,
        "t1": end,
        "step": number,
    }


def _make_up(row: pd.Series[Any]) -> str:
    decodes, prefill = _whole(row.get("decode_tokens")), _whole(row.get("prefill_tokens"))
    return translate("{decode} decode tokens, {prefill} prefill tokens", decode=decodes, prefill=prefill)


def _engine(trace: Trace, row: pd.Series[Any]) -> str:
    use = row.get("kv_use")
    running, waiting = _whole(row.get("running")), _whole(row.get("waiting"))
    words = [translate("{running} running, {waiting} waiting", running=running, waiting=waiting)]
    words.append(f"KV {float(use):.0%}" if use is not None and pd.notna(use) else "KV n/a")
    knobs = trace.tables["knobs"].to_pandas()
    knobs = knobs[knobs["revision"] == row.get("revision")]
    if len(knobs):
        known = {name: value for name, value in knobs.iloc[-1].items() if pd.notna(value)}
        words.append(
            translate(
                "revision {revision}: {policy}, budget {budget}",
                revision=_whole(known.get("revision")),
                policy=known.get("policy", "policy n/a"),
                budget=_whole(known.get("budget")),
            )
        )
    return " · ".join(words)


def _request(trace: Trace, name: str) -> str:
    """A request in words: its class, its length, in how many pieces it was prefilled so far."""
    requests = trace.tables["requests"].to_pandas()
    found = requests[requests["request"] == name]
    batch = trace.tables["batch"].to_pandas()
    pieces = int(((batch["request"] == name) & batch["prefill"].fillna(False).astype(bool)).sum())
    of = counted("{n} step", "{n} steps", pieces)
    if found.empty:
        return translate("{name}, prefilled in {steps} so far", name=name, steps=of)
    row: Mapping[str, Any] = found.iloc[0].to_dict()
    kind = row.get("class") if isinstance(row.get("class"), str) else "class n/a"
    priority = ""
    if pd.notna(row.get("priority")):
        priority = translate(", priority {priority}", priority=_whole(row.get("priority")))
    return translate(
        "{name} ({kind}{priority}), a prompt of {tokens} tokens in {steps}",
        name=name,
        kind=kind,
        priority=priority,
        tokens=_whole(row.get("prompt_tokens")),
        steps=of,
    )


def _step_at(steps: pd.DataFrame, at_s: float, number: int | None) -> pd.Series[Any] | None:
    """The step of that number, or the one that ran at a time: of those that had not ended, the first."""
    known = steps[steps["end_s"].notna()]
    if number is not None:
        known = known[known["step"] == number]
    else:
        later = known[known["end_s"] >= at_s - _NEAR_S]
        known = (later if len(later) else known.iloc[::-1]).sort_values("end_s", ascending=bool(len(later)))
    return known.iloc[0] if len(known) else None


def _begin(row: pd.Series[Any]) -> float:
    return float(row["start_s"] if pd.notna(row["start_s"]) else row["scheduled_s"])


def _whole(value: Any) -> str:
    return "n/a" if value is None or pd.isna(value) else f"{int(value):,}"


def _nothing(title: str, why: str) -> Detail:
    return {"title": title, "facts": [("", why)], "t0": None, "t1": None, "step": None}
