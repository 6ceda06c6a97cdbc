"""A stub that stands in for vLLM's OpenAI-compatible server: it knows no model, it plays scripts.

It runs in a process of its own and writes each packet at a time it notes (CLOCK_MONOTONIC), so that what the client
measured can be held against the truth. The script is chosen by the request's name: ``cut/3`` plays ``cut``. ``/truth``
tells the time of each packet and the tokens in it, ``/seen`` the body and headers of each request.

``python stub_server.py`` prints its port and ends when stdin closes.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import sys
import time

from aiohttp import web

HANG_S = 3600.0


def event(text="x", total=None, finish=None, **more):
    """A completion chunk as vLLM writes it; ``total`` is the running count of output tokens."""
    chunk = {"id": "cmpl-1", "object": "text_completion", "model": "stub", **more}
    chunk["choices"] = [{"index": 0, "text": text, "logprobs": None, "finish_reason": finish, "stop_reason": None}]
    if total is not None:
        chunk["usage"] = usage(total)
    return b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\n\n"


def usage(total, cached=None):
    found = {"prompt_tokens": 4, "total_tokens": 4 + total, "completion_tokens": total}
    return found if cached is None else found | {"prompt_tokens_details": {"cached_tokens": cached}}


def closing(total, cached=None):
    """The usage-only event at the end."""
    return b"data: " + json.dumps({"choices": [], "usage": usage(total, cached)}).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"
OVERLOADED = b'data: {"error": {"message": "engine overloaded", "type": "InternalServerError", "code": 500}}\n\n'
SNOW = event("☃ é", 1)
CUT, RESET = "cut", "reset"

# A script is a list of packets (seconds to wait first, bytes, tokens in it), with CUT for an end without terminator.
SCRIPTS = {
    "plain": [(0.01, event(total=i + 1, finish="length" if i == 3 else None), 1) for i in range(4)]
    + [(0, closing(4, cached=2) + DONE, 0)],
    "multi": [(0.01, event("abc", 3), 3), (0.01, event("d", 4, "length"), 1), (0, closing(4) + DONE, 0)],
    "empty_first": [
        (0, b'data: {"choices": [{"index": 0, "text": ""}], "usage": null}\n\n', 0),
        (0, event("", 0), 0),
        (0.01, event("a", 1), 1),
        (0.01, event("", 2), 1),  # half of a character: a token without text yet
        (0.01, event("é", 4, "length"), 2),
        (0, DONE, 0),
    ],
    "comments": [
        (0, b": keep-alive\n\n", 0),
        (0.01, b"retry: 10\nid: 7\nevent: message\n" + event(total=2), 2),
        (0.01, b":\n\n:\n" + event(total=4, finish="length"), 2),
        (0, b": bye\n\n" + DONE, 0),
    ],
    "one_packet": [(0.01, b"".join(event(total=i + 1) for i in range(4)) + closing(4) + DONE, 4)],
    "split": [
        *((0.002, SNOW[i : i + 1], int(i == len(SNOW) - 1)) for i in range(len(SNOW))),
        (0.01, event(total=4, finish="length"), 3),
        (0, DONE, 0),
    ],
    "crlf": [
        (0.01, event(total=2).replace(b"\n", b"\r\n")[:-1], 2),  # whole: a CR ends its blank line
        (0.01, b"\n" + event(total=4, finish="length").replace(b"\n", b"\r\n"), 2),
        (0, DONE.replace(b"\n", b"\r\n"), 0),
    ],
    "no_usage": [(0.01, event(), 1) for _ in range(3)] + [(0.01, event(finish="stop"), 1), (0, DONE, 0)],
    "late_usage": [
        (0.01, event(), 1),
        (0.01, event(), 1),
        (0.01, event("", finish="length"), 0),
        (0, closing(4) + DONE, 0),
    ],
    "mid_error": [(0.01, event(total=1), 1), (0, OVERLOADED, 0), (0.01, event(total=2), 1), (0, DONE, 0)],
    "error_text": [(0.01, b'data: {"error": "out of luck"}\n\n', 0)],
    "error_then_cut": [(0.01, event(total=1) + OVERLOADED, 1), CUT],
    "cut": [(0.01, event(total=1), 1), (0.01, event(total=2), 1), (0.05, b'data: {"cho', 0), CUT],
    "reset": [(0.01, event(total=1), 1), (0.05, b"", 0), RESET],
    "cut_when_whole": [(0.01, event(total=4, finish="length"), 4), (0.05, b"", 0), CUT],
    "early": [(0.01, event(total=1), 1), (0, DONE, 0)],
    "stop": [(0.01, event(total=1), 1), (0.01, event(total=2, finish="stop"), 1), (0, DONE, 0)],
    "abort": [(0.01, event(total=1), 1), (0.01, event("", 1, finish="abort"), 0), (0, DONE, 0)],
    "no_done": [(0.01, event(total=4, finish="length"), 4)],
    "no_blank_line": [(0.01, event(total=1), 1), (0.01, event(total=4, finish="length")[:-2], 3)],
    "malformed": [
        (0.01, event(total=1), 1),
        (0, b'data: {"choices": [}\n\n', 0),
        (0.01, event(total=4), 3),
        (0, DONE, 0),
    ],
    "huge_count": [(0.01, event(total=10**12), 0), (0, DONE, 0)],
    "silent": [(0, event(total=1), 1), (HANG_S, b"", 0)],
    "boundless": [(0, b"data: ", 0), *[(0, b"x" * 65536, 0)] * 4096, (HANG_S, b"", 0)],
}
REFUSALS = {
    "too_long": (
        400,
        '{"error": {"message": "prompt too long", "type": "BadRequestError", "code": 400}}',
        "application/json",
    ),
    "unauthorised": (401, '{"error": "Unauthorized"}', "application/json"),
    "proxy": (502, "<html>\n <h1>Bad   Gateway</h1>", "text/html"),
    "crash": (500, "", "text/plain"),
    "redirect": (307, "", "text/plain"),
    "not_streamed": (200, '{"choices": [{"text": "all at once"}]}', "application/json"),
    "bad_charset": (503, "busy", "text/plain; charset=klingon"),
    "packed": (200, gzip.compress(b"data: {}\n\n" * 4), "text/event-stream"),
}


class Stub:
    def __init__(self):
        self.truth, self.seen = {}, {}
        self.in_flight, self.most_in_flight = 0, 0

    async def completions(self, request):
        name = request.headers["X-Request-Id"]
        kind, _, argument = name.partition("/")
        self.seen[name] = {"at": time.monotonic(), "headers": dict(request.headers), "body": await request.json()}
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            if kind in REFUSALS:
                status, text, content_type = REFUSALS[kind]
                headers = {"Content-Type": content_type, "Location": "/elsewhere"}
                if kind == "packed":
                    headers["Content-Encoding"] = "gzip"
                return web.Response(status=status, body=text if kind == "packed" else text.encode(), headers=headers)
            if kind == "slow_headers":
                await asyncio.sleep(0.15)
                kind = "plain"
            return await self.play(request, name, self.steady(argument) if kind == "steady" else SCRIPTS[kind])
        finally:
            self.in_flight -= 1

    def steady(self, argument):
        """``steady/COUNT/PERIOD_MS/...``: single tokens at a steady pace."""
        count, period_ms = (int(part) for part in argument.split("/")[:2])
        start = time.monotonic()
        for i in range(count):
            due = start + (i + 1) * period_ms / 1000
            yield max(0.0, due - time.monotonic()), event(total=i + 1, finish="length" if i == count - 1 else None), 1
        yield 0, closing(count) + DONE, 0

    async def play(self, request, name, script):
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        truth = self.truth[name] = []
        await response.prepare(request)
        for step in script:
            if step == CUT:
                request.transport.close()
                return response
            if step == RESET:
                request.transport.abort()
                return response
            wait_s, packet, tokens = step
            if wait_s:
                await asyncio.sleep(wait_s)
            truth.append((time.monotonic(), tokens))
            try:
                await response.write(packet)
            except ConnectionResetError:  # the client has gone
                return response
        await response.write_eof()
        return response

    async def told(self, request):
        return web.json_response({"truth": self.truth, "seen": self.seen, "most_in_flight": self.most_in_flight})


async def main():
    stub, app = Stub(), web.Application(client_max_size=1 << 28)
    app.router.add_post("/v1/completions", stub.completions)
    app.router.add_get("/told", stub.told)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, backlog=4096)
    await site.start()
    print(runner.addresses[0][1], flush=True)  # noqa: T201
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
