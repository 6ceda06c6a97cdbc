"""The workers of a crew as Ray's actors: hired, given trials, replaced when they are lost; their runs brought home."""

from __future__ import annotations

import contextlib
import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from workbench.errors import EngineError, StoreError, WorkbenchError
from workbench.store import new_run_folder
from workbench.store.meta import META
from workbench.tune.ray.artefacts import unpack
from workbench.tune.ray.crew import Crew, Worker
from workbench.tune.ray.lines import Message
from workbench.tune.ray.remote import Job, Order, error_of, one_line
from workbench.tune.ray.resources import Need
from workbench.tune.ray.worker import TrialWorker
from workbench.tune.trial import Result

_TICK_S = 0.1
_STOP_S = 35.0  # for all engines to end in order, before their actors are killed
_GONE_S = 10.0  # for one that is replaced
_MOST_FAILED_STARTS = 3  # in a row


class Actors:
    """Plays trials on a cluster.

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
