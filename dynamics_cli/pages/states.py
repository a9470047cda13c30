"""What a slider over training time moves: the pictures of single states, as numbers for all states that are shown.

The numbers are those of the panels of `analysis`; the browser only draws them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from dynamics_cli.analysis.curves import some_neurons
from dynamics_cli.analysis.panels import inputs
from dynamics_cli.analysis.panels.neurons import common_limit, plane_of
from dynamics_cli.analysis.registry import PANELS
from dynamics_cli.analysis.view import View, no_network, spread
from dynamics_cli.datasets.images import Digits
from dynamics_cli.errors import UsageError
from dynamics_cli.measures.arrays import Floats, Ints
from dynamics_cli.measures.neurons import norms
from dynamics_cli.pages.document import Html, Page
from dynamics_cli.plotting.panels.inputs import data_window

MOST = 1_200_000
"""Numbers of a picture, all states together; where there are more, some of the states are drawn."""
GRID = 257
"""Inputs at which a function is drawn, besides the kinks of its neurons."""
SIDE = 96
"""Points of a side of the grid on which decision regions are drawn."""
REGIONS = 40
"""States whose decision regions are computed at most."""
PIECES = 4000
"""Linear pieces that the exact boundary of a state may cross; of one that crosses more, the grid is drawn."""
TILES = 36
"""Neurons whose weights are drawn as images at most, those of the largest final norm."""
DRAWN_DATA = 500
"""Points of the data that are drawn at most."""


class Shown(NamedTuple):
    """The states that a slider goes through."""

    view: View
    states: Ints
    """Their indices (k,) among the recorded ones."""
    group: int
    """The number of the slider on its page."""

    def some(self, cost: int, most: int = MOST) -> tuple[Ints, dict[str, Any]]:
        """Return the states (c,) of a picture of `cost` numbers a state, and what the script must know of them."""
        kept = spread(len(self.states), max(2, most // max(cost, 1)))
        return self.states[kept], {"group": self.group, **({} if len(kept) == len(self.states) else {"at": kept})}


def state_panels(page: Page, shown: Shown) -> Iterator[Html]:
    """Yield the pictures of states that a run has: function, decision regions, samples, neurons, weights as images."""
    view = shown.view

    def has(name: str) -> bool:
        return PANELS[name].missing(view) is None

    if has("function"):
        yield (_outputs if view.outputs > 1 else _function)(page, shown)
    if has("samples"):
        yield _samples(page, shown)
    elif (
        view.no_dataset is None
        and view.dataset.input_dim == 2
        and no_network(view) is None
        and view.run.config.architecture.between_samples
    ):
        yield _regions(page, shown, exact=has("regions"))
    if has("polar"):
        yield _plane(page, shown)
    if view.layers and isinstance(view.run.config.dataset, Digits) and _tiles(view):
        yield _images(page, shown)


def outputs_at_data(view: View, states: Ints, most: int = 6) -> dict[str, Floats]:
    """Return the outputs (k,) at each of the first inputs, by their names, of a network that can be evaluated."""
    if view.no_dataset is not None or view.outputs > 1 or view.dataset.n > most or no_network(view) is not None:
        return {}
    if view.run.config.architecture.players:
        return {}
    values = np.stack([view.network(int(i))(view.dataset.x) for i in states])  # (k, n)
    return {f"output at data point {n + 1}": column for n, column in enumerate(values.T)} if values.ndim == 2 else {}


def _function(page: Page, shown: Shown) -> Html:
    view, data = shown.view, shown.view.dataset
    width = len(inputs.neurons(view, 0)[0])
    drawn = some_neurons(width) if width else np.zeros(0, np.int64)
    states, about = shown.some(GRID + 3 * len(drawn))
    frame = inputs.common_frame(view, [int(i) for i in states])
    grid = np.linspace(*frame.window, GRID)
    lines, kinks = [], []
    for i in states:
        h = view.line_function(int(i))
        lines.append(h(grid))
        if width:
            places, heights = (values[drawn] for values in inputs.neurons(view, int(i)))
            inside = (places >= frame.window[0]) & (places <= frame.window[1])
            kinks.append([places, heights, np.where(inside, h(np.where(inside, places, 0.0)), np.nan)])
    held = () if data.x_test is None or data.y_test is None else (data.x_test[:DRAWN_DATA, 0], data.y_test[:DRAWN_DATA])
    more: dict[str, Any] = {"kinks": page.array(_single(kinks))} if width else {}
    alternative = f"Curve of the network's output over its input, with {data.n} data points"
    return page.panel(
        "function", "Function, data and neurons" if width else "Function and data",
        f"{alternative}{f' and {width} neurons at their kinks, as high as sign times norm' if width else ''}.",
        window=frame.window, limits=frame.limits, neuron_limits=frame.neuron_limits, grid=page.array(grid),
        values=page.array(_single(lines)), data=page.array(np.stack([data.x[:DRAWN_DATA, 0], data.y[:DRAWN_DATA]])),
        held=page.array(np.stack(held)) if held else None, **more, **about,
    )  # fmt: skip


def _single(values: Any) -> Any:
    """Return numbers that are only drawn, in float32; what is beyond it is not drawn."""
    with np.errstate(over="ignore"):
        return np.asarray(values, np.float64).astype(np.float32)


def _outputs(page: Page, shown: Shown) -> Html:
    view = shown.view
    states, about = shown.some(GRID * view.outputs)
    lines = [inputs.outputs_on_line(view, int(i), GRID) for i in states]
    points: dict[str, Any] = {
        name: page.array(np.stack([part[:DRAWN_DATA] for part in inputs.output_points(view, held=name == "held")]))
        for name in ("data", "held")
    }
    title = "Probabilities of the classes" if view.classifies else "Outputs and data"
    return page.panel(
        "outputs", title, f"{title}: {view.outputs} curves over the input.", names=inputs.output_names(view),
        limits=inputs.output_limits(view, [int(i) for i in states]), grid=page.array(lines[0][0]),
        label="probability" if view.classifies else "output h(x)",
        values=page.array(_single([values for _, values in lines])), **points, **about,
    )  # fmt: skip


def _regions(page: Page, shown: Shown, *, exact: bool) -> Html:
    """Add the output, or the class, on a grid; and where the network is piecewise linear the exact boundary."""
    view, data = shown.view, shown.view.dataset
    states, about = shown.some(1, REGIONS)
    x = np.asarray(data.x[:DRAWN_DATA, :2], np.float64)
    window = data_window(x)
    across, up = np.meshgrid(np.linspace(*window[:2], SIDE), np.linspace(*window[2:], SIDE))
    points = np.stack([across.ravel(), up.ravel()], axis=1)
    if data.bias:
        points = np.column_stack([points, np.ones(len(points))])
    levels, segments, counts = [], [], []
    for i in states:
        h = view.network(int(i))(points)
        if h.ndim == 2 and h.shape[1] > 1:
            levels.append(inputs.softmax(h).argmax(axis=1).astype(np.uint8))
        else:
            h = np.nan_to_num(h.reshape(-1), nan=0.0, posinf=0.0, neginf=0.0)
            share = 127 * h / (np.abs(h).max() or 1.0)
            levels.append((128 + np.sign(h) * np.ceil(np.abs(share))).astype(np.uint8))  # 128 is exactly 0
        boundary = _boundary(view, int(i), window) if exact else []
        segments += boundary
        counts.append(len(boundary))
    several, real = view.outputs > 1, view.run.config.loss.labels == "real"
    title = "Largest output" if several else "Output"
    return page.panel(
        "regions", f"{title} in the plane of inputs" if real else "Decision regions",
        f"Map of what the network says in the plane of its two inputs, with {len(x)} data points.",
        window=window, side=SIDE, names=inputs.output_names(view) if several else None,
        middle=0.5 if view.classifies else 0.0, levels=page.array(np.stack(levels)),
        segments=page.array(_single(segments).reshape(-1, 4)), counts=page.array(counts),
        data=page.array(_labelled(data.x, data.y)), held=page.array(_labelled(data.x_test, data.y_test)), **about,
    )  # fmt: skip


def _labelled(x: Floats | None, y: Floats | None) -> Floats:
    """Return samples in the plane with their labels (n, 3); of vectors the place of the largest number."""
    if x is None or y is None:
        return np.zeros((0, 3))
    label = y[:DRAWN_DATA].argmax(axis=1) if y.ndim == 2 else y[:DRAWN_DATA]
    return np.column_stack([x[:DRAWN_DATA, :2], label])


def _boundary(view: View, i: int, window: tuple[float, float, float, float]) -> list[Floats]:
    try:
        return inputs.state_regions(view, i, window, most=PIECES).segments[0]
    except UsageError:  # too many pieces, or an activation that is not piecewise linear: the grid shows it
        return []


def _samples(page: Page, shown: Shown) -> Html:
    view = shown.view
    samples, data = inputs.sampler(view), inputs.some_data(view)
    states, about = shown.some(2 * len(samples(0)))
    return page.panel(
        "samples", "Samples of the generator",
        f"{len(data)} points of the data, and samples of the generator over them.",
        window=data_window(data), data=page.array(_single(data)),
        samples=page.array(_single([samples(int(i)) for i in states])), **about,
    )  # fmt: skip


def _plane(page: Page, shown: Shown) -> Html:
    view = shown.view
    plane, names = plane_of(view)
    m, d = view.hidden_shape
    drawn = some_neurons(m)
    states, about = shown.some(3 * len(drawn))
    coordinates = np.stack([plane(int(i))[drawn] for i in states])
    names = ("weight", "bias") if d == 2 and view.no_dataset is None and view.dataset.bias else names
    rays = view.dataset.x if d == 2 and view.no_dataset is None and view.dataset.n <= 50 else np.zeros((0, 2))
    labels = [0.0] * len(rays) if len(rays) and view.dataset.y.ndim > 1 else view.dataset.y if len(rays) else []
    where = "the plane of their weights" if d == 2 else "the plane of the two leading directions of the last weights"
    return page.panel(
        "plane", "Neurons in the plane" if d == 2 else "Neurons along principal directions",
        f"{len(drawn)} of {m} neurons in {where}, coloured by the sign of their output weight, with their paths.",
        names=[name.strip("$").replace("_{j,", " ").replace("}", "") for name in names],
        limit=common_limit(list(coordinates)), coordinates=page.array(_single(coordinates)),
        signs=page.array(_single([view.signs(int(i))[drawn] for i in states])),
        rays=page.array(np.column_stack([rays, labels])) if len(rays) else None, **about,
    )  # fmt: skip


def _tiles(view: View) -> Callable[[int], Floats] | None:
    """Return the first layer's weights of a state on the pixels (m, 784), or None where it does not see all of them."""
    name = view.layers[0]
    if view.weight_shape(name)[1] not in (784, 785):
        return None
    return lambda i: view.weights(i, name)[:, :784]


def _images(page: Page, shown: Shown) -> Html:
    view = shown.view
    weights = _tiles(view)
    assert weights is not None
    last = norms(weights(view.states - 1))
    chosen = np.sort(np.argsort(-last, kind="stable")[:TILES])
    states, about = shown.some(784 * len(chosen))
    tiles, scales = [], []
    for i in states:
        W = weights(int(i))[chosen]
        scales.append(float(np.abs(W).max()))
        tiles.append(np.round(128 + 127 * W / (scales[-1] or 1.0)).astype(np.uint8))
    return page.panel(
        "images", "Weights of the first layer as images",
        f"The weights of {len(chosen)} of {len(last)} neurons on the 28 x 28 pixels, those of the largest final norm; "
        "each state on the scale of its largest weight.",
        names=chosen, tiles=page.array(np.stack(tiles)), scales=page.array(scales), **about,
    )  # fmt: skip
