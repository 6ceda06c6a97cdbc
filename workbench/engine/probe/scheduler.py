"""The scheduler classes that vLLM loads with ``--scheduler-cls``: hot knobs in, step records out."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import vllm
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.scheduler import Scheduler

from workbench.engine.probe import wire
from workbench.engine.probe.compat import check_version
from workbench.engine.probe.knob_page import KnobPage
from workbench.engine.probe.link import RecordLink, now_us
from workbench.engine.probe.policies import POLICIES, Policy

if TYPE_CHECKING:
    from vllm.v1.core.sched.output import SchedulerOutput
    from vllm.v1.core.sched.scheduler import Scheduler as _Base
    from vllm.v1.engine import EngineCoreOutputs
    from vllm.v1.outputs import ModelRunnerOutput
    from vllm.v1.request import Request
else:
    _Base = object

check_version(vllm.__version__)


class _Probed(_Base):
    """Mixed in before one of vLLM's schedulers."""

    max_num_scheduled_tokens: int
    max_num_active_reqs: int

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        config = self.scheduler_config
        self._records, self._page = RecordLink(), self._open_page()
        self._knobs = wire.KnobChange(
            revision=0,
            budget=self.max_num_scheduled_tokens,
            chunk=config.long_prefill_token_threshold,
            max_running=self.max_num_active_reqs,
            policy="chunked",
        )
        self._ceiling = self._knobs.budget
        self._hot_policy: Policy = POLICIES["chunked"]()
        self._step = 0
        self._pending: dict[int, wire.Step] = {}
        self._preempted: list[str] = []
        self._planned: tuple[SchedulerOutput, float, float, float] | None = None
        self._done: list[tuple[SchedulerOutput, ModelRunnerOutput, dict[int, EngineCoreOutputs], float]] = []
        self._records.send(
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
            )
        )

    def schedule(self, throttle_prefills: bool = False) -> SchedulerOutput:
        """Apply pending knobs and let the policy plan one step."""
        entered, clock = time.monotonic(), time.perf_counter()
        if self._planned is not None:  # vLLM did not ask for a grammar since
            self._catch_up()
        change = self._page.latest() if self._page else None
        if change is not None:
            self._apply(change)
        self.max_num_scheduled_tokens = self._knobs.budget
        self.scheduler_config.long_prefill_token_threshold = self._knobs.chunk
        before_us = now_us(clock)
        clock = time.perf_counter()
        output = self._hot_policy.schedule(
            self, self._knobs, lambda throttle: super(_Probed, self).schedule(throttle or throttle_prefills)
        )
        schedule_us = now_us(clock)
        if output.total_num_scheduled_tokens:
            self._step += 1
            setattr(output, wire.STEP_ATTRIBUTE, self._step)
            self._planned = (output, entered, schedule_us, before_us)
        return output

    def get_grammar_bitmask(self, scheduler_output: SchedulerOutput) -> Any:
        """Answer as vLLM does, and do our own books: this is asked right after a step was sent to the workers.

        While they compute, noting this step and sending the one before delay nobody.
        """
        grammar = super().get_grammar_bitmask(scheduler_output)
        self._catch_up()
        return grammar

    def update_from_output(
        self, scheduler_output: SchedulerOutput, model_runner_output: ModelRunnerOutput
    ) -> dict[int, EngineCoreOutputs]:
        """Let vLLM take the step's output, and keep what the record needs of it."""
        ended = time.monotonic()
        if self._planned is not None:
            self._catch_up()
        outputs: dict[int, EngineCoreOutputs] = super().update_from_output(scheduler_output, model_runner_output)
        self._done.append((scheduler_output, model_runner_output, outputs, ended))
        if not any(self.get_request_counts()):  # nothing will be computed that the books could hide behind
            self._catch_up()
        return outputs

    def _catch_up(self) -> None:
        """Do the books: note the step that was planned, send those that are done."""
        if self._planned is None and not self._done:
            return
        planned, self._planned = self._planned, None
        done, self._done = self._done, []
        try:
            if planned is not None:
                self._note(*planned)
            for one in done:
                self._send(*one)
        except Exception as error:  # noqa: BLE001  a measuring fault must not end somebody's engine
            self._records.fault("step record", error)

    def _preempt_request(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super()._preempt_request(request, *args, **kwargs)
        self._preempted.append(request.request_id)

    def _open_page(self) -> KnobPage | None:
        """The page of the workbench that started this engine; none if nobody did."""
        folder = os.environ.get(wire.ENV_FOLDER)
        try:
            return KnobPage(folder) if folder else None
        except OSError as error:
            self._records.fault("knob page", error)
            return None

    def _apply(self, change: wire.KnobChange) -> None:
        """Take a change that fits what the engine was started with, or reply why not."""
        error = self._refusal(change)
        if not error:
            if change.policy != self._knobs.policy:
                self._hot_policy.leave(self)
                self._hot_policy = POLICIES[change.policy]()
            self._knobs = change
            self.max_num_active_reqs = change.max_running
            self.adaptive_long_prefill_threshold = False  # it would raise the cap above what was asked for
        self._records.send(
            wire.KnobReply(revision=change.revision, applied_s=time.monotonic(), step=self._step + 1, error=error)
        )

    def _refusal(self, change: wire.KnobChange) -> str:
        if not 1 <= change.budget <= self._ceiling:
            return f"budget {change.budget} outside 1..{self._ceiling}"
        if not 0 <= change.chunk <= self.max_model_len:
            return f"chunk {change.chunk} outside 0..{self.max_model_len}"
        if not 1 <= change.max_running <= self.max_num_running_reqs:
            return f"max_running {change.max_running} outside 1..{self.max_num_running_reqs}"
        if change.policy not in POLICIES:
            return f"policy {change.policy!r} not one of {', '.join(POLICIES)}"
        return ""

    def _note(self, output: SchedulerOutput, entered: float, schedule_us: float, before_us: float) -> None:
        """Keep what is known of a step when it is planned, until its output comes."""
        parts, requests, longest_decode = [], self.requests, 1 + self.num_spec_tokens
        for name, tokens in output.num_scheduled_tokens.items():
            request = requests.get(name)
            if request is None:  # ended from outside in the meantime
                continue
            context = request.num_computed_tokens - tokens  # schedule() has already moved it forward
            # After a preemption output tokens are computed again as well: that is prefill too.
            prefill = context < request.num_prompt_tokens or tokens > longest_decode
            parts.append(wire.Part(name, tokens, context, prefill))
        running, waiting = self.get_request_counts()
        step = getattr(output, wire.STEP_ATTRIBUTE)
        self._pending[step] = wire.Step(
            step=step,
            scheduled_s=entered,
            schedule_us=schedule_us,
            probe_us=before_us,
            revision=self._knobs.revision,
            running=running,
            waiting=waiting,
            kv_use=self.kv_cache_manager.usage,
            preempted=self._preempted,
            parts=parts,
        )
        self._preempted = []

    def _send(
        self,
        output: SchedulerOutput,
        result: ModelRunnerOutput,
        outputs: dict[int, EngineCoreOutputs],
        ended: float,
    ) -> None:
        record = self._pending.pop(getattr(output, wire.STEP_ATTRIBUTE, -1), None)
        if record is None:
            return
        hello = getattr(result, wire.HELLO_ATTRIBUTE, None)
        if hello is not None:
            self._records.send(hello)
        emitted = {
            one.request_id: len(one.new_token_ids)
            for client in outputs.values()
            for one in client.outputs
            if one.new_token_ids
        }
        for part in record.parts:
            part.emitted = emitted.get(part.request, 0)
        record.work = getattr(result, wire.WORK_ATTRIBUTE, None)
        record.end_s, record.dropped = ended, self._records.dropped
        self._records.send(record)


class ProbeScheduler(_Probed, Scheduler):
    """For engines that schedule one step at a time (CPU)."""


class ProbeAsyncScheduler(_Probed, AsyncScheduler):
    """For engines that schedule the next step while one runs (CUDA by default)."""
