"""The scheduler classes that vLLM loads with ``--scheduler-cls``: hot knobs in, step records out."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import vllm
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.scheduler import Scheduler

from workbench.engine.probe import wire
from workbench.engine.probe.books import Books, Done, Planned, Records
from workbench.engine.probe.compat import check_version
from workbench.engine.probe.knob_page import NAME as KNOBS
from workbench.engine.probe.knob_page import KnobPage
from workbench.engine.probe.limits import refusal
from workbench.engine.probe.link import RecordLink
from workbench.engine.probe.policies import POLICIES, Chunked, Policy, plan
from workbench.engine.probe.policies.standing import Standing

if TYPE_CHECKING:
    from vllm.v1.core.sched.output import SchedulerOutput
    from vllm.v1.core.sched.scheduler import Scheduler as _Base
    from vllm.v1.engine import EngineCoreOutputs
    from vllm.v1.outputs import ModelRunnerOutput
    from vllm.v1.request import Request
else:
    _Base = object

check_version(vllm.__version__)


class Page(Protocol):
    """Where knob changes come from: a page of memory, or the simulation."""

    def latest(self) -> wire.KnobChange | None:
        """The newest change that was not returned before."""


class _Probed(_Base):
    """Mixed in before one of vLLM's schedulers.

    Attributes:
        clock: seconds on the clock of the records, also what costs are measured with.
        wall: seconds on the clock of the requests' arrival.
        grants: a policy's bounds for the step it plans, most tokens by request; 0 keeps one out. Empty before a step.
    """

    max_num_scheduled_tokens: int
    max_num_active_reqs: int
    scheduler_reserve_full_isl: bool

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        config = self.scheduler_config
        self.clock: Callable[[], float] = time.monotonic
        self.wall: Callable[[], float] = time.time
        self.grants: dict[str, int] = {}
        self._knobs = wire.KnobChange(
            revision=0,
            budget=self.max_num_scheduled_tokens,
            chunk=config.long_prefill_token_threshold,
            max_running=self.max_num_active_reqs,
            policy="chunked",
            watermark=config.watermark,
            reserve_full=self.scheduler_reserve_full_isl,
        )
        self._ceiling = self._knobs.budget
        self._standing = Standing(self)
        self._hot_policy: Policy = Chunked()
        self._step = 0
        self._fresh: list[Request] = []
        self._page: Page | None = None
        records = RecordLink()
        self._books = Books(self, records, self._learn)
        self.connect(records, self._open_page())

    def connect(self, records: Records, page: Page | None) -> None:
        """Send records to, and take knobs from, other ends than the workbench's; says hello there."""
        config = self.scheduler_config
        self._books.records, self._page = records, page
        records.send(
            wire.SchedulerHello(
                pid=os.getpid(),
                vllm=vllm.__version__,
                max_num_batched_tokens=config.max_num_batched_tokens,
                max_num_seqs=config.max_num_seqs,
                max_model_len=self.max_model_len,
                chunked_prefill=bool(config.enable_chunked_prefill),
                prefix_caching=bool(self.cache_config.enable_prefix_caching),
                async_scheduling=bool(config.async_scheduling),
                kv_blocks=int(self.cache_config.num_gpu_blocks or 0),
                block_size=int(self.block_size),
                chunk=int(config.long_prefill_token_threshold),
                watermark=float(config.watermark),
                reserve_full=bool(self.scheduler_reserve_full_isl),
            )
        )

    def planned(self) -> wire.Step | None:
        """The record so far of the step that was planned last, for a simulation that has to know what it holds."""
        return self._books.note_planned()

    def schedule(self, throttle_prefills: bool = False) -> SchedulerOutput:
        """Apply pending knobs and let the policy plan one step."""
        entered = self.clock()
        if self._books.behind:  # vLLM did not ask for a grammar since
            self._books.catch_up()
        change = self._page.latest() if self._page else None
        if change is not None:
            self._apply(change)
        if self._fresh:
            self._greet()
        self.max_num_scheduled_tokens = self._knobs.budget
        self.scheduler_config.long_prefill_token_threshold = self._knobs.chunk
        self.grants.clear()
        begun = self.clock()
        output = plan(
            self._hot_policy,
            self,
            self._knobs,
            lambda throttle: super(_Probed, self).schedule(throttle or throttle_prefills),
            self._give_up,
        )
        if output.total_num_scheduled_tokens:
            self._step += 1
            setattr(output, wire.STEP_ATTRIBUTE, self._step)
            self._books.plan(
                Planned(
                    output=output,
                    step=self._step,
                    entered_s=entered,
                    schedule_us=(self.clock() - begun) * 1e6,
                    before_us=(begun - entered) * 1e6,
                    revision=self._knobs.revision,
                    predicted_ms=self._hot_policy.predicted_ms,
                )
            )
        return output

    def add_request(self, request: Request) -> None:
        """Queue a request; the knobs of the step that first sees it say whether it may look up the prefix cache."""
        super().add_request(request)
        self._fresh.append(request)

    def get_grammar_bitmask(self, scheduler_output: SchedulerOutput) -> Any:
        """Answer as vLLM does, and do our own books: this is asked right after a step was sent to the workers.

        While they compute, noting this step and sending the one before delay nobody.
        """
        grammar = super().get_grammar_bitmask(scheduler_output)
        self._books.catch_up()
        return grammar

    def update_from_output(
        self, scheduler_output: SchedulerOutput, model_runner_output: ModelRunnerOutput
    ) -> dict[int, EngineCoreOutputs]:
        """Let vLLM take the step's output, and keep what the record needs of it."""
        ended = self.clock()
        if self._books.behind:
            self._books.catch_up()
        outputs: dict[int, EngineCoreOutputs] = super().update_from_output(scheduler_output, model_runner_output)
        idle = not any(self.get_request_counts())
        self._books.finish(Done(scheduler_output, model_runner_output, outputs, ended, idle))
        if idle:  # nothing will be computed that the books could hide behind
            self._books.catch_up()
        return outputs

    def _reserve_prefill_lookahead(self, request: Request, num_computed_tokens: int, num_new_tokens: int) -> int:
        """Cap the tokens of a request in a step: this is where vLLM itself does so last."""
        tokens: int = super()._reserve_prefill_lookahead(request, num_computed_tokens, num_new_tokens)
        if not self.grants:
            return tokens
        bound = self.grants.get(request.request_id)
        return tokens if bound is None or tokens < bound else bound

    def _preempt_request(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super()._preempt_request(request, *args, **kwargs)
        self._books.preempt(request.request_id)

    def _open_page(self) -> KnobPage | None:
        """The page of the workbench that started this engine, or one for whoever attaches; none without a folder."""
        folder = os.environ.get(wire.ENV_FOLDER)
        try:
            return KnobPage(folder, create=not (Path(folder) / KNOBS).exists()) if folder else None
        except OSError as error:
            self._books.records.fault("knob page", error)
            return None

    def _apply(self, change: wire.KnobChange) -> None:
        """Take a change that fits what the engine was started with, or reply why not."""
        error = refusal(change, self, self._ceiling)
        if not error:
            before, self._knobs = self._knobs, change
            self.max_num_active_reqs = change.max_running
            self.adaptive_long_prefill_threshold = False  # it would raise the cap above what was asked for
            self.scheduler_reserve_full_isl = change.reserve_full
            self.kv_cache_manager.watermark_blocks = int(change.watermark * self.kv_cache_config.num_blocks)
            if change.policy != before.policy:
                self._switch(POLICIES[change.policy]())
            if change.cache_resets > before.cache_resets:
                self._empty_cache()
        self._books.records.send(
            wire.KnobReply(revision=change.revision, applied_s=self.clock(), step=self._step + 1, error=error)
        )

    def _switch(self, policy: Policy) -> None:
        try:
            self._hot_policy.leave(self)
        except Exception as error:  # noqa: BLE001  as in policies.base.plan
            self._give_up(error)
        self._hot_policy = policy
        try:
            policy.enter(self)
        except Exception as error:  # noqa: BLE001
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        """Put stock chunked prefill in the place of a policy that failed, until another one is asked for."""
        failed, self._hot_policy = self._hot_policy, Chunked()
        self.grants.clear()
        self._standing.restore(self)
        self.max_num_scheduled_tokens = self._knobs.budget
        self.scheduler_config.long_prefill_token_threshold = self._knobs.chunk
        self._books.records.fault(f"policy {failed.name}, stock scheduling took over", error)

    def _learn(self, step: wire.Step, seconds: float) -> None:
        try:
            self._hot_policy.learn(step, seconds)
        except Exception as error:  # noqa: BLE001
            self._give_up(error)

    def _greet(self) -> None:
        """Keep requests that are new from reading the prefix cache, if the knobs say so."""
        if not self._knobs.prefix_cache:
            for request in self._fresh:
                request.skip_reading_prefix_cache = True
        self._fresh.clear()

    def _empty_cache(self) -> None:
        if not self.reset_prefix_cache():
            holders = sum(one.num_computed_tokens > 0 for one in self.requests.values())
            self._books.records.fault(
                "prefix cache reset",
                RuntimeError(f"{holders} requests hold KV blocks; reset it when none runs"),
            )


class ProbeScheduler(_Probed, Scheduler):
    """For engines that schedule one step at a time (CPU)."""


class ProbeAsyncScheduler(_Probed, AsyncScheduler):
    """For engines that schedule the next step while one runs (CUDA by default)."""
