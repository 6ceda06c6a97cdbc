"""Names and errors in tables that somebody else wrote: letters, for whatever shows or draws them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from workbench.printable import printable


def printed(table: pa.Table) -> pa.Table:
    """The table with every text :func:`workbench.printable.printable`; as it is where all of them are."""
    for i, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            said = pc.unique(table[field.name]).to_pylist()
        elif pa.types.is_list(field.type):
            said = pc.unique(pc.list_flatten(table[field.name])).to_pylist()
        else:
            continue
        better = {text: printable(text) for text in said if text is not None and printable(text) != text}
        if better:
            rows = [_in(row, better) for row in table[field.name].to_pylist()]
            table = table.set_column(i, field, pa.chunked_array([pa.array(rows, field.type)]))
    return table


def _in(value: object, better: dict[str, str]) -> object:
    if isinstance(value, list):
        return [_in(one, better) for one in value]
    return better.get(value, value) if isinstance(value, str) else value
