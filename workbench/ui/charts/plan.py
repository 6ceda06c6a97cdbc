"""A plan: capacity over budget and chunk cap, and capacity by policy with its band."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from workbench.i18n import counted, marked, translate
from workbench.origin import in_pieces
from workbench.planning.plan import Plan
from workbench.planning.rows import Row
from workbench.ui.charts.grid import STRONG, cell_axis, cell_border, cell_edges, cell_frame, cell_words
from workbench.ui.charts.theme import Look, finish, message_chart

CONTOUR, POLICIES = marked("Capacity by budget and chunk cap"), marked("Capacity by policy")
_FAINT = 0.06  # opacity of the least
_TABLE = {
    "budget": marked("budget"),
    "chunk": marked("chunk"),
    "policy": marked("policy"),
    "capacity_per_s": marked("requests/s"),
    "capacity_low_per_s": marked("band from"),
    "capacity_high_per_s": marked("to"),
    "band_of": marked("band of"),
    "limit": marked("limited by"),
    "output_tokens_per_s": marked("output tokens/s"),
    "mfu": marked("MFU"),
    "kv_max": marked("KV max"),
    "largest_prompt_in_step": marked("prompt tokens/step"),
    "largest_step_tokens": marked("step that fits"),
    "cost_per_million_output_tokens": marked("cost per M output tokens"),
    "cost_low": marked("cost from"),
    "cost_high": marked("cost to"),
    "replicas": marked("replicas"),
    "replicas_worst": marked("replicas at most"),
    "label": marked("label"),
}


def plan_table(plan: Plan) -> pd.DataFrame:
    """The figures behind the charts, one row a setting; columns that nothing is known of are left out.

    Requests/s and their band, what limits them, and at the capacity output tokens/s, MFU, KV use, the most tokens of
    one prompt in a step, the most tokens that memory allows in a step, cost and replicas.
    """
    frame = plan.table
    known = [name for name in _TABLE if name in frame and frame[name].notna().any()]
    return frame[known].rename(columns=_TABLE)


def plan_chart(plan: Plan, look: Look | None = None) -> alt.Chart | alt.LayerChart:
    """Requests/s that meet the SLO, by budget (across) and chunk cap (up); darker is more.

    Only settings that were sampled are drawn, each with its figure and its band; nothing is interpolated. "= off" is a
    cap that cuts nothing there. A dashed line parts what can serve the rate that is needed, or anything, from what
    cannot.

    Args:
        plan: also one that is not complete.
        look: size and theme.
    """
    look = look or Look(height=250)
    budgets, chunks = (sorted(some) for some in (plan.asked.budgets, plan.asked.chunks))
    chunks = [*(one for one in chunks if one), *([0] if 0 in chunks else [])]  # no cap is the largest cap
    cells = [_cell(row, plan, budgets.index(row.budget), chunks.index(row.chunk)) for row in plan.cells]
    subtitle = _subtitle(plan)
    if not cells:
        return message_chart(look, name=CONTOUR, subtitle=subtitle[0], message=translate("Nothing was played yet."))
    frame, colours = pd.DataFrame(cells), look.palette
    across, up = [f"{one:,}" for one in budgets], [f"{one:,}" if one else translate("off") for one in chunks]
    x, middle_x = (cell_axis(alt.X, name, translate("token budget of a step"), across) for name in ("x", "mx"))
    y, middle_y = (cell_axis(alt.Y, name, translate("chunk cap, tokens"), up) for name in ("y", "my"))
    opacity = alt.Opacity(
        "rate:Q",
        scale=alt.Scale(domain=[0, float(frame["rate"].max()) or 1.0], range=[_FAINT, STRONG]),
        legend=None,
    )
    tips = [alt.Tooltip(f"{name}:N") for name in (marked("setting"), "requests/s", marked("band"), "limited by")]
    base = alt.Chart(frame)
    layers: list[alt.Chart] = [
        base.mark_rect(color=colours.decode, stroke=colours.ground, strokeWidth=2, strokeOpacity=1, aria=False).encode(
            x=x, x2="x2:Q", y=y, y2="y2:Q", opacity=opacity, tooltip=tips
        ),
        cell_words(base.encode(x=middle_x, y=middle_y), "figure", -9, colours.ink, fontSize=14, fontWeight=600),
        cell_words(base.encode(x=middle_x, y=middle_y), "band", 8, colours.ink, fontSize=11),
        cell_words(base.encode(x=middle_x, y=middle_y), "limited by", 24, colours.ink, fontSize=10),
    ]
    best = plan.best_cell
    if best is not None:
        layers.append(cell_frame((budgets.index(best.budget), chunks.index(best.chunk)), x, y, colours.ink))
    edges = cell_edges({(cell["x"], cell["y"]): bool(cell["feasible"]) for cell in cells})
    if edges:
        layers.append(cell_border(edges, x, y, colours.alert))
    return finish(
        alt.layer(*layers),
        look,
        name=CONTOUR,
        subtitle=subtitle,
        description=translate(
            "Heat map: requests/s that meet the SLO at {settings} of budget and chunk cap. ",
            settings=counted("{n} setting", "{n} settings", len(cells)),
        )
        + " ".join(f"{cell['setting']}: {cell['requests/s']} ({cell['band']})." for cell in cells),
    )


def capacity_chart(plan: Plan, look: Look | None = None) -> alt.Chart | alt.LayerChart:
    """Requests/s that meet the SLO under each policy, with its band as a line; without policies, of each setting.

    Args:
        plan: also one that is not complete.
        look: width and theme; the height is that of the rows.
    """
    rows = plan.policies or [row for row in plan.cells if row.same_as is None and row.capacity is not None]
    look = look or Look(height=34 * max(len(rows), 2))
    if not rows:
        return message_chart(
            look, name=POLICIES, subtitle=_subtitle(plan)[0], message=translate("Nothing was played yet.")
        )
    frame = pd.DataFrame([_bar(row, plan) for row in rows])
    colours = look.palette
    order = frame["name"].tolist()
    top = 1.15 * max(float(frame[["rate", "high"]].max().max()), plan.asked.need or 0.0) or 1.0
    frame["right"] = frame["low"] > top / 2  # its words would not fit to the right of it
    y = alt.Y("name:N", sort=order, axis=alt.Axis(title=None, labelLimit=260, labelColor=colours.ink))
    scale = alt.Scale(domain=[0, top], nice=False)
    title = translate("requests/s that meet the SLO")
    x = alt.X("rate:Q", scale=scale, axis=alt.Axis(title=title, grid=True))
    base = alt.Chart(frame)
    layers = [
        base.mark_rule(color=colours.decode, strokeWidth=7, opacity=0.3, aria=False).encode(
            x=alt.X("low:Q", scale=scale, axis=alt.Axis(title=title, grid=True)), x2="high:Q", y=y
        ),
        base.mark_point(
            color=colours.decode, filled=True, shape="diamond", size=90, opacity=1, clip=True, aria=False
        ).encode(x=x, y=y, tooltip=[alt.Tooltip(f"{name}:N") for name in ("name", "figure", "band", marked("limit"))]),
        *(
            alt.Chart(some)
            .mark_text(color=colours.ink, align=align, dy=-11, fontSize=11, aria=False)
            .encode(x=alt.X(f"{end}:Q", scale=scale), y=y, text="figure:N")
            for some, align, end in ((frame[~frame["right"]], "left", "low"), (frame[frame["right"]], "right", "high"))
            if len(some)
        ),
    ]
    if plan.asked.need is not None:
        layers.insert(
            0,
            alt.Chart(pd.DataFrame({"need": [plan.asked.need]}))
            .mark_rule(color=colours.alert, strokeDash=[6, 4], strokeWidth=1.5, aria=False)
            .encode(x=alt.X("need:Q", scale=scale)),
        )
    name = POLICIES if plan.policies else marked("Capacity by setting")
    said = translate("line: from the slowest to the fastest steps that any model says")
    if plan.asked.need is not None:
        said += translate(" · dashed: {need:g} requests/s needed", need=plan.asked.need)
    return finish(
        alt.layer(*layers),
        look,
        name=name,
        subtitle=[*_subtitle(plan)[:1], said],
        description=f"{translate(name)}: "
        + " ".join(f"{one['name']}: {one['figure']}." for one in frame.to_dict("records")),
    )


def _subtitle(plan: Plan) -> list[str]:
    slo, need = plan.asked.slo, plan.asked.need
    lines = [
        translate(
            "{label} · {load} on {hardware} · SLO: TTFT {ttft_ms:g} ms, gap {gap_ms:g} ms",
            label=in_pieces(plan.label),
            load=plan.load.name,
            hardware=plan.hardware,
            ttft_ms=slo.ttft_ms,
            gap_ms=slo.gap_ms,
        ),
        translate(
            "band below each figure; ~ is the best one's, taken over · dashed: edge of {what} · framed: the best",
            what=_wanted(need),
        ),
    ]
    if plan.stopped:
        lines.append(translate("stopped before its end"))
    return lines


def _setting(row: Row) -> str:
    return translate(
        "budget {budget:,}, chunk {chunk}", budget=row.budget, chunk=f"{row.chunk:,}" if row.chunk else translate("off")
    )


def _span(band: tuple[float, float]) -> str:
    return translate("{low:.3g} to {high:.3g}", low=band[0], high=band[1])


def _wanted(need: float | None) -> str:
    return translate("what meets the SLO at all") if need is None else translate("{need:g} requests/s", need=need)


def _cell(row: Row, plan: Plan, x: int, y: int) -> dict[str, Any]:
    band = row.rates()
    mark = "~" if row.band is not None and row.band.of == "best" else ""
    figure = translate("n/a") if row.capacity is None else f"{row.rate:.3g}/s"
    same = f" = {f'{row.same_as[1]:,}' if row.same_as[1] else translate('off')}" if row.same_as is not None else ""
    return {
        "x": x, "x2": x + 1, "y": y, "y2": y + 1, "mx": x + 0.5, "my": y + 0.5,
        "budget": row.budget,
        "chunk": row.chunk,
        "rate": row.rate,
        "feasible": row.rate >= (plan.asked.need or 1e-12),
        "setting": _setting(row),
        "requests/s": figure,
        "figure": figure + same,
        "band": (mark + _span(band) if band else translate("no band yet")) if row.rate else "",
        "limited by": translate("does not fit") if row.capacity is None else translate(row.limit),
    }  # fmt: skip


def _bar(row: Row, plan: Plan) -> dict[str, Any]:
    band = row.rates() or (row.rate, row.rate)
    name = row.policy
    if not plan.policies:
        name = _setting(row)
    elif row.policy == "monolithic":
        name = translate("{policy}, budget {budget:,}", policy=row.policy, budget=row.budget)
    sure = translate(" ({span})", span=_span(band)) if band[1] > band[0] else ""
    words = f"{row.rate:.3g}/s" + (translate(" (no band yet)") if row.band is None and row.rate else sure)
    return {
        "name": name,
        "rate": row.rate,
        "low": band[0],
        "high": band[1],
        "figure": f"{words} · {translate(row.limit)}",
        "band": _span(band),
        "limit": translate(row.limit),
    }
