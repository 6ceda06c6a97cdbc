"""Scheduling policies that can be switched while the engine runs, one file each.

Beside them: ``base`` (what a policy is), ``standing`` (vLLM's queues), ``classes`` and ``room`` (for ``qos``), and
``step_time`` (for ``target_gap``).
"""

from workbench.engine.probe.policies.base import Policy, StockSchedule, plan
from workbench.engine.probe.policies.chunked import Chunked
from workbench.engine.probe.policies.decode_first import DecodeFirst
from workbench.engine.probe.policies.monolithic import Monolithic
from workbench.engine.probe.policies.priority import Priority
from workbench.engine.probe.policies.qos import QoS
from workbench.engine.probe.policies.target_gap import TargetGap

POLICIES: dict[str, type[Policy]] = {
    policy.name: policy for policy in (Chunked, Monolithic, DecodeFirst, Priority, QoS, TargetGap)
}

__all__ = [
    "POLICIES",
    "Chunked",
    "DecodeFirst",
    "Monolithic",
    "Policy",
    "Priority",
    "QoS",
    "StockSchedule",
    "TargetGap",
    "plan",
]
