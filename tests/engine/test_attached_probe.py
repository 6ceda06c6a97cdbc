"""Attaching to a server with our probe in it; this test plays the scheduler that says hello and takes knobs."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from workbench import Workbench
from workbench.config import Knobs
from workbench.engine.attached_probe import AttachedProbe, probe_command
from workbench.engine.command import server_argv
from workbench.engine.probe import wire
from workbench.engine.probe.knob_page import KnobPage
from workbench.engine.probe.link import RecordLink
from workbench.errors import ConfigError, EnvelopeError, VersionError
from workbench.workload.scenario import Scenario

STUB = Path(__file__).with_name("openai_stub.py")


def hello(**more):
    said = {"pid": os.getpid(), "vllm": "0.32.0", "max_num_batched_tokens": 2048, "max_num_seqs": 8}
    said |= {"max_model_len": 4096, "chunked_prefill": True, "prefix_caching": False, "async_scheduling": False}
    said |= {"kv_blocks": 64, "block_size": 128, "chunk": 512, "watermark": 0.01, "reserve_full": False}
    return wire.SchedulerHello(**(said | more))


@pytest.fixture
def scheduler(sockets):
    """Our end as vLLM has it: a page that was made first, and a hello that was sent before anybody listened."""
    page, link = KnobPage(sockets, create=True), RecordLink(str(sockets))
    link.send(hello())
    return page, link


@pytest.fixture
def probe(sockets, scheduler):
    made = AttachedProbe(sockets)
    yield made
    made.close()


def test_what_the_server_started_with_is_known_from_its_hello(probe):
    assert (probe.envelope.max_budget, probe.envelope.max_running, probe.envelope.max_chunk) == (2048, 8, 4096)
    assert probe.knobs == Knobs(budget=2048, chunk=512, max_running=8, watermark=0.01, reserve_full=False)
    assert probe.revision == 0


def test_knobs_reach_the_page_that_the_scheduler_has_open(scheduler, probe):
    page, _ = scheduler
    probe.collector.send_knobs(1, probe.knobs.replace(budget=64))
    change = page.latest()
    assert (change.revision, change.budget, change.chunk, change.reserve_full) == (1, 64, 512, False)


def test_who_attaches_again_finds_the_knobs_of_the_last_and_goes_on_counting(sockets, scheduler):
    first = AttachedProbe(sockets)
    first.collector.send_knobs(7, first.knobs.replace(budget=64))
    first.close()
    again = AttachedProbe(sockets)
    try:
        assert (again.revision, again.knobs.budget) == (7, 64)
    finally:
        again.close()


def test_one_workbench_at_a_time(sockets, probe):
    with pytest.raises(ConfigError, match="no other workbench"):
        AttachedProbe(sockets)


def test_a_folder_that_others_can_open_is_refused(sockets, scheduler):
    sockets.chmod(0o755)
    with pytest.raises(ConfigError, match="nobody else can open"):
        AttachedProbe(sockets)


@pytest.mark.parametrize("content", [b"", b"\x00\xff", None])
def test_a_folder_without_a_hello_is_refused(sockets, content):
    KnobPage(sockets, create=True)
    if content is not None:
        (sockets / wire.HELLO).write_bytes(content)
    with pytest.raises(ConfigError, match=r"docs/attach\.md"):
        AttachedProbe(sockets)


def test_a_scheduler_that_has_ended_or_another_vllm_is_refused(sockets, scheduler):
    _, link = scheduler
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    link.send(hello(pid=ended.pid))
    with pytest.raises(ConfigError, match="its scheduler has ended"):
        AttachedProbe(sockets)
    link.send(hello(vllm="0.99.0"))
    with pytest.raises(VersionError, match=r"0\.99\.0"):
        AttachedProbe(sockets)


def test_the_documented_command_has_the_flags_of_our_own_engine():
    from workbench.config import EngineConfig
    from workbench.models import ModelFiles

    words = shlex.split(probe_command("/tmp/x y", "cpu"))
    model = ModelFiles("m", "m", None, "auto", 4096, "", {})
    ours = server_argv(EngineConfig(), model, "cpu", 1)
    for flag in ("--scheduler-cls", "--worker-cls"):
        assert words[words.index(flag) + 1] == ours[ours.index(flag) + 1]
    assert "WORKBENCH_PROBE_FOLDER=/tmp/x y" in words
    assert "MALLOC_MMAP_THRESHOLD_=262144" in words
    document = (Path(__file__).parents[2] / "docs" / "attach.md").read_text().replace("\\\n", " ")
    command = probe_command(device="cpu")
    assert " ".join(command.split()) in " ".join(document.split())
    assert "--async-scheduling" in probe_command(device="cuda")
    assert f"WORKBENCH_PROBE_FOLDER={Path.home()}/p" in shlex.split(
        probe_command("~/p", "cpu")
    )  # quoted it would not be home


@pytest.fixture
def server():
    process = subprocess.Popen(
        [sys.executable, STUB, json.dumps({"die_after": 1000})], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
    process.kill()
    process.communicate()


def test_an_attached_run_has_steps_and_takes_knobs(sockets, scheduler, server, tmp_path):
    page, link = scheduler
    stream = {"class": "chat", "arrivals": {"kind": "at_once", "count": 1}, "prompt_tokens": 20, "output_tokens": 40}
    with Workbench(engine="attached", url=server, probe=str(sockets), runs=tmp_path) as bench:
        bench.start()
        assert bench.engine.envelope.max_budget == 2048
        assert bench.config.max_model_len == 4096
        with pytest.raises(EnvelopeError, match="at most 2048"):
            bench.knobs(budget=4096)
        run = bench.run(Scenario.model_validate({"name": "s", "streams": [stream]}))
        assert bench.knobs(budget=64) == 1
        now = time.monotonic() + 0.1  # a play begins a moment after it was ordered
        link.send(wire.KnobReply(revision=1, applied_s=now, step=1))
        for step, internal in ((1, "cmpl-chat-0-0-1a2b3c4d"), (2, "chatcmpl-chat-0-1a2b3c4d")):
            part = wire.Part(request=internal, tokens=20, context=0, prefill=True, emitted=20)
            link.send(wire.Step(step, now, 100.0, 1, 1, 0, 0.5, [], [part], end_s=now + 0.01))
        assert run.wait(30)
    trace = run.trace
    assert trace.steps["step"].tolist() == [1, 2]
    assert trace.batch["request"].tolist() == ["chat-0", "chat-0"]  # by either endpoint
    knobs = trace.knobs
    assert knobs["revision"].tolist() == [0, 1]
    assert (knobs["budget"].tolist(), knobs["step"].tolist()[1]) == ([2048, 64], 1)
    assert page.latest().budget == 64
    assert run.meta["engine"]["resolved"]["max_num_batched_tokens"] == 2048
    assert run.meta["label"].startswith("attached (")
