"""Which step-time model a simulated engine has: calibrated where this machine was measured, else what it asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench import hardware
from workbench.architecture import Architecture
from workbench.engine.dtype import computes_bf16
from workbench.errors import InputError
from workbench.machine import machine_facts
from workbench.simulate import kept_calibrations
from workbench.simulate.calibration import machine_key
from workbench.simulate.presets import Device
from workbench.simulate.steptime import StepTime
from workbench.simulate.steptime.calibrated import Calibrated
from workbench.simulate.steptime.roofline import Roofline
from workbench.simulate.steptime.varied import Varied
from workbench.simulated_config import SimulatedConfig

_RELEVANT = {"dtype", "quantization", "tensor_parallel_size", "pipeline_parallel_size", "attention_backend"}


def step_time_of(
    config: SimulatedConfig, sizes: Architecture | None, gpu: Device | None, weight_bytes: float
) -> StepTime:
    """The step-time model that a configuration names.

    Args:
        config: start-up fields.
        sizes: of the model; None where they are not known.
        gpu: one of the GPUs; None is this machine's processor.
        weight_bytes: of a weight.

    Raises:
        InputError: there is no calibration, or a package is missing.
    """
    if config.step_time in ("auto", "calibrated"):
        asked = config.model_dump(include=_RELEVANT)
        if gpu is None and config.dtype == "auto":  # two processors of one name may differ in that
            asked["dtype"] = "bfloat16" if computes_bf16() else "float32"
        found = kept_calibrations.match(config.model, _machine(gpu), asked)
        if found is not None:
            return Varied(Calibrated(found))
        if config.step_time == "calibrated" or gpu is None:
            raise _not_calibrated(config, gpu)
    if sizes is None or gpu is None:
        raise InputError("step_time", config.step_time, "a GPU and a model of known sizes", "choose calibrated")
    split = (config.tensor_parallel_size, config.pipeline_parallel_size)
    if config.step_time == "tables":
        from workbench.simulate.steptime.tables import Tables  # here: its package is optional

        return Tables(sizes, gpu, *split, weight_bytes=weight_bytes)
    return Roofline(sizes, gpu, *split, weight_bytes=weight_bytes)


def _not_calibrated(config: SimulatedConfig, gpu: Device | None) -> InputError:
    key = _machine(gpu)
    on = f"{gpu.name}" if gpu is not None else f"this processor ({key['processor']}, {key['usable_cores']} cores)"
    known = sorted(
        {
            f"{one.machine.get('device')} with {one.machine.get('usable_cores')} cores"
            for one in kept_calibrations.every()
        }
    )
    return InputError(
        "step_time",
        config.step_time,
        f"a calibration of {config.model} on {on}",
        f"make one there with `workbench calibrate --set model={config.model}`, or choose a GPU and the roofline; "
        f"there are calibrations for {' and '.join(known) or 'no machine yet'}",
    )


def _machine(gpu: Device | None) -> Mapping[str, Any]:
    facts = machine_facts()
    if gpu is None:
        return machine_key({"machine": facts, "compute": {"device": facts.get("processor")}})
    names = hardware.gpu(gpu.key).driver_names
    return machine_key({"machine": facts, "compute": {"device": names[0] if names else gpu.name}})
