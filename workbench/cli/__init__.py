"""The ``workbench`` command: results go to stdout, progress and errors to stderr.

The verbs live in the modules beside this one, and each is imported when it is called for: help, the version and a look
at recorded runs need neither an engine nor what draws its charts.
"""

from __future__ import annotations

import importlib
import os
import shlex
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from workbench import __version__, usage
from workbench.errors import EngineStartError, InputError, WorkbenchError
from workbench.i18n import told_error
from workbench.printable import printable
from workbench.redact import text

# Verb: the module and the Typer that have it, and its line in the list of verbs.
VERBS = {
    "demo": (
        "play",
        "play_verbs",
        "Play one long prompt among chats under six settings on one engine, and write a report.",
    ),
    "run": ("play", "play_verbs", "Play a scenario once on a live engine and record it."),
    "sweep": (
        "play",
        "play_verbs",
        "Play a scenario under several settings: those of the file, or all combinations of the options.",
    ),
    "policies": (
        "play",
        "play_verbs",
        "Play the same workload under each policy on one engine, and compare them class by class.",
    ),
    "compare": (
        "compare",
        "compare_verb",
        "Compare two settings: A/B/A/B on one engine by chance, the same workload in each pair, with intervals.",
    ),
    "claims": (
        "claims",
        "claims_verb",
        "Judge what articles claim (C1 to C16): a verdict each, with its numbers and where they are from.",
    ),
    "runs": ("house", "house", "List, show and delete recorded runs."),
    "doctor": (
        "house",
        "house",
        "Look for what could keep an engine from starting; show vLLM's chunked-prefill default.",
    ),
    "selftest": (
        "meter",
        "meter_verb",
        "Hold the client against streams whose token times are known; exit code 1: do not trust it here.",
    ),
    "reap": ("house", "house", "End engines that outlived their workbench; engines in use are left alone."),
    "tune": (
        "tune",
        "tune_verb",
        "Find the best setting under hard limits on gaps and TTFT, and confirm it on fresh seeds.",
    ),
    "attach": (
        "attach",
        "attach_verb",
        "Play a scenario on a running OpenAI-compatible server that we did not start, and record it.",
    ),
    "export": (
        "exchange",
        "exchange_verbs",
        "Write a run as a Perfetto (Chrome) trace, or its tables as CSV or Parquet.",
    ),
    "import": (
        "exchange",
        "exchange_verbs",
        "Record another tool's result file as a run, with what it holds; compare it with a run of ours.",
    ),
    "plan": (
        "plan",
        "plan_verb",
        "Find the most requests/s that meet the SLO on GPUs you lack, by simulation; takes about a minute.",
    ),
    "report": (
        "report",
        "report_verbs",
        "Write one HTML file about recorded runs that needs no network; two runs are compared, with intervals.",
    ),
    "notebook": (
        "report",
        "report_verbs",
        "Execute a notebook without a browser, and export it with its charts; without --html or --pdf as a notebook.",
    ),
    "room": (
        "room",
        "room_verb",
        "Show one engine to a room: pages that only look at its runs, and a teacher's page that drives it.",
    ),
    "calibrate": (
        "simulator",
        "simulator_verbs",
        "Measure what steps cost: play a short load on a live engine, or take live runs that are on disk, and fit.",
    ),
    "validate": (
        "simulator",
        "simulator_verbs",
        "Play live runs again in virtual time, and print predicted against measured.",
    ),
}


class Verbs(TyperGroup):
    """The verbs by name and line of help; the one that is called for is imported."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands = {name: TyperCommand(name, help=line) for name, (_, _, line) in VERBS.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The verb that a command line begins with, and the words after it."""
        name, found, rest = super().resolve_command(ctx, args)
        if name in VERBS:
            module, typers, _ = VERBS[name]
            verbs = getattr(importlib.import_module(f"{__name__}.{module}"), typers)
            found = typer.main.get_group(verbs).commands[name]
        return name, found, rest


app = typer.Typer(
    cls=Verbs,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if not wanted:
        return
    from workbench.engine.probe.compat import installed_vllm  # here, since no verb's help needs it

    found = installed_vllm()
    typer.echo(f"workbench {__version__}, vLLM {found[1] if found else 'not installed'}")
    raise typer.Exit


@app.callback()
def workbench(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the versions and exit.")
    ] = False,
) -> None:
    """Tune chunked prefill on a live vLLM engine: knobs act on the next scheduler step, no restart."""


_INTERRUPTED = 130  # what the command-line library turns Ctrl-C into


def _kept(argv: Sequence[str]) -> str:
    """What is said of an interrupted command: where its runs are, if not where `workbench runs list` looks."""
    root = usage.given("--runs", argv, "")
    if argv[:1] == ["demo"]:
        root = str(Path(usage.given("--out", argv, "runs/demo")) / "runs")
    there = f" --runs {shlex.quote(root)}" if root else ""
    return f"interrupted; nothing was left running, and runs that had begun are kept (workbench runs list{there})"


def _terminate(signum: int, _frame: FrameType | None) -> NoReturn:
    """End like Ctrl-C does, through every ``with``, so that nothing stays behind."""
    raise KeyboardInterrupt(signal.Signals(signum).name)


def _open_streams() -> None:
    """Stand in for standard streams that were closed (``<&-``): what draws charts dies without the first."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one


def main() -> None:
    """Entry point: one line for every foreseen error, exit code 2 for input and 1 for failure."""
    _open_streams()
    for signum in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, _terminate)
    try:
        code = app(prog_name="workbench", standalone_mode=False)
        if code == _INTERRUPTED:
            _fail(_kept(sys.argv[1:]), 1)
        sys.exit(code if isinstance(code, int) else 0)
    except InputError as error:
        _fail(told_error(usage.as_typed(error, sys.argv[1:])), error.exit_code)
    except WorkbenchError as error:
        if isinstance(error, EngineStartError) and error.log_tail:
            typer.echo("\n".join(f"  | {line}" for line in error.log_tail), err=True)
        _fail(told_error(error), error.exit_code)
    except KeyboardInterrupt:
        _fail(_kept(sys.argv[1:]), 1)
    except typer.Exit as leave:
        sys.exit(leave.exit_code)
    except Exception as error:
        if usage.is_usage_error(error):
            bad = usage.explain(error, sys.argv[1:])
            if bad is not None:
                _fail(told_error(bad), bad.exit_code)
            sys.exit(2)
        if os.environ.get("WORKBENCH_DEBUG"):
            raise
        _fail(f"unforeseen {type(error).__name__}: {error}; run again with WORKBENCH_DEBUG=1 and report it", 1)


def _fail(message: str, code: int) -> NoReturn:
    typer.echo(f"workbench {__version__}: {printable(text(' '.join(message.split())))}", err=True)
    sys.exit(code)
