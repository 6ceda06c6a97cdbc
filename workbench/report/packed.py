"""Tables and specs in the page, small: columns of whole numbers, then JSON, then gzip, then base64.

The page's own script unpacks them (``report.js``), and ``verify_report`` does with :func:`unpack_table`.
"""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from workbench.json_file import parse_json
from workbench.store.meta import plain

_OTHER_DECIMALS = 5
_NEAR = {"engine_gap_ms": "gap_ms", "end_s": "begin_s", "engine_s": "client_s"}  # kept as the difference to the other
_NEAR_STEPS = {"end_s": "start_s"}


def pack(value: Any) -> str:
    """Plain data as base64 of gzipped JSON; the same data give the same text."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


def unpack(text: str) -> Any:
    """The data that :func:`pack` was given.

    Raises:
        ValueError: it is something else, or was cut short.
    """
    try:
        return parse_json(gzip.decompress(base64.b64decode(text, validate=True)))
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(str(error)) from None


def pack_table(frame: pd.DataFrame, decimals: Mapping[str, int]) -> str:
    """A table, column by column.

    Args:
        frame: rows; numbers, texts, truth values and what is missing.
        decimals: to which numbers are rounded, by column; others have five.
    """
    coded, numbers = {}, dict[str, np.ndarray]()
    near = _NEAR_STEPS if "start_s" in frame else _NEAR
    for name in map(str, frame.columns):
        column = frame[name]
        if column.dtype.kind not in "iufb" and not pd.api.types.is_numeric_dtype(column.dtype):
            coded[name] = _texts(column)
            continue
        digits = 0 if column.dtype.kind in "iub" else decimals.get(name, _OTHER_DECIMALS)
        whole = np.round(column.to_numpy(dtype=float, na_value=np.nan) * 10.0**digits)
        numbers[name] = whole
        other = near.get(name, "")
        if other in numbers and decimals.get(other, _OTHER_DECIMALS) == digits:
            coded[name] = _numbers(whole, digits, numbers[other], other)
        else:
            coded[name] = _numbers(whole, digits)
    return pack({"rows": len(frame), "columns": coded})


def unpack_table(text: str) -> dict[str, list[Any]]:
    """The columns of :func:`pack_table`, by name; what is missing is None.

    Raises:
        ValueError: it is something else, or was cut short.
    """
    table = unpack(text)
    whole: dict[str, list[int | None]] = {}
    columns: dict[str, list[Any]] = {}
    try:
        for name, column in table["columns"].items():
            if "texts" in column:
                columns[name] = [None if code is None else column["texts"][code] for code in column["codes"]]
                continue
            whole[name] = _whole(column, whole)
            by = 10 ** column["digits"]
            columns[name] = [None if n is None else n if by == 1 else n / by for n in whole[name]]
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"not a table: {error!r}") from None
    return columns


def _texts(column: pd.Series) -> dict[str, Any]:
    """Each text once, and a code for each row."""
    values = [plain(value) for value in column.astype(object).where(column.notna(), None)]
    values = [", ".join(map(str, value)) if isinstance(value, list) else value for value in values]
    known: dict[Any, int] = {}
    codes = [None if value is None else known.setdefault(value, len(known)) for value in values]
    return {"texts": list(known), "codes": codes}


def _numbers(whole: np.ndarray, digits: int, near: np.ndarray | None = None, other: str = "") -> dict[str, Any]:
    """Whole numbers as they are, as differences to the row before, or to another column: what packs best."""
    choices = {"values": whole, "steps": _steps(whole)}
    if near is not None:
        choices["apart"] = np.where(np.isnan(near), whole, whole - near)
    listed = {name: [None if n != n else int(n) for n in values] for name, values in choices.items()}
    best = min(listed, key=lambda name: len(zlib.compress(json.dumps(listed[name]).encode(), 1)))
    return {"digits": digits, best: listed[best], **({"from": other} if best == "apart" else {})}


def _steps(whole: np.ndarray) -> np.ndarray:
    known = ~np.isnan(whole)
    out = np.full(len(whole), np.nan)
    out[known] = np.diff(whole[known], prepend=0)
    return out


def _whole(column: Mapping[str, Any], others: Mapping[str, list[int | None]]) -> list[int | None]:
    if "values" in column:
        return list(column["values"])
    if "apart" in column:
        near = others[column["from"]]
        return [None if n is None else n + (m or 0) for n, m in zip(column["apart"], near, strict=True)]
    out, last = list[int | None](), 0
    for n in column["steps"]:
        last += n or 0
        out.append(None if n is None else last)
    return out
