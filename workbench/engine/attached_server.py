"""What is held of an attached server from start to stop: what it is, its prompts, the client, the watch, the probe."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.attached_config import AttachedConfig
from workbench.driver.host import DriverProcess, Play
from workbench.driver.messages import Target
from workbench.engine.attached_counting import Prompts, choose_prompts, completion
from workbench.engine.attached_http import Caller
from workbench.engine.attached_look import Found, look
from workbench.engine.attached_probe import AttachedProbe
from workbench.engine.attached_watch import Watch
from workbench.engine.scratch import in_one_line
from workbench.i18n import marked
from workbench.models import ModelFiles
from workbench.trace import Sink

UNBOUNDED = 1 << 20  # taken as the context of a server that does not say: it refuses what is too long for it


@dataclass(frozen=True)
class AttachedServer:
    """A server that we are attached to; :func:`reach` makes it.

    Attributes:
        config: how it is reached; the longest request is filled in.
        caller: asks it.
        found: what it is.
        model: the same as other engines tell it.
        prompts: how they go out.
        watch: reads its metrics during a run, and learns whether it is gone.
        driver: the client.
        probe: ours in it, if it was started with one.
    """

    config: AttachedConfig
    caller: Caller
    found: Found
    model: ModelFiles
    prompts: Prompts
    watch: Watch
    driver: DriverProcess
    probe: AttachedProbe | None
    _held: contextlib.ExitStack

    def close(self) -> None:
        """Let go of everything; the server runs on."""
        self._held.close()

    @contextlib.contextmanager
    def recording(self, sink: Sink, play: Play) -> Iterator[None]:
        """Have what the server says of itself go to a sink."""
        with contextlib.ExitStack() as entered:
            probe = self.probe
            if probe is not None:
                before = (probe.revision, probe.knobs)
                entered.enter_context(probe.collector.into(sink, play.zero, *before, lambda: play.output_tokens))
            entered.enter_context(self.watch.into(sink, play.zero))
            yield

    def make_one_step(self) -> None:
        """Have it complete a prompt that is too short to be cached."""
        completion(self.config, self.caller, self.found.model, "x")

    def facts(self) -> dict[str, Any]:
        """What is known of it, for a run's metadata."""
        found, watch = self.found, self.watch
        return {
            "server": found.words,
            "kind": found.kind,
            "version": found.version,
            "model": found.model,
            "other_models": list(found.others),
            "max_model_len": found.max_model_len,
            "metrics": found.metrics,
            "settings": found.settings,
            "prompts": self.prompts.words,
            "histograms": watch.histograms,
            "readings_missed": watch.missed,
        }


def reach(config: AttachedConfig, caller: Caller, tell: Callable[[str], None]) -> AttachedServer:
    """Ask a server what it is and how it counts, and make ready to play on it; nothing is left behind if that fails.

    Args:
        config: how to reach it.
        caller: asks it.
        tell: told what is going on; it may raise to end this.

    Raises:
        ConfigError: the model, the tokenizer or the probe's folder is wrong.
        EngineStartError: it cannot be reached, refuses the key, redirects, or is no OpenAI-compatible server.
        VersionError: the probe in it was not tested on its vLLM.
    """
    with contextlib.ExitStack() as held:
        tell(marked("asking what it is"))
        found, probe = look(config, caller), None
        if config.probe is not None:
            tell(marked("taking up the probe"))
            probe = AttachedProbe(config.probe)
            held.callback(probe.close)
        said = found.max_model_len or (probe.hello.max_model_len if probe else None)
        config = config.model_copy(update={"max_model_len": config.max_model_len or said or UNBOUNDED})
        with in_one_line("a folder for prompts", "TMPDIR"):
            folder = Path(tempfile.mkdtemp(prefix="wb-"))
        held.callback(lambda: shutil.rmtree(folder, ignore_errors=True))
        tell(marked("measuring how it counts prompts"))
        prompts = choose_prompts(config, found, caller, folder)
        tell("starting the client")
        with in_one_line("the client's socket", "TMPDIR"):
            driver = DriverProcess(target=_target(config, caller, found))
        held.callback(driver.close)
        watch = Watch(caller, metrics=found.metrics)
        model = _model(config, found, prompts)
        return AttachedServer(config, caller, found, model, prompts, watch, driver, probe, held.pop_all())


def _target(config: AttachedConfig, caller: Caller, found: Found) -> Target:
    return Target(
        url=f"{config.url}/{'chat/completions' if config.chat else 'completions'}",
        api_key=caller.api_key,
        model=found.model,
        chat=config.chat,
        dialect=found.kind,
        verify=str(config.ca or ""),
        insecure=config.insecure,
    )


def _model(config: AttachedConfig, found: Found, prompts: Prompts) -> ModelFiles:
    return ModelFiles(
        name=found.model,
        path=found.root or found.model,
        tokenizer_path=prompts.tokenizer,
        load_format="auto",
        max_positions=config.max_model_len,
        origin=f"served by {found.words}",
        config={},
    )
