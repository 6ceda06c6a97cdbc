"""The exception tree of the workbench.

    WorkbenchError                    exit code 1
    ├── InputError                    exit code 2: the person can mend it
    │   ├── ConfigError               a start-up field or a pair of them
    │   ├── EnvelopeError             a hot knob outside what the engine was started with
    │   │   └── CeilingError          one that another start would allow
    │   ├── ScenarioError             a scenario file or one of its fields
    │   ├── TraceFileError            a request trace in CSV or JSONL
    │   ├── ModelError                a model that is not there or is damaged
    │   ├── RunNotFoundError          a run folder that is not there or not a run
    │   └── SeenRunError              a run that a calibration was fitted to, where it was to be judged by it
    ├── EngineError                   exit code 1: something failed while running
    │   ├── EngineStartError          with the likely cause and the last useful log lines
    │   ├── EngineDiedError           the engine ended while it was needed
    │   └── VersionError              a vLLM version that the probe was not tested on
    └── StoreError                    a run that could not be written or read

Every message is one line and names four things: what, the value, what was expected, what to do.
"""

from __future__ import annotations

from workbench.printable import printable
from workbench.redact import text


class WorkbenchError(Exception):
    """Root of all errors that the workbench raises on purpose.

    Attributes:
        said: the message as it was given; one of :mod:`workbench.i18n` can be told in another language.
    """

    exit_code = 1

    def __init__(self, message: str = "", *more: object) -> None:
        self.said = message
        super().__init__(printable(text(str(message))), *more)  # shown, logged and kept: no key, and no escape sequence


class InputError(WorkbenchError):
    """Something that the person typed, wrote or pointed at.

    Args:
        what: the thing that is wrong, as the person knows it (``--budget``, ``scenario.yaml: streams[0].rate``).
        value: what it was.
        expected: what would have been right.
        fix: what to do about it.

    Attributes:
        shown: the value, short and without secrets.
    """

    exit_code = 2

    def __init__(self, what: str, value: object, expected: str, fix: str) -> None:
        self.what, self.value, self.expected, self.fix = what, value, expected, fix
        self.shown = _words(value)
        super().__init__(" ".join(f"{what}: got {self.shown!r}, expected {expected}; {fix}".split()))


def in_words(error: BaseException) -> str:
    """One line: our errors say what, value, expected and way out themselves; others get their type before them."""
    said = " ".join(str(error).split())
    return said if isinstance(error, WorkbenchError) else f"{type(error).__name__}: {said}"


def _words(value: object) -> str:
    """A value as it is shown: short, and without secrets that cutting it would make hard to tell."""
    try:
        shown = text(str(value)[:2_000])
    except ValueError:  # a number of more digits than Python prints
        shown = "a number of thousands of digits"
    return shown if len(shown) <= 120 else shown[:117] + "…"


class ConfigError(InputError):
    """A start-up field, or a pair of fields that clash."""


class EnvelopeError(InputError):
    """A hot knob outside the envelope that was fixed when the engine started."""


class CeilingError(EnvelopeError):
    """A hot knob that does not fit the running engine, and would fit one that is started otherwise.

    Args:
        what: the knob.
        value: what it was.
        expected: what fits the running engine.
        otherwise: what to do without another start.
        field: the start-up field that is in the way.
        wants: the value that it would need.
    """

    def __init__(self, what: str, value: object, expected: str, otherwise: str, field: str, wants: int) -> None:
        self.otherwise, self.field, self.wants = otherwise, field, wants
        super().__init__(what, value, expected, f"{otherwise}, or start again with {field}={wants}")


class ScenarioError(InputError):
    """A scenario file that cannot be used."""


class TraceFileError(InputError):
    """A request trace (CSV, JSONL) that cannot be used."""


class ModelError(InputError):
    """A model that cannot be found, fetched or read."""


class RunNotFoundError(InputError):
    """A run that is not there."""


class SeenRunError(InputError):
    """A calibration was to be judged by a run that it was fitted to."""


class EngineError(WorkbenchError):
    """The engine could not do what was asked of it."""


class EngineStartError(EngineError):
    """The engine did not come up.

    Args:
        cause: one line, the likely cause and the way out.
        log_tail: the last useful lines of the engine's log, shown below the message.
    """

    def __init__(self, cause: str, log_tail: tuple[str, ...] = ()) -> None:
        self.cause, self.log_tail = printable(text(cause)), tuple(printable(text(line)) for line in log_tail)
        super().__init__(cause)


class EngineDiedError(EngineError):
    """The engine ended in mid-run; what was measured until then is kept."""


class VersionError(EngineError):
    """The probe met a vLLM version that it was not tested on."""


class StoreError(WorkbenchError):
    """A run could not be written or read."""
