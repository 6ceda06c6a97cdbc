"""Which step of the engine made each token that a client saw, and when that step ended."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from workbench.trace import CLOCK_SLACK_S, floats


class EngineStamps:
    """Steps and what they made, kept small; stamps tokens piece by piece.

    The k-th token of a request was made by the step at which the running sum of ``batch.emitted`` of that request first
    exceeds k. An arrival of n tokens takes the step of its last token, since it could not have arrived before that.
    Where step records were lost the sum runs late; a step that ends after the arrival cannot have made it, so such a
    stamp stays null rather than wrong.

    Args:
        batch: the table of that name, in pieces; kept are 24 bytes of each row that made a token.
        steps: the table of that name.
    """

    def __init__(self, batch: Iterable[pa.Table], steps: pa.Table) -> None:
        self._codes: dict[str | None, int] = {}
        codes, made_by, emitted = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0, np.int32)]
        for piece in batch:
            named = pc.field("request").is_valid() & pc.field("step").is_valid()
            made = piece.filter(named & (pc.field("emitted") > 0))
            if made.num_rows:
                codes.append(self._code(made["request"], learn=True))
                made_by.append(made["step"].to_numpy())
                emitted.append(made["emitted"].to_numpy())
        code, step = np.concatenate(codes), np.concatenate(made_by)
        order = np.lexsort((step, code))
        self._of_made, self._made_by = code[order], step[order]
        # Over all requests, one after the other.
        self._total = np.concatenate(([0], np.cumsum(np.concatenate(emitted)[order], dtype=np.int64)))
        ended = steps.filter(pc.field("step").is_valid() & pc.field("end_s").is_valid())
        self._ids, first = np.unique(ended["step"].to_numpy(), return_index=True)
        self._end_s = ended["end_s"].to_numpy()[first]

    def on(self, tokens: pa.Table) -> pa.Table:
        """Fill ``engine_s`` and ``step`` where they are null."""
        if not tokens.num_rows or not len(self._of_made) or not len(self._ids):
            return tokens
        of_token = self._code(tokens["request"], learn=False)
        begin, end = (np.searchsorted(self._of_made, of_token, side=side) for side in ("left", "right"))
        last = floats(tokens["index"]) + floats(tokens["n"]) - 1
        at = np.searchsorted(self._total[1:], self._total[begin] + last, side="right")
        known = (at >= begin) & (at < end)
        step = np.where(known, self._made_by[np.minimum(at, len(self._made_by) - 1)], -1)
        where = np.minimum(np.searchsorted(self._ids, step), len(self._ids) - 1)
        engine_s = np.where(known & (self._ids[where] == step), self._end_s[where], np.nan)
        known &= ~(engine_s > floats(tokens["client_s"]) + CLOCK_SLACK_S)
        new = {
            "engine_s": pa.array(np.where(known, engine_s, np.nan), from_pandas=True),
            "step": pa.array(step, pa.int64(), mask=~known),
        }
        for name, column in new.items():
            filled = pc.coalesce(tokens[name], pa.chunked_array([column]))
            tokens = tokens.set_column(tokens.schema.get_field_index(name), tokens.schema.field(name), filled)
        return tokens

    def _code(self, names: pa.ChunkedArray, *, learn: bool) -> NDArray[np.int64]:
        """A number for each request; -1 for one that made nothing."""
        found = names.combine_chunks().dictionary_encode()
        known = found.dictionary.to_pylist()
        if learn:
            of = [self._codes.setdefault(name, len(self._codes)) for name in known]
        else:
            of = [self._codes.get(name, -1) for name in known]
        indices = found.indices.fill_null(len(of)).to_numpy(zero_copy_only=False)
        codes: NDArray[np.int64] = np.array([*of, -1], dtype=np.int64)[indices]
        return codes


def join_engine_stamps(tokens: pa.Table, batch: pa.Table, steps: pa.Table) -> pa.Table:
    """Fill ``engine_s`` and ``step`` of ``tokens`` from the steps that made them, where they are null."""
    return EngineStamps([batch], steps).on(tokens)
