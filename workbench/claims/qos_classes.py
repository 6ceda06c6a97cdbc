"""C12: QoS classes. VIPs are never preempted; victims are the lowest class, least work done, first in line again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from workbench import metrics
from workbench.claims.journal import Journal
from workbench.claims.verdict import Measured, Outcome, Verdict, ended, on_gpu, origin_of
from workbench.errors import InputError
from workbench.i18n import phrase, phrase_counted, phrases
from workbench.metrics.gaps import Floats

VIP, NORMAL, OFFLINE = 0, 1, 2
NAMES = {VIP: "VIP", NORMAL: "normal", OFFLINE: "offline"}
_POOL_FULL = 0.9  # of the KV blocks in use: below this a preemption was for a slot


@dataclass(frozen=True)
class Victim:
    """One preemption under policy qos, against those that were running at that moment.

    Attributes:
        request: who was preempted.
        priority: its class; 0 VIP, 1 normal, 2 offline.
        lowest: whether none that ran was of a lower class.
        least: whether none of its class that ran had less done (tokens with KV).
        alone: whether no other request of its class ran, so that there was no choice.
        first_again: whether no request of its class that had not begun yet was let in before it came back; none if no
            such request waited, or the victim never came back.
        kv_use: largest share of KV blocks in use at the step before and at this one, 0 to 1; NaN is unknown.
    """

    request: str
    priority: int
    lowest: bool
    least: bool
    alone: bool
    first_again: bool | None
    kv_use: float


@dataclass(frozen=True)
class Victims:
    """All preemptions of a run under policy qos, and how many requests of each class were there."""

    victims: tuple[Victim, ...]
    requests: Mapping[int, int]

    @classmethod
    def of(cls, run: Measured) -> Self:
        """Judge each of them.

        Raises:
            InputError: the run has no step under policy qos, or a request without a priority.
        """
        journal = Journal.of(run)
        if "qos" not in journal.policy:
            raise InputError("run", "no step under policy qos", "policy qos", "play it with knobs(policy='qos')")
        priorities = journal.of_request("priority")
        if np.isnan(priorities).any():
            raise InputError("run", "a request without a priority", "0 VIP, 1 normal or 2 offline", "play it anew")
        of_class = np.clip(priorities, VIP, OFFLINE).astype(int).tolist()  # as the policy does
        table, found = journal.table, []
        aging_s, sent_s = journal.knob("aging_s"), journal.of_request("sent_s")
        age_s = table.scheduled_s[table.victim_step][:, None] - sent_s  # of each request at each preemption
        aged = age_s >= np.where(aging_s > 0, aging_s, np.inf)[table.victim_step][:, None]
        classes_then = np.where(aged, np.minimum(of_class, NORMAL), of_class)  # an aged offline one counts as normal
        gone: list[int] = []  # victims of the same step, which run no more
        for place, (step, one) in enumerate(zip(table.victim_step.tolist(), table.victim_of.tolist(), strict=True)):
            gone = [*gone, one] if place and table.victim_step[place - 1] == step else [one]
            if journal.policy[step] != "qos":
                continue
            running = {other: done for other, done in journal.running(step).items() if other not in gone[:-1]}
            classes = {other: int(classes_then[place, other]) for other in running}
            mine = int(classes_then[place, one])
            same = [done for other, done in running.items() if other != one and classes[other] == mine]
            found.append(
                Victim(
                    request=table.names[one],
                    priority=of_class[one],
                    lowest=all(other <= mine for other in classes.values()),
                    least=all(running.get(one, 0.0) <= done for done in same),
                    alone=not same,
                    first_again=_first_again(journal, one, step, of_class, sent_s),
                    kv_use=float(np.fmax.reduce(table.kv_use[max(0, step - 1) : step + 1])),
                )
            )
        return cls(tuple(found), Counter(of_class))


def qos_classes(run: Measured, *others: Measured, against: Measured | None = None) -> Verdict:
    """Judge C12 from runs under policy qos in which somebody was preempted.

    Each victim is compared with the requests that were running at that moment, not with those that came later. Holds
    when no VIP was preempted, each victim was of the lowest class and had the least done of it, and nobody of its class
    that waited for a first turn went before it. Does not hold when a VIP was preempted; in part otherwise.

    Args:
        run: a run under policy qos.
        others: more of them.
        against: the same workload under another policy, for the VIPs' TTFT.

    Raises:
        InputError: nobody was preempted, or there was no VIP; see also :meth:`Victims.of`.
    """
    runs = (run, *others)
    found = [Victims.of(one) for one in runs]
    victims = [victim for one in found for victim in one.victims]
    requests: Counter[int] = sum((Counter(one.requests) for one in found), Counter())
    if not victims:
        raise InputError("runs", "no preemption under qos", "at least one", "play thrash, or with fewer slots")
    if not requests[VIP]:
        raise InputError("runs", "no VIP", "requests of priority 0", "play a scenario with VIPs, such as policies")
    vips = sum(victim.priority == VIP for victim in victims)
    lowest, least = sum(victim.lowest for victim in victims), sum(victim.least for victim in victims)
    queued = [victim.first_again for victim in victims if victim.first_again is not None]
    outcome: Outcome = "holds in part"
    if vips:
        outcome = "does not hold here"
    elif lowest == least == len(victims) and all(queued):
        outcome = "holds"
    taken = Counter(victim.priority for victim in victims)
    by_class = phrases(", ", (f"{NAMES[one]} {taken[one]}" for one in NAMES))
    count = phrase_counted(
        "{n:,} preemption under qos ({classes}; VIP requests: {vips})",
        "{n:,} preemptions under qos ({classes}; VIP requests: {vips})",
        len(victims),
        classes=by_class,
        vips=requests[VIP],
    )
    line = (
        phrase(
            "; {queued} of {all} came back before any of their class that had not begun",
            queued=sum(queued),
            all=len(queued),
        )
        if queued
        else ""
    )
    return Verdict(
        claim="C12",
        text="VIP (0) is never preempted, offline (2) is the cushion; victims: lowest class, least work done, then "
        "the head of the queue",
        outcome=outcome,
        sentence=phrase(
            "{count}. {lowest} of {victims} victims were of the lowest class that ran, {least} had the "
            "least done of their class{line}. {served}{compared}",
            count=count,
            lowest=lowest,
            victims=len(victims),
            least=least,
            line=line,
            served=_served(run),
            compared=_compared(run, against),
        ),
        origin=origin_of([*runs, *([against] if against else [])]),
        article="VIP 0 is never preempted, 1 is normal, 2 is offline and the cushion (no numbers given).",
        untested=_untested(runs, victims, queued),
    )


def _served(run: Measured) -> str:
    """TTFT and longest gap of each class."""
    table = metrics.by_class(run.trace, run.slo)
    said = [
        phrase(
            "{name} TTFT {ttft_p50_s:,.2f} s, longest gap {gap_max_ms:,.0f} ms",
            name=name,
            ttft_p50_s=row["ttft_p50_s"],
            gap_max_ms=row["gap_max_ms"],
        )
        for name, row in table.iterrows()
    ]
    return ended("; ", said)


def _compared(run: Measured, against: Measured | None) -> str:
    if against is None:
        return ""
    mine, other = _vip_ttft_s(run), _vip_ttft_s(against)
    policy = phrases(" and ", sorted({str(name) for name in Journal.of(against).policy}))
    return phrase(
        " Under {policy} the VIPs' TTFT was {other:,.2f} s: qos needs {mine:.2f} of it.",
        policy=policy,
        other=other,
        mine=mine / other,
    )


def _vip_ttft_s(run: Measured) -> float:
    """Median TTFT of the VIPs, s."""
    vips = run.trace.requests.set_index("request")["priority"].eq(VIP)
    table = metrics.request_metrics(run.trace, run.slo).set_index("request")
    return float(table.loc[vips[vips].index, "ttft_s"].median())


def _untested(runs: tuple[Measured, ...], victims: list[Victim], queued: list[bool]) -> str:
    full = [victim.kv_use >= _POOL_FULL for victim in victims]
    said = []
    if not any(full):
        said.append(phrase("preemption for KV blocks (each of these was for a slot)"))
    elif all(full):
        said.append(phrase("preemption for a slot (in each of these the KV pool was full)"))
    if all(victim.alone for victim in victims):
        said.append(phrase("least work done (no victim had a rival of its class)"))
    if not queued:
        said.append(phrase("the head of the queue (nobody of a victim's class waited for a first turn)"))
    if not on_gpu(runs):
        said.append(phrase("two steps in flight, as vLLM schedules on a GPU"))
    return ended("; ", said)


def _first_again(journal: Journal, one: int, step: int, of_class: list[int], sent_s: Floats) -> bool | None:
    """Whether a victim came back before any of its class that was waiting for its first step when it was preempted."""
    back = [int(at) for at in journal.at[one] if at >= step]
    if not back:
        return None
    waited = sent_s < journal.table.scheduled_s[step]
    firsts = [
        int(at[0])
        for other, at in enumerate(journal.at)
        if other != one and of_class[other] == of_class[one] and waited[other] and len(at) and at[0] >= step
    ]
    return all(back[0] <= first for first in firsts) if firsts else None
