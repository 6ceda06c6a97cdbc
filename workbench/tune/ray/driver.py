"""The driver of a Ray cluster, in a process of its own: ``python -m workbench.tune.ray.driver``. JSON lines in and out.

Ray takes signals, starts threads, and ends its process when a cluster goes away; none of that is for a notebook's
kernel. The first line says what to do (:class:`Begin`), then trials are asked for; results come back with the run
folders that they name, written here. It ends when stdin closes: a killed kernel leaves no cluster and no engine.
"""

from __future__ import annotations

import contextlib
import json
import queue
import shutil
import signal
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TextIO

from workbench.engine.command import installed_device
from workbench.engine.probe.compat import installed_vllm
from workbench.errors import EngineError, EngineStartError, StoreError, WorkbenchError
from workbench.store import new_run_folder
from workbench.store.folder import META
from workbench.tune.ray import cluster
from workbench.tune.ray.artefacts import unpack
from workbench.tune.ray.crew import Crew, Worker
from workbench.tune.ray.lines import Message, orders, say, speak
from workbench.tune.ray.remote import Job, Order, error_facts, error_of, one_line
from workbench.tune.ray.resources import Need, Node, need_of, nodes_of, room_for
from workbench.tune.ray.scratch import scratch
from workbench.tune.ray.worker import TrialWorker
from workbench.tune.trial import Result

CLUSTER = "workbench-ray-"  # prefix of a local cluster's folder
_TICK_S = 0.1
_STOP_S = 35.0  # for all engines to end in order, before their actors are killed
_GONE_S = 10.0  # for one that is replaced
_MOST_FAILED_STARTS = 3  # in a row


class Driver:
    """Plays trials on a cluster until stdin closes.

    Args:
        ray: the module, connected.
        job: what trials have in common.
        runs: folder of the study's runs.
        need: resources of one engine.
        tell: where events go.
    """

    def __init__(self, ray: Any, job: Job, runs: Path, need: Need, tell: Callable[[Message], None]) -> None:
        self._ray, self._job, self._runs, self._need, self._tell = ray, json.dumps(job.as_dict()), runs, need, tell
        self._crew = Crew()
        self._actors: dict[int, Any] = {}  # by a worker's name
        self._calls: dict[Any, Worker] = {}  # what is under way at Ray, by its reference
        self._about: dict[int, dict[str, Any]] = {}
        self._failed_starts = 0
        self._any = False  # whether any trial came back
        self._kinds: set[str] = set()  # of machines

    def hire(self, workers: int) -> None:
        """Start workers; they come up when Ray finds a place for them."""
        options = {
            "num_cpus": self._need.cpus,
            "num_gpus": self._need.gpus,
            "max_restarts": 0,  # we replace them, since we know what they played
            "max_concurrency": 2,  # so that it can be stopped in mid-trial
        }
        for _ in range(workers):
            worker = self._crew.hire()
            cpus = self._need.cpus if self._need.pinned else 0
            actor = self._ray.remote(TrialWorker).options(**options).remote(self._job, cpus)
            self._actors[worker.name] = actor
            self._calls[actor.start.remote()] = worker

    def ask(self, order: Order) -> None:
        """Take a trial."""
        self._crew.ask(order)

    def step(self) -> None:
        """Give out what waits, and take what has come back.

        Raises:
            WorkbenchError: no trial can be played any more.
        """
        for worker, order in self._crew.assign():
            call = self._actors[worker.name].play.remote(json.dumps(order.as_dict()))
            self._calls[call] = worker
            self._tell({"begun": order.asked.number, **self._about[worker.name]})
        if not self._calls:
            time.sleep(_TICK_S)
            return
        ready, _ = self._ray.wait(list(self._calls), num_returns=1, timeout=_TICK_S)
        for call in ready:
            worker = self._calls.pop(call)
            try:
                answer = self._ray.get(call)
            except Exception as error:  # noqa: BLE001  a lost actor, a lost node, a lost object, a lost trial
                self._replace(worker, one_line(error))
                continue
            if isinstance(answer, str):
                self._started(worker, json.loads(answer))
            else:
                self._played(worker, answer)

    def close(self) -> None:
        """End all engines in order, then the actors."""
        stops = [actor.stop.remote() for actor in self._actors.values()]
        with contextlib.suppress(Exception):
            self._ray.wait(stops, num_returns=len(stops), timeout=_STOP_S)
        for actor in self._actors.values():
            with contextlib.suppress(Exception):
                self._ray.kill(actor)

    def _started(self, worker: Worker, message: Message) -> None:
        if "ready" not in message:
            if message["fatal"]["input"]:  # another machine would say the same
                raise error_of(message["fatal"])
            self._replace(worker, message["fatal"]["message"])
            return
        self._failed_starts = 0
        about = self._about[worker.name] = {**message["ready"], "worker": worker.name}
        self._crew.free(worker)
        kind = f"{about['processor']}, vLLM {about['vllm']}, workbench {about['workbench']}"
        if self._kinds and kind not in self._kinds:
            self._tell({"note": f"machines differ, and so will their results: {kind}; {' / '.join(self._kinds)}"})
        self._kinds.add(kind)
        self._tell({"up": about})

    def _played(self, worker: Worker, answer: dict[str, bytes]) -> None:
        message = json.loads(answer["answer"])
        if "fatal" in message:
            if message["fatal"]["input"]:
                raise error_of(message["fatal"])
            self._replace(worker, message["fatal"]["message"])
            return
        self._crew.free(worker)
        self._any = True
        result = message["result"]
        files = {name.removeprefix("run/"): data for name, data in answer.items() if name != "answer"}
        kept, result["run"] = result["run"], None
        if kept:
            try:
                if "unpacked" in message:
                    raise error_of(message["unpacked"])
                result["run"] = str(_bring_home(files, self._runs))
            except (WorkbenchError, KeyError, ValueError) as error:
                self._tell({"note": f"trial {result['number']}: its run was not kept: {error}"})
        self._tell({"result": result})

    def _replace(self, worker: Worker, why: str) -> None:
        """Its trial is tried on another worker, and somebody takes its place."""
        starting = worker.state == "starting"
        self._failed_starts += starting
        actor = self._actors.pop(worker.name)
        with contextlib.suppress(Exception):  # it may be gone; if not, what plays for it is to leave nothing behind
            self._ray.wait([actor.stop.remote()], timeout=_GONE_S)
            self._ray.kill(actor)
        order, left = self._crew.lose(worker)
        if self._failed_starts >= _MOST_FAILED_STARTS:
            raise EngineError(f"Ray: {self._failed_starts} workers in a row did not start: {why}")
        about = self._about.get(worker.name, {})
        if order is not None:
            times, again = self._crew.lost(order.asked.number), f"tried again, {left} left" if left else "given up"
            number = order.asked.number
            self._tell({"note": f"trial {number}: its worker on {about.get('host')} was lost ({why}); {again}"})
            if not left and not self._any:
                raise EngineError(f"Ray: trial {number} was tried {times} times and no trial came back: {why}")
            if not left:
                lost = Result(
                    number,
                    order.asked.point,
                    order.asked.seed,
                    "failed",
                    error=f"its worker was lost {times} times: {why}",
                )
                self._tell({"result": lost.as_dict()})
        self.hire(1)


