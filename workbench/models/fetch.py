"""Download a model from the hub into its local cache: ``python -m workbench.models.fetch ORG/NAME [--guarded]``.

A process of its own, so that a download ends with the one who asked for it; what is there already is kept and the
next one goes on from it. The last line of standard error is a kind of failure and a detail, never a raw message: those
may hold the address of a proxy with its password.
"""

from __future__ import annotations

import argparse
import errno
import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from workbench.models.convert import end_with_parent, say

_TEXT = (".json", ".jinja", ".txt", ".model", ".tiktoken", ".py", ".md")
_NOT_WEIGHTS = ("training_args", "optimizer", "scheduler", "adapter", "consolidated", "rng_state")
_SECONDS = 10.0  # until the hub must have answered


class FetchError(Exception):
    """A failure of a known kind."""


def choose(sizes: Mapping[str, int]) -> list[str]:
    """Choose the files that a model needs: no second copy of the weights in another format.

    Raises:
        FetchError: the repository holds no whole model.
    """
    top = [name for name in sizes if len(PurePosixPath(name).parts) == 1]
    text = [name for name in top if name.endswith(_TEXT) or name.upper().startswith("LICENSE")]
    weights = [name for name in top if name.endswith(".safetensors") and not name.startswith(_NOT_WEIGHTS)]
    weights = weights or [name for name in top if name.endswith(".safetensors") and name.startswith("consolidated")]
    weights = weights or [name for name in top if name.endswith(".bin") and not name.startswith(_NOT_WEIGHTS)]
    lacks = [] if "config.json" in top else ["config.json"]
    lacks += [] if weights else ["weights"]
    if lacks:
        raise FetchError(f"incomplete {' and '.join(lacks)}")
    return sorted({*text, *weights})


def download(name: str) -> None:
    """Fetch a model, telling on standard output how far it is.

    Raises:
        FetchError: the repository holds no whole model, or there is no room for it.
    """
    from huggingface_hub import HfApi, constants, snapshot_download

    info = HfApi().model_info(name, files_metadata=True, timeout=_SECONDS)
    sizes = {file.rfilename: file.size or 0 for file in info.siblings or []}
    wanted = choose(sizes)
    total = sum(sizes[file] for file in wanted)
    cache = Path(constants.HF_HUB_CACHE)
    cache.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(cache).free
    kept = sum(file.stat().st_size for file in cache.glob(f"models--{name.replace('/', '--')}/blobs/*"))
    if free < total - kept:
        raise FetchError(f"space it takes {_mb(total)}, {_mb(free)} are free in {cache}")
    say(f"downloading {len(wanted)} files, {_mb(total)}")
    snapshot_download(name, allow_patterns=wanted, tqdm_class=_bar())
    say("downloaded")


def _bar() -> type[Any]:
    from tqdm import tqdm  # type: ignore[import-untyped,unused-ignore]

    class Lines(tqdm):  # type: ignore[type-arg,misc,unused-ignore]
        """A progress bar that prints lines, at most one a second, for bytes only."""

        def __init__(self, *args: Any, **settings: Any) -> None:
            settings.pop("name", None)
            super().__init__(*args, **settings | {"disable": False, "mininterval": 1.0, "file": sys.stderr})

        def display(self, *_args: Any, **_settings: Any) -> None:
            if self.unit == "B" and self.n:
                of = f" of {_mb(self.total)}" if self.total else ""
                say(f"{_mb(self.n)}{of}")

        def clear(self, *_args: Any, **_settings: Any) -> None:
            """Nothing to wipe."""

    return Lines


def kind_of(error: BaseException) -> str:
    """Return the kind of a failure and a detail that is safe to show."""
    chain = list(_chain(error))
    names = [base.__name__ for link in chain for base in type(link).__mro__]
    status = next((code for link in chain if (code := _status(link))), None)
    full = any(isinstance(link, OSError) and link.errno in (errno.ENOSPC, errno.EDQUOT) for link in chain)
    if isinstance(error, FetchError):
        return str(error)
    if "GatedRepoError" in names or status == 403:
        return "gated"
    if "RepositoryNotFoundError" in names or status == 401:
        return "unknown"
    if full:
        return "space the disk is full"
    if status:
        return f"answer {status}"
    if {"TransportError", "ConnectionError", "TimeoutError", "OfflineModeIsEnabled"} & set(names):
        return f"unreachable {type(error).__name__}"
    return type(error).__name__


def _chain(error: BaseException | None) -> Iterable[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _status(error: BaseException) -> int | None:
    code = getattr(getattr(error, "response", None), "status_code", None)
    return code if isinstance(code, int) else None


def _mb(size: float) -> str:
    return f"{size / 1e6:,.1f} MB" if size < 1e7 else f"{size / 1e6:,.0f} MB"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m workbench.models.fetch", description=__doc__)
    parser.add_argument("name", help="a hub id, org/name")
    parser.add_argument("--guarded", action="store_true", help="end when standard input closes")
    args = parser.parse_args(argv)
    if args.guarded:
        end_with_parent()
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    try:
        download(args.name)
    except Exception as error:  # noqa: BLE001 - the parent turns this one line into a sentence
        sys.stderr.write(f"{kind_of(error)}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
