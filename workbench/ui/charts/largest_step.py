"""The largest step that fits into memory, by the budget that an engine is started with."""

from __future__ import annotations

import altair as alt
import pandas as pd

from workbench.i18n import marked, translate
from workbench.ui.charts.theme import Look, finish

NAME = marked("Largest step that fits")


def largest_step_chart(
    table: pd.DataFrame, prompt_tokens: int, origin: str, look: Look | None = None
) -> alt.Chart | alt.LayerChart:
    """Tokens of the largest single step against the budget, a line an engine; both axes are logs.

    A rule stands at the prompt; a line below it says that without chunks the prompt dies. The dashed diagonal is the
    budget itself: with chunks no step is larger.

    Args:
        table: as :func:`workbench.claims.chunking_table` makes it: index ``memory share`` and ``budget``, column
            ``largest step``.
        prompt_tokens: the prompt to compare with.
        origin: where the numbers come from; stands in the heading.
        look: size and theme.

    Raises:
        KeyError: a column is missing.
    """
    look = look or Look(height=220)
    rows = table.reset_index()[["memory share", "budget", "largest step"]]
    rows.columns = ["share", "budget", "tokens"]
    rows["engine"] = [translate("takes {share:.0%} of the memory", share=one) for one in rows["share"]]
    names = list(dict.fromkeys(rows["engine"]))
    colours = look.palette
    ends = (int(rows["budget"].min()), int(rows["budget"].max()))
    top = 2.0 * max(int(rows["tokens"].max()), prompt_tokens)
    dies = rows["tokens"] < prompt_tokens
    x = alt.X(
        "budget:Q",
        scale=alt.Scale(type="log", base=2, domain=[ends[0] / 1.2, ends[1] * 1.2], nice=False),
        axis=alt.Axis(
            title=translate("budget at the start, tokens (log)"), values=sorted(set(rows["budget"])), format=",d"
        ),
    )
    y = alt.Y(
        "tokens:Q",
        scale=alt.Scale(type="log", base=2, domain=[ends[0] / 1.2, top], nice=False),
        axis=alt.Axis(title=translate("tokens in one step (log)"), values=[2.0**n for n in range(8, 20)], format=",d"),
    )
    shape = alt.Scale(domain=names, range=["circle", "square", "triangle-up", "diamond"][: len(names)])
    dash = alt.Scale(domain=names, range=[[1, 0], [6, 3], [2, 2], [8, 2, 2, 2]][: len(names)])
    legend = alt.Legend(title=None) if look.legend else None
    base = alt.Chart(rows).encode(x=x, y=y)
    diagonal = alt.Chart(pd.DataFrame({"budget": ends, "tokens": ends})).encode(x="budget:Q", y="tokens:Q")
    prompt = alt.Chart(pd.DataFrame({"tokens": [prompt_tokens]}))
    chart = alt.layer(
        diagonal.mark_line(color=colours.muted, strokeDash=[3, 3], aria=False),
        prompt.mark_rule(color=colours.alert, strokeWidth=1.6, aria=False).encode(y="tokens:Q"),
        base.mark_line(color=colours.memory, strokeWidth=1.8, aria=False).encode(
            strokeDash=alt.StrokeDash("engine:N", scale=dash, legend=legend)
        ),
        base.mark_point(
            color=colours.memory, size=50, opacity=1, strokeWidth=1.8, fill=colours.ground, aria=False
        ).encode(
            shape=alt.Shape("engine:N", scale=shape, legend=legend),
            tooltip=["engine:N", alt.Tooltip("budget:Q", format=","), alt.Tooltip("tokens:Q", format=",")],
        ),
    )
    return finish(
        chart,
        look,
        name=NAME,
        subtitle=[
            translate("{origin} · memory counted from sizes (estimate)", origin=translate(origin)),
            translate(
                "rule: a prompt of {tokens:,} tokens; where a line is under it, it dies without chunks · diagonal: the "
                "largest step with chunks",
                tokens=prompt_tokens,
            ),
        ],
        description=translate(
            "Largest single step against the budget, a line an engine, {engines} in all; a prompt of {tokens:,} tokens "
            "is larger in {dies} of {all} cases.",
            engines=len(names),
            tokens=prompt_tokens,
            dies=int(dies.sum()),
            all=len(rows),
        ),
    )
