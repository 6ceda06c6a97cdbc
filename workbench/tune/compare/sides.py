"""The two sides of a comparison: a setting each, on one workbench or two, held and left as they were found."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from workbench.errors import InputError
from workbench.left_as_found import knobs_put_back, no_run_left
from workbench.run import RecordedRun, Run
from workbench.workload.scenario import Scenario
from workbench.workload.setting import Setting

if TYPE_CHECKING:
    from workbench.plays import Plays


class Sides:
    """A and B, each as it is played.

    Args:
        settings: A's and B's.
        benches: what they are played on; it may be the same.
        scenario: what is played. Where it has settings take hold later, they are in force at once.

    Raises:
        EnvelopeError: a setting does not fit its engine.
    """

    def __init__(self, settings: tuple[Setting, Setting], benches: tuple[Plays, Plays], scenario: Scenario) -> None:
        for letter, setting, bench in zip("AB", settings, benches, strict=True):
            with _about(letter):
                setting.knobs(bench.engine.envelope)
        self._settings, self._benches = settings, benches
        self._scenario = scenario.model_copy(update={"settings_at_s": 0.0})
        self._id = secrets.token_hex(4)

    @property
    def simulated(self) -> bool:
        """Whether both are: then every play begins from nothing."""
        return all(bench.engine.label == "simulated" for bench in self._benches)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep others from the engines meanwhile; the knobs in force are put back.

        Raises:
            EngineError: something else holds an engine.
        """
        with contextlib.ExitStack() as at_the_end:
            for bench in dict.fromkeys(self._benches):
                at_the_end.enter_context(bench.held("a comparison"))
            at_the_end.enter_context(knobs_put_back(*self._benches))
            yield

    def play(self, letter: str, what: str, seed: int, began: Callable[[Run], None]) -> RecordedRun | None:
        """Play one side, from an empty prefix cache.

        Args:
            letter: "A" or "B".
            what: the play is, for the run's metadata.
            seed: of the workload.
            began: told of the run as it begins; may wait for it.

        Returns:
            The run; None if somebody stopped it.

        Raises:
            EngineError: the engine does not run, or a run is going on.
            EngineDiedError: the engine ended in mid-run.
            StoreError: the run cannot be recorded.
        """
        place = "AB".index(letter)
        bench, setting = self._benches[place], self._settings[place]
        if bench.engine.keeps_cache:
            bench.reset_prefix_cache()
        about = {"comparison": {"id": self._id, "side": letter, "what": str(what)}}
        run = bench.run(self._scenario, setting=setting, seed=seed, salt=0, meta=about)
        with no_run_left(bench):
            began(run)
            run.wait()
        return None if run.meta["status"] == "cancelled" else run


@contextlib.contextmanager
def _about(letter: str) -> Iterator[None]:
    """Say whose knob it is that does not fit."""
    try:
        yield
    except InputError as bad:
        bad.args, bad.what = (f"{letter}: {bad}",), f"{letter}: {bad.what}"  # the command line makes its words anew
        raise
