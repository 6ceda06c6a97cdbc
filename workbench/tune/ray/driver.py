"""The driver of a Ray cluster, in a process of its own: ``python -m workbench.tune.ray.driver``. JSON lines in and out.

Ray takes signals, starts threads, and ends its process when a cluster goes away; none of that is for a notebook's
kernel. The first line says what to do, then trials are asked for; results come back with the run folders that they
name, written here. It ends when stdin closes: a killed kernel leaves no cluster and no engine.
"""

from __future__ import annotations

import contextlib
import queue
import signal
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from workbench.engine.command import installed_device
from workbench.engine.probe.compat import installed_vllm
from workbench.errors import EngineStartError
from workbench.tune.ray import cluster
from workbench.tune.ray.actors import Actors
from workbench.tune.ray.address import check_address, kind_of
from workbench.tune.ray.lines import Message, orders, say, speak
from workbench.tune.ray.remote import Job, Order, error_facts
from workbench.tune.ray.resources import Node, need_of, nodes_of, room_for
from workbench.tune.ray.scratch import scratch

CLUSTER = "workbench-ray-"  # prefix of a local cluster's folder


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
    check_address(address)
    with contextlib.ExitStack() as stack:
        temporary = None
        if kind_of(address) == "local":
            temporary = stack.enter_context(scratch(CLUSTER, cluster.SOCKETS))
            cluster.lighten(temporary)
        ray = cluster.import_ray(address)
        cluster.connect(ray, address, (begin["workers"] or 1) if job.simulated else 1, temporary)
        stack.callback(ray.shutdown)
        nodes = nodes_of(ray.nodes())
        need = need_of(job.config, job.ranks, device_of(job, nodes), nodes, begin["workers"], begin["cores"])
        workers = room_for(need, nodes, begin["workers"])
        say(out, {"connected": {"machines": len(nodes), "workers": workers, "need": need.words}})
        actors = Actors(ray, job, Path(begin["runs"]), need, lambda message: say(out, message))
        stack.callback(actors.close)
        actors.hire(workers)
        while True:
            while not messages.empty():
                message = messages.get()
                if message is None:
                    return
                actors.ask(Order.of_dict(message["play"]))
            actors.step()


def _read(messages: queue.SimpleQueue[Message | None]) -> None:
    for message in orders():
        messages.put(message)
    messages.put(None)


if __name__ == "__main__":
    raise SystemExit(main())
