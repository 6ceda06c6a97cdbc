"""What step-time models have in common that count a step from a model's sizes and a device's figures."""

from __future__ import annotations

from typing import Any, Self

from workbench.architecture import Architecture
from workbench.errors import InputError
from workbench.simulate.presets import Device
from workbench.simulate.steptime.base import StepShape

# Sampling, gathering of rows for the logits, handing the step to the workers: what neither the tables nor the products
# have in them. Assumed, not measured: a calibration replaces it.
STEP_S = 1e-3
ACTIVATION_BYTES = 2  # of a number that is not a weight
REPLICATED = ("router", "q_a", "kv_a")  # matrices that tensor parallel does not cut: small, every GPU has all of them


class Counted:
    """A model of steps that nobody measured on the hardware at hand: uncalibrated.

    Args:
        architecture: the model.
        device: one of its GPUs.
        tp: tensor parallel: so many share each layer.
        pp: pipeline parallel: so many groups hold a share of the layers each.
        weight_bytes: of a weight: 2 is bf16, 1 is FP8.
        kv_bytes: of a number in the KV cache.
        step_s: what a step costs beside its kernels, s.

    Raises:
        InputError: heads or layers cannot be shared out so.
    """

    name = ""
    calibrated = False

    def __init__(
        self,
        architecture: Architecture,
        device: Device,
        tp: int = 1,
        pp: int = 1,
        *,
        weight_bytes: float = 2,
        kv_bytes: float = 2,
        step_s: float = STEP_S,
    ) -> None:
        check_split(architecture, tp, pp)
        self.architecture, self.device, self.tp, self.pp = architecture, device, tp, pp
        self.weight_bytes, self.kv_bytes, self.step_s = weight_bytes, kv_bytes, step_s

    def seconds(self, step: StepShape) -> float:
        """From the start of the step until its output is there, through all stages of the pipeline."""
        raise NotImplementedError

    def interval(self, step: StepShape) -> float:
        """Until the first stage can take the next step: the time of one stage; all of it without a pipeline."""
        return self.seconds(step) / self.pp

    def outside(self, step: StepShape) -> str:  # noqa: ARG002  it was fitted to no steps
        """Nothing: it was not fitted to steps."""
        return ""

    def spec(self) -> dict[str, Any]:
        """Plain data to make it again."""
        return {
            "kind": self.name,
            "architecture": self.architecture.as_dict(),
            "device": self.device.as_dict(),
            "tp": self.tp,
            "pp": self.pp,
            "weight_bytes": self.weight_bytes,
            "kv_bytes": self.kv_bytes,
            "step_s": self.step_s,
        }

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> Self:
        """Make it from what :meth:`spec` gave."""
        return cls(
            Architecture.from_dict(spec["architecture"]),
            Device.from_dict(spec["device"]),
            spec["tp"],
            spec["pp"],
            weight_bytes=spec["weight_bytes"],
            kv_bytes=spec["kv_bytes"],
            step_s=spec["step_s"],
        )


def check_split(architecture: Architecture, tp: int, pp: int) -> None:
    """Whether the model can be shared out over ``tp x pp`` GPUs.

    Raises:
        InputError: query heads do not divide, or there are fewer layers than stages.
    """
    heads = architecture.heads
    if tp < 1 or heads % tp:
        fits = ", ".join(str(n) for n in (1, 2, 4, 8, 16) if not heads % n)
        raise InputError(
            "tensor parallel", tp, f"a number that divides the {heads} heads of {architecture.name}", f"take {fits}"
        )
    if pp < 1 or pp > architecture.layers:
        raise InputError(
            "pipeline parallel", pp, f"1 to {architecture.layers} stages, the layers of {architecture.name}", "take 1"
        )
