"""What the client made of streams whose truth is known: tokens lost and invented, and the error of its times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def _none() -> Floats:
    return np.empty(0)


@dataclass
class Errors:
    """Of one stream or of many; times in ms, client minus truth.

    Truth is the moment before an event was handed to the socket. ``doubt_ms`` is how long the handing took: the truth
    is no surer than that.
    """

    tokens_truth: int = 0
    tokens_ours: int = 0
    lost: int = 0
    invented: int = 0
    in_order: bool = True
    held_up: int = 0  # packets that the server's socket did not take at once
    gap_ms: Floats = field(default_factory=_none)  # of gaps between two arrivals of output
    arrival_ms: Floats = field(default_factory=_none)  # of single arrivals: how late the stamp is
    ttft_ms: Floats = field(default_factory=_none)  # of the first arrival: the send is our own act
    send_ms: Floats = field(default_factory=_none)  # from our stamp of the send until the server had read the request
    tpot_ms: Floats = field(default_factory=_none)
    doubt_ms: Floats = field(default_factory=_none)

    @property
    def faithful(self) -> bool:
        """Whether every token is there once and in order."""
        return not self.lost and not self.invented and self.in_order

    def gap(self, percentile: float) -> float | None:
        """A percentile of the absolute gap errors; none without gaps."""
        return float(np.percentile(np.abs(self.gap_ms), percentile)) if self.gap_ms.size else None


def compare(
    truth: Mapping[str, Any], row: Mapping[str, Any] | None, tokens: Iterable[Mapping[str, Any]], zero: float
) -> Errors:
    """One stream.

    Args:
        truth: the server's record of it; see :meth:`workbench.meter.stub.Stub.truth`.
        row: the client's row of the request.
        tokens: the client's rows of arrivals, in the order in which they were reported.
        zero: CLOCK_MONOTONIC of the play's zero.
    """
    told = truth["arrivals"]
    before = np.array([a[0] for a in told], float)
    after = np.array([a[1] for a in told], float)
    counts = np.array([a[2] for a in told], int)
    ours = list(tokens)
    at = np.array([t["client_s"] for t in ours], float) + zero
    expected = set(range(int(counts.sum())))
    got = [index for t in ours for index in range(t["index"], t["index"] + t["n"])]
    errors = Errors(
        tokens_truth=len(expected),
        tokens_ours=len(got),
        lost=len(expected - set(got)),
        invented=len(set(got) - expected) + len(got) - len(set(got)),
        in_order=got == sorted(got) and bool(np.all(np.diff(at) >= 0)),
        held_up=int(truth["held_up"]),
        doubt_ms=(after - before) * 1e3,
    )
    # Times are compared where both saw the same events; a server's batch that arrives as two is a lost comparison, not
    # a wrong one, so it counts as out of order.
    if [t["n"] for t in ours] != counts.tolist():
        errors.in_order = errors.in_order and not errors.faithful
        return errors
    if not ours:
        return errors
    errors.arrival_ms = (at - before) * 1e3
    errors.ttft_ms = errors.arrival_ms[:1]
    errors.gap_ms = (np.diff(at) - np.diff(before)) * 1e3
    if row is not None and row["sent_s"] is not None:
        errors.send_ms = np.array([truth["read"] - zero - row["sent_s"]]) * 1e3
    if len(got) > 1 and len(told) > 1:
        errors.tpot_ms = np.array([(at[-1] - at[0]) - (before[-1] - before[0])]) * 1e3 / (len(got) - 1)
    return errors


def pool(parts: Iterable[Errors]) -> Errors:
    """Many streams as one."""
    parts = list(parts)
    whole = Errors(
        tokens_truth=sum(p.tokens_truth for p in parts),
        tokens_ours=sum(p.tokens_ours for p in parts),
        lost=sum(p.lost for p in parts),
        invented=sum(p.invented for p in parts),
        in_order=all(p.in_order for p in parts),
        held_up=sum(p.held_up for p in parts),
    )
    for name in ("gap_ms", "arrival_ms", "ttft_ms", "send_ms", "tpot_ms", "doubt_ms"):
        setattr(whole, name, np.concatenate([getattr(p, name) for p in parts] or [_none()]))
    return whole
