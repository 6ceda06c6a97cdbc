"""Progress of long work in a notebook, as one line of text: widgets would break a notebook that runs headless."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tqdm import tqdm

from workbench.i18n import translate
from workbench.run import Run
from workbench.session import Workbench
from workbench.simulate.banded import Told

if TYPE_CHECKING:
    from workbench.tune.tune import Now

_CALM_S = 1.0  # between two drawings of a bar that is told often


def start(bench: Workbench) -> None:
    """Start an engine and show for how long it has been doing what.

    Raises:
        EngineStartError: it did not come up; other errors as :meth:`workbench.session.Workbench.start`.
    """
    what = translate("engine start")
    with tqdm(total=None, desc=what, bar_format="{desc} {elapsed}{postfix}", file=sys.stdout) as bar:
        bench.start(lambda _elapsed, now: bar.set_postfix_str(translate(now)))


def watch(run: Run) -> None:
    """Show a run's output tokens as they arrive, until it has ended.

    Raises:
        EngineDiedError: the engine ended in the meantime; what was measured is kept.
    """
    done, total = run.progress
    with tqdm(total=total, initial=done, desc=translate("run"), unit=" tokens", file=sys.stdout) as bar:
        while not run.wait(0.2):
            bar.update(run.progress[0] - bar.n)
        bar.update(run.progress[0] - bar.n)


@contextmanager
def plays(what: str = "simulation") -> Iterator[Told]:
    """Gives what to tell of each play before it begins, as :func:`workbench.simulate.banded.play_banded` does."""
    with tqdm(total=None, desc=what, unit=" plays", file=sys.stdout) as bar:

        def told(done: int, total: int, name: str) -> None:
            bar.total = total
            bar.set_postfix_str(name, refresh=False)
            bar.update(done - bar.n)

        yield told
        bar.set_postfix_str("", refresh=False)
        bar.update((bar.total or 0) - bar.n)


@contextmanager
def stages() -> Iterator[Callable[[str, str], None]]:
    """Gives what to tell of work in stages, such as the claims sheet's: a stage, and what of it comes next."""
    with tqdm(total=None, desc="start", bar_format="{desc} {elapsed}{postfix}", file=sys.stdout, mininterval=1) as bar:

        def told(stage: str, what: str) -> None:
            bar.set_description(stage, refresh=False)
            bar.set_postfix_str(what, refresh=False)
            bar.update()

        yield told
        bar.set_postfix_str("done")


@contextmanager
def tuning() -> Iterator[Callable[[Now], None]]:
    """Gives what to tell of a study, as :class:`workbench.tune.tune.Tune` does: its stages one after the other."""
    with tqdm(total=None, desc="study", unit=" plays", file=sys.stdout, mininterval=_CALM_S) as bar:

        def told(now: Now) -> None:
            if bar.desc != f"{now.stage}: ":
                bar.reset(now.most or None)
                bar.set_description(now.stage, refresh=False)
            bar.set_postfix_str(now.what, refresh=False)
            if now.done > bar.n:
                bar.update(now.done - bar.n)

        yield told
