"""What a simulated engine says of model and hardware, in the words that a live one's runs use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.redact import redact
from workbench.simulate.hardware_setup import Setup
from workbench.simulate.play import SimulatedPlay
from workbench.simulated_config import SimulatedConfig


def description_of(
    config: SimulatedConfig, setup: Setup | None, play: SimulatedPlay | None, more: Mapping[str, Any]
) -> dict[str, Any]:
    """An engine's part of a run's metadata, without secrets; None is what is not known.

    Args:
        config: of the engine.
        setup: what was looked up at its start; none before that.
        play: the last one, once it is over.
        more: what the engine alone knows.
    """
    facts = {
        "label": "simulated",
        "engine_pid": None,
        "config": config.model_dump(mode="json"),
        "simulated": setup.describe() if setup else None,
        "simulated_facts": play.facts if play else None,
        "probe_faults": play.faults if play else None,
        **more,
    }
    return dict(redact(facts))


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
