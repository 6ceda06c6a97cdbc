"""The Ray actor of one worker: a pipe to a process that plays trials. Ray carries text and bytes, nothing else.

The engine does not live in the actor. Ray kills the children of an actor that it ends, and with the guard gone nobody
would end the engine; so a process in between owns it, and the guard sees that one go.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from workbench.errors import StoreError
from workbench.tune.ray.artefacts import pack
from workbench.tune.ray.cluster import QUICK
from workbench.tune.ray.lines import LineChild, Message
from workbench.tune.ray.remote import error_facts

CHILD = "workbench.tune.ray.trial_child"
_STOP_S = 30.0  # an engine's guard takes its time


class LostTrialError(RuntimeError):
    """What plays trials has ended, or can play none any more."""


class TrialWorker:
    """One worker; Ray makes an actor of it.

    Args:
        job: :class:`workbench.tune.ray.remote.Job` as JSON.
        cpus: to claim cores of, for an engine whose threads are pinned; 0 for others.
    """

    def __init__(self, job: str, cpus: int) -> None:
        self._child: LineChild | None = LineChild(CHILD, clean_environment(os.environ))
        self._child.tell({"job": json.loads(job), "cpus": cpus})

    def start(self) -> str:
        """Wait until trials can be played; returns where they are, as JSON, or the error that forbids it."""
        message = self._hear()
        ready = message.get("ready")
        return json.dumps({"ready": {**ready, "actor": os.getpid()}} if ready else message)

    def play(self, order: str) -> dict[str, bytes]:
        """Play a trial.

        Args:
            order: :class:`workbench.tune.ray.remote.Order` as JSON.

        Returns:
            ``answer``, JSON with ``result`` or ``fatal``, and the files of the run as ``run/NAME``.

        Raises:
            LostTrialError: it can be played elsewhere.
        """
        if self._child is None:
            raise LostTrialError("the worker was closed")
        self._child.tell({"play": json.loads(order)})
        while True:
            message = self._hear()
            if "lost" in message:
                raise LostTrialError(message["lost"]["message"])
            if "result" in message:
                return self._home(message)
            if "fatal" in message:
                return {"answer": json.dumps(message).encode()}

    def stop(self) -> None:
        """End what plays trials, and its engine; a second call does nothing."""
        child, self._child = self._child, None
        if child is not None:
            child.close(_STOP_S)

    def _hear(self) -> Message:
        child = self._child
        message = None if child is None else child.hear()
        if message is None:
            raise LostTrialError(f"the process that plays trials ended: {child.last_words() if child else 'closed'}")
        return message

    def _home(self, message: Message) -> dict[str, bytes]:
        """The result with the run's files; the run is gone here once it was packed."""
        folder = message["result"].get("run")
        files: dict[str, bytes] = {}
        if folder:
            try:
                files = {f"run/{name}": data for name, data in pack(Path(folder)).items()}
            except StoreError as error:
                message["unpacked"] = error_facts(error)
            remove(Path(folder))
        return {"answer": json.dumps(message).encode(), **files}


def remove(folder: Path) -> None:
    """Delete a run that is on its way home."""
    for path in folder.iterdir():
        path.unlink(missing_ok=True)
    folder.rmdir()


def clean_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The actor's environment without what Ray put there.

    An engine is not to join the cluster, counts its threads by its own cores, where Ray sets OMP_NUM_THREADS to the
    CPUs that an actor asked for, and imports all that it does elsewhere.
    """
    kept = {name: of for name, of in environ.items() if not name.startswith("RAY_") and name != "OMP_NUM_THREADS"}
    if "PYTHONPATH" in kept:
        parts = kept["PYTHONPATH"].split(os.pathsep)
        kept["PYTHONPATH"] = os.pathsep.join(part for part in parts if part and Path(part).name != QUICK)
    return kept
