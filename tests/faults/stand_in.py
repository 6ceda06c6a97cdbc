"""A stand-in for vLLM behind the real guard, probe link, client and store (says so: no vLLM in here).

``python stand_in.py SETTINGS_JSON`` is the engine; :func:`patches` puts it in vLLM's place. It plans a step every
``period_ms``: each request has its whole prompt in the first one and a token out of every one. It reads the knob page
as the probe does and sends the probe's records. What is wrong with it: ``lines_per_s`` that it logs meanwhile,
``stall_at``, the step before which it waits for ever, ``memory_mib`` that it may have beyond what it began with, and
``allocate_mib`` that it wants, at the start or before the step ``allocate_at``. ``fail_at`` is the step before which it
fails all requests. ``as_dead`` says how: as vLLM does whose worker is out of memory, with a traceback and "503" to all
later questions, and its processes end ``gone_s`` later (never, without a number); else as if only those were at fault.
"""

from __future__ import annotations

import asyncio
import json
import mmap
import os
import resource
import sys
import threading
import time
import traceback
from pathlib import Path

from aiohttp import web

from workbench.engine.probe import wire
from workbench.engine.probe.knob_page import KnobPage
from workbench.engine.probe.link import RecordLink

# What vLLM 0.32 answers and logs when its worker found no memory.
_ISSUE = {"error": {"message": "EngineCore encountered an issue.", "type": "InternalServerError", "code": 500}}
_LAST_WORDS = """\
(Worker pid=7) ERROR 11-30 12:00:00 [multiproc_executor.py:1] Traceback (most recent call last):
(Worker pid=7) ERROR 11-30 12:00:00 [multiproc_executor.py:1] RuntimeError: [enforce fail at alloc_cpu.cpp:1] . \
DefaultCPUAllocator: can't allocate memory: you tried to allocate 3686400 bytes. Error code 12 (Cannot allocate memory)
(EngineCore pid=6) ERROR 11-30 12:00:00 [core.py:1] EngineCore encountered a fatal error.
"""


class Engine:
    """API server, scheduler and worker in one process."""

    def __init__(self, settings):
        self.settings = settings
        self.link = RecordLink()
        self.page = KnobPage(os.environ[wire.ENV_FOLDER])
        self.segment = shared()
        self.going = {}  # name: [prompt tokens, tokens out, tokens asked for, queue]
        self.step = self.revision = 0
        self.dead = False

    def hello(self):
        wanted = {"chunked_prefill": True, "async_scheduling": False, "kv_blocks": 64, "block_size": 128}
        self.link.send(wire.SchedulerHello(pid=os.getpid(), vllm="0.32.0", **wanted, **self.settings["resolved"]))
        self.link.send(wire.WorkerHello(os.getpid(), 0, "cpu", 1 << 20, 1 << 20))

    async def complete(self, request):
        body = await request.json()
        name, asked = request.headers["X-Request-Id"], body["max_tokens"]
        if self.dead:
            return web.json_response(_ISSUE, status=500)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        await response.prepare(request)
        queue = asyncio.Queue()
        self.going[name] = [len(body["prompt"]), 0, asked, queue]
        try:
            for _ in range(asked):
                if (event := await queue.get()) is None:
                    await response.write(b"data: " + json.dumps(_ISSUE).encode() + b"\n\n")
                    break
                await response.write(event)
            await response.write(b"data: [DONE]\n\n")
        finally:
            self.going.pop(name, None)
        return response

    async def run(self):
        while True:
            if self.step + 1 == self.settings["stall_at"]:
                await asyncio.Event().wait()
            await asyncio.sleep(self.settings["period_ms"] / 1000)
            if self.step + 1 == self.settings["fail_at"]:
                self.settings["fail_at"] = 0
                self.fail()
            if (change := self.page.latest()) is not None:
                self.revision = change.revision
                self.link.send(wire.KnobReply(change.revision, time.monotonic(), self.step + 1))
            if self.going:
                self.plan()

    def fail(self):
        going, self.going = self.going, {}
        self.dead = self.settings["as_dead"]
        if self.dead:
            os.write(1, _LAST_WORDS.encode())
            if self.settings["gone_s"] is not None:
                asyncio.get_running_loop().call_later(self.settings["gone_s"], os._exit, 1)
        for *_, queue in going.values():
            queue.put_nowait(None)

    async def health(self, _request):
        return web.Response(status=503 if self.dead else 200)

    def plan(self):
        self.step += 1
        if self.step == self.settings["allocate_at"]:
            allocate(self.settings["allocate_mib"])
        begun, parts, events = time.monotonic(), [], []
        for name, one in list(self.going.items()):
            prompt, out, asked, queue = one
            if out == asked:
                continue
            tokens, context = (prompt, 0) if out == 0 else (1, prompt + out - 1)
            parts.append(wire.Part(f"cmpl-{name}-0-0a1b2c3d", tokens, context, out == 0, 1))
            one[1] = out + 1
            events.append((queue, _event(prompt, out + 1, "length" if out + 1 == asked else None)))
        if parts:
            work = wire.Work(begun, time.monotonic(), 1 << 20, (1 << 20) + 4096, 1 << 20)
            self.link.send(
                wire.Step(self.step, begun, 50.0, self.revision, len(parts), 0, 0.1, [], parts, work.end_s, work=work)
            )
        for queue, event in events:
            queue.put_nowait(event)


