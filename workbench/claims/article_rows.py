"""C14's table: what the article says of three policies on 8 x H100, beside a simulation and the physical floor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from workbench import metrics
from workbench.claims.limits import LLAMA_70B
from workbench.errors import InputError
from workbench.i18n import marked
from workbench.metrics.gaps import Gaps
from workbench.simulate.banded import Banded, Figure
from workbench.simulate.floors import Floor, floor_of
from workbench.simulate.presets import device
from workbench.trace import Trace

CHATS, DOCUMENTS = "chat", "document"
TOKENS, GPUS = 65_536, 8


@dataclass(frozen=True)
class Said:
    """A row of the article's table.

    Attributes:
        name: of the policy, in its words.
        gap_p99_ms: P99 of the gaps.
        ttft_s: of a document of 64K tokens.
        mfu: share of the peak, 0 to 1.
        oom: share of requests that ended out of memory, 0 to 1.
    """

    name: str
    gap_p99_ms: float
    ttft_s: float
    mfu: float
    oom: float

    @property
    def figures(self) -> dict[str, float]:
        """By the names of :data:`FIGURES`; its TTFT is taken for that of a document that did not queue."""
        return {
            "gap P99, ms": self.gap_p99_ms,
            "64K TTFT best, s": self.ttft_s,
            "MFU": self.mfu,
            "OOM rate": self.oom,
        }


# By the hot policy that plays the article's; target_gap is none of them.
ARTICLE: Mapping[str, Said] = {
    "monolithic": Said("FCFS", 780, 0.420, 0.421, 0.125),
    "decode_first": Said("decode-first", 12.4, 4.800, 0.386, 0.0),
    "qos": Said("chunked + priority", 14.8, 0.650, 0.784, 0.0),
}


def document_floor() -> Floor:
    """The least that a prefill of 64K tokens of the article's model takes on its GPUs."""
    return floor_of(LLAMA_70B, device("H100"), GPUS, prefill_tokens=TOKENS)


def gap_p99_ms(trace: Trace) -> float:
    """P99 of the gaps of the chats, ms; NaN where there are none."""
    return _gaps(trace, 99)


def gap_max_ms(trace: Trace) -> float:
    """The longest gap of a chat, ms."""
    return _gaps(trace, 100)


def best_ttft_s(trace: Trace) -> float:
    """The shortest TTFT of a document, s: the one that queued least."""
    return float(_ttft(trace).min())


def usual_ttft_s(trace: Trace) -> float:
    """Median TTFT of the documents, s; most of it is waiting for each other."""
    return float(_ttft(trace).median())


def mfu(trace: Trace) -> float:
    """Share of the published peak while steps ran, 0 to 1."""
    kinds = metrics.mfu_by_kind(trace)
    return float(kinds["mfu"].get("all", np.nan))


def oom(trace: Trace) -> float:
    """Share of the requests that ended out of memory, 0 to 1."""
    errors: list[str | None] = trace.tables["requests"]["error"].to_pylist()
    return sum((one or "").startswith("oom") for one in errors) / max(len(errors), 1)


FIGURES: Mapping[str, Figure] = {
    marked("gap P99, ms"): gap_p99_ms,
    "gap max, ms": gap_max_ms,
    marked("64K TTFT best, s"): best_ttft_s,
    "64K TTFT P50, s": usual_ttft_s,
    "MFU": mfu,
    "OOM rate": oom,
}


def policy_of(run: Banded) -> str:
    """The policy that a run was played under."""
    return str(run.setting.policy or "chunked")


def article_table(runs: Mapping[str, Banded]) -> pd.DataFrame:
    """One row a figure of a policy; the index is ``policy`` (the setting's name) and ``figure`` (:data:`FIGURES`).

    Columns: ``article`` (NaN where it says nothing), ``floor`` (the least that physics allows, see :func:`floors`; NaN
    where there is none), ``simulated``, with ``low`` and ``high`` as the ends of its band, and ``the article's value``:
    "impossible" (below the floor), "in the band" or "outside the band"; empty where there is none.

    Args:
        runs: of scenario ``articles_c14``, see :func:`workbench.simulate.banded.play_banded`.

    Raises:
        InputError: a run has no document or no chat.
    """
    rows = []
    for name, run in runs.items():
        said, least = ARTICLE.get(policy_of(run)), floors(policy_of(run))
        told = said.figures if said is not None else {}
        for figure, count in FIGURES.items():
            low, middle, high = run.band(count)
            value, floor = told.get(figure), least.get(figure)
            rows.append(
                {
                    "policy": name,
                    "figure": figure,
                    "article": np.nan if value is None else value,
                    "floor": np.nan if floor is None else floor,
                    "simulated": middle,
                    "low": low,
                    "high": high,
                    "the article's value": _judged(value, floor, low, high),
                }
            )
    return pd.DataFrame(rows).set_index(["policy", "figure"])


def floors(policy: str) -> dict[str, float]:
    """The least that each figure can be: a document's prefill, and between two tokens all weights once.

    A chat that streams while a document is prefilled in one step waits for all of that step.
    """
    document, weights = document_floor(), floor_of(LLAMA_70B, device("H100"), GPUS, decodes=1)
    longest = document if policy == "monolithic" else weights
    return {
        "gap P99, ms": 1e3 * weights.seconds,
        "gap max, ms": 1e3 * longest.seconds,
        "64K TTFT best, s": document.seconds,
        "64K TTFT P50, s": document.seconds,
    }


def _judged(value: float | None, floor: float | None, low: float, high: float) -> str:
    if value is None:
        return ""
    if floor is not None and value < floor:
        return "impossible"
    return "in the band" if low <= value <= high else "outside the band"


def _gaps(trace: Trace, percent: float) -> float:
    gaps = Gaps.of(trace)
    if CHATS not in gaps.classes:
        raise InputError("run", f"no gap of class {CHATS}", "chats that stream", "play scenario articles_c14")
    mine = gaps.gap_ms[gaps.of_class[gaps.code] == list(gaps.classes).index(CHATS)]
    return float(np.percentile(mine, percent)) if len(mine) else float("nan")


def _ttft(trace: Trace) -> pd.Series:
    requests = trace.requests
    mine = requests[requests["class"] == DOCUMENTS]
    if mine.empty:
        raise InputError("run", f"no request of class {DOCUMENTS}", "documents", "play scenario articles_c14")
    return mine["first_s"] - mine["planned_s"]
