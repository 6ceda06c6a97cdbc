"""The simulator's child process: ``python -m workbench.simulate.child FOLDER``. Orders on stdin, reports on stdout.

vLLM lives here, so that the kernel need not import it. It is imported once; then jobs are played one after the other.
The process ends when stdin closes, also in mid-job, so it never outlives the workbench, and
takes its folder with it: a workbench that was killed cannot.
"""

from __future__ import annotations

import gc
import os
import queue
import shutil
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from workbench.errors import in_words
from workbench.simulate.job import (
    Cancel,
    Ended,
    Failed,
    Held,
    Join,
    Order,
    Ready,
    Report,
    Rows,
    SimJob,
    Turn,
    Until,
    frame,
    order_of,
    read_frame,
)

if TYPE_CHECKING:
    from workbench.simulate.playing import JobLoop

_TELL_S = 0.2  # between two reports of a job: short enough for a chart and a progress bar
_MOST_STEPS = 20_000  # kept before they are reported anyway: a step with 256 requests is 30 KB


class Child:
    """Plays jobs until nobody is there to order more.

    Args:
        reports: where reports go.
        folder: for the made-up model's configuration.
    """

    def __init__(self, reports: BinaryIO, folder: Path) -> None:
        self._reports, self._folder = reports, folder
        self._orders: queue.SimpleQueue[Order] = queue.SimpleQueue()
        self._told_s = 0.0

    def listen(self, orders: BinaryIO) -> None:
        """Take orders in a thread; the end of the stream ends this process at once."""
        threading.Thread(target=self._listen, args=(orders,), name="orders", daemon=True).start()

    def serve(self) -> None:
        """Play what is ordered, for ever."""
        while True:
            order = self._orders.get()
            if isinstance(order, SimJob):  # others are of a job that has just ended
                self._play(order)

    def send(self, report: Report) -> None:
        """Report something."""
        self._reports.write(frame(report))
        self._reports.flush()

    def _listen(self, orders: BinaryIO) -> None:
        try:
            while (body := read_frame(orders.read)) is not None:
                self._orders.put(order_of(body))
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)
            os._exit(0)  # nobody reads what is still to come

    def _play(self, job: SimJob) -> None:
        from workbench.simulate.playing import JobLoop

        error: str | None = None
        loop: JobLoop | None = None
        gc.collect()  # what is left of the play before: quick, as all that vLLM holds is frozen
        try:
            loop = JobLoop(job, self._folder)
            self._run(loop, job)
        except Exception as failure:  # noqa: BLE001  the workbench must hear of it: nobody sees this process
            error = in_words(failure)
            if loop is not None:
                loop.give_up(error)
        if loop is None:
            self.send(Ended(job.number, 0.0, error))
        else:
            self._tell(loop, job)
            self.send(Ended(job.number, loop.now, error, loop.recorder.faults, loop.facts))

    def _run(self, loop: JobLoop, job: SimJob) -> None:
        until_s = job.hold_s
        self._told_s = time.monotonic()

        def pause() -> bool:
            due = loop.recorder.pending > _MOST_STEPS or time.monotonic() > self._told_s + _TELL_S
            if due:
                self._tell(loop, job)
            return not self._orders.empty()

        while not loop.advance(until_s, pause):
            if until_s is not None and loop.now >= until_s and self._orders.empty():
                self._tell(loop, job)
                self.send(Held(job.number, loop.now))
                order = self._orders.get()
            else:
                order = self._orders.get()
            match order:
                case Until() if order.number == job.number:
                    until_s = order.at_s
                case Turn() if order.number == job.number:
                    loop.set_knobs(order.change)
                case Join() if order.number == job.number:
                    loop.join(order.ask)
                case Cancel() if order.number == job.number:
                    until_s = None
                    loop.cancel()

    def _tell(self, loop: JobLoop, job: SimJob) -> None:
        self._told_s = time.monotonic()
        tables = loop.recorder.take()
        self.send(Rows(job.number, loop.now, loop.ended, loop.recorder.emitted, tables))


def main() -> None:
    """Entry point of the child."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the kernel, which closes our stdin when it means us
    reports = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever vLLM or a library prints must not end up among the frames
    child = Child(reports, Path(sys.argv[1]))
    child.listen(sys.stdin.buffer)
    try:
        import vllm

        import workbench.simulate.playing  # noqa: F401  so that the first job need not wait for it
        from workbench.engine.probe.scheduler import ProbeScheduler
        from workbench.simulate.bare import make_scheduler

        # vLLM looks at the model's class in a process of its own, once for each user: 20 s that no job should wait for.
        make_scheduler(ProbeScheduler, Path(sys.argv[1]) / "first")
    except Exception as error:  # noqa: BLE001  as above
        child.send(Failed(in_words(error)))
        return
    gc.collect()
    gc.freeze()  # vLLM's 670,000 objects stay for ever: to walk them takes 0.4 s, which no play should wait for
    child.send(Ready(os.getpid(), vllm.__version__))
    child.serve()


if __name__ == "__main__":
    main()
