"""Schedulers of the probe that check after each step what must hold after every step."""

from workbench.engine.probe.scheduler import ProbeAsyncScheduler, ProbeScheduler


class _Watched:
    """Mixed in before a probed scheduler; keeps its preemptions."""

    def __init__(self, *args, **kwargs):
        self.preemptions = []
        super().__init__(*args, **kwargs)

    def schedule(self, throttle_prefills=False):
        plan = super().schedule(throttle_prefills)
        knobs = self._knobs
        assert plan.total_num_scheduled_tokens == sum(plan.num_scheduled_tokens.values()) <= knobs.budget
        named = [one.req_id for one in plan.scheduled_new_reqs] + list(plan.scheduled_cached_reqs.req_ids)
        assert sorted(named) == sorted(plan.num_scheduled_tokens), "a request is in a step once"
        if knobs.chunk and knobs.policy != "monolithic" and len(self.running) + len(self.waiting) > 1:
            assert max(plan.num_scheduled_tokens.values(), default=0) <= knobs.chunk
        self._nothing_is_lost()
        return plan

    def update_from_output(self, scheduler_output, model_runner_output):
        outputs = super().update_from_output(scheduler_output, model_runner_output)
        self._nothing_is_lost()
        return outputs

    def _preempt_request(self, request, *args, **kwargs):
        in_flight = request.num_in_flight_tokens > 0 and not request.is_prefill_chunk
        self.preemptions.append((self._hot_policy.name, request.priority, in_flight))
        super()._preempt_request(request, *args, **kwargs)

    def _nothing_is_lost(self):
        queued = [one.request_id for one in [*self.running, *self.waiting, *self.kv_holding_waiting]]
        assert sorted(queued) == sorted(self.requests), "each live request is in one queue, once"
        assert len(self.running) <= self.max_num_running_reqs
        coordinator = self.kv_cache_manager.coordinator
        held = {b.block_id for m in coordinator.single_type_managers for bs in m.req_to_blocks.values() for b in bs}
        assert len(held) == self.used_blocks, "blocks that nobody holds are free"

    @property
    def used_blocks(self):
        pool = self.kv_cache_manager.block_pool
        return pool.num_gpu_blocks - 1 - pool.get_num_free_blocks()


class WatchedScheduler(_Watched, ProbeScheduler):
    """One step at a time."""


class WatchedAsyncScheduler(_Watched, ProbeAsyncScheduler):
    """Two steps in flight."""
