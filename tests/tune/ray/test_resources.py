"""What an engine takes of a cluster, and whether there is room: counted by hand, without Ray."""

from __future__ import annotations

import pytest

from workbench.config import EngineConfig
from workbench.errors import ConfigError, InputError
from workbench.simulated_config import SimulatedConfig
from workbench.tune.ray.resources import Need, need_of, nodes_of, ranks_of, room_for

LAPTOP, SERVER, GPUS = {"CPU": 2.0}, {"CPU": 64.0}, {"CPU": 96.0, "GPU": 8.0}


def needs(config=None, device="cpu", nodes=(LAPTOP,), workers=None, cores=None):
    config = config or EngineConfig()
    return need_of(config, ranks_of(config), device, nodes, workers, cores)


def test_a_simulated_engine_takes_a_cpu_whatever_it_simulates():
    assert needs(SimulatedConfig(gpu="H100", count=8), "cuda") == Need(1, 0, pinned=False)


def test_an_engine_on_gpus_takes_tensor_times_pipeline():
    config = EngineConfig(tensor_parallel_size=4, pipeline_parallel_size=2)
    assert needs(config, "cuda", [GPUS]) == Need(1, 8, pinned=False)
    assert needs(config, "cuda", [GPUS]).words == "1 CPU and 8 GPUs"


@pytest.mark.parametrize(
    ("nodes", "workers", "cores", "cpus"),
    [
        ([LAPTOP], None, None, 2),  # one engine takes the machine
        ([LAPTOP], 2, None, 1),
        ([SERVER], 3, None, 21),
        ([SERVER, LAPTOP], None, None, 2),  # the smallest machine is to have an engine too
        ([SERVER, SERVER], 3, None, 32),  # 2 + 2, where 33 would make 1 + 1
        ([SERVER], 4, 8, 8),
        ([LAPTOP], 5, None, 1),  # too many; room_for says so
    ],
)
def test_engines_on_cpus_share_what_there_is(nodes, workers, cores, cpus):
    assert needs(nodes=nodes, workers=workers, cores=cores) == Need(cpus, 0, pinned=True)


@pytest.mark.parametrize(
    ("need", "nodes", "room"),
    [
        (Need(1, 2, pinned=False), [GPUS, GPUS], 8),
        (Need(1, 8, pinned=False), [GPUS, SERVER, GPUS], 2),
        (Need(2, 0, pinned=True), [LAPTOP, SERVER], 33),
    ],
)
def test_without_a_number_all_room_is_taken(need, nodes, room):
    assert room_for(need, nodes, None) == room
    assert room_for(need, nodes, room) == room
    with pytest.raises(InputError, match=f"room for {room + 1} engines"):
        room_for(need, nodes, room + 1)


def test_an_engine_larger_than_any_machine_is_refused_in_one_line():
    with pytest.raises(InputError) as bad:
        room_for(Need(1, 16, pinned=False), [GPUS, GPUS], None)
    said = str(bad.value)
    assert "\n" not in said
    assert "2 machines with room for 0; the largest has 96 CPUs and 8 GPUs" in said
    assert "room for an engine of 1 CPU and 16 GPUs" in said


@pytest.mark.parametrize(("what", "more"), [("--workers", {"workers": 0}), ("--cores", {"cores": -1})])
def test_numbers_below_one_are_refused(what, more):
    with pytest.raises(InputError, match=f"{what}: got"):
        needs(**more)


def test_an_engine_over_several_machines_is_no_trial_of_a_cluster():
    config = EngineConfig(distributed_executor_backend="ray", tensor_parallel_size=8)
    with pytest.raises(ConfigError, match=r"docs/several_machines\.md"):
        needs(config, "cuda", [GPUS])


def test_machines_that_are_gone_do_not_count():
    listed = [{"Alive": True, "Resources": {"CPU": 2.0}}, {"Alive": False, "Resources": {"CPU": 64.0}}]
    assert nodes_of(listed) == [LAPTOP]
