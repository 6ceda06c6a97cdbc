"""Packets are stamped first and parsed later, by the kernel's note of their arrival where there is one."""

from __future__ import annotations

import asyncio
import socket

import pytest

from workbench.driver import arrivals as arrivals_module
from workbench.driver.arrivals import stamping_session
from workbench.driver.messages import Item, Target
from workbench.driver.stream import Stream

EVENT = b'data: {"choices": [{"text": "x"}]}\n\n'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"


def chunk(data):
    return b"%x\r\n%b\r\n" % (len(data), data)


CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
ONE = chunk(EVENT)


async def answered(*steps, requests=1, tokens=3):
    """Streams from a server that sends ``steps`` (bytes, or seconds to wait; None closes) to each request."""
    told = []

    async def serve(reader, writer):
        for _ in range(requests):
            await reader.readuntil(b"\r\n\r\n")
            await reader.read(65536)
            for step in steps:
                if step is None:
                    writer.close()
                    return
                if isinstance(step, float):
                    await asyncio.sleep(step)
                else:
                    writer.write(step)
                    await writer.drain()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    target = Target(url=f"http://127.0.0.1:{port}/v1/completions", api_key="k", model="m")
    async with stamping_session() as session:
        for number in range(requests):
            rows = []
            stream = Stream(Item(f"r{number}", "chat", 0, 0.0, (1,), tokens), 0.0, 0.0, rows.append)
            await asyncio.wait_for(stream.run(session, target), 30)
            told.append((stream.finish(), rows))
    server.close()
    return told


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request):
    runner = asyncio.run if request.param == "asyncio" else pytest.importorskip("uvloop").run
    return lambda *steps, **more: runner(answered(*steps, **more))


ENDINGS = {
    "all in one packet": (CHUNKED + ONE * 3 + b"0\r\n\r\n",),
    "a packet each": (CHUNKED, 0.01, ONE, 0.01, ONE, 0.01, ONE, 0.01, b"0\r\n\r\n"),
    "end with the last event": (CHUNKED, 0.01, ONE, ONE, 0.01, ONE + b"0\r\n\r\n"),
    "end in two packets": (CHUNKED, 0.01, ONE * 3 + b"0\r\n", 0.02, b"\r\n"),
    "until closed": (HEAD + b"\r\n", 0.01, EVENT * 2, 0.01, EVENT, 0.01, None),
    "closed at once": (HEAD + b"\r\n" + EVENT * 3, None),
    "chunk cut in two": (CHUNKED, 0.01, ONE[:9], 0.01, ONE[9:] + ONE * 2 + b"0\r\n\r\n"),
}


@pytest.mark.parametrize("steps", ENDINGS.values(), ids=ENDINGS)
def test_every_way_a_body_comes_and_ends(run, steps):
    ((row, tokens),) = run(*steps)
    assert (row.status, row.error) == ("ok", None)
    assert [(t.index, t.n) for t in tokens] == [(0, 1), (1, 1), (2, 1)]
    stamps = [row.sent_s, *(t.client_s for t in tokens), row.done_s]
    assert stamps == sorted(stamps)


def test_the_end_is_seen_without_anybody_parsing(run):
    """Nothing calls ``parse`` here but the stream itself: a closed loop must not wait for the next flush."""
    rows = run(CHUNKED, 0.01, ONE * 3, b"0\r\n\r\n", requests=5)
    assert [row.status for row, _ in rows] == ["ok"] * 5


def test_a_connection_is_used_again_and_stays_stamped_by_the_kernel(run, monkeypatch):
    made, stamped = [], []
    reader = arrivals_module.KernelReader

    class Spy(reader):
        def __init__(self, loop, transport, deliver):
            super().__init__(loop, transport, lambda at, data: (stamped.append(len(data)), deliver(at, data)))
            made.append(transport)

    monkeypatch.setattr(arrivals_module, "KernelReader", Spy)
    rows = run(CHUNKED, 0.01, ONE * 3 + b"0\r\n\r\n", requests=3)
    assert [row.status for row, _ in rows] == ["ok"] * 3
    assert len(made) == 1
    assert sum(stamped) == 3 * len(CHUNKED + ONE * 3 + b"0\r\n\r\n")  # nothing went past it


def test_without_the_kernels_stamps_nothing_else_changes(run, monkeypatch):
    monkeypatch.setattr(arrivals_module, "can_stamp", lambda transport: False)
    rows = run(CHUNKED, 0.01, ONE, 0.01, ONE * 2 + b"0\r\n\r\n", requests=2)
    assert [(row.status, len(tokens)) for row, tokens in rows] == [("ok", 3)] * 2


def test_without_a_descriptor_for_it_the_transport_reads(run, monkeypatch):
    def none_left(*_):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(socket, "fromfd", none_left)
    ((row, tokens),) = run(CHUNKED, 0.01, ONE * 3 + b"0\r\n\r\n")
    assert (row.status, len(tokens)) == ("ok", 3)


def test_a_body_larger_than_any_buffer(run):
    count = 20_000
    rows = run(CHUNKED, *[ONE * 1000] * (count // 1000), b"0\r\n\r\n", tokens=count)
    assert (rows[0][0].status, len(rows[0][1])) == ("ok", count)


def test_chunks_that_are_none_end_the_request_with_what_came_before(run):
    ((row, tokens),) = run(CHUNKED, 0.01, ONE, 0.02, b"no chunk\r\n", 0.02, ONE, None)
    assert (row.status, len(tokens)) == ("error", 1)
    assert row.error
