"""Plays trials in a process of its own: ``python -m workbench.tune.ray.trial_child``. JSON lines in and out.

First a :class:`workbench.tune.ray.remote.Job` with the cores to play on, then orders; an answer for each. It owns its
engine, so that whatever happens to the process that asks (Ray kills actors and their children), the engine's guard sees
its owner go and ends it. It ends when stdin closes, and takes its folder of runs with it.
"""

from __future__ import annotations

import os
import queue
import signal
import socket
import threading
from pathlib import Path
from typing import Any, NoReturn, TextIO

import workbench
from workbench.errors import InputError, WorkbenchError
from workbench.machine import machine_facts, package_versions
from workbench.tune.play.players import EnginePlayer
from workbench.tune.ray.cores import Claim
from workbench.tune.ray.lines import Message, orders, say, speak
from workbench.tune.ray.remote import Job, Order, error_facts
from workbench.tune.ray.resources import ranks_of
from workbench.tune.ray.scratch import scratch
from workbench.tune.search.sequential import Sequential
from workbench.tune.space import Space
from workbench.tune.trial import Player

_CORES_S = 60.0  # for the engine of a worker that was lost to end
RUNS = "workbench-trials-"  # prefix of folders that wait to be sent home


class _Closed(BaseException):
    """Stdin has closed; nobody on the way is to take it for an error."""


class Child:
    """Plays one order after the other.

    Args:
        out: where answers go.
        runs: folder to record in.
    """

    def __init__(self, out: TextIO, runs: Path) -> None:
        self._out, self._runs = out, runs
        self._orders: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._player: Player | None = None

    def run(self) -> None:
        """Take the job, start what plays it, and play until stdin closes."""
        threading.Thread(target=self._listen, name="orders", daemon=True).start()
        message = self._next()
        job = Job.of_dict(message["job"])
        cpus = message.get("cpus")
        claim = Claim.take(cpus, wait_s=_CORES_S) if cpus else None
        if claim is not None:
            os.sched_setaffinity(0, claim.cpus)  # also for the engine's other processes and for the client
        self._player = make_player(job, self._runs)
        say(self._out, {"ready": {"label": self._player.label, "cpus": claim.cpus if claim else [], **about_here()}})
        while True:
            order = Order.of_dict(self._next()["play"])
            if claim is not None:
                os.environ |= claim.environment(ranks_of(job.config.replace(**order.asked.point.start_up)))
            self._play(order, job, self._player)

    def close(self) -> None:
        """End the engine."""
        if self._player is not None:
            self._player.close()

    def _play(self, order: Order, job: Job, player: Player) -> None:
        watch = None if order.error_rate is None else Sequential(job.goal, order.error_rate, order.beat)
        say(self._out, {"begun": order.asked.number})
        try:
            result = player.play(order.asked, watch)
        except InputError:  # another machine would say the same
            raise
        except WorkbenchError as error:
            say(self._out, {"lost": error_facts(error)})
        else:
            say(self._out, {"result": result.as_dict()})

    def _next(self) -> Message:
        message = self._orders.get()
        if message is None:
            raise _Closed
        return message

    def _listen(self) -> None:
        for message in orders():
            self._orders.put(message)
        self._orders.put(None)
        os.kill(os.getpid(), signal.SIGTERM)  # the main thread may be in mid-trial


def main() -> int:
    """Entry point of the process."""
    out = speak()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who asks us decides
    signal.signal(signal.SIGTERM, _leave)
    with scratch(RUNS) as runs:
        child = Child(out, runs)
        try:
            child.run()
        except _Closed:
            return 0
        except BaseException as error:  # noqa: BLE001  whatever it is, it is said
            say(out, {"fatal": error_facts(error)})
            return 1
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            child.close()
    return 0


def make_player(job: Job, runs: Path) -> Player:
    """What plays the job's trials here, and records them in ``runs``."""
    return EnginePlayer(job.scenario, job.goal, Space({}, job.config), runs=runs)


def about_here() -> dict[str, Any]:
    """What must be alike on all machines for results to be compared, and where this is."""
    facts = machine_facts()
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "workbench": workbench.__version__,
        "vllm": {name: of for name, of in package_versions().items() if name.startswith("vllm")},
        "processor": facts["processor"],
    }


def _leave(_signum: int, _frame: object) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise _Closed


if __name__ == "__main__":
    raise SystemExit(main())
