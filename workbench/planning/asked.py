"""The question that a plan answers: which hardware, model, traffic, promise, and which settings to look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from workbench.config import POLICIES, SLO, parse
from workbench.errors import EnvelopeError, InputError
from workbench.planning.loads import Load
from workbench.planning.mixes import traffic
from workbench.planning.plays import Place
from workbench.planning.rule import Rule
from workbench.simulate.hardware_setup import set_up
from workbench.simulate.steptime import StepTime
from workbench.simulated_config import SimulatedConfig
from workbench.workload.scenario import Scenario, Setting

BUDGETS, CHUNKS = (512, 2048, 8192), (0, 512, 2048)


@dataclass(frozen=True)
class Asked:
    """A question, checked when it is made.

    Attributes:
        scenario: whose traffic, promise and start-up fields are taken.
        start_up: fields of :class:`SimulatedConfig` that go before the scenario's, such as model, gpu and count.
        budgets: budgets to look at, tokens.
        chunks: chunk caps to look at; 0 is off.
        policy: of all these settings.
        policies: policies to compare at the best of these; none is no comparison.
        knobs: other hot knobs, the same in every setting.
        slo: the promise.
        rule: when a rate counts as met.
        price: of one GPU for an hour, in any currency; None is not known.
        need: requests a second that must be served; None is not known.
        step_time: in place of the model that the configuration names.

    Raises:
        InputError: something is wrong or does not fit together.
    """

    scenario: Scenario
    start_up: Mapping[str, Any] = field(default_factory=dict)
    budgets: tuple[int, ...] = BUDGETS
    chunks: tuple[int, ...] = CHUNKS
    policy: str = "chunked"
    policies: tuple[str, ...] = ()
    knobs: Mapping[str, Any] = field(default_factory=dict)
    slo: SLO = field(default_factory=SLO)
    rule: Rule = field(default_factory=Rule)
    price: float | None = None
    need: float | None = None
    step_time: StepTime | None = None

    def __post_init__(self) -> None:
        for name, some in (("budget", self.budgets), ("chunk", self.chunks)):
            if not some:
                raise InputError(name, "none", "at least one", "give one, or leave it out")
            if len(set(some)) < len(some):
                raise InputError(name, ",".join(map(str, some)), "values that differ", "leave one out")
            least = int(name == "budget")
            for one in some:
                if not isinstance(one, int) or one < least:
                    raise InputError(name, one, f"a whole number of tokens, {least} or more", "choose another")
        for name, value in (("price", self.price), ("need", self.need)):
            if value is not None and not (isinstance(value, int | float) and 0 < value < float("inf")):
                raise InputError(name, value, "a number above 0", "leave it out, or give one")
        for policy in (self.policy, *self.policies):
            if policy not in POLICIES:
                raise EnvelopeError("policy", policy, f"one of {', '.join(POLICIES)}", "choose one of these")

    @classmethod
    def of(
        cls,
        scenario: str | Scenario,
        *,
        gpu: str = "H100",
        count: int | None = 8,
        model: str = "llama-3.1-70b",
        ttft_ms: float | None = None,
        gap_ms: float | None = None,
        start_up: Mapping[str, Any] | None = None,
        budgets: Sequence[int] = BUDGETS,
        chunks: Sequence[int] = CHUNKS,
        policies: Sequence[str] = (),
        **more: Any,
    ) -> Asked:
        """A question in a person's words.

        Args:
            scenario: a scenario's name or file, or a built-in mix (:func:`workbench.planning.mix_names`).
            gpu: kind of GPU.
            count: how many; tensor parallel unless ``start_up`` says otherwise.
            model: whose sizes are known.
            ttft_ms: replaces the scenario's promise.
            gap_ms: likewise.
            start_up: further start-up fields; they go before all.
            budgets: budgets to look at, tokens.
            chunks: chunk caps to look at; 0 is off.
            policies: policies to compare.
            **more: other attributes of the class: policy, knobs, rule, price, need, step_time.

        Raises:
            InputError: something is wrong or does not fit together.
        """
        found = traffic(scenario)
        promised = {"ttft_ms": ttft_ms, "gap_ms": gap_ms}
        slo = parse(SLO, found.slo.model_dump() | {name: v for name, v in promised.items() if v is not None})
        mine = {"model": model, "gpu": gpu, "count": count, **(start_up or {})}
        return cls(found, mine, tuple(budgets), tuple(chunks), policies=tuple(policies), slo=slo, **more)

    @property
    def config(self) -> SimulatedConfig:
        """Start-up fields, but for budget and running cap, which are the settings'."""
        fields = {**self.scenario.engine, **self.start_up}
        fields.pop("engine", None)
        return parse(SimulatedConfig, fields)

    def load(self) -> Load:
        """The traffic, as much of it as the longest play takes."""
        config = self.config
        cached = config.enable_prefix_caching
        return Load.of(self.scenario, self.rule.most, config.max_model_len, self.rule.seed, prefix_cache=cached)

    def place(self, load: Load, budget: int, chunk: int, policy: str) -> Place:
        """One setting on the engine that is started for it.

        Raises:
            InputError: the model or the budget does not fit, or a knob cannot be.
        """
        config = self.config
        if policy == "monolithic":  # a longer prompt would wait for ever
            budget, chunk = max(budget, config.max_model_len), 0
        config = config.replace(max_num_batched_tokens=budget, max_num_seqs=min(config.max_num_seqs, budget))
        given = {"budget": budget, "chunk": chunk, "policy": policy}
        if policy == "target_gap":
            given["target_gap_ms"] = self.slo.gap_ms
        setting = Setting.of(given | {k: v for k, v in self.knobs.items() if k not in ("budget", "chunk", "policy")})
        knobs = setting.knobs(config.envelope)
        return Place(set_up(config, step_time=self.step_time), knobs, load, self.slo, self.rule)

    def place_or_error(self, load: Load, budget: int, chunk: int, policy: str) -> Place | InputError:
        """The same, or why it cannot be."""
        try:
            return self.place(load, budget, chunk, policy)
        except InputError as error:
            return error

    def effective_chunk(self, load: Load, budget: int, chunk: int) -> int:
        """The chunk cap if it cuts anything that the budget does not; else 0."""
        return chunk if chunk < min(budget, load.longest) else 0
