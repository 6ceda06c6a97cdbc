"""One step of a scheduler at a time, for tests that look at each plan; ``workbench.simulate`` plays whole runs."""

from types import SimpleNamespace

from vllm.v1.outputs import ModelRunnerOutput


def output_of(plan, sampled=None):
    """A token for each request of a step, or for those that ``sampled`` says."""
    names = list(plan.num_scheduled_tokens)
    return ModelRunnerOutput(
        req_ids=names,
        req_id_to_index={name: i for i, name in enumerate(names)},
        sampled_token_ids=[[7] if sampled is None or sampled[name] else [] for name in names],
    )


def finish(scheduler, plan):
    """Give a step its output."""
    if not plan.num_scheduled_tokens:
        return {}
    done = {name: not scheduler.requests[name].is_prefill_chunk for name in plan.num_scheduled_tokens}
    return scheduler.update_from_output(plan, output_of(plan, done))


def step(scheduler):
    """Plan one step and give it its output."""
    plan = scheduler.schedule()
    return SimpleNamespace(plan=plan, outputs=finish(scheduler, plan))


def drain(scheduler, limit=10_000):
    """Plan steps until every request has ended; return the plans."""
    plans = []
    while scheduler.has_unfinished_requests():
        plans.append(step(scheduler).plan)
        assert len(plans) < limit, "the requests never end"
    return plans
