"""What becomes of a good file: cut, mangled bytes, wrong types, depths, numbers that no machine holds."""

from __future__ import annotations

import json
import os

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from workbench.errors import WorkbenchError

# The same examples every time and everywhere: what fails here fails for everybody.
FUZZ = settings(
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=int(os.environ.get("FUZZ_EXAMPLES", "25")),
    suppress_health_check=list(HealthCheck),
)

BYTES = [
    b"",
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\xc3\x28",
    b"\x80",
    b"\r",
    b"\n\n",
    b'"',
    b"{",
    b"]",
    b"\x1b[31m",
]
HUGE = "1" + "0" * 5_000
NUMBERS = [
    0, -1, 1, -0.0, 2**31, 2**63, 2**64, -(2**63) - 1, 10**300, 10**400,
    1e-320, 1e308, float("nan"), float("inf"), float("-inf"),
]  # fmt: skip
TEXTS = [
    "",
    " ",
    "\x00",
    "..",
    "../../x",
    "/etc/passwd",
    "<script>alert(1)</script>",
    "a" * 5_000,
    "\ud800",
    "é\u202e",
    "1e999",
]
DEEP_JSON = ["[" * 100_000, '{"a":' * 100_000, "[" * 100_000 + "]" * 100_000]

scalars = st.one_of(
    st.none(), st.booleans(), st.sampled_from(NUMBERS), st.sampled_from(TEXTS), st.integers(), st.text(max_size=8)
)
odd = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)


@st.composite
def mangled(draw, data: bytes):
    """The bytes cut, or with a piece replaced, doubled or left out."""
    how = draw(st.sampled_from(["cut", "replace", "double", "drop", "insert"]))
    at = draw(st.integers(0, len(data)))
    upto = min(len(data), at + draw(st.integers(0, 40)))
    piece = draw(st.one_of(st.sampled_from(BYTES), st.binary(max_size=8)))
    match how:
        case "cut":
            return data[:at]
        case "replace":
            return data[:at] + piece + data[upto:]
        case "double":
            return data[:upto] + data[at:]
        case "drop":
            return data[:at] + data[upto:]
    return data[:at] + piece + data[at:]


def places(value, here=()):
    """Every place in nested data."""
    yield here
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*here, key))
    elif isinstance(value, list):
        for index, item in enumerate(value[:3]):
            yield from places(item, (*here, index))


@st.composite
def misshapen(draw, value):
    """The same data with something odd in one to three of its places, or without them."""
    value = json.loads(json.dumps(value))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.sampled_from(list(places(value))))
        new = draw(odd)
        if not at:
            if draw(st.integers(0, 9)) == 0:
                return new
            continue
        holder = value
        for step in at[:-1]:
            holder = holder[step]
        if draw(st.integers(0, 4)) == 0:
            del holder[at[-1]]
        else:
            holder[at[-1]] = new
    return value


def encoded(value) -> bytes:
    """As JSON, lone surrogates and NaN included."""
    return json.dumps(value).encode()


def tree(folder):
    """Every file below a folder, with its size."""
    return {os.path.join(at, name) for at, _, names in os.walk(folder) for name in names}  # noqa: PTH118


def named(call):
    """Call it: a result, or an error of ours in one line; anything else comes through and fails the test."""
    try:
        return call()
    except WorkbenchError as error:
        text = str(error)
        assert text
        assert "\n" not in text
        assert len(text) < 4_000
        text.encode()  # can be printed
        return error
