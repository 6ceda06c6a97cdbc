"""One real vLLM engine for all live tests."""

import pytest

from workbench import Workbench
from workbench.workload.scenario import load_scenario


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
