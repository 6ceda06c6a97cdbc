"""The trade of a study: TTFT against gap against throughput, and what each parameter had to do with it."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from workbench.i18n import counted, marked, translate
from workbench.origin import in_pieces
from workbench.tune.answer.answer import Answer
from workbench.tune.answer.candidates import front_figures
from workbench.ui.charts.scales import y_axis
from workbench.ui.charts.theme import Look, finish, message_chart
from workbench.ui.charts.tuning import OUTSIDE, WITHIN

FRONT, IMPORTANCE = marked("TTFT against gap against throughput"), marked("What makes a setting one of the best")
PICK, SECOND = marked("pick"), marked("runner-up")
_SIZES = (20, 420)  # px² of no throughput and of the most
_BAR_PX = 30


def front_chart(answer: Answer, look: Look | None = None) -> alt.Chart | alt.LayerChart:
    """Every setting by its gap (across, log), TTFT (up) and throughput (size); the front is filled.

    On the front is what no other setting beats in all three. Settings that break a limit are squares: they show what
    the limit costs. Dashed: the limit of the gap.

    Args:
        answer: of a study, also of one that goes on.
        look: size and theme.
    """
    look = look or Look(height=280)
    ttft, gap, rate = front_figures(answer.candidates, answer.goal)
    rows = _rows(answer, (ttft, gap, rate))
    front = len(answer.front)
    subtitle = [
        counted(
            "{label} · {n} setting, {front} of them on the front",
            "{label} · {n} settings, {front} of them on the front",
            len(rows),
            label=in_pieces(answer.label or "not played"),
            front=front,
        ),
        translate("filled: on the front · size: prompt and output tokens/s · hover for names"),
    ]
    if not rows:
        return message_chart(
            look, name=FRONT, subtitle=subtitle[0], message=translate("Nothing was played to its end yet.")
        )
    frame, colours = pd.DataFrame(rows), look.palette
    limit = answer.goal.limits.get(gap)
    gaps = [*frame["gap"], *([limit] if limit is not None else [])]
    x = alt.X(
        "gap:Q",
        scale=alt.Scale(type="log", domain=[0.8 * min(gaps), 1.25 * max(gaps)], nice=False),
        axis=alt.Axis(title=translate("{what}, ms (log)", what=_title(gap)), grid=True, format=",~f", tickCount=6),
    )
    y = alt.Y(
        "ttft:Q",
        scale=alt.Scale(domain=[0, 1.15 * float(frame["ttft"].max()) or 1.0], nice=False),
        axis=y_axis(translate("{one}, {other}", one=_title(ttft), other="s"), tickCount=5),
    )
    kinds = [WITHIN, OUTSIDE]
    colour = alt.Color(
        "kind:N", scale=alt.Scale(domain=kinds, range=[colours.decode, colours.alert]),
        legend=alt.Legend(title=None) if look.legend else None,
    )  # fmt: skip
    shape = alt.Shape(
        "kind:N", scale=alt.Scale(domain=kinds, range=["circle", "square"]),
        legend=alt.Legend(title=None) if look.legend else None,
    )  # fmt: skip
    most = float(frame["rate"].max())
    size = alt.Size("rate:Q", scale=alt.Scale(domain=[0, most or 1.0], range=list(_SIZES)), legend=None)
    tips = [alt.Tooltip(f"{name}:N") for name in ("setting", marked("figures"), "kind", marked("on the front"))]
    layers: list[alt.Chart] = []
    if limit is not None:
        layers.append(
            alt.Chart(pd.DataFrame({"gap": [limit]}))
            .mark_rule(color=colours.alert, strokeDash=[6, 4], aria=False)
            .encode(x=x)
        )
    for filled in (False, True):
        some = frame[frame["front"] == filled]
        if len(some):
            layers.append(
                alt.Chart(some)
                .mark_point(filled=filled, strokeWidth=1.6, opacity=1 if not filled else 0.85, aria=False)
                .encode(x=x, y=y, color=colour, shape=shape, size=size, tooltip=tips)
            )
    layers += _names(frame, x, y, colours.ink)
    return finish(
        alt.layer(*layers),
        look,
        name=FRONT,
        subtitle=subtitle,
        description=translate("The front: ")
        + " ".join(f"{row['setting']}: {row['figures']}." for row in rows if row["front"]),
    )


def importance_chart(answer: Answer, look: Look | None = None) -> alt.Chart | alt.LayerChart:
    """The share of each varied parameter in what makes a setting one of the best quarter, as bars.

    Args:
        answer: of a study, also of one that goes on.
        look: width and theme; the height is that of the bars.
    """
    shares = answer.importance
    look = look or Look(height=_BAR_PX * max(len(shares), 2))
    subtitle = counted(
        "{label} · PED-ANOVA over {n} setting",
        "{label} · PED-ANOVA over {n} settings",
        len(answer.candidates),
        label=in_pieces(answer.label or "not played"),
    )
    if not shares:
        few = translate("Too few settings were measured to tell, or nothing was varied.")
        return message_chart(look, name=IMPORTANCE, subtitle=subtitle, message=few)
    frame = pd.DataFrame({"parameter": list(shares), "share": list(shares.values())})
    frame["figure"] = [f"{share:.0%}" for share in frame["share"]]
    colours = look.palette
    y = alt.Y("parameter:N", sort=list(shares), axis=alt.Axis(title=None, labelColor=colours.ink, labelLimit=200))
    x = alt.X(
        "share:Q",
        scale=alt.Scale(domain=[0, min(1.0, 1.2 * float(frame["share"].max()))], nice=False),
        axis=alt.Axis(title=translate("share"), format=".0%", tickCount=5, grid=True),
    )
    base = alt.Chart(frame).encode(x=x, y=y)
    return finish(
        alt.layer(
            base.mark_bar(color=colours.decode, height={"band": 0.6}, aria=False),
            base.mark_text(color=colours.ink, align="left", dx=5, fontSize=11, aria=False).encode(text="figure:N"),
        ),
        look,
        name=IMPORTANCE,
        subtitle=subtitle,
        description=translate("Importance: ")
        + ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
        + ".",
    )


def _rows(answer: Answer, names: tuple[str, str, str]) -> list[dict[str, Any]]:
    front = {one.point.key for one in answer.front}
    best, second = answer.best, answer.runner_up
    pick = {one.point.key: words for one, words in ((best, PICK), (second, SECOND)) if one is not None}
    rows = []
    for one in answer.candidates:
        if not all(name in one.figures for name in names):
            continue
        ttft, gap, rate = (one.figures[name] for name in names)
        rows.append(
            {
                "setting": one.name,
                "ttft": ttft,
                "gap": gap,
                "rate": rate,
                "kind": WITHIN if one.feasible else OUTSIDE,
                "front": one.point.key in front,
                "on the front": translate("yes") if one.point.key in front else translate("no"),
                "figures": translate(
                    "TTFT {ttft:.3g} s, gap {gap:.4g} ms, {rate:.4g} tokens/s", ttft=ttft, gap=gap, rate=rate
                ),
                "name": pick.get(one.point.key, ""),
            }
        )
    return rows


def _names(frame: pd.DataFrame, x: alt.X, y: alt.Y, colour: str) -> list[alt.Chart]:
    """The pick above its mark and the runner-up below its own: they are often neighbours."""
    return [
        alt.Chart(some)
        .mark_text(color=colour, dy=dy, fontSize=11, fontWeight=600, aria=False)
        .encode(x=x, y=y, text="name:N")
        for name, dy in ((PICK, -18), (SECOND, 20))
        if len(some := frame[frame["name"] == name].assign(name=translate(name)))
    ]


def _title(figure: str) -> str:
    return {
        "ttft_p99_s": translate("TTFT P99"),
        "long_ttft_s": translate("TTFT of long prompts"),
        "gap_p99_ms": translate("gap P99"),
        "gap_max_ms": translate("longest gap"),
    }.get(figure, figure.replace("_", " "))
