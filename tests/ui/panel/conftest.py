"""The panel on an engine that is none (no vLLM, no browser in here), and what a person does with it."""

import time

import pytest

from workbench import Workbench
from workbench.ui.panel.app import Panel
from workbench.ui.panel.controls import Control
from workbench.ui.panel.parts import Button
from workbench.workload.request import Request, Workload

SHORT = Workload((Request("chat-0", "chat", 0, 0.0, (1, 2, 3), 3),))


@pytest.fixture
def bench(tmp_path, fake_engine, fake_drops, monkeypatch):
    bench = Workbench(runs=tmp_path)
    bench.engine = fake_engine(config=bench.config)
    bench.engine.state = "new"
    bench.engine.knobs = bench.config.envelope.defaults
    bench._drops = fake_drops
    monkeypatch.setattr(bench, "start", lambda progress=None: bench.engine.start(progress))
    monkeypatch.setattr(bench, "_workload", lambda *_: SHORT)
    monkeypatch.setattr(bench._memory, "sources", lambda _pid: [])
    return bench


@pytest.fixture
def panel(bench):
    panel = Panel(bench).follow()
    yield panel
    panel.close()
    bench.stop()


@pytest.fixture(scope="session")
def settle():
    """Waits until the last button that was pressed is done, and looks again."""

    def settled(panel):
        panel._actions.wait(120)
        panel._refresh()

    return settled


@pytest.fixture(scope="session")
def press(settle):
    """Presses a button, which must be possible, and waits."""

    def pressed(panel, name):
        button = getattr(panel.buttons, name)
        assert not button.disabled, f"{name} cannot be pressed"
        button.press()
        settle(panel)

    return pressed


@pytest.fixture(scope="session")
def pressable():
    """The names of the buttons that can be pressed."""

    def names(panel):
        one_by_one = {name: one for name, one in vars(panel.buttons).items() if isinstance(one, Button | Control)}
        return {name for name, one in one_by_one.items() if not one.disabled}

    return names


@pytest.fixture(scope="session")
def until():
    """Whether something becomes true in time."""

    def came_true(true, seconds=20.0):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if true():
                return True
            time.sleep(0.02)
        return False

    return came_true
