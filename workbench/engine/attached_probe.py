"""The probe of a server that was started by hand: its folder, what it said at its start, and who may listen to it."""

from __future__ import annotations

import fcntl
import os
import shlex
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from workbench.config import Envelope, Knobs, parse
from workbench.engine import prefix_cache
from workbench.engine.collector import Collector
from workbench.engine.command import STOCK_SERVER, Device, allocator, installed_device, probe_flags
from workbench.engine.probe import wire
from workbench.engine.probe.compat import check_version, installed_vllm
from workbench.engine.probe.knob_page import KnobPage
from workbench.errors import ConfigError, InputError
from workbench.proc import started

_LOCK = "attached.lock"
_LONGEST = 90  # characters of the folder: a socket's path has at most 107
_FIX = "start the server with the command in docs/attach.md"


class AttachedProbe:
    """Our end of the probe in a server that we did not start.

    Args:
        folder: that the server was given in ``WORKBENCH_PROBE_FOLDER``.

    Raises:
        ConfigError: it is no folder of a probe, its server has ended, or another workbench listens to it.
        VersionError: its vLLM is one that the probe was not tested on.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder = _checked(folder)
        self.hello = _hello(folder)
        check_version(self.hello.vllm)
        self._lock = _claim(folder)
        try:
            last = KnobPage(folder).latest()
            self.revision = last.revision if last else 0
            self.cache_resets = last.cache_resets if last else 0
            self.knobs = self._in_force(last)
            parse(Envelope, self._bounds(), error=ConfigError)  # else the first look at it would fail
            self.collector = Collector(folder, cache_resets=self.cache_resets)
        except OSError as error:
            os.close(self._lock)
            raise ConfigError("probe", folder, f"a page of knobs and a socket there ({error})", _FIX) from None
        except BaseException:
            os.close(self._lock)
            raise
        self.collector.scheduler = self.hello

    @property
    def envelope(self) -> Envelope:
        """What the server's start allows the hot knobs."""
        return Envelope(**self._bounds())

    @property
    def alive(self) -> bool:
        """Whether the process of the scheduler runs."""
        return started(self.hello.pid) is not None

    def set_knobs(self, knobs: Knobs) -> int:
        """Set the hot knobs for the scheduler's next step; returns their revision.

        Raises:
            EnvelopeError: they do not fit what the server was started with.
        """
        self.envelope.check(knobs)
        self.collector.decode_floor.check(knobs)
        self.revision += 1
        self.knobs = knobs
        self.collector.send_knobs(self.revision, knobs)
        return self.revision

    def reset_prefix_cache(self, make_one_step: Callable[[], None]) -> None:
        """Empty the server's prefix cache.

        Args:
            make_one_step: has the server do a step, if it is idle.

        Raises:
            ConfigError: it was started without a prefix cache.
            EngineError: the cache could not be emptied.
        """
        if not self.envelope.prefix_caching:
            raise ConfigError("prefix cache", "none", "a server started with one", "start it with one")
        prefix_cache.reset(self.collector, self.revision, self.knobs, make_one_step)

    def close(self) -> None:
        """Stop listening; knobs stay as they were set."""
        self.collector.close()
        os.close(self._lock)

    def _bounds(self) -> dict[str, Any]:
        hello = self.hello
        return {
            "max_budget": hello.max_num_batched_tokens,
            "max_chunk": hello.max_model_len,
            "max_running": hello.max_num_seqs,
            "prefix_caching": hello.prefix_caching,
        }

    def _in_force(self, last: wire.KnobChange | None) -> Knobs:
        """What a workbench before us set, else what the server started with."""
        if last is not None:
            known = msgspec.structs.asdict(last)
            try:
                return parse(Knobs, {name: known[name] for name in Knobs.model_fields})
            except InputError:
                pass  # of another version
        hello = self.hello
        said = {
            "budget": hello.max_num_batched_tokens,
            "chunk": hello.chunk,
            "max_running": hello.max_num_seqs,
            "watermark": min(0.5, hello.watermark),
            "reserve_full": hello.reserve_full,
        }
        return parse(Knobs, said, error=ConfigError)


def probe_command(folder: str | None = None, device: Device | None = None) -> str:
    """How to start vLLM by hand with our probe in it: a command line to paste, with MODEL to be filled in.

    Args:
        folder: of the probe; by default one in the home folder.
        device: by default what the installed vLLM was built for.
    """
    device = device or installed_device(installed_vllm())
    shown = "~/wb-probe" if folder is None else shlex.quote(str(Path(folder).expanduser().absolute()))
    env = [f"{wire.ENV_FOLDER}={shown}", *(f"{name}={value}" for name, value in allocator(device).items())]
    # Two steps at once is vLLM's default on CUDA; the scheduler class must be of the same kind.
    kind = "--async-scheduling" if device == "cuda" else "--no-async-scheduling"
    flags = ["--enable-prompt-tokens-details", kind, *probe_flags(device, asynchronous=device == "cuda")]
    serve = f"python -m {STOCK_SERVER} --model MODEL"
    return f"mkdir -m 700 -p {shown} && {' '.join(env)} {serve} {shlex.join(flags)}"


def _checked(folder: Path) -> Path:
    folder = folder.expanduser().resolve()
    if not folder.is_dir():
        raise ConfigError("probe", folder, "the folder that the server has in WORKBENCH_PROBE_FOLDER", _FIX)
    found = folder.stat()
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise ConfigError(
            "probe",
            folder,
            "a folder of yours that nobody else can open",
            f"chmod 700 it before the server starts; {_FIX}",
        )
    if len(str(folder)) > _LONGEST:
        raise ConfigError("probe", folder, f"a path of at most {_LONGEST} characters, as it holds sockets", _FIX)
    return folder


def _hello(folder: Path) -> wire.SchedulerHello:
    """What the scheduler left there when it started."""
    try:
        hello = msgspec.msgpack.decode((folder / wire.HELLO).read_bytes(), type=wire.SchedulerHello)
    except (OSError, msgspec.DecodeError, msgspec.ValidationError):
        raise ConfigError("probe", folder, "what a server with our probe leaves there when it starts", _FIX) from None
    if started(hello.pid) is None:
        raise ConfigError("probe", folder, "a server that still runs (its scheduler has ended)", _FIX)
    if not (folder / "knobs.page").is_file():
        raise ConfigError("probe", folder, "a page of knobs in it", _FIX)
    return hello


def _claim(folder: Path) -> int:
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise ConfigError(
            "probe", folder, "one that no other workbench listens to", "stop the other one first"
        ) from None
    return lock
