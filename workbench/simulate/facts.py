"""What a simulated engine says of model and hardware, in the words that a live one's runs use."""

from __future__ import annotations

from typing import Any

from workbench.simulate.hardware_setup import Setup
from workbench.simulated_config import SimulatedConfig


def compute_facts_of(config: SimulatedConfig, setup: Setup | None) -> dict[str, Any]:
    """The run's ``compute`` metadata, see :func:`workbench.compute.compute_facts`; peaks are published, not measured.

    Args:
        config: of the engine.
        setup: what was looked up at its start; none before that.
    """
    sizes, gpu = (setup.architecture, setup.device) if setup is not None else (None, None)
    facts: dict[str, Any] = {
        "architecture": None,
        "peak": None,
        "bandwidth": None,
        "host_bytes_per_s": None,
        "device": None,
    }
    missing: dict[str, str] = {}
    if sizes is not None:
        facts["architecture"] = sizes.as_dict()
    else:
        missing["architecture"] = f"the sizes of {config.model} are not known"
    if gpu is not None:
        many = "" if config.gpus == 1 else f", times {config.gpus} devices"
        read = {"bytes_per_s": gpu.bandwidth * config.gpus, "source": f"{gpu.name}, memory as published{many}"}
        rates = {"to_device": gpu.pcie, "to_host": gpu.pcie, "source": f"{gpu.name}, PCIe as published"}
        facts |= {
            "peak": {"flops_per_s": gpu.flops * config.gpus, "source": gpu.source + many},
            "bandwidth": read,
            "host_bytes_per_s": rates,
            "device": gpu.name,
        }
    else:
        missing |= dict.fromkeys(("peak", "bandwidth", "host_bytes_per_s"), "no GPU is simulated")
    return facts | {"missing": missing}
