"""The attached engine: somebody else's running server. We measure at the client and read what it says of itself."""

from __future__ import annotations

import threading
import time
import urllib.parse
from typing import Any

from workbench.attached_config import AttachedConfig
from workbench.config import Envelope, Knobs
from workbench.driver.host import Play
from workbench.engine.attached_http import STOPPED, Caller
from workbench.engine.attached_probe import AttachedProbe
from workbench.engine.attached_server import AttachedServer, reach
from workbench.engine.facts import facts_of
from workbench.engine.protocol import Label, Progress, State
from workbench.errors import EngineDiedError, EngineError, EngineStartError, EnvelopeError
from workbench.i18n import phrase
from workbench.models import ModelFiles
from workbench.redact import redact
from workbench.trace import Sink
from workbench.workload.request import Workload

_NOT_SAID = ("architecture", "peak", "bandwidth", "host_bytes_per_s")
_WHY = "an attached server does not say what it computes on"
NO_KNOBS = "start vLLM with our probe and attach with its folder, see docs/attach.md"


class AttachedEngine:
    """A server that somebody else started; :meth:`start` attaches to it and :meth:`stop` leaves it as it is.

    Args:
        config: how to reach it.
    """

    def __init__(self, config: AttachedConfig) -> None:
        self.config = config
        self.startup_s: float | None = None
        self.ready_since: float | None = None  # CLOCK_MONOTONIC
        self._state: State = "new"
        self._held: AttachedServer | None = None  # while we are attached
        self._seen: AttachedServer | None = None  # the same, until the next start: what it was
        self._asking: Caller | None = None  # while we start
        self._play: Play | None = None
        self._stopping = threading.Event()
        self._lock, self._life = threading.RLock(), threading.RLock()

    @property
    def label(self) -> Label:
        """Where the numbers come from."""
        return f"attached ({urllib.parse.urlsplit(self.config.url).netloc})"

    @property
    def state(self) -> State:
        """What we are doing; a server that was there and is gone is failed."""
        if self._state == "ready" and self._seen is not None and self._seen.watch.gone is not None:
            self._state = "failed"
        return self._state

    @property
    def model(self) -> ModelFiles | None:
        """What it serves, once it was asked."""
        return self._seen.model if self._seen else None

    @property
    def envelope(self) -> Envelope:
        """Bounds of the hot knobs.

        Raises:
            EnvelopeError: we are not attached to a server with our probe in it.
        """
        return self._probe_or_why().envelope

    @property
    def knobs(self) -> Knobs:
        """Knobs in force, as last set.

        Raises:
            EnvelopeError: we are not attached to a server with our probe in it.
        """
        return self._probe_or_why().knobs

    @property
    def revision(self) -> int:
        """Number of the knobs in force."""
        return self._probe.revision if self._probe else 0

    @property
    def pid(self) -> int | None:
        """None: its processes are not ours to look at."""
        return None

    @property
    def keeps_cache(self) -> bool:
        """Whether a run may find KV blocks of the run before; of a server that does not say, it may."""
        return self._probe.envelope.prefix_caching if self._probe else True

    @property
    def exact_prompts(self) -> bool:
        """Whether prompts go out as token ids, so that their lengths are known before the server counts them."""
        return self._held is None or self._held.prompts.texts is None

    def log_tail(self) -> tuple[str, ...]:
        """The log of an attached server is not ours to read."""
        return ()

    def start(self, progress: Progress | None = None) -> None:
        """Attach: ask the server what it is and how it counts.

        Raises:
            ConfigError: the key's variable, the model, the tokenizer or the probe's folder is wrong.
            EngineStartError: it cannot be reached, refuses the key, redirects, or is no OpenAI-compatible server.
            VersionError: the probe in it was not tested on its vLLM.
        """
        with self._lock:
            if self._state in ("starting", "ready"):
                raise EngineError(
                    phrase(
                        "engine: got start while {state}, expected one at rest; stop it first",
                        state=phrase(self._state),
                    )
                )
            self._state = "starting"
            self._stopping.clear()
        begun = time.monotonic()

        def tell(what: str) -> None:
            if self._stopping.is_set():
                raise EngineStartError(STOPPED)
            if progress is not None:
                progress(time.monotonic() - begun, what)

        with self._life:
            self._let_go("starting")
            try:
                self._asking = Caller(self.config, self.config.api_key)
                self._held = self._seen = reach(self.config, self._asking, tell)
                self.config = self._held.config
                tell("ready")
            except BaseException:
                self._let_go("failed")
                raise
            finally:
                self._asking = None
            self.ready_since = time.monotonic()
            self.startup_s = self.ready_since - begun
            self._state = "ready"

    def stop(self) -> None:
        """Leave the server; it runs on as it is, with the knobs that were set last."""
        self._stopping.set()
        if (asking := self._asking) is not None:
            asking.abort()
        with self._life:
            self._let_go("stopped")

    def set_knobs(self, knobs: Knobs) -> int:
        """Set the hot knobs of a server with our probe in it, for its next step.

        Raises:
            EnvelopeError: it has no probe, or they do not fit what it was started with.
            EngineError: we are not attached.
        """
        with self._lock:
            return self._probed("knobs")[1].set_knobs(knobs)

    def reset_prefix_cache(self) -> None:
        """Empty the prefix cache of a server with our probe in it.

        Raises:
            EnvelopeError: it has no probe.
            ConfigError: it was started without a prefix cache.
            EngineError: we are not attached, a run is going on, or the cache could not be emptied.
        """
        with self._lock:
            server, probe = self._probed("prefix cache")
            if self._play is not None and not self._play.done:
                raise EngineError(
                    phrase(
                        "prefix cache: got a reset in mid-run, expected a server at rest; wait for the run or stop it"
                    )
                )
            probe.reset_prefix_cache(server.make_one_step)

    def play(self, workload: Workload, sink: Sink, hold_s: float | None = None) -> Play:
        """Start to play a workload; see :meth:`workbench.engine.protocol.Engine.play`.

        Raises:
            EngineError: we are not attached, or a play is going on.
        """
        with self._lock:
            server = self._expect_ready(phrase("{what}: got a workload", what="play"))
            if self._play is None or self._play.done:  # else the driver refuses
                server.watch.before()
            watch, texts = server.watch, server.prompts.texts
            self._play = server.driver.play(
                workload, sink, lambda play: server.recording(sink, play), self.death, hold_s, texts, watch.ask
            )
            return self._play

    @property
    def trouble(self) -> str:
        """What is odd in a run that goes on, in a line; empty where nothing is."""
        play, held = self._play, self._held
        return held.watch.silence(play.output_tokens) if held and play and not play.done and play.in_flight else ""

    def death(self) -> EngineDiedError | None:
        """The error to raise if the server is gone, or was left, else none."""
        if self._stopping.is_set():
            return EngineDiedError("the server was left (stop)")
        return self._seen.watch.death if self._seen is not None else None

    def describe(self) -> dict[str, Any]:
        """Facts for a run's metadata; None is what is not known, and start-up fields of the server are not."""
        mine: dict[str, Any] = {
            "label": self.label,
            "engine_pid": None,
            "startup_s": self.startup_s,
            "config": self.config.own,
            "model_origin": self.model.origin if self.model else None,
        }
        mine |= {"attached": self._seen.facts()} if self._seen else {}
        if self._probe is not None:
            mine |= facts_of(self._probe.collector) | {"vllm": f"vllm={self._probe.hello.vllm}"}
        return dict(redact(mine))

    def compute_facts(self) -> dict[str, Any]:
        """Nothing: neither the sizes of its model nor its hardware are known."""
        return dict.fromkeys((*_NOT_SAID, "device")) | {"missing": dict.fromkeys(_NOT_SAID, _WHY)}

    @property
    def why_no_knobs(self) -> str | None:
        """Why there are no hot knobs, for a person; none if there are."""
        return None if self._probe is not None else f"This server has no hot knobs: {NO_KNOBS}."

    @property
    def _probe(self) -> AttachedProbe | None:
        return self._held.probe if self._held else None

    def _probe_or_why(self) -> AttachedProbe:
        if self._probe is not None:
            return self._probe
        if self.config.probe is not None:
            raise EnvelopeError(
                phrase("hot knobs"),
                f"{self.label}, {self.state}",
                phrase("an attached server"),
                phrase("start it first"),
            )
        raise EnvelopeError("hot knobs", self.label, "a server with our probe in it", NO_KNOBS)

    def _probed(self, what: str) -> tuple[AttachedServer, AttachedProbe]:
        server, probe = self._expect_ready(phrase("{what}: got a change", what=what)), self._probe_or_why()
        if not probe.alive:
            raise EngineError(f"{what}: got a change, but the scheduler with the probe has ended; attach again")
        return server, probe

    def _expect_ready(self, what: str) -> AttachedServer:
        if self.state != "ready" or self._held is None:
            state = phrase(self.state)
            raise EngineError(
                phrase("{what} while the engine is {state}, expected ready; start it first", what=what, state=state)
            )
        return self._held

    def _let_go(self, state: State) -> None:
        self._state = "stopping"
        held, self._held = self._held, None
        if state == "starting":
            self._seen = self._play = None
        if held is not None:
            held.close()
        self._state = state
