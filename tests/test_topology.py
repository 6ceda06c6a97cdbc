"""Where a CPU sits, from folders as Linux has them."""

import pytest

from workbench.topology import core_of, node_of


@pytest.fixture
def cpus(tmp_path):
    """CPU 5 on core 2 of package 1 and node 1, with a link to the whole node beside it; of CPU 6 nothing is told."""
    (tmp_path / "cpu5" / "topology").mkdir(parents=True)
    (tmp_path / "cpu5" / "topology" / "physical_package_id").write_text("1\n")
    (tmp_path / "cpu5" / "topology" / "core_id").write_text("2\n")
    (tmp_path / "cpu5" / "node1").mkdir()
    (tmp_path / "cpu6").mkdir()
    return tmp_path


def test_what_is_told(cpus):
    assert node_of(5, cpus) == 1
    assert core_of(5, cpus) == ("1", "2")


def test_what_is_not(cpus):
    assert node_of(6, cpus) == node_of(7, cpus) == 0
    assert core_of(6, cpus) == ("", "6")
    assert core_of(6, cpus) != core_of(7, cpus)
