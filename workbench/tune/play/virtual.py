"""A player in virtual time without run folders: for what is played often and looked at once, such as a prior."""

from __future__ import annotations

from workbench.config import Knobs
from workbench.engine.probe.wire import KnobChange
from workbench.errors import EngineDiedError, EngineError, InputError
from workbench.simulate.hardware_setup import Setup, set_up
from workbench.simulate.host import Simulator
from workbench.simulate.made_up_files import write_tokenizer
from workbench.simulate.outcome import play_job
from workbench.simulate.play import ask_of
from workbench.simulate.steptime import StepTime
from workbench.simulated_config import SimulatedConfig
from workbench.tune.goal import Goal
from workbench.tune.play.judging import cut, look_back, result_of
from workbench.tune.space import Space
from workbench.tune.trial import Asked, Result, Watch
from workbench.workload.build import build_workload
from workbench.workload.request import Workload
from workbench.workload.scenario import Scenario

_LONGEST_S = 600.0  # on the wall, for one play


class VirtualPlayer:
    """Plays trials on a simulated engine, and keeps nothing but the result.

    Args:
        scenario: what is played.
        goal: what it is judged by.
        space: whose configuration is simulated.
        step_time: in place of the model that the configuration names.

    Attributes:
        label: "simulated" with the step-time model and its error.

    Raises:
        InputError: the configuration cannot be simulated.
    """

    def __init__(self, scenario: Scenario, goal: Goal, space: Space, *, step_time: StepTime | None = None) -> None:
        if not isinstance(space.config, SimulatedConfig):
            raise TypeError("a simulated configuration is needed")
        self._scenario, self._goal, self._space, self._step_time = scenario, goal, space, step_time
        self._simulator = Simulator()
        self._built: dict[int, Workload] = {}
        self._setups: dict[str, Setup] = {}
        self.label = f"simulated · {set_up(space.config, step_time=step_time).label}"

    def play(self, asked: Asked, watch: Watch | None = None) -> Result:
        """Play one trial; see :class:`workbench.tune.trial.Player`. Its ``engine_s`` are virtual seconds.

        Raises:
            InputError: the scenario or the setting does not fit.
            EngineError: the simulator does not come up, or ended.
        """
        self._simulator.start()
        failed = (asked.number, asked.point, asked.seed, "failed")
        try:
            setup = self._setup(asked)
        except InputError as error:  # a model may not fit with a trial's own start-up fields
            if not asked.point.start_up:
                raise
            return Result(*failed, label=self.label, error=str(error))
        workload = self._workload(asked.seed, setup)
        config = setup.config
        knobs, at_s = asked.point.setting.knobs(config.envelope), self._scenario.settings_at_s
        later = [(at_s, _change(1, knobs))] if at_s else []
        job = setup.job(
            requests=[ask_of(request, tokens=config.enable_prefix_caching) for request in workload.requests],
            knobs=_change(0, config.envelope.defaults if at_s else knobs),
            changes=later,
            concurrency=dict(workload.concurrency),
            seed=asked.seed,
        )
        try:
            played = play_job(self._simulator, job, timeout_s=_LONGEST_S)
        except EngineDiedError:
            raise
        except EngineError as error:
            return Result(*failed, label=self.label, error=str(error))
        trace, seconds, stop = played.trace(), played.facts["virtual_s"], None
        if watch is not None:
            watch.begin(workload)
            if (seen := look_back(trace, watch)) is not None:
                stop, seconds = seen
                trace = cut(trace, seconds)
        return result_of(asked, self._goal, trace, stop=stop, engine_s=seconds, label=self.label)

    def close(self) -> None:
        """End the simulator's child."""
        self._simulator.close()

    def _setup(self, asked: Asked) -> Setup:
        key = repr(sorted(asked.point.start_up.items()))
        if key not in self._setups:
            config = self._space.config_of(asked.point.start_up)
            self._setups[key] = set_up(config, step_time=self._step_time)  # type: ignore[arg-type]
        return self._setups[key]

    def _workload(self, seed: int, setup: Setup) -> Workload:
        if seed not in self._built:
            tokenizer = write_tokenizer(self._simulator.folder)
            self._built = {seed: build_workload(self._scenario, tokenizer, setup.config.max_model_len, seed)}
        return self._built[seed]


def _change(revision: int, knobs: Knobs) -> KnobChange:
    return KnobChange(revision=revision, **knobs.model_dump())
