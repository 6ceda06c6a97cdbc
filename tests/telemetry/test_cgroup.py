"""Memory cgroups in made-up trees of files, and the one that this test runs in."""

import pytest

from workbench.telemetry.cgroup import cgroup_of
from workbench.telemetry.host import CgroupMemory


@pytest.fixture
def tree(tmp_path):
    """Write ``/proc/self`` and a cgroup mount; files are given by their path in the mount."""

    def write(membership, files, kind="cgroup2", root="/", options="rw"):
        mount = tmp_path / "mount"
        for name, text in files.items():
            path = mount / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{text}\n")
        proc = tmp_path / "proc"
        (proc / "self").mkdir(parents=True)
        (proc / "self" / "cgroup").write_text(membership)
        (proc / "self" / "mountinfo").write_text(
            "22 1 0:21 / /proc rw,nosuid - proc proc rw\n"
            f"30 22 0:26 {root} {mount} rw,nosuid shared:9 master:2 - {kind} {kind} {options}\n"
        )
        return cgroup_of(proc=proc), mount

    return write


def test_v2(tree):
    files = {"a/b/memory.current": 700, "a/b/memory.max": "max", "a/memory.max": 1000, "a/memory.current": 900}
    found, mount = tree("0::/a/b\n", files)
    assert (found.version, found.limit, found.limit_path) == (2, 1000, mount / "a" / "memory.max")
    assert CgroupMemory(found).read().bytes == 700
    limit = CgroupMemory(found, "limit")
    assert (limit.name, limit.read().bytes) == ("host cgroup limit", 1000)
    (mount / "a" / "memory.max").write_text("max\n")
    assert limit.read().note == "n/a (this cgroup has no limit any more)"


def test_the_least_limit_counts(tree):
    files = {"a/b/memory.current": 700, "a/b/memory.max": 800, "a/memory.max": 1000}
    assert tree("0::/a/b\n", files)[0].limit == 800


def test_v2_without_limit(tree):
    found, _ = tree("0::/a\n", {"a/memory.current": 700, "a/memory.max": "max"})
    assert (found.limit, found.limit_path) == (None, None)
    assert CgroupMemory(found, "limit").read().note == "n/a (this cgroup has no limit)"


V1 = "9:name=systemd:/\n4:cpu,memory:{}\n0::/\n"


def test_v1(tree):
    files = {
        "a/memory.usage_in_bytes": 700,
        "a/memory.limit_in_bytes": 9223372036854771712,
        "memory.usage_in_bytes": 5,
        "memory.limit_in_bytes": 4000,
    }
    found, mount = tree(V1.format("/a"), files, kind="cgroup", options="rw,memory")
    assert (found.version, found.limit, found.usage) == (1, 4000, mount / "a" / "memory.usage_in_bytes")


def test_v1_in_a_container_whose_mount_begins_at_its_own_cgroup(tree):
    files = {"memory.usage_in_bytes": 700, "memory.limit_in_bytes": 1000}
    found, _ = tree(V1.format("/docker/abc"), files, kind="cgroup", root="/docker/abc", options="rw,memory")
    assert found.limit == 1000
    assert CgroupMemory(found).read().bytes == 700


def test_a_mount_that_begins_above_its_own_cgroup(tree):
    files = {"abc/memory.current": 700, "abc/memory.max": 1000, "memory.current": 5, "memory.max": "max"}
    found, mount = tree("0::/pods/abc\n", files, root="/pods")
    assert (found.limit, found.usage) == (1000, mount / "abc" / "memory.current")


def test_a_path_above_the_mount(tree):
    found, mount = tree("0::/../outside\n", {"memory.current": 700, "memory.max": 1000})
    assert found.usage == mount / "memory.current"


def test_no_memory_cgroup(tree, tmp_path):
    assert tree("0::/\n", {"cgroup.procs": ""})[0] is None
    assert cgroup_of(proc=tmp_path / "nowhere") is None
    assert CgroupMemory(None).read().note == "n/a (no memory cgroup here)"


def test_here():
    found = cgroup_of()
    if found is None:
        pytest.skip("this machine has no memory cgroup")
    assert CgroupMemory(found).read().bytes > 0
