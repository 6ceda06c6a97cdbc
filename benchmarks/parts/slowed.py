"""An engine whose steps can be made slower by a share, hot: what a comparison is to find. For benchmarks only.

The scheduler waits after each step for a share of the time that the step took, in the process that vLLM's engine runs
in: nothing is computed meanwhile, and everything that follows is late. The share is the knob ``prefill_every``, in per
cent, which the policy ``chunked`` does not look at.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.engine import command
from workbench.engine.probe.wire import ENV_FOLDER

if TYPE_CHECKING:
    from vllm.v1.core.sched.output import SchedulerOutput

    from workbench.engine.probe.scheduler import ProbeScheduler
elif ENV_FOLDER in os.environ:  # in the engine's own processes
    from workbench.engine.probe.scheduler import ProbeScheduler
else:  # where only :func:`slowable` is wanted, and vLLM would take seconds to import
    ProbeScheduler = object

KNOB = "prefill_every"
_ROOT = str(Path(__file__).resolve().parents[2])
_HERE = "benchmarks.parts.slowed.SlowedScheduler"


class SlowedScheduler(ProbeScheduler):
    """The probe's scheduler, with a wait."""

    _planned_s = 0.0

    def schedule(self, throttle_prefills: bool = False) -> SchedulerOutput:
        """Plan a step, and note when."""
        self._planned_s = time.monotonic()
        return super().schedule(throttle_prefills)

    def update_from_output(self, scheduler_output: SchedulerOutput, model_runner_output: Any) -> Any:
        """Wait, then take the step's output as always."""
        percent = self._knobs.prefill_every
        if percent and scheduler_output.total_num_scheduled_tokens:
            time.sleep((time.monotonic() - self._planned_s) * percent / 100)
        return super().update_from_output(scheduler_output, model_runner_output)


@contextmanager
def slowable() -> Iterator[None]:
    """Engines that are started meanwhile have the scheduler that can be slowed; one step at a time only (CPU)."""
    before, path = command._SCHEDULER[False], os.environ.get("PYTHONPATH")
    command._SCHEDULER[False] = _HERE
    os.environ["PYTHONPATH"] = os.pathsep.join([_ROOT, *([path] if path else [])])  # vLLM loads it by name
    try:
        yield
    finally:
        command._SCHEDULER[False] = before
        os.environ.pop("PYTHONPATH")
        if path:
            os.environ["PYTHONPATH"] = path
