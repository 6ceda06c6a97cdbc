"""``workbench attach``: play a scenario on somebody else's server, and say what it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from workbench import console
from workbench.cli.house import show_run
from workbench.cli.options import JsonFlag, KnobOption, ReportPath, RunsRoot, Seed, StartUp, start_up_fields
from workbench.errors import InputError

attach_verb = typer.Typer()

_NAMED = 8  # models that are named
_SHOWN = {"ttft_s": "TTFT", "gap_s": "gap", "e2e_s": "whole request", "queue_s": "queue"}


@attach_verb.command("attach")
def attach_command(
    url: Annotated[
        str | None, typer.Argument(metavar="URL", help="Base of the API, such as http://127.0.0.1:8000/v1.")
    ] = None,
    scenario: Annotated[str, typer.Option(help="A scenario's name or a YAML file.")] = "chat_and_long",
    model: Annotated[str | None, typer.Option(help="Name under which it is served; by default the first.")] = None,
    api_key_env: Annotated[
        str | None, typer.Option(metavar="NAME", help="Environment variable that holds the API key.")
    ] = None,
    chat: Annotated[bool, typer.Option("--chat", help="Chat completions in place of completions.")] = False,
    insecure: Annotated[bool, typer.Option("--insecure", help="Do not check the TLS certificate.")] = False,
    ca: Annotated[Path | None, typer.Option(help="Authorities (PEM) to check the TLS certificate against.")] = None,
    tokenizer: Annotated[
        Path | None, typer.Option(help="The model's tokenizer.json: exact prompt lengths, as token ids.")
    ] = None,
    probe: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of our probe in that server: hot knobs and steps.")
    ] = None,
    probe_command: Annotated[
        bool, typer.Option("--probe-command", help="Print how to start vLLM by hand with our probe, and end.")
    ] = False,
    look: Annotated[bool, typer.Option("--look", help="Only say what the server is; play nothing.")] = False,
    knob: KnobOption = None,
    seed: Seed = None,
    runs: RunsRoot = None,
    start_up: StartUp = None,
    report: ReportPath = None,
    as_json: JsonFlag = False,
) -> None:
    """Play a scenario on a running OpenAI-compatible server that we did not start, and record it."""
    from workbench.engine.attached_probe import probe_command as by_hand  # here: help needs no engine

    if probe_command:
        typer.echo(by_hand(str(probe) if probe is not None else None))
        return
    if url is None:
        raise InputError("URL", "nothing", "the base of the server's API", "give it, such as http://127.0.0.1:8000/v1")
    from workbench.knob_options import single_knobs
    from workbench.session import Workbench
    from workbench.workload.scenario import Setting, load_scenario

    chosen, given = load_scenario(scenario), single_knobs(knob)
    asked = {
        "url": url,
        "model": model,
        "api_key_env": api_key_env,
        "chat": chat or None,
        "insecure": insecure or None,
        "ca": ca,
        "tokenizer": tokenizer,
        "probe": probe,
    }
    fields = {name: value for name, value in asked.items() if value is not None} | start_up_fields(start_up)
    bench = Workbench(engine="attached", runs=runs, slo=chosen.slo, **{"model": None, **fields})
    setting = Setting.of(given) if given else None
    with bench, console.bars() as progress:
        bench.start(console.engine_start(progress))
        facts = bench.engine.describe()["attached"]
        if look:
            progress.stop()
            typer.echo(json.dumps(facts, indent=2) if as_json else _words(bench.engine.label, facts))
            return
        console.err.print(_words(bench.engine.label, facts), highlight=False, soft_wrap=True)
        played = bench.run(chosen, setting=setting, seed=seed)
        console.follow(progress, setting, played)
    show_run(played, as_json)
    if not as_json:
        _show_histograms(played.meta["engine"]["attached"].get("histograms") or {})
    if report:
        from workbench.handover import report as write  # here, since Altair takes two seconds to import

        typer.echo(write(played, report).resolve())
    if not (played.trace.requests["status"] == "ok").any():
        raise typer.Exit(1)  # why stands above


def _words(label: str, facts: dict[str, Any]) -> str:
    """What the server is, in a few lines."""
    length = facts["max_model_len"]
    knows = f"up to {length:,} tokens" if length else "length not said"
    metrics = "/metrics read" if facts["metrics"] else "no /metrics that we know"
    settings = ", ".join(f"{name} {value}" for name, value in facts["settings"].items())
    lines = [f"{label}: {facts['server']}, {facts['model']}, {knows}, {metrics}."]
    if others := facts["other_models"]:
        named = ", ".join(others[:_NAMED]) + (", …" if len(others) > _NAMED else "")
        lines.append(f"{len(others):,} more served: {named}; --model NAME takes another.")
    lines.append(f"prompts: {facts['prompts']}.")
    return "\n".join(lines + ([f"it says: {settings}"] if settings else []))


def _show_histograms(found: dict[str, Any]) -> None:
    """What the server counted itself, with the bucket that each quantile lies in."""
    rows = []
    for name, words in _SHOWN.items():
        one = found.get(name)
        if one is None:
            continue
        cells = {share: _quantile(one[share]) for share in ("p50", "p90", "p99")}
        rows.append({"server's own": f"{words}, s", "n": one["count"], **cells})
    if rows:
        title = "Its /metrics, of this run's time: interpolated (the bucket that it lies in)"
        console.out.print(console.frame_table(rows, ["server's own", "n", "p50", "p90", "p99"], title))


def _quantile(one: dict[str, float | None]) -> str:
    if one["high"] is None:
        return f"above {one['low']:g}"
    return f"{one['value']:.3g} ({one['low']:g}-{one['high']:g})"
