"""What the figures of several papers draw in one way: charts in few words, and their legends.

A look is words in any order: a role of the palette, or `C2` for the third of several curves; a key
of `DASHES`; a width in points; `pale`; `points`, `joined` or `hollow` ones, or the letter of a
marker. A curve whose look has no colour has that of its place in its family, or among those alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from dynamics_cli.plotting.chart import Chart, Line, draw_chart, draw_charts
from dynamics_cli.plotting.labels import LegendPlace, format_number, panel_label
from dynamics_cli.plotting.scene import DASHES
from dynamics_cli.plotting.style import COLUMN_WIDTH, MARKER, TEXT_WIDTH, Drawing, Floats

DASHED = (0, (4, 2))
"""The line style of what is predicted."""
FAR = (-np.inf, np.inf)
LINEAR = {"log": "none"}


def labelled(*panels: Axes) -> list[Artist]:
    """Return the handles of what has a label in these panels, panel by panel, for a legend."""
    handles: list[Artist] = []
    for panel in panels:
        handles += panel.get_legend_handles_labels()[0]
    return handles


def line(x: ArrayLike, y: ArrayLike, name: str = "", look: str = "") -> Line:
    """Return a curve y (k,), or m of one look (k, m), over x (k,) in any order.

    A single x is the first of numbers that count up. Where x is not finite there is no point.
    """
    form: dict[str, Any] = {"color": ""}
    for word in look.split():
        if word in DASHES:
            form["dash"] = word
        elif word == "pale":
            form["alpha"] = 0.4
        elif word in ("points", "joined", "hollow"):
            form |= {"points": True, word: True}
        elif word[0].isdigit():
            form["width"] = float(word)
        elif len(word) == 1:
            form |= {"points": True, "marker": word}
        else:
            form["color"] = f"series-{word[1:]}" if word[1:].isdigit() else word
    ys = np.asarray(y, np.float64)
    xs = np.asarray(x, np.float64)
    if xs.ndim == 0:
        xs = xs + np.arange(len(ys))
    if form.pop("joined", False):
        form |= {"points": False, "marker": form.get("marker", MARKER)}
    if form.get("points") and ys.ndim == 2:
        xs = np.repeat(xs, ys.shape[1])
        ys = ys.ravel()
    order = np.argsort(xs, kind="stable")
    if not np.array_equal(xs, FAR):
        order = order[np.isfinite(xs[order])]
    return Line(x=xs[order], y=ys[order], name=name, **form)


def lines(
    x: ArrayLike,
    values: Mapping[Any, ArrayLike] | ArrayLike,
    name: str = "{}",
    look: str = "",
) -> list[Line]:
    """Return a family: curves by their keys, or columns (k, m) by their numbers, as `name` says."""
    if not isinstance(values, Mapping):
        values = dict(enumerate(np.asarray(values).T))
    return [line(x, y, name.format(key), look) for key, y in values.items()]


def stairs(edges: ArrayLike, heights: ArrayLike, name: str = "", look: str = "") -> Line:
    """Return the outline of a histogram of heights (k,) between edges (k + 1,)."""
    return line(np.repeat(edges, 2), np.pad(np.repeat(heights, 2), 1), name, look)


def level(y: float, name: str = "", look: str = "theory dashed 0.8") -> Line:
    """Return a line at y from end to end of a chart."""
    return line(FAR, (y, y), name, look)


def upright(x: float, name: str = "", look: str = "muted dotted 0.9") -> Line:
    """Return a line at x from the bottom of a chart to its top."""
    return line((x, x), FAR, name, look)


def entry(name: str, look: str) -> Line:
    """Return a line that the legend alone shows."""
    return level(np.nan, name, look)


def chart(title: str, ylabel: str, *parts: Line | Sequence[Line], **words: Any) -> Chart:
    """Return a chart of lines and families on linear axes, with more words of `Chart`.

    `ticks` may be numbers.
    """
    drawn: list[Line] = []
    alone = 0
    for part in parts:
        family = [part] if isinstance(part, Line) else part
        first = 0
        if isinstance(part, Line):
            first = alone
            alone += not part.color
        drawn += [
            replace(one, color=one.color or f"series-{first + k}") for k, one in enumerate(family)
        ]
    return _with(Chart(lines=drawn, ylabel=ylabel, title=title), words)


def _with(made: Chart, words: Mapping[str, Any]) -> Chart:
    """Return a chart with words that it has not."""
    ticks = words.get("ticks", {})
    if not isinstance(ticks, Mapping):
        words = {**words, "ticks": {at: format_number(at) for at in ticks}}
    defaults = {key: getattr(Chart, key, {}) for key in words}
    return replace(
        made, **{key: words[key] for key, value in defaults.items() if getattr(made, key) == value}
    )


def _ended(made: Chart) -> Chart:
    """Return a chart whose levels end where it does."""
    ends = [end for end in made.limits_x if end is not None]
    x = np.concatenate([ends, *(np.asarray(one.x) for one in made.lines)])
    y = made.values[made.values > 0] if made.log_y else made.values

    def ended(values: ArrayLike, among: Floats) -> ArrayLike:
        if not np.array_equal(values, FAR):
            return values
        among = among[np.isfinite(among)]
        return among.min(), among.max()

    lines = [replace(one, x=ended(one.x, x), y=ended(one.y, y)) for one in made.lines]
    return replace(made, lines=lines)


def panel(axes: Axes, number: int, made: Chart) -> list[Artist]:
    """Draw a chart as panel of that number, from 0, and return the handles of a legend."""
    panel_label(axes, number, made.title)
    return draw_chart(axes, _ended(_with(made, LINEAR)))


def charts(
    *made: Chart,
    columns: int = 0,
    legend: LegendPlace | Literal["common"] = "common",
    **words: Any,
) -> Drawing:
    """Return the figure of a paper: charts with letters and titles, and one legend.

    `words` are of all charts without their own.
    """
    width = COLUMN_WIDTH if len(made) == 1 else TEXT_WIDTH
    drawn = [_ended(_with(one, LINEAR | words)) for one in made]
    return draw_charts(drawn, size=(width, None), columns=columns, legend=legend)
