"""A workbench on an engine that is none (no vLLM in here)."""

import pytest

from workbench import Workbench
from workbench.errors import StoreError


class DoneWrong:
    """A run whose rows could not be written."""

    done = False

    def cancel(self):
        self.done = True

    def wait(self, _timeout_s):
        raise StoreError("no space left")


@pytest.fixture
def bench(tmp_path, monkeypatch):
    bench = Workbench(runs=tmp_path)
    stopped = []
    monkeypatch.setattr(bench.engine, "stop", lambda: stopped.append(True))
    bench.stopped = stopped
    return bench


def test_the_engine_is_stopped_whatever_became_of_the_run(bench):
    with bench:
        bench._run = DoneWrong()
    assert bench.stopped == [True]


@pytest.mark.parametrize(("cache", "salts"), [(True, [0, 1, 2]), (False, [0, 0, 0])])
def test_with_a_prefix_cache_each_run_has_other_words(tmp_path, monkeypatch, cache, salts):
    bench, seen = Workbench(runs=tmp_path, enable_prefix_caching=cache), []

    def build(_scenario, _seed, salt):
        seen.append(salt)
        raise StoreError("that will do")

    monkeypatch.setattr(bench, "_workload", build)
    for _ in range(3):
        with pytest.raises(StoreError):
            bench.run("shared_prefix")
    assert seen == salts
