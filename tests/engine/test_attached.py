"""Attaching to somebody else's server, played by a stub; no vLLM in here."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from workbench import Workbench
from workbench.attached_config import base_of
from workbench.engine import attached_watch
from workbench.errors import (
    ConfigError,
    EngineDiedError,
    EngineStartError,
    EnvelopeError,
    InputError,
    WorkbenchError,
)
from workbench.workload.scenario import Scenario
from workbench.workload.setting import Setting

STUB = Path(__file__).with_name("openai_stub.py")
KEY = "sk-do-not-show-7f3a"


class Stub:
    def __init__(self, settings):
        self.process = subprocess.Popen(
            [sys.executable, STUB, json.dumps(settings)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.port = int(self.process.stdout.readline())

    def seen(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/told", timeout=20) as answer:
            return json.load(answer)

    def close(self):
        self.process.kill()
        self.process.communicate()


@pytest.fixture(scope="module")
def stub():
    """A stub with these settings; the same one for all tests of the module, unless it is to be their own."""
    made = []
    known = {}

    def make(own=False, **settings):
        key = json.dumps(settings, sort_keys=True)
        if own or key not in known:
            made.append(Stub(settings))
            if own:
                return made[-1]
            known[key] = made[-1]
        return known[key]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def attach(tmp_path):
    benches = []

    def make(port, url="http://127.0.0.1:{port}/v1", **fields):
        benches.append(Workbench(engine="attached", url=url.format(port=port), runs=tmp_path / "runs", **fields))
        return benches[-1]

    yield make
    for bench in benches:
        bench.stop()


def scenario(prompt=100, output=4, count=3):
    stream = {"class": "chat", "arrivals": {"kind": "at_once", "count": count}}
    return Scenario.model_validate(
        {"name": "s", "streams": [stream | {"prompt_tokens": prompt, "output_tokens": output}]}
    )


def play(bench, **lengths):
    bench.start()
    run = bench.run(scenario(**lengths))
    assert run.wait(60)
    return run


@pytest.mark.parametrize(("kind", "words"), [("vllm", "vLLM 9.9.9"), ("sglang", "SGLang 0.5.23")])
def test_a_run_holds_what_the_client_saw_and_what_the_server_said(stub, attach, kind, words):
    bench = attach(stub(kind=kind, per_word=1.5).port)
    run = play(bench)
    meta, trace = run.meta, run.trace
    assert meta["label"] == f"attached (127.0.0.1:{bench.config.url.split(':')[-1].removesuffix('/v1')})"
    said = meta["engine"]["attached"]
    assert (said["server"], said["model"], said["max_model_len"]) == (words, "served", 4096)
    assert set(meta["engine"]["config"]) == {"engine", "url", "model", "api_key_env", "chat", "insecure", "ca",
                                             "tokenizer", "probe", "max_model_len", "start_timeout_s"}  # fmt: skip
    assert trace.requests["status"].tolist() == ["ok"] * 3
    assert len(trace.tokens) == 12
    # 100 tokens at 1.5 a word are 67 words, which the server counts as 100 or 101.
    assert set(trace.requests["prompt_tokens"]) <= {100, 101}
    for absent in ("steps", "batch", "knobs"):
        assert trace.tables[absent].num_rows == 0
    server = trace.server
    assert server["running"].dropna().unique().tolist() == [2]
    assert server["kv_use"].dropna().unique().tolist() == [0.25]
    assert server["prompt_tokens"].iloc[0] == 0  # counted from the run's first reading
    assert server["output_tokens"].iloc[-1] == 12
    assert server["waiting"].isna().all()  # the stub does not say
    assert said["histograms"]["ttft_s"]["count"] == 3
    assert said["histograms"]["ttft_s"]["p50"]["high"] == 0.1
    assert trace.memory["bytes"].unique().tolist() == [150_000_000]


def test_settings_that_sglang_tells_are_kept_and_its_key_is_not(stub, attach):
    run = play(attach(stub(kind="sglang").port))
    assert run.meta["engine"]["attached"]["settings"] == {"chunked_prefill_size": 2048, "schedule_policy": "lpm"}
    assert "do-not-keep" not in (run.folder / "run.json").read_text()


@pytest.mark.parametrize(
    ("kind", "sent", "not_sent"),
    [
        ("vllm", {"ignore_eos", "priority"}, set()),
        ("sglang", {"ignore_eos"}, {"priority"}),  # there a higher number goes first
        ("plain", set(), {"ignore_eos", "priority"}),
    ],
)
def test_each_server_gets_the_fields_that_it_knows(stub, attach, kind, sent, not_sent):
    server = stub(kind=kind)
    play(attach(server.port))
    body = server.seen()[-1]["body"]
    assert sent <= set(body)
    assert not not_sent & set(body)
    assert ("continuous_usage_stats" in body["stream_options"]) == (kind != "plain")
    assert isinstance(body["prompt"], str)


def test_chat_base_path_and_key(stub, attach, monkeypatch, tmp_path):
    monkeypatch.setenv("MY_KEY", KEY)
    server = stub(chat=True, prefix="/gateway/openai", key=KEY)
    bench = attach(server.port, "http://127.0.0.1:{port}/gateway/openai/v1/", chat=True, api_key_env="MY_KEY")
    run = play(bench)
    assert run.trace.requests["status"].tolist() == ["ok"] * 3
    last = server.seen()[-1]
    assert last["headers"]["Authorization"] == f"Bearer {KEY}"
    assert last["body"]["messages"][0]["role"] == "user"
    shown = f"{run.meta}{bench.code('chat_and_long')}{bench.engine.describe()}{bench.engine._held.caller!r}"
    assert KEY not in shown
    for file in (tmp_path / "runs").rglob("*"):
        assert not file.is_file() or KEY.encode() not in file.read_bytes()


def test_without_the_servers_count_a_prompts_length_is_unknown(stub, attach):
    run = play(attach(stub(usage=False).port))
    assert run.trace.requests["prompt_tokens"].isna().all()
    assert run.trace.requests["output_tokens"].tolist() == [4, 4, 4]


def test_with_a_tokenizer_prompts_are_token_ids_of_exactly_that_length(stub, attach, tmp_path):
    from workbench.engine.attached_prompts import write_words

    server = stub()
    run = play(attach(server.port, tokenizer=str(write_words(tmp_path))), prompt=37)
    assert run.trace.requests["prompt_tokens"].tolist() == [37] * 3
    assert all(isinstance(token, int) for token in server.seen()[-1]["body"]["prompt"])


ACTS = {
    "knobs": lambda bench: bench.knobs(budget=64),
    "setting": lambda bench: bench.run(scenario(), setting=Setting.of({"budget": 64})),
    "compare": lambda bench: bench.compare_policies(scenario()),
    "cache": lambda bench: bench.reset_prefix_cache(),
}


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
def test_without_our_probe_there_are_no_hot_knobs_and_the_error_says_so(stub, attach, act):
    bench = attach(stub().port)
    bench.start()
    with pytest.raises(EnvelopeError, match=r"our probe.*docs/attach.md") as refused:
        act(bench)
    assert "\n" not in str(refused.value)


def test_nobody_knows_the_command_of_somebody_elses_server(stub, attach):
    with pytest.raises(InputError, match="an engine that we start"):
        attach(stub().port).serve_command()


def certificate(folder):
    openssl = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
    )
    files = folder / "cert.pem", folder / "key.pem"
    subprocess.run([*openssl.split(), "-out", files[0], "-keyout", files[1]], check=True, capture_output=True)
    return files


@pytest.fixture(scope="module")
def secure(stub, tmp_path_factory):
    cert, key = certificate(tmp_path_factory.mktemp("tls"))
    return stub(cert=str(cert), keyfile=str(key)), cert


@pytest.mark.parametrize("how", ["ca", "insecure"])
def test_tls_with_an_authority_or_unchecked(secure, attach, how):
    server, cert = secure
    bench = attach(
        server.port, "https://127.0.0.1:{port}/v1", **({"ca": str(cert)} if how == "ca" else {"insecure": True})
    )
    assert play(bench).trace.requests["status"].tolist() == ["ok"] * 3


def test_a_certificate_that_is_not_accepted(secure, attach):
    with pytest.raises(EngineStartError, match=r"certificate was not accepted .* give --ca FILE, or --insecure"):
        attach(secure[0].port, "https://127.0.0.1:{port}/v1").start()


def test_http_where_tls_listens_and_the_other_way_round(secure, stub, attach):
    with pytest.raises(EngineStartError, match="give an https:// address"):
        attach(secure[0].port).start()
    with pytest.raises(EngineStartError, match="give an http:// address"):
        attach(stub().port, "https://127.0.0.1:{port}/v1").start()


START_ERRORS = {
    "nobody listens": ({}, {"url": "http://127.0.0.1:9/v1"}, "nothing listens there"),
    "no such host": ({}, {"url": "http://no-such-host.invalid/v1"}, "no host of that name"),
    "the wrong key": ({"key": "right"}, {"api_key_env": "MY_KEY"}, "refused the key .* check the value of MY_KEY"),
    "no key": ({"key": "right"}, {}, "refused the key .* --api-key-env NAME"),
    "a redirect": ({"redirect": "https://elsewhere.invalid/v1/models?token=abc"}, {},
                   r"redirects to https://elsewhere.invalid/v1/models, .* give the https:// address"),
    "another page": ({"models": "<html>hello</html>"}, {}, "no OpenAI-compatible server"),
    "another path": ({"models": 404}, {}, "status 404 .* base path"),
    "no completions": ({"chat": True}, {}, "no such endpoint .* try --chat"),
    "no chat": ({}, {"chat": True}, "no such endpoint .* leave --chat out"),
    "another model": ({}, {"model": "mine"}, r"model: got 'mine', expected one that the server has \(served, second\)"),
    "no variable": ({}, {"api_key_env": "NOT_SET"}, "NOT_SET.*export"),
    "no tokenizer": ({}, {"tokenizer": "/no/such"}, "tokenizer"),
    "no probe": ({}, {"probe": "/no/such"}, "probe: got '/no/such'.*docs/attach.md"),
}  # fmt: skip


@pytest.mark.parametrize(("settings", "fields", "says"), START_ERRORS.values(), ids=START_ERRORS)
def test_what_goes_wrong_is_one_line_that_says_what_to_do(stub, attach, monkeypatch, settings, fields, says):
    monkeypatch.setenv("MY_KEY", KEY)
    bench = attach(stub(**settings).port, **fields)
    with pytest.raises(WorkbenchError, match=says) as refused:
        bench.start()
    assert "\n" not in str(refused.value)
    assert KEY not in str(refused.value)
    assert bench.engine.state == "failed"


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"url": "ftp://host/v1"}, "an http or https address"),
        ({"url": "http://user:secret@host/v1"}, "without|plain address"),
        ({"url": "http://host/v1?key=secret"}, "without"),
        ({"url": "http://host/v1", "api_key_env": "sk-secret"}, "name of an environment variable"),
        ({"url": "http://host/v1", "insecure": True, "ca": "x.pem"}, "one of them"),
        ({"url": "http://host/v1", "chat": True, "tokenizer": "x"}, "completions"),
        ({"url": "http://host:99999/v1"}, "an http or https address"),
        ({"url": "http://host/v1", "start_timeout_s": 1e300}, "86400 or less"),
        ({}, "url"),
    ],
)
def test_fields_that_cannot_be(fields, says):
    with pytest.raises(ConfigError, match=says) as refused:
        Workbench(engine="attached", **fields)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "base"),
    [
        ("127.0.0.1:8000", "http://127.0.0.1:8000/v1"),
        ("http://h:1/", "http://h:1/v1"),
        ("http://h:1/v1/", "http://h:1/v1"),
        ("https://h/a/v1/chat/completions", "https://h/a/v1"),
        ("http://[::1]:8000", "http://[::1]:8000/v1"),
    ],
)
def test_the_base_that_a_person_means(given, base):
    assert base_of(given) == base


@pytest.mark.parametrize("metrics", [True, False])
def test_a_server_that_dies_in_mid_run_is_named_and_what_was_measured_stays(stub, attach, metrics):
    server = stub(own=True, metrics=metrics)
    bench = attach(server.port)
    bench.start()
    run = bench.run(scenario(output=2000, count=2))
    while run.progress[0] < 20:
        assert not run.wait(0.05)
    server.close()
    with pytest.raises(EngineDiedError, match="nothing listens there any more"):
        run.wait(30)
    assert run.meta["status"] == "failed"
    assert run.trace.tokens["n"].sum() >= 20
    assert set(run.trace.requests["status"]) <= {"error", "unfinished", "cancelled"}
    assert bench.engine.state == "failed"


def test_a_server_whose_engine_died_is_named_while_it_still_answers(stub, attach):
    server = stub(own=True, sick_after=20)
    bench = attach(server.port)
    bench.start()
    run = bench.run(scenario(output=100, count=2))
    with pytest.raises(EngineDiedError, match="it says 503 to /health: its engine is dead; what was measured is kept"):
        run.wait(60)
    assert (run.meta["status"], bench.engine.state) == ("failed", "failed")
    assert run.trace.tokens["n"].sum() == 2 * 20


def test_a_server_that_neither_answers_nor_sends_is_told_and_nothing_is_ended(stub, attach, monkeypatch):
    monkeypatch.setattr(attached_watch, "SILENT_S", 0.5)
    monkeypatch.setattr(attached_watch, "_TIMEOUT_S", 0.2)
    server = stub(own=True)
    bench = attach(server.port)
    bench.start()
    run = bench.run(scenario(output=300, count=2))
    while run.progress[0] < 20:
        assert not run.wait(0.05)
    os.kill(server.process.pid, signal.SIGSTOP)
    deadline = time.monotonic() + 60
    while not run.trouble:
        assert not run.wait(0.05)
        assert time.monotonic() < deadline
    assert re.search(
        rf"attached server http://127.0.0.1:{server.port}/v1: no answer and no token for \d+ s", run.trouble
    )
    os.kill(server.process.pid, signal.SIGCONT)
    assert run.wait(60)
    assert run.trouble == ""
    assert (run.meta["status"], run.trace.tokens["n"].sum()) == ("complete", 600)


def test_leaving_leaves_the_server_as_it_is(stub, attach):
    server = stub()
    bench = attach(server.port)
    play(bench)
    bench.stop()
    assert server.process.poll() is None
    assert bench.engine.state == "stopped"
    bench.start()  # and attaching again is one call
    assert bench.engine.state == "ready"


def test_a_count_that_no_prompt_has_is_not_taken(stub, attach):
    bench = attach(stub(per_word=1e300).port)
    bench.start()
    assert bench.engine.describe()["attached"]["prompts"].startswith(
        "text of about the length asked for (a token a word)"
    )
