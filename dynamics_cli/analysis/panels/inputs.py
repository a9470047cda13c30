"""What a network does with its inputs: `function` of one input, `regions` of two, `samples` of a generator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dynamics_cli.analysis.registry import panel
from dynamics_cli.analysis.states import MANY_STARS, Shown, draw_states, shown_states
from dynamics_cli.analysis.view import View, no_data, no_network, no_states, spread
from dynamics_cli.errors import UsageError
from dynamics_cli.measures.arrays import Floats, Ints
from dynamics_cli.measures.linear_pieces import (
    MOST_PIECES,
    Layer,
    LevelSets,
    TooManyPiecesError,
    level_sets,
)
from dynamics_cli.measures.neurons import kinks, norms
from dynamics_cli.plotting.panels.inputs import (
    INPUT,
    OUTPUT,
    FunctionPanel,
    Limits,
    Window,
    common_zero,
    data_window,
    default_window,
    draw_function_1d,
    draw_regions,
    draw_samples,
)
from dynamics_cli.plotting.style import PALETTE, SERIES
from dynamics_cli.plotting.time_axis import visible
from dynamics_cli.recording.derivatives import layers_of

BEYOND = 10.0
"""Where a run diverged, the window is at most so many times as high as the largest label."""
LINES = ("-", (0, (4, 1.5)), (0, (1, 1.2)))
"""Line styles of more classes than there are colours."""
SAMPLES = 1500
"""Samples that are drawn, and points of the data at most."""
SAMPLED_STATES = 4

# function: of one input, with data and neurons (Boursier et al. 2022, Figure 2) -------------------------------------


def _not_one_input(view: View) -> str | None:
    d = view.dataset.input_dim
    return None if d == 1 else f"it shows functions of one input, and here inputs have {d} dimensions"


@panel("function", "learned function with the data, neurons as stars", no_data, _not_one_input, no_network)
def function_figure(view: View, iteration: int | None) -> Figure:
    """Draw the learned function at the state nearest to `iteration`, or at four states on common axes.

    Of several outputs each of them; of a classifier, the probabilities of its classes.
    """
    states = shown_states(view, iteration)
    if view.outputs > 1:
        limits = output_limits(view, [state.index for state in states])
        return draw_states(
            states, lambda axes, i: draw_outputs(axes, view, i, limits), aspect=1.0, single=0.72, columns=6
        )
    frame = common_frame(view, [state.index for state in states])

    def draw(axes: Axes, i: int) -> Sequence[Artist]:
        panel, _, handles = draw_state(axes, view, i, frame)
        if panel.outside and len(states) > 1:
            axes.set_xlabel(f"input $x$\n({panel.outside} \N{BLACK STAR} outside)")
        if i != states[-1].index:  # only the last panel of a row keeps its right labels
            panel.neuron_axes.set_ylabel("")
            panel.neuron_axes.tick_params(labelright=False)
        return handles

    return draw_states(states, draw, aspect=1.0, single=0.72)


@dataclass(frozen=True)
class Frame:
    """The axes that all states of a run share: inputs, outputs, and neurons (on the right)."""

    window: Limits
    limits: Limits
    neuron_limits: Limits


def common_frame(view: View, states: Sequence[int]) -> Frame:
    """Return axes that contain the data, and the function and the neurons in all `states`."""
    data, window = view.dataset, line_window(view)
    y = data.y if data.y_test is None else np.concatenate([data.y, data.y_test])
    grid = np.linspace(*window, 256)
    cap = BEYOND * max(float(np.abs(y).max()), 1e-12) if view.run.status == "diverged" else np.inf
    curves = [np.clip(view.line_function(i)(grid), -cap, cap) for i in states]
    stars = []
    for i in states:
        places, outputs = neurons(view, i)
        stars.append(outputs[(places >= window[0]) & (places <= window[1])])
    return Frame(window, *common_zero(np.concatenate([y, *curves]), np.concatenate(stars)))


def line_window(view: View) -> Limits:
    """Return the range of all inputs, of one dimension, with some margin."""
    data = view.dataset
    return default_window(data.x[:, 0] if data.x_test is None else np.concatenate([data.x, data.x_test])[:, 0])


def neurons(view: View, i: int) -> tuple[Floats, Floats]:
    """Return where the neurons of state `i` stand: kinks (m,) and `s_j ||w_j||` (m,); none for deep networks.

    Without bias every kink is at 0.
    """
    if not view.two_layer:
        return np.empty(0), np.empty(0)
    W = view.weights(i)
    places = kinks(W) if W.shape[1] == 2 else np.where(W[:, 0] != 0, 0.0, np.nan)
    return places, view.signs(i) * norms(W)


def draw_state(axes: Axes, view: View, i: int, frame: Frame) -> tuple[FunctionPanel, list[Artist], list[Artist]]:
    """Draw the function of state `i` with data and neurons.

    Return the panel, what covers what in it from back to front, and the handles of a legend.
    """
    data = view.dataset
    places, outputs = neurons(view, i)
    panel = draw_function_1d(
        axes, view.line_function(i), data.x[:, 0], data.y, kinks=places, outputs=outputs, window=frame.window,
        limits=frame.limits, neuron_limits=frame.neuron_limits,
    )  # fmt: skip
    twin = panel.neuron_axes
    layers: list[Artist] = [panel.function, panel.stars, panel.points]
    handles: list[Artist] = [panel.points, panel.function]
    if data.x_test is not None and data.y_test is not None:  # rings, under the training data and on top of the line
        ring: dict[str, Any] = {"marker": "o", "ms": 4.5, "mfc": "white", "mec": PALETTE.data, "mew": 0.9, "ls": "none"}
        look: dict[str, Any] = {"label": "held-out data", "zorder": 3.5, "transform": axes.transData, **ring}
        handles[1:1] = twin.plot(data.x_test[:, 0], data.y_test, **look)
        layers.insert(2, handles[1])
    if view.two_layer:  # a handle that stays as it is when the stars are made smaller
        star: dict[str, Any] = {"ls": "none", "marker": "*", "mew": 0.3, "mec": "white", "label": "neurons"}
        size, color = panel.stars.get_markersize(), panel.stars.get_markerfacecolor()
        handles.append(Line2D([], [], ms=size, mfc=color, **star))
    else:
        twin.yaxis.set_visible(False)
        twin.spines["right"].set_visible(False)
    if len(places) > MANY_STARS:  # small and pale, and the function on top of them
        panel.stars.set(markersize=3.0, markeredgewidth=0, alpha=0.3, rasterized=True)
        axes.set_zorder(twin.get_zorder() + 1)
        axes.patch.set_visible(False)
        layers = [*layers[1:], layers[0]]
    return panel, layers, handles


def draw_outputs(axes: Axes, view: View, i: int, limits: Limits) -> list[Line2D]:
    """Draw every output of state `i` over the input, of a classifier as the probability of its class; return the lines.

    Training data are dots in the colour of their output or class, held-out data rings; see `output_points`.
    """
    grid, values = outputs_on_line(view, i)
    lines: list[Line2D] = []
    for c, name in enumerate(output_names(view)):
        color, line = SERIES[c % len(SERIES)], LINES[c // len(SERIES) % len(LINES)]
        lines += axes.plot(grid, visible(values[:, c], log=False), color=color, ls=line, lw=1.6, label=name, zorder=2)
        dot: dict[str, Any] = {"marker": "o", "ls": "none", "ms": 5.0, "mew": 0.5, "zorder": 3, "clip_on": False}
        ring: dict[str, Any] = {"mfc": "white", "mec": color, "ms": 4.0, "mew": 0.9}
        for held, look in ((False, {"mfc": color, "mec": "white"}), (True, ring)):
            x, y, of = output_points(view, held=held)
            if (of == c).any():  # the extent of an empty line that is not clipped breaks the layout
                axes.plot(x[of == c], y[of == c], **{**dot, **look})
    axes.set(xlim=line_window(view), ylim=limits, xlabel=INPUT)
    axes.set_ylabel("probability of the class" if view.classifies else OUTPUT)
    if view.classifies:
        axes.set_yticks([0, 0.5, 1])
    return lines


def output_names(view: View) -> list[str]:
    """Return the names of several outputs: classes count from 0, as their labels do."""
    return [f"class {c}" if view.classifies else f"output {c + 1}" for c in range(view.outputs)]


def outputs_on_line(view: View, i: int, points: int = 512) -> tuple[Floats, Floats]:
    """Return inputs (k,) and the outputs (k, C) of state `i` there; of a classifier the probabilities of classes."""
    grid = np.linspace(*line_window(view), points)
    h = view.line_function(i)(grid)
    return grid, softmax(h) if view.classifies else h


def output_points(view: View, *, held: bool) -> tuple[Floats, Floats, Ints]:
    """Return where training or held-out samples stand among several outputs, and at which: each (k,).

    A class stands above probability 1, the numbers of a vector each at their height.
    """
    x, y = (view.dataset.x_test, view.dataset.y_test) if held else (view.dataset.x, view.dataset.y)
    if x is None or y is None:
        return np.zeros(0), np.zeros(0), np.zeros(0, np.int64)
    if view.classifies:
        return x[:, 0], np.full(len(x), 1.16 if held else 1.08), y.astype(np.int64)
    return np.repeat(x[:, 0], y.shape[1]), y.ravel(), np.tile(np.arange(y.shape[1]), len(y))


def output_limits(view: View, states: Sequence[int]) -> Limits:
    """Return limits that contain several outputs in all `states`, and the samples."""
    held = output_points(view, held=True)[1]
    if view.classifies:
        return 0.0, 1.22 if len(held) else 1.14
    curves = [outputs_on_line(view, i)[1].ravel() for i in states]
    values = np.concatenate([output_points(view, held=False)[1], held, *curves])
    return default_window(values)


def softmax(h: Floats) -> Floats:
    """Return the probabilities (k, C) that outputs (k, C) stand for; NaN where an output is not finite."""
    h = np.where(np.isfinite(h), h, np.nan)
    e = np.exp(h - h.max(axis=-1, keepdims=True))
    shares: Floats = e / e.sum(axis=-1, keepdims=True)
    return shares


# regions: exact, of a classifier of two inputs (Sarussi et al. 2021) ------------------------------------------------


def _no_classes(view: View) -> str | None:
    real = view.run.config.loss.labels == "real"
    return "its labels are real numbers, not classes" if real else None


def _not_two_inputs(view: View) -> str | None:
    d = view.dataset.input_dim
    return None if d == 2 else f"it shows classifiers of two inputs, and here inputs have {d} dimensions"


def _no_linear_pieces(view: View) -> str | None:
    architecture: Any = view.run.config.architecture
    if not architecture.matrices:
        return "the network is not a fully connected one"
    if architecture.sigma.negative_slope is None:
        return f"the activation {architecture.activation.kind} is not piecewise linear"
    if architecture.centered:
        return "the network is centred: that of the start is subtracted"
    return f"it shows two classes, and the network has {view.outputs} outputs" if view.outputs > 2 else None


@panel(
    "regions", "exact decision regions of a classifier of two inputs", no_data, _no_classes, _not_two_inputs,
    _no_linear_pieces, no_network,
)  # fmt: skip
def regions_figure(view: View, iteration: int | None) -> Figure:
    """Draw the decision regions at the state nearest to `iteration`, or at four states."""
    data = view.dataset
    window = data_window(data.x[:, :2])
    parts = [(data.x, data.y), *([] if data.x_test is None or data.y_test is None else [(data.x_test, data.y_test)])]
    points: list[Any] = []
    for x, y in parts:
        points += [x[:, :2], np.where(y == 1, 1.0, -1.0)]  # of two classes, class 1 is positive

    def draw(axes: Axes, i: int) -> Sequence[Artist]:
        sets = state_regions(view, i, window)
        options = dict(zip(("x", "y", "x_test", "y_test"), points, strict=False))
        return draw_regions(axes, sets.polygons, sets.bands, sets.segments[0], window, **options).handles

    return draw_states(shown_states(view, iteration), draw, columns=5)


def state_regions(view: View, i: int, window: Window, *, most: int = MOST_PIECES) -> LevelSets:
    """Return where the network of state `i` decides for either class; raises UsageError when it has too many pieces."""
    architecture: Any = view.run.config.architecture
    slope = architecture.sigma.negative_slope
    assert slope is not None  # see the panel's needs
    try:
        return level_sets(state_layers(view, i), slope, window, most=most)
    except TooManyPiecesError as error:
        raise UsageError(f"the decision regions cannot be drawn: {error}") from error


def state_layers(view: View, i: int) -> list[Layer]:
    """Return the weights and biases of state `i`, from two inputs to one output (of two classes, their difference)."""
    layers = layers_of(view.run.config.architecture, view.run.state(i))
    if view.dataset.bias:
        W, b = layers[0]
        layers[0] = (W[:, :2], b + W[:, 2])
    W, b = layers[-1]
    if len(W) == 2:
        layers[-1] = (W[1:] - W[:1], b[1:] - b[:1])
    return layers


# samples: what the generator of a GAN makes of the same noise at every state (Tachet des Combes et al. 2018) --------


def _no_generator(view: View) -> str | None:
    """Return why there is no generator, or None; a GAN's data set is always a mixture in the plane."""
    architecture: Any = view.run.config.architecture
    if "generator" not in architecture.players:
        return "the network has no generator"
    layers = range(1, len(architecture.generator_widths) + 2)
    if not {f"generator_{kind}_{layer}" for kind in ("weight", "bias") for layer in layers} <= set(view.run.parameters):
        return "not all parameters of the generator are recorded (see record.parameters in its config)"
    return None


