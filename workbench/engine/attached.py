"""The attached engine: somebody else's running server. We measure at the client and read what it says of itself."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from workbench.attached_config import AttachedConfig
from workbench.config import Envelope, Knobs
from workbench.driver.host import DriverProcess, Play
from workbench.driver.messages import Target
from workbench.engine import prefix_cache
from workbench.engine.attached_http import Caller
from workbench.engine.attached_look import Found, look
from workbench.engine.attached_probe import AttachedProbe
from workbench.engine.attached_prompts import Texts, completion, write_words
from workbench.engine.attached_watch import Watch
from workbench.engine.facts import facts_of
from workbench.engine.protocol import Label, Progress, State
from workbench.engine.scratch import in_one_line
from workbench.errors import ConfigError, EngineDiedError, EngineError, EngineStartError, EnvelopeError
from workbench.i18n import marked
from workbench.models import ModelFiles
from workbench.redact import redact
from workbench.trace import Sink
from workbench.workload.prompts import load_tokenizer
from workbench.workload.request import Workload

UNBOUNDED = 1 << 20  # taken as the context of a server that does not say: it refuses what is too long for it
NO_KNOBS = "start vLLM with our probe and attach with its folder, see docs/attach.md"


class AttachedEngine:
    """A server that somebody else started; :meth:`start` attaches to it and :meth:`stop` leaves it as it is.

    Args:
        config: how to reach it.
    """

    def __init__(self, config: AttachedConfig) -> None:
        self.config = config
        self.model: ModelFiles | None = None
        self.found: Found | None = None
        self.startup_s: float | None = None
        self.ready_since: float | None = None  # CLOCK_MONOTONIC
        self._state: State = "new"
        self._folder: Path | None = None
        self._texts: Texts | None = None
        self._prompts = ""  # how they are made, in words
        self._driver: DriverProcess | None = None
        self._watch: Watch | None = None
        self._probe: AttachedProbe | None = None
        self._knobs: Knobs | None = None
        self._revision = 0
        self._play: Play | None = None
        self._caller: Caller | None = None
        self._stopping = threading.Event()
        self._lock, self._life = threading.RLock(), threading.RLock()

    @property
    def label(self) -> Label:
        """Where the numbers come from."""
        return f"attached ({urllib.parse.urlsplit(self.config.url).netloc})"

    @property
    def state(self) -> State:
        """What we are doing; a server that was there and is gone is failed."""
        if self._state == "ready" and self._watch is not None and self._watch.gone is not None:
            self._state = "failed"
        return self._state

    @property
    def envelope(self) -> Envelope:
        """Bounds of the hot knobs.

        Raises:
            EnvelopeError: we are not attached to a server with our probe in it.
        """
        if self._probe is None:
            raise self._without_knobs()
        return self._probe.envelope

    @property
    def knobs(self) -> Knobs:
        """Knobs in force, as last set.

        Raises:
            EnvelopeError: we are not attached to a server with our probe in it.
        """
        if self._knobs is None:
            raise self._without_knobs()
        return self._knobs

    @property
    def revision(self) -> int:
        """Number of the knobs in force."""
        return self._revision

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
        return self._texts is None

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
                raise EngineError(f"engine: got start while {self._state}, expected one at rest; stop it first")
            self._state = "starting"
            self._stopping.clear()
        begun = time.monotonic()

        def tell(what: str) -> None:
            if self._stopping.is_set():
                raise EngineStartError("the start was stopped")
            if progress is not None:
                progress(time.monotonic() - begun, what)

        with self._life:
            self._let_go("starting")
            try:
                self._attach(tell)
                tell("ready")
            except BaseException:
                self._let_go("failed")
                raise
            self.ready_since = time.monotonic()
            self.startup_s = self.ready_since - begun
            self._state = "ready"

    def stop(self) -> None:
        """Leave the server; it runs on as it is, with the knobs that were set last."""
        self._stopping.set()
        with self._life:
            self._let_go("stopped")

    def set_knobs(self, knobs: Knobs) -> int:
        """Set the hot knobs of a server with our probe in it, for its next step.

        Raises:
            EnvelopeError: it has no probe, or they do not fit what it was started with.
            EngineError: we are not attached.
        """
        with self._lock:
            probe = self._probed("knobs")
            probe.envelope.check(knobs)
            probe.collector.decode_floor.check(knobs)
            self._revision += 1
            self._knobs = knobs
            probe.collector.send_knobs(self._revision, knobs)
            return self._revision

    def reset_prefix_cache(self) -> None:
        """Empty the prefix cache of a server with our probe in it.

        Raises:
            EnvelopeError: it has no probe.
            ConfigError: it was started without a prefix cache.
            EngineError: we are not attached, a run is going on, or the cache could not be emptied.
        """
        with self._lock:
            probe = self._probed("prefix cache")
            if not probe.envelope.prefix_caching:
                raise ConfigError("prefix cache", "none", "a server started with one", "start it with one")
            if self._play is not None and not self._play.done:
                raise EngineError(
                    "prefix cache: got a reset in mid-run, expected a server at rest; wait for the run or stop it"
                )
            if self._knobs is None:
                raise AssertionError("a probe has knobs")
            prefix_cache.reset(probe.collector, self._revision, self._knobs, self._make_one_step)

    def play(self, workload: Workload, sink: Sink, hold_s: float | None = None) -> Play:
        """Start to play a workload; see :meth:`workbench.engine.protocol.Engine.play`.

        Raises:
            EngineError: we are not attached, or a play is going on.
        """
        with self._lock:
            self._expect_ready("play: got a workload")
            driver, watch = self._driver, self._watch
            if driver is None or watch is None:
                raise AssertionError("ready, and only the holder of the life lock lets go")

            @contextlib.contextmanager
            def recording(play: Play) -> Iterator[None]:
                with contextlib.ExitStack() as entered:
                    if self._probe is not None and self._knobs is not None:
                        collector, before = self._probe.collector, (self._revision, self._knobs)
                        entered.enter_context(collector.into(sink, play.zero, *before, lambda: play.output_tokens))
                    entered.enter_context(watch.into(sink, play.zero))
                    yield

            if self._play is None or self._play.done:  # else the driver refuses
                watch.before()
            self._play = driver.play(workload, sink, recording, self.death, hold_s, self._texts)
            return self._play

    def death(self) -> EngineDiedError | None:
        """The error to raise if the server is gone, or was left, else none."""
        if self._stopping.is_set():
            return EngineDiedError("the server was left (stop)")
        watch = self._watch
        return watch.death if watch is not None else None

    def describe(self) -> dict[str, Any]:
        """Facts for a run's metadata; None is what is not known, and start-up fields of the server are not."""
        found, watch = self.found, self._watch
        mine: dict[str, Any] = {
            "label": self.label,
            "engine_pid": None,
            "startup_s": self.startup_s,
            "config": self.config.own,
            "model_origin": self.model.origin if self.model else None,
        }
        if found is not None:
            mine["attached"] = {
                "server": found.words,
                "kind": found.kind,
                "version": found.version,
                "model": found.model,
                "max_model_len": found.max_model_len,
                "metrics": found.metrics,
                "settings": found.settings,
                "prompts": self._prompts,
                "histograms": watch.histograms if watch else None,
                "readings_missed": watch.missed if watch else None,
            }
        if self._probe is not None:
            mine |= facts_of(self._probe.collector) | {"vllm": f"vllm={self._probe.hello.vllm}"}
        shown: dict[str, Any] = redact(mine)
        return shown

    def compute_facts(self) -> dict[str, Any]:
        """Nothing: neither the sizes of its model nor its hardware are known."""
        why = "an attached server does not say what it computes on"
        names = ("architecture", "peak", "bandwidth", "host_bytes_per_s")
        return dict.fromkeys((*names, "device")) | {"missing": dict.fromkeys(names, why)}

    @property
    def why_no_knobs(self) -> str | None:
        """Why there are no hot knobs, for a person; none if there are."""
        return None if self._probe is not None else f"This server has no hot knobs: {NO_KNOBS}."

    def _attach(self, tell: Callable[[str], None]) -> None:
        tell(marked("asking what it is"))
        caller = self._caller = Caller(self.config, self.config.api_key)
        found = self.found = look(self.config, caller)
        if self.config.probe is not None:
            tell(marked("taking up the probe"))
            self._probe = AttachedProbe(self.config.probe)
            self._knobs, self._revision = self._probe.knobs, self._probe.revision
        said = found.max_model_len or (self._probe.hello.max_model_len if self._probe else None)
        length = self.config.max_model_len or said or UNBOUNDED
        self.config = self.config.model_copy(update={"max_model_len": length})
        self._folder = Path(tempfile.mkdtemp(prefix="wb-"))
        tell(marked("measuring how it counts prompts"))
        tokenizer = self._choose_prompts(found, caller)
        self._prompts = self._prompt_words()
        self.model = ModelFiles(
            name=found.model,
            path=found.root or found.model,
            tokenizer_path=tokenizer,
            load_format="auto",
            max_positions=length,
            origin=f"served by {found.words}",
            config={},
        )
        kind = "chat/completions" if self.config.chat else "completions"
        target = Target(
            url=f"{self.config.url}/{kind}",
            api_key=caller.api_key,
            model=found.model,
            chat=self.config.chat,
            dialect=found.kind,
            verify=str(self.config.ca or ""),
            insecure=self.config.insecure,
        )
        self._watch = Watch(caller, metrics=found.metrics)
        tell("starting the client")
        with in_one_line("the client's socket", "TMPDIR"):
            self._driver = DriverProcess(target=target)

    def _choose_prompts(self, found: Found, caller: Caller) -> Path:
        """Token ids where the model's tokenizer is here, else texts; returns the tokenizer's file."""
        tokenizer = self.config.tokenizer
        here = urllib.parse.urlsplit(self.config.url).hostname in ("127.0.0.1", "localhost", "::1")
        if tokenizer is None and here and not self.config.chat and found.kind != "plain":
            tokenizer = found.local_tokenizer
        if tokenizer is not None:
            load_tokenizer(tokenizer)
            ids = list(range(100, 108))
            counted = completion(self.config, caller, found.model, ids)
            if counted is None or counted == len(ids):
                self._texts = None
                return tokenizer
            if self.config.tokenizer is not None:
                raise ConfigError(
                    "tokenizer", tokenizer, f"a server that takes token ids as they are ({len(ids)} became {counted})",
                    "leave it out, and prompts go out as text",
                )  # fmt: skip
        if self._folder is None:
            raise AssertionError("made before")
        words = write_words(self._folder)
        self._texts = Texts(words)
        self._texts.measure(lambda prompt: completion(self.config, caller, found.model, prompt))
        return words

    def _prompt_words(self) -> str:
        """How prompts are made, for the run's metadata."""
        if self._texts is None:
            return "token ids of exactly the length asked for"
        ratio = self._texts.ratio
        how = (
            f"{ratio.per_word:.3g} tokens a word, {ratio.fixed:.3g} of every prompt"
            if ratio.measured
            else "a token a word"
        )
        return f"text of about the length asked for ({how}); prompt_tokens is the server's own count"

    def _make_one_step(self) -> None:
        if self._caller is None or self.found is None:
            raise EngineError("prefix cache: got a reset while not attached, expected a ready engine; start it first")
        completion(self.config, self._caller, self.found.model, "x")

    def _probed(self, what: str) -> AttachedProbe:
        self._expect_ready(f"{what}: got a change")
        if self._probe is None:
            raise self._without_knobs()
        if not self._probe.alive:
            raise EngineError(f"{what}: got a change, but the scheduler with the probe has ended; attach again")
        return self._probe

    def _without_knobs(self) -> EnvelopeError:
        if self.config.probe is not None:
            return EnvelopeError(
                "hot knobs", f"{self.label}, {self.state}", "a server that is attached", "start it first"
            )
        return EnvelopeError("hot knobs", self.label, "a server with our probe in it", NO_KNOBS)

    def _expect_ready(self, what: str) -> None:
        if self.state != "ready":
            raise EngineError(f"{what} while the engine is {self.state}, expected ready; start it first")

    def _let_go(self, state: State) -> None:
        self._state = "stopping"
        driver, probe, folder = self._driver, self._probe, self._folder
        self._driver = self._probe = self._folder = self._texts = self._caller = None
        self._knobs, self._revision = None, 0
        if state == "starting":
            self._watch = self.found = self._play = None
        if driver is not None:
            driver.close()
        if probe is not None:
            probe.close()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        self._state = state
