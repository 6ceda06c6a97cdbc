"""``workbench selftest``: every script of the stub, then many streams at an engine's pace, and a verdict on each."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from workbench.driver.host import DriverProcess
from workbench.meter.compare import Errors, pool
from workbench.meter.play import Played, client_of, play, request
from workbench.meter.scripts import SCRIPTS
from workbench.meter.stub import Stub

LIMIT_MS = 1.0  # of the P99 of gap errors: a gap on the fastest engines is some 5 ms
_WAITED = 0.05  # of its time
_SPACE_MS = 5.0  # between two streams that begin
_PATIENCE_S = 30.0  # beyond what a load takes by its own pace

Tell = Callable[[str, float], None]


@dataclass(frozen=True)
class Case:
    """A line of the table.

    Args:
        name: of a script, or of a load.
        errors: of its streams, pooled.
        wrong: why it fails; empty if it does not.
        why: what its times suffer from; empty if they are good or are not judged.
        late_ms: how late the client's loop ran at worst.
        waited: share of the load's time for which the client was ready to run and had no core; none if not known.
    """

    name: str
    errors: Errors
    wrong: str = ""
    why: str = ""
    late_ms: float = 0.0
    waited: float | None = None

    @property
    def verdict(self) -> str:
        """In words."""
        return self.wrong or self.why or "ok"

    def as_dict(self) -> dict[str, Any]:
        """For JSON; errors in ms."""
        e = self.errors
        return {
            "case": self.name,
            "tokens_truth": e.tokens_truth,
            "tokens_ours": e.tokens_ours,
            "tokens_lost": e.lost,
            "tokens_invented": e.invented,
            "gap_error_p50_ms": e.gap(50),
            "gap_error_p99_ms": e.gap(99),
            "gap_error_max_ms": e.gap(100),
            "ttft_error_p99_ms": _high(e.ttft_ms),
            "tpot_error_p99_ms": _high(e.tpot_ms),
            "send_to_read_p50_ms": float(np.median(e.send_ms)) if e.send_ms.size else None,
            "truth_doubt_p99_ms": _high(e.doubt_ms),
            "client_late_ms": self.late_ms,
            "client_waited": self.waited,
            "verdict": self.verdict,
        }


@dataclass(frozen=True)
class Selftest:
    """What was found.

    Args:
        cases: scripts first, then loads.
        load: the machine's load average over its processors, at the end.
    """

    cases: tuple[Case, ...]
    load: float

    @property
    def trusted(self) -> bool:
        """Whether the meter can be trusted on this machine, as busy as it is now."""
        return not any(case.wrong or case.why for case in self.cases)

    @property
    def counts(self) -> bool:
        """Whether every token and every end was seen as it was."""
        return not any(case.wrong for case in self.cases)


def selftest(streams: int = 200, rate: float = 50.0, seconds: float = 4.0, tell: Tell | None = None) -> Selftest:
    """Run it, in the time of two loads and some seconds.

    Args:
        streams: at once, in the loads; 0 leaves the loads out.
        rate: events a second, of each.
        seconds: that a stream of a load lasts.
        tell: told what is going on and the share that is done.

    Raises:
        EngineError: the server or the client did not start, or ended.
    """
    cases: list[Case] = []
    with Stub() as stub:
        client = client_of(stub)
        try:
            cases += scripts(stub, client, tell)
            for kind in ("steady", "lockstep") if streams else ():
                cases.append(load(stub, client, kind, streams, rate, seconds, tell))
        finally:
            client.close()
    return Selftest(tuple(cases), os.getloadavg()[0] / (os.cpu_count() or 1))


def scripts(stub: Stub, client: DriverProcess, tell: Tell | None = None, mark: str = "0") -> list[Case]:
    """Play all scripts at once; judged are tokens, order, status and end, not times: each has a few events."""
    names = {f"script/{name}/{mark}": name for name in SCRIPTS}
    # One that fails was to go on; else a whole count would make it a success.
    wanted = [request(key, _wanted(name)) for key, name in names.items()]
    played = play(client, wanted, _PATIENCE_S, _watch(tell, "scripts"))
    errors = played.errors(stub.truth())
    return [_script(name, played, key, errors.get(key)) for key, name in names.items()]


def load(
    stub: Stub,
    client: DriverProcess,
    kind: str,
    streams: int,
    rate: float,
    seconds: float,
    tell: Tell | None = None,
) -> Case:
    """Play many streams of single tokens.

    Args:
        stub: the server.
        client: of it.
        kind: ``steady``, each stream on its own beat, or ``lockstep``, all on one, as an engine's steps are.
        streams: how many.
        rate: events a second, of each.
        seconds: that each lasts.
        tell: told what is going on.
    """
    tokens = max(2, round(rate * seconds))
    names = [f"{kind}/{tokens}/{1000 / rate:g}/{i}" for i in range(streams)]
    wanted = [request(name, tokens, i * _SPACE_MS / 1000) for i, name in enumerate(names)]
    title = f"{streams} streams x {rate:g} events/s" + (", in step" if kind == "lockstep" else "")
    patience_s = seconds + streams * _SPACE_MS / 1000 + _PATIENCE_S
    before, begun = _waited_s(client.pid), time.monotonic()
    played = play(client, wanted, patience_s, _watch(tell, title))
    after, took_s = _waited_s(client.pid), time.monotonic() - begun
    waited = None if before is None or after is None else (after - before) / took_s
    errors = pool(played.errors(stub.truth()).values())
    late_ms = max(played.late_s, default=0.0) * 1e3
    wrong = _miscounted(errors, tokens * streams)
    failed = sum(row["status"] != "ok" for row in played.requests.values())
    if failed and not wrong:
        wrong = f"{failed} of {streams} requests failed"
    return Case(title, errors, wrong, "" if wrong else _why(errors, late_ms, waited), late_ms, waited)


def _wanted(name: str) -> int:
    script = SCRIPTS[name]
    return script.tokens + (4 if script.status == "error" else 0)


def _script(name: str, played: Played, key: str, errors: Errors | None) -> Case:
    row = played.requests.get(key)
    if row is None or errors is None:
        return Case(name, Errors(), "no row of the request")
    script = SCRIPTS[name]
    wrong = _miscounted(errors, script.tokens)
    if not wrong and row["status"] != script.status:
        wrong = f"called {row['status']}, is {script.status}"
    if not wrong and [one["n"] for one in played.tokens.get(key, [])] != script.arrivals:
        wrong = "events miscounted"
    return Case(name, errors, wrong)


def _miscounted(errors: Errors, tokens: int) -> str:
    if errors.lost or errors.invented:
        return f"{errors.lost} tokens lost, {errors.invented} invented"
    if errors.tokens_truth != tokens:
        return f"the server sent {errors.tokens_truth} of {tokens} tokens"
    return "" if errors.in_order else "tokens out of order"


def _waited_s(pid: int) -> float | None:
    """How long a process was ready to run and had no core, since it began (schedstats of proc(5))."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return None


def _why(errors: Errors, late_ms: float, waited: float | None) -> str:
    """What keeps the times of a load from being trusted."""
    off = errors.gap(99)
    if off is None or off <= LIMIT_MS:
        return ""
    said = f"gap error P99 {off:.1f} ms, expected {LIMIT_MS:g} at most"
    doubt = float(np.percentile(errors.doubt_ms, 99))
    if doubt > LIMIT_MS / 2:
        return f"{said}: the stub itself was held up for {doubt:.1f} ms, the machine is too busy to tell"
    if waited is not None and waited > _WAITED:
        return f"{said}: the client waited for a core {waited:.0%} of the time, the machine is too busy"
    return f"{said}: the client is too slow for this load here, its loop ran up to {late_ms:.0f} ms late"


def _high(values: Any) -> float | None:
    return float(np.percentile(np.abs(values), 99)) if values.size else None


def _watch(tell: Tell | None, what: str) -> Callable[[float], None] | None:
    return None if tell is None else lambda share: tell(what, share)
