"""C14: the article's three policies on 8 x H100 with Llama-3.1-70B, simulated, beside what physics allows."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.claims.article_rows import (
    ARTICLE,
    Said,
    article_table,
    document_floor,
    gap_p99_ms,
    mfu,
    policy_of,
    usual_ttft_s,
)
from workbench.claims.verdict import Outcome, Verdict, origin_of
from workbench.errors import InputError
from workbench.simulate.banded import Banded
from workbench.simulate.floors import impossible
from workbench.trace import Trace

FALLS = 0.1  # the article: from 780 to 14.8 ms; at least to a tenth
NEAR = 2.0  # the article: a document waits 1.5 times as long as with FCFS
RISES = 1.5  # the article: 1.86 times the MFU
_CHATS, _DOCUMENTS = 100, 10


def eight_h100s(runs: Mapping[str, Banded]) -> Verdict:
    """Judge C14 from scenario ``articles_c14`` under ``monolithic``, ``decode_first`` and ``qos``, and maybe more.

    Three things are checked of chunks with classes against whole prompts, at both ends of the band: the chats' P99 gap
    falls to a tenth or less, the documents wait at most twice as long (P50), and the MFU rises to 1.5 times. Beside
    them every figure of the article is held against its physical floor. Holds when all of that is so; in part when the
    gaps fall; does not hold here otherwise.

    Args:
        runs: by name of the setting, see :func:`workbench.simulate.banded.play_banded`.

    Raises:
        InputError: one of the article's policies was not played.
    """
    by_policy = {policy_of(run): run for run in runs.values()}
    missing = [name for name in ARTICLE if name not in by_policy]
    if missing:
        raise InputError("runs", f"no {', '.join(missing)}", "the article's policies", "play all of articles_c14")
    whole, chunked = by_policy["monolithic"], by_policy["qos"]
    pairs = tuple(zip(_ends(whole), _ends(chunked), strict=True))
    fall = [gap_p99_ms(after) / gap_p99_ms(before) for before, after in pairs]
    wait = [usual_ttft_s(after) / usual_ttft_s(before) for before, after in pairs]
    rise = [mfu(after) / mfu(before) for before, after in pairs]
    table = article_table(runs)
    below = int((table["the article's value"] == "impossible").sum())
    falls = max(fall) <= FALLS
    outcome: Outcome = "does not hold here"
    if falls:
        outcome = "holds" if not below and max(wait) <= NEAR and min(rise) >= RISES else "holds in part"
    parts = [_row(name, run) for name, run in runs.items()]
    return Verdict(
        claim="C14",
        text="8 x H100, Llama-3.1-70B, 100 chats of 1K and 10 documents of 64K: chunked with priority has the gaps of "
        "decode-first, nearly FCFS's TTFT and twice its MFU",
        outcome=outcome,
        sentence=(
            f"With chunks and classes the chats' P99 gap is {_span(fall, '.1%')} of that with whole prompts, the "
            f"documents' P50 TTFT {_span(wait, '.2f')} times and the MFU {_span(rise, '.2f')} times. {' '.join(parts)} "
            f"{below} of the article's figures are impossible."
        ),
        origin=f"{origin_of([whole])}; in brackets with the fastest and the slowest kernels measured on any GPU",
        article="; ".join(_told(said) for said in ARTICLE.values()) + ".",
        arithmetic=_arithmetic(),
        untested="these GPUs: nobody measured this model on them here; the article does not say how requests arrived.",
    )


def _ends(run: Banded) -> tuple[Trace, Trace, Trace]:
    return (run.trace, run.low, run.high)


def _row(name: str, run: Banded) -> str:
    """One policy in short."""
    gap, wait, share = (run.band(figure) for figure in (gap_p99_ms, usual_ttft_s, mfu))
    return (
        f"{name}: P99 gap {gap[1]:,.0f} ms ({gap[0]:,.0f} to {gap[2]:,.0f}), TTFT {wait[1]:,.1f} s ({wait[0]:,.1f} to "
        f"{wait[2]:,.1f}), MFU {share[1]:.0%} ({share[0]:.0%} to {share[2]:.0%})."
    )


def _told(said: Said) -> str:
    return (
        f"{said.name}: P99 gap {said.gap_p99_ms:,g} ms, 64K TTFT {1e3 * said.ttft_s:,.0f} ms, MFU {said.mfu:.1%}, "
        f"OOM {said.oom:.1%}"
    )


def _arithmetic() -> str:
    """Which of the article's figures cannot be, and which contradict each other."""
    floor = document_floor()
    said = [impossible(row.ttft_s, floor, f"a 64K TTFT ({row.name})") for row in ARTICLE.values()]
    own = ", ".join(f"{row.name} {floor.seconds / row.mfu:,.2f} s" for row in ARTICLE.values())
    rate, every = ARTICLE["monolithic"].oom, _CHATS + _DOCUMENTS
    agrees = ARTICLE["decode_first"].ttft_s
    return (
        f"{' '.join(one for one in said if one)} At the article's own MFU that prefill takes longer still: {own}; of "
        f"its three TTFTs only decode-first's {agrees:,.1f} s agrees. {rate:.1%} of {every} requests are "
        f"{rate * every:,.2f} requests, and only {_DOCUMENTS} ({_DOCUMENTS / every:.1%}) are long."
    )


def _span(values: list[float], spec: str) -> str:
    """The modelled value, and in brackets the least and the largest."""
    return f"{values[0]:{spec}} ({min(values):{spec}} to {max(values):{spec}})"