def _bring_home(files: dict[str, bytes], runs: Path) -> Path:
    """Write a run into a new folder; a part of one does not stay."""
    scenario = str(json.loads(files[META]).get("scenario") or "trial")
    folder = new_run_folder(runs, scenario)
    try:
        unpack(files, folder)
    except StoreError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder


def device_of(job: Job, nodes: Sequence[Node]) -> str:
    """What live engines run on: as configured, else as vLLM here was built for, else as the machines look."""
    if job.config.device != "auto":
        return job.config.device
    try:
        return installed_device(installed_vllm())
    except EngineStartError:
        return "cuda" if any(node.get("GPU") for node in nodes) else "cpu"


def main() -> int:
    """Entry point of the process."""
    out = speak()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the kernel decides
    messages: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
    threading.Thread(target=_read, args=[messages], name="orders", daemon=True).start()
    begin = messages.get()
    if begin is None:
        return 0
    try:
        _drive(begin, messages, out)
    except Exception as error:  # noqa: BLE001  whatever it is, it is said
        say(out, {"fatal": error_facts(error)})
        return 1
    return 0


def _drive(begin: Message, messages: queue.SimpleQueue[Message | None], out: TextIO) -> None:
    address, job = begin["address"], Job.of_dict(begin["job"])
    cluster.check_address(address)
    with contextlib.ExitStack() as stack:
        temporary = None
        if cluster.kind_of(address) == "local":
            temporary = stack.enter_context(scratch(CLUSTER, cluster.SOCKETS))
            cluster.lighten(temporary)
        ray = cluster.import_ray(address)
        cluster.connect(ray, address, (begin["workers"] or 1) if job.simulated else 1, temporary)
        stack.callback(ray.shutdown)
        nodes = nodes_of(ray.nodes())
        need = need_of(job.config, job.ranks, device_of(job, nodes), nodes, begin["workers"], begin["cores"])
        workers = room_for(need, nodes, begin["workers"])
        say(out, {"connected": {"machines": len(nodes), "workers": workers, "need": need.words}})
        driver = Driver(ray, job, Path(begin["runs"]), need, lambda message: say(out, message))
        stack.callback(driver.close)
        driver.hire(workers)
        while True:
            while not messages.empty():
                message = messages.get()
                if message is None:
                    return
                driver.ask(Order.of_dict(message["play"]))
            driver.step()


def _read(messages: queue.SimpleQueue[Message | None]) -> None:
    for message in orders():
        messages.put(message)
    messages.put(None)


if __name__ == "__main__":
    raise SystemExit(main())
