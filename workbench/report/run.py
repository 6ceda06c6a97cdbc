"""What a report is made of: runs, each with its setting, its promise and its figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from workbench import metrics
from workbench.config import SLO, Knobs
from workbench.metrics.requests import LONG_PROMPT
from workbench.store.meta import plain
from workbench.trace import Trace
from workbench.units import MIB

if TYPE_CHECKING:
    from workbench.run import RecordedRun

_OF_A_POLICY = ("policy", "prefill_every", "target_gap_ms", "aging_s")  # the knobs that a policy is made of


@dataclass(frozen=True)
class ReportRun:
    """One run in a report.

    Attributes:
        label: name of the setting, unique in its report.
        trace: what was measured.
        knobs: the setting; empty takes what the run's own knob revisions say.
        slo: the promise that its gaps are held against.
        summary: its figures as :func:`workbench.metrics.summary` gives them; none works them out.
    """

    label: str
    trace: Trace
    knobs: Knobs | Mapping[str, Any]
    slo: SLO
    summary: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.summary is None:
            object.__setattr__(self, "summary", metrics.summary(self.trace, self.slo))

    @classmethod
    def of(cls, run: RecordedRun, label: str | None = None) -> Self:
        """A run that is on disk.

        A setting that its scenario switches to after the start counts as the run's knobs.

        Args:
            run: the run.
            label: by default its title, its setting or its scenario.
        """
        meta = run.meta
        label = label or str(meta.get("title") or meta.get("setting") or meta.get("scenario") or run.folder.name)
        return cls(label, run.trace, _planned_knobs(run.trace), run.slo)

    @property
    def figures(self) -> Mapping[str, Any]:
        """The summary, which is there from the start."""
        return self.summary or {}

    @property
    def setting(self) -> dict[str, Any]:
        """The knobs as plain data; a knob that was moved in mid-run reads "several"."""
        if self.knobs:
            return self.knobs.model_dump() if isinstance(self.knobs, Knobs) else dict(self.knobs)
        moved = self.trace.knobs.drop(columns=["revision", "sent_s", "applied_s", "step"])
        seen = {name: moved[name].dropna().unique().tolist() for name in moved}
        return {name: values[0] if len(values) == 1 else "several" for name, values in seen.items() if values}

    def row(self, long_tokens: int = LONG_PROMPT) -> dict[str, Any]:
        """The run's row of the comparison table; what was not measured is None.

        Args:
            long_tokens: prompts of this length or more count for ``long_ttft_s``, the worst of them.
        """
        ttft = metrics.request_metrics(self.trace, self.slo)
        longest = ttft.loc[ttft["prompt_tokens"] >= long_tokens, "ttft_s"].max()
        peak = self.figures.get("peak_activation_bytes")
        keys = ("gap_p50_ms", "gap_p99_ms", "gap_max_ms", "stalls")
        return {
            **{key: self.setting.get(key) for key in ("policy", "budget", "chunk")},
            "long_ttft_s": float(longest) if longest == longest else None,  # NaN: no such prompt, or no first token
            **{key: self.figures.get(key) for key in keys},
            "peak_activation_mib": None if peak is None else peak / MIB,
        }


def _planned_knobs(trace: Trace) -> dict[str, Any]:
    """The knobs of the one change that a scenario plans, shortly after the start; empty where it is another story."""
    planned = ((trace.meta.get("workload") or {}).get("scenario") or {}).get("settings_at_s")
    if not planned or not trace.meta.get("setting") or len(trace.knobs) != 2:
        return {}
    last = trace.knobs.sort_values("revision").iloc[-1]
    return {str(name): plain(last[name]) for name in last.index if name in Knobs.model_fields}


def differ_in_policy(runs: Sequence[ReportRun]) -> bool:
    """Whether these runs played the same load under a policy of its own each, all other knobs equal."""
    settings = [run.setting for run in runs]
    policies = {setting.get("policy") for setting in settings} - {None, "several"}
    rest = [{name: value for name, value in one.items() if name not in _OF_A_POLICY} for one in settings]
    loads = [(run.trace.meta.get("scenario"), run.trace.meta.get("seed")) for run in runs]
    return len(runs) > 1 and len(policies) == len(runs) and all(one == rest[0] for one in rest) and len(set(loads)) == 1
