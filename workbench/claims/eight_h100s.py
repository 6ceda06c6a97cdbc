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
from workbench.claims.verdict import Outcome, Verdict, ended, origin_of
from workbench.errors import InputError
from workbench.i18n import phrase, phrases
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
        raise InputError(
            "runs",
            phrase("no {names}", names=", ".join(missing)),
            phrase("the article's policies"),
            phrase("play all of articles_c14"),
        )
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
        sentence=phrase(
            "With chunks and classes the chats' P99 gap is {gap} of that with whole prompts, the "
            "documents' P50 TTFT {wait} times and the MFU {mfu} times. {rows} {below} of the article's "
            "figures are impossible.",
            gap=_span(fall, ".1%"),
            wait=_span(wait, ".2f"),
            mfu=_span(rise, ".2f"),
            rows=phrases(" ", parts),
            below=below,
        ),
        origin=phrase(
            "{origin}; in brackets with the fastest and the slowest kernels measured on any GPU",
            origin=origin_of([whole]),
        ),
        article=ended("; ", [_told(said) for said in ARTICLE.values()]),
        arithmetic=_arithmetic(),
        untested="these GPUs: nobody measured this model on them here; the article does not say how requests arrived.",
    )


def _ends(run: Banded) -> tuple[Trace, Trace, Trace]:
    return (run.trace, run.low, run.high)


def _row(name: str, run: Banded) -> str:
    """One policy in short."""
    gap, wait, share = (run.band(figure) for figure in (gap_p99_ms, usual_ttft_s, mfu))
    return phrase(
        "{name}: P99 gap {gap:,.0f} ms ({gap_low:,.0f} to {gap_high:,.0f}), TTFT {wait:,.1f} s ({wait_low:,.1f} "
        "to {wait_high:,.1f}), MFU {share:.0%} ({share_low:.0%} to {share_high:.0%}).",
        name=name,
        gap=gap[1],
        gap_low=gap[0],
        gap_high=gap[2],
        wait=wait[1],
        wait_low=wait[0],
        wait_high=wait[2],
        share=share[1],
        share_low=share[0],
        share_high=share[2],
    )


def _told(said: Said) -> str:
    return phrase(
        "{name}: P99 gap {gap_p99_ms:,g} ms, 64K TTFT {ttft_s:,.0f} ms, MFU {mfu:.1%}, OOM {oom:.1%}",
        name=said.name,
        gap_p99_ms=said.gap_p99_ms,
        ttft_s=1000.0 * said.ttft_s,
        mfu=said.mfu,
        oom=said.oom,
    )


def _arithmetic() -> str:
    """Which of the article's figures cannot be, and which contradict each other."""
    floor = document_floor()
    said = [impossible(row.ttft_s, floor, phrase("a 64K TTFT ({name})", name=row.name)) for row in ARTICLE.values()]
    own = phrases(
        ", ",
        [phrase("{name} {seconds:,.2f} s", name=row.name, seconds=floor.seconds / row.mfu) for row in ARTICLE.values()],
    )
    rate, every = ARTICLE["monolithic"].oom, _CHATS + _DOCUMENTS
    agrees = ARTICLE["decode_first"].ttft_s
    return phrase(
        "{impossible} At the article's own MFU that prefill takes longer still: {own}; of its three TTFTs "
        "only decode-first's {agrees:,.1f} s agrees. {rate:.1%} of {every} requests are {requests:,.2f} "
        "requests, and only {documents} ({part:.1%}) are long.",
        impossible=phrases(" ", [one for one in said if one]),
        own=own,
        agrees=agrees,
        rate=rate,
        every=every,
        requests=rate * every,
        documents=_DOCUMENTS,
        part=_DOCUMENTS / every,
    )


def _span(values: list[float], spec: str) -> str:
    """The modelled value, and in brackets the least and the largest."""
    middle, low, high = (f"{value:{spec}}" for value in (values[0], min(values), max(values)))
    return phrase("{middle} ({low} to {high})", middle=middle, low=low, high=high)
