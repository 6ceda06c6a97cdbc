"""Jobs with steps of 100 ms, whose times can be worked out in the head, played in this process."""

import pyarrow as pa

from workbench.engine.probe.wire import KnobChange
from workbench.simulate.job import Ask, SimJob
from workbench.simulate.playing import JobLoop
from workbench.simulate.rows import unpacked
from workbench.store.compact import finish
from workbench.trace import TABLES, Trace

TENTH = {"kind": "linear", "base_s": 0.1}


def knobs(budget=512, policy="chunked", revision=0, **more):
    return KnobChange(revision, budget, more.pop("chunk", 0), more.pop("max_running", 8), policy, **more)


def ask(name, prompt=20, output=3, at=0.0, priority=1, cls="chat", tokens=b""):
    return Ask(name, cls, priority, at, prompt, output, tokens)


def job(requests, **fields):
    ours = {
        "number": 1,
        "step_time": TENTH,
        "budget": 512,
        "seqs": 8,
        "max_model_len": 1024,
        "blocks": 4000,
        "block_size": 16,
        "knobs": knobs(),
        "ahead": False,
        "depth": 1,
    }
    return SimJob(requests=requests, **{**ours, **fields})


class Played:
    """A job, as far as it was played."""

    def __init__(self, one, folder):
        self.loop = JobLoop(one, folder)
        self.parts = {name: [schema.empty_table()] for name, schema in TABLES.items()}

    def to(self, until_s=None):
        over = self.loop.advance(until_s, lambda: False)
        for name, data in self.loop.recorder.take().items():
            self.parts[name].append(unpacked(data))
        return over

    @property
    def trace(self):
        return Trace(
            finish({name: pa.concat_tables(some) for name, some in self.parts.items()}), {"label": "simulated"}
        )

    def requests(self, *columns):
        frame = self.trace.requests.set_index("request")
        return {
            name: tuple(row[c] for c in columns) if len(columns) > 1 else row[columns[0]]
            for name, row in frame.iterrows()
        }

    def at(self, name):
        frame = self.trace.tokens
        return [round(one, 6) for one in frame[frame["request"] == name]["engine_s"]]


def played(one, folder):
    done = Played(one, folder)
    assert done.to() is True
    assert not done.loop.recorder.faults
    return done


__all__ = ["Played", "ask", "job", "knobs", "played"]
