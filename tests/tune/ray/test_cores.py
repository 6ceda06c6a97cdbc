"""Two engines on one machine never share a core; topologies are made up as files, locks are real."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from workbench.errors import EngineStartError
from workbench.telemetry.peak import engine_threads
from workbench.tune.ray.cores import Claim, Core, cores_here

# Two NUMA nodes of two cores with two threads each, numbered as Linux does on such machines.
FOUR = [Core(0, (0, 4)), Core(0, (1, 5)), Core(1, (2, 6)), Core(1, (3, 7))]


@pytest.fixture
def sysfs(tmp_path):
    for core in range(4):
        for cpu in (core, core + 4):
            folder = tmp_path / f"cpu{cpu}"
            (folder / "topology").mkdir(parents=True)
            (folder / "topology" / "physical_package_id").write_text(f"{core // 2}\n")
            (folder / "topology" / "core_id").write_text(f"{core % 2}\n")  # counted in each package
            (folder / f"node{core // 2}").mkdir()
    return tmp_path


def test_cores_are_read_from_the_topology(sysfs):
    assert cores_here(range(8), sysfs) == FOUR
    assert cores_here([1, 5, 6], sysfs) == [Core(0, (1, 5)), Core(1, (6,))]


def test_without_a_topology_each_cpu_is_a_core(tmp_path):
    assert cores_here([3, 1], tmp_path) == [Core(0, (1,)), Core(0, (3,))]


def test_claims_share_nothing_and_stay_on_one_node(tmp_path):
    first = Claim.take(4, cores=FOUR, folder=tmp_path)
    second = Claim.take(4, cores=FOUR, folder=tmp_path)
    assert (first.cpus, second.cpus) == ([0, 1, 4, 5], [2, 3, 6, 7])
    first.free(), second.free()


def test_a_small_claim_takes_a_whole_core_and_leaves_the_other_node_whole(tmp_path):
    small = Claim.take(1, cores=FOUR, folder=tmp_path)
    next_ = Claim.take(2, cores=FOUR, folder=tmp_path)
    assert (small.cpus, next_.cpus) == ([0, 4], [1, 5])  # never two engines on the threads of one core
    assert Claim.take(4, cores=FOUR, folder=tmp_path).cpus == [2, 3, 6, 7]


def test_a_claim_over_both_nodes_where_none_has_enough(tmp_path):
    claim = Claim.take(6, cores=FOUR, folder=tmp_path)
    assert claim.cpus == [0, 1, 2, 4, 5, 6]


def test_too_few_free_cores_are_refused_and_none_is_held(tmp_path):
    first = Claim.take(6, cores=FOUR, folder=tmp_path)
    with pytest.raises(EngineStartError, match="got 2 free CPUs of 8 on this machine, expected 4"):
        Claim.take(4, cores=FOUR, folder=tmp_path)
    first.free()
    assert Claim.take(8, cores=FOUR, folder=tmp_path).cpus == list(range(8))


def test_a_killed_holder_holds_nothing(tmp_path):
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, pathlib; from workbench.tune.ray.cores import Claim, Core\n"
            f"claim = Claim.take(1, cores=[Core(0, (0,))], folder=pathlib.Path({str(tmp_path)!r}))\n"
            "print('held', flush=True); sys.stdin.read()",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout.readline() == b"held\n"
    with pytest.raises(EngineStartError):
        Claim.take(1, cores=[Core(0, (0,))], folder=tmp_path)
    holder.kill()
    holder.wait()
    assert Claim.take(1, cores=[Core(0, (0,))], folder=tmp_path).cpus == [0]


def test_the_list_for_vllm_is_one_thread_a_core_less_one_core(tmp_path):
    claim = Claim.take(8, cores=FOUR, folder=tmp_path)
    assert claim.bind(1, "x86_64") == "4,5,6"
    assert claim.bind(2, "x86_64") == "4|6"  # a worker each on its node, one core each left alone
    assert claim.bind(4, "x86_64") == "4|5|6|7"
    assert claim.bind(1, "aarch64") == "0,4,1,5,2,6"
    with pytest.raises(EngineStartError, match="got 4 for 5 workers"):
        claim.bind(5, "x86_64")


def test_threads_are_counted_as_the_step_time_models_do(tmp_path):
    claim = Claim.take(4, cores=FOUR, folder=tmp_path)
    assert engine_threads({"VLLM_CPU_OMP_THREADS_BIND": claim.bind(1, "x86_64")}) == 1
    assert set(claim.environment()) == {"VLLM_CPU_OMP_THREADS_BIND"}


def test_this_machine_has_the_cores_of_its_affinity():
    assert sorted(cpu for core in cores_here() for cpu in core.cpus) == sorted(os.sched_getaffinity(0))