def shared():
    """A page that the processes of an engine would share; the guard frees it, as it does vLLM's."""
    with Path(f"/dev/shm/stand-in-{os.environ['WORKBENCH_ENGINE']}").open("w+b") as file:
        file.truncate(4096)
        return mmap.mmap(file.fileno(), 4096)


def _event(prompt, out, finish):
    usage = {"prompt_tokens": prompt, "completion_tokens": out, "total_tokens": prompt + out}
    chunk = {"choices": [{"index": 0, "text": "x", "finish_reason": finish}], "usage": usage}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def allocate(mib):
    """Take memory, and die where there is none as vLLM does: with a traceback."""
    try:
        kept.append(bytes(mib << 20))
    except MemoryError:
        traceback.print_exc()
        os._exit(1)


kept = []


def chatter(per_s):
    """Log lines of the length of vLLM's own, evenly."""
    begun, told = time.monotonic(), 0
    while True:
        due = int((time.monotonic() - begun) * per_s)
        lines = [f"INFO 11-30 12:00:00 [core.py:1] line {number} {'.' * 90}" for number in range(told, due)]
        if lines:
            os.write(1, ("\n".join(lines) + "\n").encode())
        told = due
        time.sleep(0.01)


async def main():
    settings = json.loads(sys.argv[1])
    if settings["memory_mib"]:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        most = used + (settings["memory_mib"] << 20)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        if not settings["allocate_at"]:
            allocate(settings["allocate_mib"])
    engine, app = Engine(settings), web.Application(client_max_size=1 << 28)
    app.router.add_post("/v1/completions", engine.complete)
    app.router.add_get("/health", engine.health)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", settings["port"], backlog=4096).start()
    engine.hello()
    if settings["lines_per_s"]:
        threading.Thread(target=chatter, args=[settings["lines_per_s"]], daemon=True).start()
    await engine.run()


def patches(**settings):
    """What is to be replaced, as (object, attribute, value), so that a live engine is this stand-in."""
    from workbench.engine import command, live

    def argv(config, _model, _device, port):
        resolved = {
            "max_num_batched_tokens": config.max_num_batched_tokens,
            "max_num_seqs": config.max_num_seqs,
            "max_model_len": config.max_model_len,
            "prefix_caching": config.enable_prefix_caching,
        }
        wrong = {"lines_per_s": 0, "stall_at": 0, "memory_mib": 0, "allocate_mib": 0, "allocate_at": 0}
        wrong |= {"fail_at": 0, "as_dead": False, "gone_s": None}
        given = {"period_ms": 5, "port": port, "resolved": resolved} | wrong | settings
        return [sys.executable, str(Path(__file__)), json.dumps(given)]

    # Facts about this machine's processor take seconds to find, and nothing here asks for them.
    return [(command, "server_argv", argv), (live, "compute_facts", lambda *_what, **_how: {})]


if __name__ == "__main__":
    asyncio.run(main())
