"""Scheduling policies that can be switched while the engine runs, one file each."""

from workbench.engine.probe.policies.base import Policy, StockSchedule
from workbench.engine.probe.policies.chunked import Chunked
from workbench.engine.probe.policies.decode_first import DecodeFirst
from workbench.engine.probe.policies.monolithic import Monolithic

POLICIES: dict[str, type[Policy]] = {policy.name: policy for policy in (Chunked, Monolithic, DecodeFirst)}

__all__ = ["POLICIES", "Chunked", "DecodeFirst", "Monolithic", "Policy", "StockSchedule"]
