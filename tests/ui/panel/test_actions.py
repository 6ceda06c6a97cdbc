"""What buttons set off: in threads, one of a kind at a time, and no error unseen."""

import asyncio
import threading

import pytest

from workbench.errors import EngineError, in_words
from workbench.ui.panel.actions import Actions, Listening


@pytest.fixture
def told():
    return []


@pytest.fixture
def actions(told):
    actions = Actions(told.append, lambda: None)
    yield actions
    actions.wait()


def test_one_of_a_kind_at_a_time(actions):
    gate, done = threading.Event(), []
    assert actions.run("start", lambda: (gate.wait(10), done.append(1)))
    assert actions.going("start")
    assert not actions.run("start", lambda: done.append(2))
    assert actions.run("stop", lambda: done.append(3)), "another kind need not wait"
    gate.set()
    actions.wait()
    assert sorted(done) == [1, 3]
    assert not actions.going("start")


def test_an_error_is_told_and_the_next_can_begin(actions, told):
    actions.run("start", lambda: 1 / 0)
    actions.wait()
    assert [type(error) for error in told] == [ZeroDivisionError]
    done = threading.Event()
    assert actions.run("start", done.set)
    assert done.wait(10)


def test_a_change_is_announced_at_the_beginning_and_at_the_end(told):
    seen = []
    actions = Actions(told.append, lambda: seen.append(actions.going("a")))
    actions.run("a", lambda: None)
    actions.wait()
    assert seen == [True, False]


def test_a_callback_tells_its_error_instead_of_losing_it(actions, told):
    def bad(change):
        raise ValueError(change)

    actions.guarded(bad)("x")
    assert [str(error) for error in told] == ["x"]


def test_words_of_an_error_are_one_line():
    assert in_words(EngineError("run: got a,\n expected b")) == "run: got a, expected b"
    assert in_words(ValueError("x\ny")) == "ValueError: x y"


def test_while_listening_a_thread_that_dies_is_told(told, monkeypatch):
    hooked = []
    monkeypatch.setattr(threading, "excepthook", hooked.append)
    mine = threading.excepthook
    listening = Listening(told.append)
    listening.open()
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()
    listening.close()
    assert [type(error) for error in told] == [ZeroDivisionError]
    assert len(hooked) == 1, "what was there before is called too"
    assert threading.excepthook == mine


def test_while_listening_a_task_that_nobody_awaits_is_told(told):
    async def main():
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda *_: None)
        before = loop.get_exception_handler()
        listening = Listening(told.append)
        listening.open()
        loop.call_soon(lambda: 1 / 0)
        await asyncio.sleep(0.01)
        listening.close()
        return loop.get_exception_handler() is before

    assert asyncio.run(main()), "the loop is left as it was found"
    assert [type(error) for error in told] == [ZeroDivisionError]
