"""Which tool wrote a result file, and what it holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from workbench.errors import TraceFileError
from workbench.exchange.aiperf import is_aiperf, read_aiperf
from workbench.exchange.guidellm import is_guidellm, read_guidellm
from workbench.exchange.rows import Place, Results
from workbench.exchange.vllm_bench import is_vllm_bench, read_vllm_bench
from workbench.json_file import parse_json, read_bytes

MOST_BYTES = 1 << 30
MOST_VALUES = 50_000_000  # a list takes three bytes of a file and sixty of memory
_KNOWN = (
    "a result file of vllm bench serve (--save-result --save-detailed), GuideLLM (kind=json) or AIPerf "
    "(profile_export.jsonl)"
)


def read_results(path: Path | str, which: int | None = None) -> Results:
    """Read a result file of ``vllm bench serve``, GuideLLM or AIPerf; it says itself which.

    Args:
        path: the file.
        which: number of the benchmark in a file with several (GuideLLM).

    Raises:
        TraceFileError: it is none of these, or something in it is wrong, with its place.
    """
    path = Path(path).expanduser()
    place = Place(str(path))
    text = _text(path, place)
    values = sum(map(text.count, ",[{"))
    if values > MOST_VALUES:
        raise place.wrong(f"some {values:,} values", f"at most {MOST_VALUES:,}")
    try:
        data = parse_json(text)
    except ValueError:
        data = None
    if isinstance(data, dict):
        if is_vllm_bench(data):
            return read_vllm_bench(data, place)
        if is_guidellm(data):
            return read_guidellm(data, place, which)
    first = text.lstrip().split("\n", 1)[0]
    if is_aiperf(_json(first)):
        return read_aiperf(_lines(text, place), place)
    raise place.wrong(_said(text), _KNOWN)


def _text(path: Path, place: Place) -> str:
    try:
        return read_bytes(path, MOST_BYTES).decode("utf-8-sig")
    except OSError as error:
        raise TraceFileError(str(path), error.strerror or error, "a file that can be read", "check the path") from None
    except UnicodeDecodeError as error:
        raise place.wrong(f"byte {error.start}", "text in UTF-8") from None
    except ValueError as error:
        raise place.wrong(error, f"at most {MOST_BYTES:,} bytes") from None


def _lines(text: str, place: Place) -> Iterator[tuple[int, object]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield number, parse_json(line)
            except ValueError:
                raise place.at(f"line {number}").wrong(line.strip()[:40], "a JSON object") from None


def _json(text: str) -> object:
    try:
        return parse_json(text)
    except ValueError:
        return None


def _said(text: str) -> str:
    return " ".join(text[:80].split()) or "an empty file"
