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
from dynamics_cli.architectures.fully_connected import FullyConnected
from dynamics_cli.architectures.gan import Gan
from dynamics_cli.architectures.two_layer import TwoLayer
from dynamics_cli.errors import UsageError
from dynamics_cli.measures.arrays import Floats
from dynamics_cli.measures.linear_pieces import (
    MOST_PIECES,
    Layer,
    LevelSets,
    TooManyPiecesError,
    level_sets,
    two_layer_pieces,
)
from dynamics_cli.measures.neurons import kinks, norms
from dynamics_cli.plotting.panels.inputs import (
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

    Of a classifier, the probabilities of its classes.
    """
    states = shown_states(view, iteration)
    if view.outputs > 1:
        return draw_states(states, lambda axes, i: draw_classes(axes, view, i), aspect=1.0, single=0.72, columns=6)
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
    data = view.dataset
    x, y = data.x[:, 0], data.y
    if data.x_test is not None:
        x = np.concatenate([x, data.x_test[:, 0]])
        y = y if data.y_test is None else np.concatenate([y, data.y_test])
    window = default_window(x)
    grid = np.linspace(*window, 256)
    cap = BEYOND * max(float(np.abs(y).max()), 1e-12) if view.run.status == "diverged" else np.inf
    curves = [np.clip(view.line_function(i)(grid), -cap, cap) for i in states]
    stars = []
    for i in states:
        places, outputs = neurons(view, i)
        stars.append(outputs[(places >= window[0]) & (places <= window[1])])
    return Frame(window, *common_zero(np.concatenate([y, *curves]), np.concatenate(stars)))


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


def draw_classes(axes: Axes, view: View, i: int) -> list[Line2D]:
    """Draw the probability that state `i` gives to every class, over the input; return the lines.

    Training data are dots at the top (probability 1), in the colour of their class; held-out data are rings.
    """
    data = view.dataset
    x, window = data.x[:, 0], default_window(data.x[:, 0])
    grid, shares = class_shares(view, i)
    lines: list[Line2D] = []
    for c in range(shares.shape[1]):
        color, line = SERIES[c % len(SERIES)], LINES[c // len(SERIES) % len(LINES)]
        lines += axes.plot(grid, shares[:, c], color=color, ls=line, lw=1.6, label=f"class {c}", zorder=2)
        dot: dict[str, Any] = {"marker": "o", "ls": "none", "ms": 5.0, "mew": 0.5, "zorder": 3, "clip_on": False}
        shown: list[tuple[Floats, float, dict[str, Any]]] = [(x[data.y == c], 1.08, {"mfc": color, "mec": "white"})]
        if data.x_test is not None:
            ring: dict[str, Any] = {"mfc": "white", "mec": color, "ms": 4.0, "mew": 0.9}
            shown.append((data.x_test[data.y_test == c, 0], 1.16, ring))
        for places, height, look in shown:
            if len(places):  # the extent of an empty line that is not clipped breaks the layout
                axes.plot(places, np.full(len(places), height), **{**dot, **look})
    axes.set(xlim=window, ylim=(0, 1.22 if data.x_test is not None else 1.14), yticks=[0, 0.5, 1])
    axes.set(xlabel="input $x$", ylabel="probability of the class")
    return lines


def class_shares(view: View, i: int, points: int = 512) -> tuple[Floats, Floats]:
    """Return inputs (k,) and the probabilities (k, C) of the classes there, in state `i`."""
    grid = np.linspace(*default_window(view.dataset.x[:, 0]), points)
    return grid, softmax(view.line_function(i)(grid))


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
    if not isinstance(view.run.config.architecture, TwoLayer | FullyConnected):
        return "the network is not a fully connected one"
    return f"it shows two classes, and the network has {view.outputs} outputs" if view.outputs > 2 else None


@panel(
    "regions", "exact decision regions of a classifier of two inputs", no_data, _no_classes, _not_two_inputs,
    _no_linear_pieces, no_network,
)  # fmt: skip
def regions_figure(view: View, iteration: int | None) -> Figure:
    """Draw the decision regions at the state nearest to `iteration`, or at four states."""
    x = view.dataset.x[:, :2]
    y = np.where(np.asarray(view.dataset.y, dtype=np.float64) == 1, 1.0, -1.0)  # of two classes, class 1 is positive
    window = data_window(x)

    def draw(axes: Axes, i: int) -> Sequence[Artist]:
        sets = state_regions(view, i, window)
        return draw_regions(axes, sets.polygons, sets.bands, sets.segments[0], window, x=x, y=y).handles

    return draw_states(shown_states(view, iteration), draw, columns=5)


def state_regions(view: View, i: int, window: Window, *, most: int = MOST_PIECES) -> LevelSets:
    """Return where the network of state `i` decides for either class; raises UsageError when it has too many pieces."""
    architecture = view.run.config.architecture
    assert isinstance(architecture, TwoLayer | FullyConnected)
    slope = architecture.sigma.negative_slope
    if slope is None:
        raise UsageError(f"the activation {architecture.activation.kind} is not piecewise linear")
    try:
        return level_sets(state_layers(view, i), slope, window, most=most)
    except TooManyPiecesError as error:
        raise UsageError(f"the decision regions cannot be drawn: {error}") from error


def state_layers(view: View, i: int) -> list[Layer]:
    """Return the weights and biases of state `i`, from two inputs to one output (of two classes, their difference)."""
    state = {name: np.asarray(value, dtype=np.float64) for name, value in view.run.state(i).items()}
    bias = view.dataset.bias
    if view.two_layer:
        return two_layer_pieces(state["hidden_weight"], state["output_weight"], bias=bias)
    layers = []
    for k in range(1, 1 + sum(name.startswith("weight_") for name in state)):
        W = state[f"weight_{k}"]
        layers.append((W, state.get(f"bias_{k}", np.zeros(len(W)))))
    if bias:
        W, b = layers[0]
        layers[0] = (W[:, :2], b + W[:, 2])
    W, b = layers[-1]
    if len(W) == 2:
        layers[-1] = (W[1:] - W[:1], b[1:] - b[:1])
    return layers


# samples: what the generator of a GAN makes of the same noise at every state (Tachet des Combes et al. 2018) --------


def _no_generator(view: View) -> str | None:
    """Return why there is no generator, or None; a GAN's data set is always a mixture in the plane."""
    architecture = view.run.config.architecture
    if not isinstance(architecture, Gan):
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
    architecture = view.run.config.architecture
    assert isinstance(architecture, Gan)
    noise = np.random.default_rng(view.run.config.seed).standard_normal((SAMPLES, architecture.noise_dim))
    return lambda i: architecture.generate(view.run.state(i), noise)
