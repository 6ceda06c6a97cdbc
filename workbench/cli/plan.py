"""``workbench plan``: capacity, settings, policies, cost and the command for hardware that nobody has here."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.table import Table

from workbench import console
from workbench.cli.options import POLICY_HELP, JsonFlag, KnobOption, Seed, StartUp, start_up_fields
from workbench.errors import InputError
from workbench.i18n import translate
from workbench.knob_options import knob_values, single_knobs
from workbench.origin import in_pieces
from workbench.planning import Asked, Plan, Planner, Row, Rule, mix_names
from workbench.planning.planner import Tell

plan_verb = typer.Typer()

_NAMES = ", ".join(mix_names())


@plan_verb.command("plan")
def plan_command(
    scenario: Annotated[str, typer.Argument(help=f"A scenario's name or file, or a mix: {_NAMES}.")] = "azure-like",
    gpu: Annotated[str, typer.Option(help="Kind of GPU: H100, H200, A100, B200, L40S, RTX 4090, or cpu.")] = "H100",
    count: Annotated[int, typer.Option(help="How many, each with a share of every layer.", min=1)] = 8,
    model: Annotated[str, typer.Option(help="A model of known sizes, or a folder with config.json.")] = "llama-3.1-70b",
    budget: Annotated[str, typer.Option(help="Token budgets to look at.")] = "512,2048,8192",
    chunk: Annotated[str, typer.Option(help="Chunk caps to look at; 0 is off.")] = "0,512,2048",
    policy: Annotated[str | None, typer.Option(help=f"Policies to compare at the best of these: {POLICY_HELP}")] = None,
    knob: KnobOption = None,
    ttft_ms: Annotated[float | None, typer.Option(help="SLO of the first token; by default the scenario's.")] = None,
    gap_ms: Annotated[float | None, typer.Option(help="SLO of the longest gap; by default the scenario's.")] = None,
    price: Annotated[float | None, typer.Option(help="Of one GPU for an hour: adds cost per million tokens.")] = None,
    need: Annotated[float | None, typer.Option(help="Requests/s that must be served: adds the replicas.")] = None,
    seed: Seed = None,
    start_up: StartUp = None,
    as_json: JsonFlag = False,
) -> None:
    """Find the most requests/s that meet the SLO on GPUs you lack, by simulation; takes about a minute."""
    tried = knob_values(None, {"budget": budget, "chunk": chunk, "policy": policy})
    asked = Asked.of(
        scenario,
        gpu=gpu,
        count=count,
        model=model,
        budgets=tried["budget"],
        chunks=tried["chunk"],
        policies=tried.get("policy", ()),
        ttft_ms=ttft_ms,
        gap_ms=gap_ms,
        price=price,
        need=need,
        knobs=single_knobs(knob),
        start_up=start_up_fields(start_up),
        rule=Rule(seed=seed),
    )
    tells: list[Tell] = []
    planner = Planner(asked, lambda now: tells[0](now))  # before the bar: a wrong option should not cost one
    with console.bars() as progress:
        task = progress.add_task(translate("plan, plays"), total=None, note="")
        tells.append(
            lambda now: progress.update(task, completed=now.plays, total=now.expected, note=translate(now.what))
        )
        try:
            planner.run()
        finally:  # an interruption shows what there is
            progress.update(task, note=translate("stopped" if planner.plan.stopped else "done"))
            progress.stop()
            if planner.plan.cells:
                _show(planner.plan, as_json)
    if planner.plan.why_nothing:
        slo = asked.slo
        raise InputError(
            "SLO",
            f"TTFT {slo.ttft_ms:g} ms, gap {slo.gap_ms:g} ms",
            f"one that can be met ({planner.plan.why_nothing})",
            "allow more time, shorten the prompts, or take faster hardware",
        )


def _show(plan: Plan, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(plan.as_dict(), indent=2))
        return
    slo = plan.asked.slo
    title = translate(
        "{load} on {hardware}, {label}", load=plan.load.name, hardware=plan.hardware, label=in_pieces(plan.label)
    )
    console.out.print(plan_table([*plan.cells, *plan.policies], title, plan.asked.price, plan.asked.need))
    said = [
        translate(
            "SLO: TTFT {ttft_ms:g} ms, gap {gap_ms:g} ms ({percentile:g}th percentile of a request)",
            ttft_ms=slo.ttft_ms,
            gap_ms=slo.gap_ms,
            percentile=slo.gap_percentile,
        ),
        translate("capacity: {rule}", rule=plan.asked.rule.words),
        translate(
            "in brackets: every step as slow or as fast as any model says; ~ is the best setting's band taken over"
        ),
    ]
    if plan.stopped:
        said.insert(0, translate("stopped: this is what there was by then"))
    if plan.load.concerns:
        said.append(translate("traffic: {concerns}", concerns=plan.load.concerns))
    said += [translate("not played: {name}: {why}", name=name, why=why) for name, why in plan.refused.items()]
    said += [
        translate("not possible: budget {budget:,}: {why}", budget=row.budget, why=row.refused)
        for row in plan.cells
        if row.refused
    ]
    best = plan.best
    if best is not None:
        if best.capacity is not None and best.capacity.at is not None and not best.capacity.at.steady:
            said.append(
                translate("the best setting's play was short beside the time that a request stays: take more requests")
            )
        said.append(translate("best: {command}", command=best.command))
    for line in said:
        console.out.print(line, highlight=False, soft_wrap=True)


def plan_table(rows: list[Row], title: str, price: float | None = None, need: float | None = None) -> Table:
    """The settings of a plan in 120 columns of text.

    Args:
        rows: of a plan.
        title: above it; must say where the figures come from.
        price: of one GPU for an hour.
        need: requests/s that must be served.
    """
    table = console.plain_table(title, collapse_padding=True)
    several = len({row.policy for row in rows}) > 1
    knobs = ("budget", "chunk", "policy") if several else ("budget", "chunk")
    table.add_column(" / ".join(map(translate, knobs)), no_wrap=True)
    headings = [translate("requests/s"), translate("out tok/s"), "MFU", "KV"]
    headings += [translate("cost per M out")] if price is not None else []
    headings += [translate("replicas")] if need is not None else []
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column(translate("limited by"), overflow="fold")
    for row in rows:
        f = row.figures(price, need)
        chunk = f"{row.chunk:,}" if row.chunk else translate("off")
        name = f"{row.budget:,} / {chunk}" + (f" / {row.policy}" if several else "")
        if row.capacity is None:
            table.add_row(name, *[console.cell(None)] * len(headings), translate("not possible"))
            continue
        band = row.rates()
        mark = "~" if row.band is not None and row.band.of == "best" else ""
        sure = f" ({mark}{band[0]:.3g}-{band[1]:.3g})" if band else translate(" (no band yet)")
        cells = [f"{row.rate:.3g}" + (sure if row.rate else "")]
        cells += [f"{f['output_tokens_per_s']:,.0f}", _share(f["mfu"]), _share(f["kv_max"])]
        if price is not None:
            low, high = f.get("cost_low"), f.get("cost_high")
            cost = f.get("cost_per_million_output_tokens")
            cells.append(
                console.cell(None) if cost is None else f"{cost:.3g}" + (f" ({low:.3g}-{high:.3g})" if low else "")
            )
        if need is not None:
            few, many = f.get("replicas"), f.get("replicas_worst")
            cells.append(
                console.cell(None) if few is None else f"{few}" + (f"-{many}" if many not in (None, few) else "")
            )
        table.add_row(name, *cells, translate(row.limit))
    return table


def _share(value: float | None) -> str:
    return console.cell(None) if value is None else f"{value:.0%}"
