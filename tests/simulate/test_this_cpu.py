"""The machine's own processor as a device."""

import pytest

from workbench.models.architecture import named
from workbench.simulate import this_cpu as module
from workbench.simulate.steptime import StepShape
from workbench.simulate.steptime.roofline import Roofline
from workbench.telemetry.peak import Peak


def test_it_is_what_was_measured(monkeypatch):
    monkeypatch.setattr(module.peak, "matmul_peak", lambda threads, folder: Peak(5e10, f"measured, {threads} threads"))
    monkeypatch.setattr(module, "read_rate", lambda threads: 9e9)
    cpu = module.measured_cpu()
    assert (cpu.key, cpu.flops, cpu.bandwidth) == ("cpu", 5e10, 9e9)
    assert cpu.source.startswith("measured, ")
    assert cpu.memory > 1 << 30
    # SmolLM2's 135 million weights of 2 bytes at 9 GB/s are 30 ms; DESIGN measured 31 ms a decode step on such a core.
    step_s = Roofline(named("smollm2-135m"), cpu).seconds(StepShape.made(decodes=1, context=200))
    assert step_s == pytest.approx(0.031, rel=0.3)


def test_memory_is_read_at_a_believable_rate():
    assert 1e8 < module.read_rate(1) < 1e12
