"""One real vLLM engine for all live tests."""

from pathlib import Path

import pytest

from workbench import Workbench
from workbench.workload.scenario import load_scenario

_LAST = Path(__file__).with_name("test_kill.py")


def pytest_collection_modifyitems(items):
    """What kills the engine comes after all that needs it, and before other folders: it has its memory until then."""
    places = [place for place, item in enumerate(items) if item.path.parent == _LAST.parent]
    ours = sorted((items[place] for place in places), key=lambda item: item.path == _LAST)
    for place, item in zip(places, ours, strict=True):
        items[place] = item


@pytest.fixture(scope="session")
def bench(tmp_path_factory):
    scenario = load_scenario("chat_and_long")
    with Workbench.of(scenario, runs=tmp_path_factory.mktemp("runs")) as workbench:
        yield workbench.start()


@pytest.fixture(scope="session")
def short():
    """The demo's scenario at a third of its length."""
    scenario = load_scenario("chat_and_long")
    chat, long = scenario.streams
    streams = (chat.replace(output_tokens=160), long.replace(prompt_tokens=1500, output_tokens=4))
    return scenario.model_copy(update={"streams": streams})
