"""The learned function of one input, the data, and where the neurons are (Boursier et al. 2022, Fig. 2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from dynamics_cli.plotting.layout import LegendPlace, note, place_legend, set_axis_label
from dynamics_cli.plotting.style import PALETTE, styled

Array = NDArray[np.float64]
Limits = tuple[float, float]


@dataclass(frozen=True)
class FunctionPanel:
    """Artists of `draw_function_1d`; `outside` counts the neurons whose kink is not in the window (or nowhere)."""

    points: Line2D
    function: Line2D
    stars: Line2D
    neuron_axes: Axes
    outside: int
    note: Text | None
    legend: Legend | None


@styled
def draw_function_1d(
    axes: Axes,
    function: Callable[[Array], Array],
    x: ArrayLike,
    y: ArrayLike,
    *,
    kinks: ArrayLike,
    outputs: ArrayLike,
    window: Limits | None = None,
    limits: Limits | None = None,
    neuron_limits: Limits | None = None,
    legend: LegendPlace = "below",
    xlabel: str = "input $x$",
    ylabel: str = r"output $h_\theta(x)$",
    neuron_label: str = r"neuron $\mathsf{s}_j\,\Vert w_j\Vert$",
) -> FunctionPanel:
    """Draw data (n,), `function` ((k,) -> (k,)) on `window`, and a star at (`kinks`, `outputs`) for each of m neurons.

    `kinks` are -b_j/w_j, `outputs` s_j ||w_j||; the stars have their own y axis on the right, whose zero lies at the
    height of the left one's. Fix `limits` and `neuron_limits` to compare panels. Without `window` the inputs are shown
    with a margin of 25 % on both sides. The function is evaluated at every visible kink, so that kinks are sharp. Data
    and stars of non-finite position are left out. Raises ValueError for shapes that differ.
    """
    x, y = _pair(x, y, "data")
    kinks, outputs = _pair(kinks, outputs, "neurons")
    low, high = window if window is not None else default_window(x)
    seen = (kinks >= low) & (kinks <= high) & np.isfinite(outputs)
    grid = np.union1d(np.linspace(low, high, 512), kinks[seen])
    values = np.asarray(function(grid), dtype=np.float64)
    values = np.where(np.isfinite(values), values, np.nan)

    twin = axes.twinx()
    axes.axhline(0, color=PALETTE.faint, lw=0.7, zorder=0)
    star: dict[str, Any] = {"ls": "none", "marker": "*", "ms": 7.0, "mfc": PALETTE.neurons, "mec": "white", "mew": 0.3}
    (stars,) = twin.plot(kinks[seen], outputs[seen], **star, label="neurons", zorder=2.5)
    (line,) = axes.plot(grid, values, color=PALETTE.function, lw=1.6, label=r"estimated function $h_\theta$", zorder=3)
    dot: dict[str, Any] = {"ls": "none", "marker": "o", "ms": 5.5, "mfc": PALETTE.data, "mec": "white", "mew": 0.5}
    (points,) = twin.plot(x, y, **dot, label="data", zorder=4, transform=axes.transData)

    axes.set_xlim(low, high)
    axes.set_xlabel(xlabel)
    left, right = common_zero(np.concatenate([y, values]), outputs[seen])
    if limits is not None:
        left, right = limits, matched(limits, outputs[seen])
    _set_value_axes(axes, twin, (left, neuron_limits or right), (ylabel, neuron_label))
    outside = int(len(kinks) - seen.sum())
    remark = note(axes, f"{outside} \N{BLACK STAR} outside") if outside else None
    drawn = place_legend(axes, [points, line, stars], legend, columns=3)
    return FunctionPanel(points, line, stars, twin, outside, remark, drawn)


def default_window(x: ArrayLike) -> Limits:
    """Return the range of the finite inputs `x`, 25 % wider on both sides; unit margins around a single input."""
    finite = np.asarray(x, dtype=np.float64)
    finite = finite[np.isfinite(finite)]
    if len(finite) == 0:
        return -1.0, 1.0
    span = float(finite.max() - finite.min())
    margin = 0.25 * span if span > 0 else 1.0
    return float(finite.min() - margin), float(finite.max() + margin)


def common_zero(left: ArrayLike, right: ArrayLike, margin: float = 0.1) -> tuple[Limits, Limits]:
    """Return limits for two y axes that contain all finite values, with some `margin`, and whose zeros are level.

    Values that are all 0 (or none) get the unit interval's share of the axis.
    """
    extents = [_extent(left), _extent(right)]
    shares = [(down / (down + up), up / (down + up)) for down, up in extents]
    down, up = max(share[0] for share in shares), max(share[1] for share in shares)
    limits = []
    for low, high in extents:
        unit = max(low / down if down else 0.0, high / up if up else 0.0)
        pad = margin * (down + up)
        limits.append((-unit * (down + pad), unit * (up + pad)))
    return limits[0], limits[1]


def matched(limits: Limits, values: ArrayLike, margin: float = 0.1) -> Limits:
    """Return limits for `values` whose zero lies as high as that of the given `limits`, if 0 is inside those."""
    low, high = limits
    down, up = _extent(values)
    if not low < 0 < high:
        return -down * (1 + margin), up * (1 + margin)
    unit = max(down / -low, up / high) * (1 + margin)
    return unit * low, unit * high


def _extent(values: ArrayLike) -> tuple[float, float]:
    """Return how far the finite values reach below and above 0; (0, 1) when they are all 0."""
    array = np.asarray(values, dtype=np.float64)
    array = array[np.isfinite(array)]
    down = float(max(0.0, -array.min())) if len(array) else 0.0
    up = float(max(0.0, array.max())) if len(array) else 0.0
    return (down, up) if down + up > 0 else (0.0, 1.0)


def _pair(first: ArrayLike, second: ArrayLike, what: str) -> tuple[Array, Array]:
    a = np.asarray(first, dtype=np.float64).ravel()
    b = np.asarray(second, dtype=np.float64).ravel()
    if a.shape != b.shape:
        raise ValueError(f"{what}: {len(a)} positions for {len(b)} values")
    return a, b


def _set_value_axes(axes: Axes, twin: Axes, limits: tuple[Limits, Limits], labels: tuple[str, str]) -> None:
    """Set both y axes; the right one, in the colour of the neurons, is drawn on top so that stars cover the line."""
    for shared, limit, label in zip((axes, twin), limits, labels, strict=True):
        shared.set_ylim(*limit)
        set_axis_label(shared.yaxis, label, limit)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))
    twin.spines["right"].set_visible(True)
    twin.spines["right"].set_color(PALETTE.neurons)
    twin.tick_params(axis="y", colors=PALETTE.neurons)
    twin.yaxis.label.set_color(PALETTE.neurons)
