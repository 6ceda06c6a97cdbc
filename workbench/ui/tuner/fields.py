"""The tuner's fields: what a study is asked, and how people write it."""

from __future__ import annotations

from typing import Any

from workbench.errors import InputError
from workbench.i18n import marked, translate
from workbench.tune.goal import OBJECTIVES
from workbench.ui.panel.controls import Control, Entry
from workbench.ui.panel.fields import choice
from workbench.workload.scenario import scenario_names

_FIRST = ("tuning", "chats_and_documents")  # scenarios, the first that there is
_ITSELF = marked("chosen by itself")


def tuner_fields() -> dict[str, Control]:
    """The controls, by what they ask for."""
    names = scenario_names()
    first = next((name for name in _FIRST if name in names), names[0] if names else None)
    return {
        "scenario": choice("tune_scenario", "workload mix", "What every trial plays, with the same seed.",
                           names or [None], first, text=lambda name: name or translate("none")),
        "objective": choice("tune_objective", "objective", "What is made as large, or as small, as can be.",
                            list(OBJECTIVES), "goodput", text=lambda name: translate(OBJECTIVES[name].words)),
        "limits": Entry("tune_limits", "limits", "FIGURE=VALUE with commas between; every setting that breaks one "
                        "is out. gap or ttft, p50, p90, p99 or max, in ms or s, and .CLASS for one class: "
                        "gap_max_ms=300, ttft_p99_s.chat=1", None, _read_limits, placeholder="none"),
        "budget": _values("budget", "budgets (tokens)", "Token budgets to try"),
        "chunk": _values("chunk", "chunk caps (tokens)", "Chunk caps to try, 0 is off"),
        "policy": _values("policy", "policies", "Policies to try"),
        "max_running": _values("max_running", "running caps", "Most requests running at once, to try"),
        "trials": Control("number", "tune_trials", "trials at most", "Settings to play.", 24, min=2, max=500),
        "minutes": Control("number", "tune_minutes", "minutes at most", "Of the search, without the confirmation.",
                           15.0, min=0.1, max=1e4),
        "rounds": Control("number", "tune_rounds", "confirmation rounds", "Fresh plays of the pick and of the "
                          "runner-up; 0 confirms nothing.", 3, min=0, max=50),
        "simulate": Control("check", "tune_simulate", "simulate first", "Where this engine can be simulated, that "
                            "says where to begin.", default=True),
    }  # fmt: skip


def _values(name: str, label: str, hint: str) -> Control:
    said = translate("{hint}, with commas between; empty: {itself}.", hint=translate(hint), itself=translate(_ITSELF))
    return Entry(f"tune_{name}", label, said, None, _read_values, placeholder=_ITSELF)


def _read_values(text: str) -> Any:
    """Numbers, or words; a number that makes no sense is left for the knobs to refuse by name."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    return tuple(int(word) if word.isdecimal() else word for word in words)


def _read_limits(text: str) -> dict[str, Any]:
    """Limits by figure; values that are no numbers are left for the goal to refuse by name.

    Raises:
        InputError: one has no value.
    """
    found: dict[str, Any] = {}
    for one in (part.strip() for part in text.split(",")):
        if not one:
            continue
        name, given, value = one.partition("=")
        if not given:
            raise InputError("limits", one, "FIGURE=VALUE, such as gap_p99_ms=200", "add its value")
        try:
            found[name.strip()] = float(value)
        except ValueError:
            found[name.strip()] = value.strip()
    return found