@panel("samples", "samples of a generator in the plane, over the data", _no_generator, no_states)
def samples_figure(view: View, iteration: int | None) -> Figure:
    """Draw data and samples at the state nearest to `iteration`, or at four states spread over the training.

    The loss of either player tells little about the other, so that it does not choose the states.
    """
    states = [Shown(int(i), int(view.iterations[i])) for i in spread(view.states, SAMPLED_STATES)]
    if iteration is not None:
        states = shown_states(view, iteration)
    data, samples = some_data(view), sampler(view)
    window = data_window(data)

    def draw(axes: Axes, i: int) -> Sequence[Artist]:
        return draw_samples(axes, data, samples(i), window).handles

    return draw_states(states, draw, columns=2)


def some_data(view: View) -> Floats:
    """Return the points (n, 2) of the training set, the first `SAMPLES` of them."""
    return np.asarray(view.dataset.x[:SAMPLES], dtype=np.float64)


def sampler(view: View) -> Callable[[int], Floats]:
    """Return the function that gives the samples (SAMPLES, 2) of a state, by its index, of the same noise for all."""
    architecture: Any = view.run.config.architecture
    noise = np.random.default_rng(view.run.config.seed).standard_normal((SAMPLES, architecture.noise_dim))
    return lambda i: architecture.generate(view.run.state(i), noise)
