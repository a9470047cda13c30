"""What the script of a page draws: charts, and scenes of all states that a slider shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.analysis.curves import MANY_NEURONS
from dynamics_cli.analysis.view import Detail, spread
from dynamics_cli.mathematics import in_unicode
from dynamics_cli.measures.arrays import Ints
from dynamics_cli.pages.document import Html, Page, image, tag
from dynamics_cli.plotting.chart import Chart, Line, draw_charts, numbered_marks, remarks
from dynamics_cli.plotting.panels.phase import Phase
from dynamics_cli.plotting.scene import Scene, SceneLayer
from dynamics_cli.plotting.style import SERIES
from dynamics_cli.text import cell

PIXELS = Detail(points=257, side=96, neurons=MANY_NEURONS)
"""For pictures on a screen, of many states."""
MOST = 1_200_000
"""Numbers of a picture, all states together; where there are more, some of the states are drawn."""
MAPS = 40
"""States whose maps over two inputs are computed at most."""
DRAWN_DATA = 1500
"""Points that do not move, such as data, which a picture shows at most."""
MOST_ALIKE = 24
"""Curves of one look that a chart shows at most."""
SENT = ("form", "z", "moves", "right", "rim", "size", "hollow", "alpha", "shade")
"""The fields of a layer that the script reads as they are."""
DASHES: dict[str, list[int]] = {"": [], "dashed": [8, 3], "dotted": [2, 3]}
"""Pixels drawn and left out in turn."""
SIGNS = ({"o": "●", "*": "★", "s": "■", "^": "▲", "v": "▼", "D": "◆"}, {"o": "○", "s": "□"})
"""Markers in legends, filled and hollow."""


def add_charts(page: Page, charts: Iterable[Chart | Phase]) -> Iterator[Html]:
    """Add the charts of a picture; paths and phase diagrams, whose x is in no order, are images."""
    for chart in charts:
        if isinstance(chart, Chart) and not any(line.path for line in chart.lines):
            yield add_chart(page, chart)
            continue
        png = draw_charts([replace(chart, headed=False)])._repr_png_()
        said = f"{chart.ylabel} over {chart.xlabel}"
        if isinstance(chart, Phase):
            said = f"{chart.label} by {chart.xlabel} and {chart.ylabel}"
        title = tag("figcaption", in_unicode(chart.title or said))
        yield tag("figure", title, image(png, said), class_="panel")


def add_chart(page: Page, chart: Chart, *, wide: bool = False) -> Html:
    """Add a chart; one over iterations marks the state of the slider."""
    title = in_unicode(chart.title or chart.ylabel)
    finite = chart.values[np.isfinite(chart.values)]
    if not any(np.isfinite(line.columns).any() for line in chart.lines):
        return tag(
            "figure",
            tag("figcaption", title),
            tag("p", "No finite value is recorded."),
            class_="panel",
        )
    every = sum(line.columns.shape[1] for line in chart.lines if not line.stat)
    some = sum(min(line.columns.shape[1], MOST_ALIKE) for line in chart.lines if not line.stat)
    drawn_here = f"{some} of {every} curves" * (some < every)
    title = ", ".join(filter(None, [title, chart.note, drawn_here, *remarks([chart])]))
    lines = [drawn for line in chart.lines if np.size(line.x) for drawn in _lines(page, line)]
    numbers = numbered_marks([chart])
    names = [*dict.fromkeys(line["name"] for line in lines if line["name"])]
    of = ", ".join(names[:6]) or title
    if len(names) > 6:
        of += f" and {len(names) - 6} more"
    said = (
        f"Chart of {of} over the {in_unicode(chart.xlabel)}, from {cell(finite.min())} to"
        f" {cell(finite.max())}."
    )
    return page.panel(
        "chart",
        title,
        said,
        wide=wide,
        lines=lines,
        log={"x": chart.log_x, "y": chart.log_y},
        label=in_unicode(chart.xlabel),
        reach_x=chart.reach_x,
        least=finite[finite > 0].min(initial=np.inf),
        reach=[
            *chart.reach,
            *(end for end in chart.limits if end is not None),
            *(level.value for level in chart.near),
        ],
        ticks=[*chart.ticks.items()],
        levels=[(in_unicode(name), value, _role(role)) for name, value, role in chart.near],
        plateaus=chart.plateaus,
        marks=[(at, numbers.get(words), words) for at, words in chart.marks],
    )


def _role(role: str) -> str:
    """Return a role of the style sheet: the colours of several curves turn round."""
    name, _, number = role.partition("-")
    return f"{name}-{int(number) % len(SERIES)}" if number else role


def _lines(page: Page, line: Line) -> Iterator[dict[str, Any]]:
    """Yield the curves of a line: all, some of very many, or their median with a band."""
    x = np.asarray(line.x, np.float64)
    y = line.columns
    form: dict[str, Any] = {"color": _role(line.color), "dash": DASHES[line.dash]}
    form |= {"points": line.points, "hollow": line.hollow}
    form |= {"sign": SIGNS[0].get(line.marker, "")}
    if line.stat:
        medians, partial = line.middles()
        ends = [page.array(end) for end in line.statistics.bands if y.shape[1] > 1]
        bands = [*zip(ends[::2], ends[1::2], strict=True)]
        name = in_unicode(line.name)
        for k in range(max(len(bands), 1)):
            inner = {"further": True, "partial": True, "width": 0} if k else {"width": line.width}
            middle = page.curve(x, medians, name, **form, **inner)
            if bands:
                middle |= dict(zip(("low", "high"), bands[k], strict=True))
            yield middle
        if np.isfinite(partial).any():
            form |= {"dash": DASHES["dotted"]} if line.dense else {"points": True}
            form |= {"further": True, "partial": True, "width": line.width}
            yield page.curve(x, partial, in_unicode(line.name), **form)
        return
    width = line.width * (1.0 if y.shape[1] == 1 else 0.6)
    for k, column in enumerate(spread(y.shape[1], MOST_ALIKE)):
        drawn = page.curve(x, y[:, column], in_unicode(line.name), further=k > 0, **form)
        number = int(column) + 1 if y.shape[1] > 1 else None
        yield {**drawn, "width": width, "number": number}


def add_scene(page: Page, shown: Ints, name: str, scene: Scene) -> Html:
    """Add a scene of the states (k,) of the slider, or of some if there is no room for all."""
    cost = sum(layer.at(int(shown[-1])).size for layer in scene.layers if layer.moves)
    maps = any(layer.form in ("field", "classes") for layer in scene.layers)
    kept = spread(len(shown), min(max(2, MOST // max(cost, 1)), MAPS if maps else MOST))
    states = [int(i) for i in shown[kept]]
    layers, legend = zip(*(_layer(page, layer, states) for layer in scene.layers), strict=True)
    return page.panel(
        "scene",
        scene.title,
        scene.alternative,
        name=name,
        window=scene.window,
        right=scene.right,
        right_label=in_unicode(scene.right_label),
        x=in_unicode(scene.xlabel),
        y=in_unicode(scene.ylabel),
        square=scene.square,
        zero=scene.zero,
        remarks=[scene.remark(i) for i in states],
        at=kept if len(kept) < len(shown) else None,
        windows=page.array([scene.window_of(i) for i in states]) if scene.window_of else None,
        layers=sorted(layers, key=lambda layer: layer["z"]),
        legend=[entry for entries in legend for entry in entries],
    )


def _layer(
    page: Page, layer: SceneLayer, states: list[int]
) -> tuple[dict[str, Any], list[tuple[str, str, str]]]:
    """Return numbers and look of a layer in all states, and its legend: colour, sign, name."""
    parts = [layer.at(i) for i in states] if layer.moves else [layer.at(states[-1])[:DRAWN_DATA]]
    seen = np.any([layer.seen(part) for part in parts], axis=0)
    look = {key: getattr(layer, key) for key in SENT} | {"dash": DASHES[layer.dash]}
    look |= {
        "colors": [_role(role.color) for role in layer.roles],
        "markers": [role.marker for role in layer.roles],
    }
    numbers = {
        "rows": page.array(_single(np.concatenate(parts))),
        "counts": page.array([len(part) for part in parts]),
        "columns": parts[0].shape[1],
    }
    sign = SIGNS[layer.hollow] if layer.form == "points" else {}
    default = "■" if layer.form in ("field", "classes") else "—"
    legend = []
    for role in layer.legend(seen):
        name = in_unicode(role.name)
        if role.color == "ground":
            legend.append(("unsigned", "□", name))
        else:
            legend.append((_role(role.color), sign.get(role.marker, default), name))
    return {**look, **numbers}, legend


def _single(values: NDArray[Any]) -> NDArray[Any]:
    """Return numbers that are only drawn, in float32; numbers beyond its range are not drawn."""
    with np.errstate(over="ignore"):
        return values if values.dtype == np.uint8 else values.astype(np.float32)
