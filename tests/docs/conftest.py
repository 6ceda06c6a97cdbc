"""Tests of the documents read them with blocks.py, which lies here; all simulated engines share one child."""

import sys
from pathlib import Path

import pytest

from workbench.simulate.host import Simulator

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def one_simulator():
    """The real simulator; importing vLLM takes it seconds, which each command would pay."""
    made = Simulator()
    end, made.close = made.close, lambda: None
    yield made
    end()


@pytest.fixture(scope="module")
def shared_simulator(one_simulator):
    """Every simulated engine takes that one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("workbench.simulate.host._START_S", 900.0)  # its one start, on a machine that tests share
        patch.setattr("workbench.simulate.engine.Simulator", lambda: one_simulator)
        yield one_simulator
