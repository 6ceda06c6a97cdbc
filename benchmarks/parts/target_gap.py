"""The policy ``target_gap`` against the best fixed budget, on one engine: what each makes of one long prompt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.parts.stats import paired_ratio, say
from workbench.metrics.gaps import Gaps
from workbench.run import Run
from workbench.session import Workbench
from workbench.tail import Place
from workbench.trace import Trace
from workbench.workload.scenario import Scenario, Setting

TARGET_MS = 300.0
KEPT = 0.95  # share of gaps that must be under the target
LONG = "offline"
_BUDGETS = tuple(round(16 * 1.12**i) for i in range(36))  # 16 to 845
_RUNNING = 9  # chats and the prompt; a budget below the running cap is refused
_LOOK_S = 0.1
_LOWER = 2  # budgets to go down where the best one of the search does not keep its promise again

Keep = Callable[[Run], None]


@dataclass(frozen=True)
class Play:
    """One play, while the long prompt was computed beside chats.

    Attributes:
        kept: for each token gap of the chats, whether it was under the target.
        tokens_per_s: of the prompt.
    """

    kept: Sequence[bool]
    tokens_per_s: float

    @classmethod
    def of(cls, trace: Trace) -> Play:
        """What a trace holds between the first and the last step of the prompt."""
        batch, steps = trace.batch, trace.steps.set_index("step")
        mine = batch[(batch["request"] == f"{LONG}-0") & batch["prefill"].eq(True)]
        begin, end = steps.loc[mine["step"].min(), "scheduled_s"], steps.loc[mine["step"].max(), "end_s"]
        gaps = Gaps.of(trace)
        during = (gaps.engine_at_s > begin) & (gaps.engine_at_s <= end)
        return cls((gaps.gap_ms[during] <= TARGET_MS).tolist(), float(mine["tokens"].sum() / (end - begin)))


def scenario(engine: dict[str, Any], prompt_tokens: int = 2000) -> Scenario:
    """Eight chats that decode far longer than it takes, and one long prompt.

    Args:
        engine: start-up fields of the engine that is there.
        prompt_tokens: its length.
    """
    once = {"kind": "at_once", "count": 1}
    chats = {"class": "normal", "arrivals": {**once, "count": 8}, "prompt_tokens": 12, "output_tokens": 600}
    long = {"class": LONG, "priority": 2, "start_s": 0.5, "arrivals": once, "prompt_tokens": prompt_tokens}
    streams = [chats, {**long, "output_tokens": 1}]
    return Scenario.model_validate({"name": "one-long-prompt", "seed": 3, "engine": engine, "streams": streams})


def until_prompt_is_through(run: Run) -> None:
    """Wait until the long prompt has its token, then end the run: the chats would go on."""
    place = Place()
    while not run.wait(_LOOK_S):
        batches, place = run.tail.since(place)
        ended = [row for table, rows in batches if table == "requests" for row in rows if row.get("done_s") is not None]
        if any(row["request"] == f"{LONG}-0" for row in ended):
            run.cancel()


def closed_loop(bench: Workbench, keep: Keep, pairs: int) -> dict[str, Any]:
    """Search for the best fixed budget, then play it and the policy in turn.

    Args:
        bench: with a ready engine.
        keep: takes each run that has ended.
        pairs: plays of either.

    Returns:
        Figures of the benchmark, by name.
    """
    load = scenario(bench.config.model_dump(exclude_defaults=True))
    ceiling = bench.engine.envelope.max_budget
    budgets = [one for one in _BUDGETS if one <= ceiling]

    def play(setting: Setting) -> Play:
        run = bench.run(load, setting=setting)
        until_prompt_is_through(run)
        keep(run)
        played = Play.of(run.trace)
        say(
            f"{setting.name}: {np.mean(played.kept):.1%} of {len(played.kept)} gaps, {played.tokens_per_s:.0f} tokens/s"
        )
        return played

    def fixed_at(place: int) -> Setting:
        return Setting.of({"budget": budgets[place], "max_running": _RUNNING})

    # The chats need a token each, so the smallest budget is no more than a place to begin; larger ones are faster.
    low, high = 0, len(budgets)
    while high - low > 1:
        middle = (low + high) // 2
        good = np.mean(play(fixed_at(middle)).kept) >= KEPT
        low, high = (middle, high) if good else (low, middle)
    policy = Setting.of(
        {"policy": "target_gap", "target_gap_ms": TARGET_MS, "budget": ceiling, "max_running": _RUNNING}
    )
    ours: list[Play] = []
    for place in range(low, max(low - _LOWER, 0) - 1, -1):
        fixed: list[Play] = []
        for pair in range(pairs):
            for turn in (0, 1) if pair % 2 else (1, 0):
                if turn:
                    ours.append(play(policy))
                else:
                    fixed.append(play(fixed_at(place)))
        if _share(fixed) >= KEPT:
            break
    ratio, interval = paired_ratio([one.tokens_per_s for one in ours[-pairs:]], [one.tokens_per_s for one in fixed])
    return {
        "target_gap_share_ok": _share(ours),
        "target_gap_prefill_ratio": ratio,
        "target_gap_prefill_ratio_ci95": list(interval),
        "target_gap_tokens_per_s": float(np.median([one.tokens_per_s for one in ours])),
        "fixed_budget": budgets[place],
        "fixed_share_ok": _share(fixed),
        "fixed_tokens_per_s": float(np.median([one.tokens_per_s for one in fixed])),
        "target_ms": TARGET_MS,
    }


def _share(plays: Sequence[Play]) -> float:
    """Share of all their gaps that were under the target."""
    return float(np.mean(np.concatenate([one.kept for one in plays])))
