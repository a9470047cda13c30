"""`regions`: the exact decision regions of a classifier of two inputs, and its neurons' lines (Sarussi et al. 2021)."""

from __future__ import annotations

import numpy as np
from matplotlib.artist import Artist
from matplotlib.figure import Figure

from dynamics_cli.analysis.states import shown_states, state_row
from dynamics_cli.analysis.view import View
from dynamics_cli.config.architecture import FullyConnectedArchitecture, TwoLayerArchitecture
from dynamics_cli.errors import UsageError
from dynamics_cli.losses import get_loss
from dynamics_cli.measures.linear_pieces import Layer, LevelSets, TooManyPiecesError, level_sets, two_layer_pieces
from dynamics_cli.plotting.layout import figure_legend
from dynamics_cli.plotting.panels.decision_regions import data_window, draw_regions


def regions_missing(view: View) -> str | None:
    """Return why decision regions cannot be drawn, or None."""
    if view.no_dataset:
        return view.no_dataset
    if get_loss(view.run.config.loss).labels == "real":
        return "its labels are real numbers, not classes"
    if view.dataset.input_dim != 2:
        return f"it shows classifiers of two inputs, and here inputs have {view.dataset.input_dim} dimensions"
    return _network_missing(view)


def _network_missing(view: View) -> str | None:
    """Return why the network cannot be cut into its linear pieces, or None."""
    if not isinstance(view.run.config.architecture, TwoLayerArchitecture | FullyConnectedArchitecture):
        return "the network is not a fully connected one"
    if view.outputs > 2:
        return f"it shows two classes, and the network has {view.outputs} outputs"
    if not view.complete:
        return "not all parameters of the network are recorded (see record.parameters in its config)"
    return None if view.states else "no finite parameters are recorded yet"


def regions_figure(view: View, iteration: int | None) -> Figure:
    """Draw the decision regions at the state nearest to `iteration`, or at four states."""
    states = shown_states(view, iteration)
    figure, axes = state_row(len(states), 1.05, single=1.0)
    x, y = view.dataset.x[:, :2], signed_labels(view)
    window = data_window(x)
    handles: list[Artist] = []
    for k, (panel, state) in enumerate(zip(axes, states, strict=True)):
        found = state_regions(view, state.index, window)
        drawn = draw_regions(panel, found.polygons, found.bands, found.segments[0], window, x=x, y=y)
        handles += drawn.handles
        panel.set_title(state.title)
        if k > 0:
            panel.set_ylabel("")
            panel.tick_params(labelleft=False)
    figure_legend(figure, handles, columns=5)
    return figure


def signed_labels(view: View) -> np.ndarray:
    """Return the labels (n,) as ±1; of two classes, class 1 is positive."""
    y = np.asarray(view.dataset.y, dtype=np.float64)
    return np.where(y == 1, 1.0, -1.0)


def state_regions(view: View, i: int, window: tuple[float, float, float, float]) -> LevelSets:
    """Return where the network of state `i` decides for either class; raises UsageError when it has too many pieces."""
    architecture = view.run.config.architecture
    assert isinstance(architecture, TwoLayerArchitecture | FullyConnectedArchitecture)
    slope = {"relu": 0.0, "linear": 1.0, "leaky_relu": architecture.slope or 0.0}[architecture.activation]
    try:
        return level_sets(state_layers(view, i), slope, window)
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
