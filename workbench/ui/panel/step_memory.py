"""The line beside the budget: what a step of that size needs of the memory that is free, and from where on it dies."""

from __future__ import annotations

import psutil

from workbench.errors import WorkbenchError
from workbench.i18n import translate
from workbench.metrics import MemoryFit, memory_fit
from workbench.run import RecordedRun, Run
from workbench.session import Workbench
from workbench.simulate.engine import SimulatedEngine
from workbench.units import GIB, MIB


class StepMemory:
    """Knows the memory of a simulated engine, and the peaks that a live one showed in its last run.

    Args:
        bench: whose engine it is.
    """

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench
        self._looked: Run | None = None
        self._most: tuple[int, float] | None = None  # tokens of the step with the largest peak, and that peak in bytes
        self._fit: MemoryFit | None = None

    @property
    def stale(self) -> bool:
        """Whether a live run has ended whose peaks were not looked at."""
        run = self._bench.current_run
        simulated = isinstance(self._bench.engine, SimulatedEngine)
        return not simulated and run is not None and run.done and run is not self._looked

    def look(self) -> None:
        """Read the peaks of the run that has ended; takes as long as reading it from disk."""
        self._looked = run = self._bench.current_run
        if run is None or run.error is not None:
            return
        try:
            trace = RecordedRun(run.folder).trace
        except WorkbenchError:  # a run that cannot be read is said elsewhere
            return
        steps = trace.steps
        if steps["activation_bytes"].notna().any():
            top = steps.loc[steps["activation_bytes"].idxmax()]
            self._most = int(top["prefill_tokens"] + top["decode_tokens"]), float(top["activation_bytes"])
            self._fit = memory_fit(trace)

    def note(self, budget: int) -> str:
        """One line; empty while nothing is known."""
        engine = self._bench.engine
        if isinstance(engine, SimulatedEngine):
            memory = engine.setup.memory if engine.setup is not None else None
            if memory is None:
                return ""
            return memory.beside(budget, engine.config.max_num_batched_tokens, engine.config.max_model_len)
        if self._most is None:
            return ""
        tokens, peak = self._most
        said = [
            translate(
                "Largest peak measured: {mib:,.1f} MiB in a step of {tokens:,} tokens", mib=peak / MIB, tokens=tokens
            )
        ]
        free = float(psutil.virtual_memory().available) if engine.label == "live CPU" else None
        if free is not None:
            said[0] += translate(", {gib:,.1f} GiB are free", gib=free / GIB)
        if self._fit is not None:
            mib = self._fit.bytes_at(budget) / MIB
            said.append(translate("one of {tokens:,} needs about {mib:,.1f} MiB (fit)", tokens=budget, mib=mib))
            if free is not None:
                said.append(translate("one of more than {tokens:,} would die", tokens=self._fit.tokens_in(free)))
        return translate("; ").join(said) + translate(".")
