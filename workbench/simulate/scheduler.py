"""The probe's schedulers as a simulation uses them: with swap, and with a shorter way to vLLM's own answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from vllm.v1.core.sched.output import CachedRequestData
from vllm.v1.request import RequestStatus

from workbench.engine.probe.scheduler import ProbeAsyncScheduler, ProbeScheduler
from workbench.simulate.bare import make_scheduler
from workbench.simulate.job import SimJob
from workbench.simulate.swap import HostPool

if TYPE_CHECKING:
    from vllm.v1.request import Request

    from workbench.engine.probe.scheduler import _Probed as _Base
else:
    _Base = object


class _Simulated(_Base):
    """Mixed in before a probed scheduler."""

    host: HostPool | None = None
    _quick = False
    _ahead: bool
    _none = CachedRequestData.make_empty()

    def swap_to(self, host: HostPool) -> None:
        """Send victims to host memory from now on."""
        self.host = host
        self.connector = host  # it has what the scheduler calls of a connector

    def quicken(self) -> None:
        """Leave out what makes no difference here: half the time of a step with many decodes.

        vLLM's own statistics and what it tells its workers go, as nobody reads them. And where the blocks that a
        running request holds have room for its new tokens, there is nothing to allocate: vLLM finds that out too, in
        10 us. With a prefix cache it also notes blocks that are full now, so there it is asked as ever.
        """
        manager = self.kv_cache_manager
        self.log_stats = manager.log_stats = False
        if manager.enable_caching or len(manager.coordinator.single_type_managers) > 1:
            return
        self._quick = True
        allocate, none, size = manager.allocate_slots, manager.empty_kv_cache_blocks, self.block_size
        held_by = manager.coordinator.single_type_managers[0].req_to_blocks

        def slots(request: Request, tokens: int, *args: Any, **kwargs: Any) -> Any:
            if request.status is RequestStatus.RUNNING:
                held = held_by.get(request.request_id)
                if held and request.num_computed_tokens + tokens <= len(held) * size:
                    return none
            return allocate(request, tokens, *args, **kwargs)

        manager.allocate_slots = slots

    def _make_cached_request_data(self, *args: Any, **kwargs: Any) -> CachedRequestData:
        """What workers are told of requests that they know: here are no workers."""
        return self._none if self._quick else super()._make_cached_request_data(*args, **kwargs)

    def _reserve_prefill_lookahead(self, request: Request, _num_computed_tokens: int, num_new_tokens: int) -> int:
        """As the probe does, without vLLM's own part, which is for drafts that nobody makes here."""
        grants = self.grants
        return min(num_new_tokens, grants.get(request.request_id, num_new_tokens)) if grants else num_new_tokens

    def _update_request_with_output(
        self, request: Request, new_token_ids: list[int], is_stale: bool = False
    ) -> tuple[list[int], bool]:
        """Take a token; it ends the request when there are enough, as no token of ours is a stop token."""
        if not self._quick or len(new_token_ids) != 1:
            told: tuple[list[int], bool] = super()._update_request_with_output(request, new_token_ids, is_stale)
            return told
        output, every = request._output_token_ids, request._all_token_ids
        output.append(new_token_ids[0])
        every.append(new_token_ids[0])
        stopped = len(every) >= self.max_model_len or len(output) >= request.max_tokens
        if self._ahead and not is_stale:
            request.num_output_placeholders -= 1
        if stopped:
            request.status = RequestStatus.FINISHED_LENGTH_CAPPED
        return new_token_ids, stopped

    @property
    def steps_planned(self) -> int:
        """Number of the step that was planned last."""
        return self._step

    def settle(self) -> None:
        """Send the records of the steps that are done: with nothing left to plan, nobody else would."""
        self._books.catch_up()

    def _preempt_request(self, request: Request, *args: Any, **kwargs: Any) -> None:
        if self.host is not None and self.host.put(request):
            request.skip_reading_prefix_cache = False  # vLLM would take that as "load nothing" too
        super()._preempt_request(request, *args, **kwargs)


class SimScheduler(_Simulated, ProbeScheduler):
    """One step at a time."""

    _ahead = False


class SimAsyncScheduler(_Simulated, ProbeAsyncScheduler):
    """The next step is planned while one runs."""

    _ahead = True


def scheduler_of(job: SimJob, folder: Path) -> Any:
    """The scheduler of a job; the made-up model's configuration is written into ``folder``."""
    scheduler = make_scheduler(
        SimAsyncScheduler if job.ahead else SimScheduler,
        folder,
        budget=job.budget,
        max_model_len=job.max_model_len,
        seqs=job.seqs,
        blocks=job.blocks,
        prefix_cache=job.prefix_cache,
        block_size=job.block_size,
        policy=job.scheduling_policy,
    )
    if job.quick:
        scheduler.quicken()
    return scheduler
