"""A scenario on simulated hardware, each setting three times: as modelled, and at both ends of the step times' band."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from workbench.config import SLO
from workbench.errors import InputError
from workbench.simulate.hardware_setup import set_up
from workbench.simulate.host import Simulator
from workbench.simulate.stage import staged
from workbench.simulate.steptime.bands import Edge
from workbench.trace import Trace
from workbench.workload.scenario import Scenario, Setting

Told = Callable[[int, int, str], object]  # plays that are over, plays in all, what comes next
Figure = Callable[[Trace], float]
Band = tuple[float, float, float]  # least, modelled, largest


@dataclass(frozen=True)
class Banded:
    """One setting, simulated; what claims call measured.

    Attributes:
        setting: its knobs.
        slo: of the scenario.
        trace: with step times as modelled.
        low: every step as fast as it may be.
        high: every step as slow as it may be.
    """

    setting: Setting
    slo: SLO
    trace: Trace
    low: Trace
    high: Trace
    _known: dict[Figure, Band] = field(default_factory=dict, init=False, repr=False, compare=False)

    def band(self, figure: Figure) -> Band:
        """A figure's least, modelled and largest value over the three plays; counted once."""
        if figure not in self._known:
            middle, *ends = (figure(trace) for trace in (self.trace, self.low, self.high))
            self._known[figure] = min(middle, *ends), middle, max(middle, *ends)
        return self._known[figure]


def play_banded(
    scenario: Scenario,
    settings: Sequence[Setting] | None = None,
    *,
    simulator: Simulator | None = None,
    told: Told | None = None,
) -> dict[str, Banded]:
    """Play a scenario under each of its settings, three times each.

    Args:
        scenario: its engine is a simulated one.
        settings: in place of the scenario's own.
        simulator: one that runs and plays nothing; by default one is started, and ended afterwards.
        told: called before each play.

    Returns:
        By the setting's name, in the order of the settings.

    Raises:
        InputError: the engine is not a simulated one, there are no settings, or the hardware cannot be.
        EngineError: a play failed.
    """
    chosen = scenario.settings if settings is None else tuple(settings)
    if not chosen:
        raise InputError("settings", "none", "at least one", "name them in the scenario")
    found: dict[str, list[Trace]] = {one.name: [] for one in chosen}
    with staged(scenario, simulator) as stage:
        middle = set_up(stage.config)
        models = {
            "as modelled": middle.step_time,
            "fastest": Edge("low", middle.step_time),
            "slowest": Edge("high", middle.step_time),
        }
        plays = [(setting, name) for setting in chosen for name in models]
        for place, (setting, name) in enumerate(plays):
            if told is not None:
                told(place, len(plays), f"{setting.name}, {name}")
            found[setting.name].append(stage.play(middle, setting, step_time=dict(models[name].spec())))
    return {one.name: Banded(one, scenario.slo, *found[one.name]) for one in chosen}
