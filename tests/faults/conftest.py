"""A workbench whose engine is a stand-in for vLLM; everything else is real (no vLLM in here)."""

from __future__ import annotations

import importlib.util
import json
import struct
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from workbench import Workbench
from workbench.engine.command import ENV_LABEL
from workbench.engine.leftovers import find_leftovers, reap, records_folder
from workbench.proc import labelled, shared_memory
from workbench.workload.english import sentences
from workbench.workload.scenario import Scenario

STAND_IN = Path(__file__).with_name("stand_in.py")
PATIENCE_S = 60.0  # a test that needs it has failed


def _load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def stand_in(monkeypatch):
    """Put the stand-in in vLLM's place, with these settings."""

    def use(**settings):
        for owner, name, value in _load(STAND_IN).patches(**settings):
            monkeypatch.setattr(owner, name, value)

    return use


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """A model folder that is whole by all that is looked at: words are its tokens, weights it has four bytes."""
    folder = tmp_path_factory.mktemp("model")
    words = sorted({word for one in sentences(np.random.default_rng(0), 4000) for word in _words(one)})
    tokenizer = Tokenizer(models.WordLevel({"<unk>": 0} | {word: i + 1 for i, word in enumerate(words)}, "<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "max_position_embeddings": 8192}
    (folder / "config.json").write_text(json.dumps(config))
    header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(4))
    return folder


def _words(sentence):
    return [word for word, _ in pre_tokenizers.Whitespace().pre_tokenize_str(sentence)]


def scenario(count=4, output=40, prompt=20, **stream):
    """So many chats at once."""
    arrivals = {"kind": "at_once", "count": count}
    one = {"class": "chat", "arrivals": arrivals, "prompt_tokens": prompt, "output_tokens": output} | stream
    return Scenario.model_validate({"name": "faults", "streams": [one]})


def until(condition, what, within_s=PATIENCE_S):
    """The first true value of ``condition()``."""
    deadline = time.monotonic() + within_s
    while not (found := condition()):
        assert time.monotonic() < deadline, what
        time.sleep(0.02)
    return found


class Place:
    """A machine of our own: temporary files, state and runs in folders of this test, and a look at what is left."""

    scenario = staticmethod(scenario)
    until = staticmethod(until)
    patience = PATIENCE_S

    def __init__(self, root, temporary, model):
        self.root, self.temporary, self.model = root, temporary, model
        self.runs, self.state = root / "runs", root / "state"
        self.children = {child.pid for child in psutil.Process().children(recursive=True)}
        self.benches, self.labels, self.segments = [], set(), set()

    def bench(self, **fields):
        self.benches.append(Workbench(str(self.model), runs=self.runs, **fields))
        return self.benches[-1]

    def mark(self):
        """Note the engines that are up, for :meth:`nothing_left`; their labels."""
        records = [json.loads(path.read_text()) for path in records_folder().glob("*.json")]
        labels = [one["label"] for one in records]
        segments = {one for label in labels for pid in labelled(ENV_LABEL, label) for one in shared_memory(pid)}
        assert segments, "an engine shares memory among its processes"
        self.labels |= set(labels)
        self.segments |= segments
        return labels

    def of_engines(self):
        """What there still is of the engines that were marked: processes, shared memory, records."""
        marked = [f"process {pid}" for label in self.labels for pid in labelled(ENV_LABEL, label)]
        files = [*records_folder().glob("*"), *self.segments]
        return marked + [str(path) for path in files if Path(path).exists()] + [str(one) for one in find_leftovers()]

    def left(self):
        """What there still is of anything: also the client, and folders of sockets."""
        children = psutil.Process().children(recursive=True)
        mine = [f"child {c.pid}" for c in children if c.pid not in self.children and c.status() != "zombie"]
        return self.of_engines() + mine + [str(path) for path in self.temporary.glob("wb-*")]

    def nothing_left(self, of=None, within_s=15.0):
        """Whether all is gone, within the promised time and some for a slow machine."""
        deadline = time.monotonic() + within_s
        while (found := (of or self.left)()) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert found == []
        return True

    def engine_gone(self):
        """Whether a dead engine's processes and all they shared are gone; the client stays for the next start."""
        return self.nothing_left(self.of_engines)


@pytest.fixture
def place(tmp_path, model, monkeypatch):
    monkeypatch.setenv("WORKBENCH_STATE", str(tmp_path / "state"))
    # Short, since a socket's path may not be longer than 107 bytes.
    with tempfile.TemporaryDirectory(prefix="t-", dir="/tmp") as temporary:
        monkeypatch.setenv("TMPDIR", temporary)
        monkeypatch.setattr(tempfile, "tempdir", None)
        place = Place(tmp_path, Path(temporary), model)
        yield place
        for bench in place.benches:
            bench.stop()
        for one in find_leftovers():  # of a test that failed before it had done away with them
            reap(one, grace_s=0.5)
    monkeypatch.setattr(tempfile, "tempdir", None)


def check_books(trace, asked, *, of=None, cut=False):
    """Whether what was recorded is right as far as it goes: nothing twice, nothing skipped, sums that agree.

    Args:
        trace: of the run.
        asked: tokens that each request asked for.
        of: requests to look at; all by default.
        cut: the engine or the writer ended in mid-step, so that the last rows of one table may be missing.
    """
    tokens, requests, batch = trace.tokens, trace.requests.set_index("request"), trace.batch
    steps = trace.steps
    assert steps["step"].diff().dropna().eq(1).all(), "a step is missing"
    for name in requests.index if of is None else of:
        mine = tokens[tokens["request"] == name]
        assert mine["index"].tolist() == [0, *mine["n"].cumsum().tolist()[:-1]][: len(mine)]
        assert mine["client_s"].is_monotonic_increasing
        arrived, row = int(mine["n"].sum()), requests.loc[name]
        emitted = int(batch.loc[batch["request"] == name, "emitted"].sum())
        assert max(arrived, emitted) <= asked
        assert cut or arrived <= emitted, "the client cannot have what no step made"
        if row["status"] == "ok":
            assert arrived == emitted == row["output_tokens"] == asked
            first = mine["client_s"].iloc[0]
            assert row["first_s"] == pytest.approx(first)
            assert 0 <= row["planned_s"] <= row["sent_s"] + 1e-9 <= first
    return tokens


@pytest.fixture
def books():
    return check_books


@pytest.fixture
def one_line():
    """An error as a person sees it: one line, not long, with something to do."""

    def check(error):
        text = str(error)
        assert "\n" not in text
        assert 20 < len(text) < 500, text
        return text

    return check
