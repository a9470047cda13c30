"""What panels read of a run, in float64: weights, signs, data, and the network as a function."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dynamics_cli.errors import DynError, InputError
from dynamics_cli.kinds import Architecture, Samples
from dynamics_cli.kinds.arrays import Labels
from dynamics_cli.measures.arrays import Floats, Ints
from dynamics_cli.measures.neurons import signs
from dynamics_cli.plotting.time_axis import LogAxes
from dynamics_cli.runs.run import Run, data_changes

CURVE_STATES = 800
"""States that a curve over training is drawn through at most."""
CURVE_NUMBERS = 200_000_000
"""Weights that a panel reads at most, states together, before it takes fewer states."""


SEE = "(see record.parameters in its config)"


class Detail(NamedTuple):
    """How finely a scene is computed."""

    points: int
    """Inputs at which functions of one input are drawn."""
    side: int
    """Pixels of a side of a map over two inputs."""
    neurons: int
    """Neurons that are drawn at most."""


PRINT = Detail(512, 384, 10**9)
"""For pictures on paper."""


class View:
    """A run as panels see it. Nothing is read before it is asked for, and nothing twice."""

    def __init__(self, run: Run, log: LogAxes | None = None) -> None:
        """Look at `run`; `log` names logarithmic axes, by default those that this suits."""
        self.run = run
        self.log = log

    @cached_property
    def iterations(self) -> Ints:
        """Iterations (K,) of the recorded states."""
        return np.asarray(self.run.snapshot_iterations, dtype=np.int64)

    @property
    def two_layer(self) -> bool:
        """Whether the network is a two-layer one, of one output."""
        return getattr(self.run.config.architecture, "two_layer", False)

    @property
    def outputs(self) -> int:
        """Number of outputs of the network."""
        architecture = self.run.config.architecture
        return getattr(architecture, "outputs", None) or 1

    @property
    def classifies(self) -> bool:
        """Whether the outputs stand for probabilities of classes."""
        return self.labels == "classes"

    @property
    def labels(self) -> Labels:
        """Labels of the loss; real numbers where its kind is not loaded."""
        return getattr(self.run.config.loss, "labels", "real")

    @cached_property
    def layers(self) -> list[str]:
        """Names of the recorded weights of layers, from the input on."""
        if self.two_layer:
            return [name for name in ("hidden_weight",) if name in self.run.parameters]
        places = {}
        for name in self.run.parameters:
            if match := re.fullmatch(r"(\w*_|)weight_(\w+)", name):
                # `generator_weight_1` is of a player, and stands beside its other layers
                player, layer = match.groups()
                places[name] = (player, int(layer) if layer.isdigit() else math.inf)
        return sorted(places, key=places.__getitem__)

    @cached_property
    def complete(self) -> bool:
        """Whether every parameter is recorded, so that the network can be evaluated."""
        architecture = self.run.config.architecture
        if not isinstance(architecture, Architecture):  # its kind is not loaded
            return False
        return set(architecture.shapes(self.dataset.d)) <= set(self.run.parameters)

    @cached_property
    def states(self) -> int:
        """Number of recorded states before the first whose weights are not finite."""
        count = len(self.iterations)
        while count and not all(
            np.isfinite(array[count - 1]).all() for array in self.run.parameters.values()
        ):
            count -= 1
        return count

    @cached_property
    def dataset(self) -> Samples:
        """The data of the run.

        Raises DynError: they are not there any more, or do not fit the weights.
        """
        dataset = self.run.dataset()
        if (
            self.two_layer
            and "hidden_weight" in self.run.parameters
            and self.hidden_shape[1] != dataset.d
        ):
            raise InputError(
                f"inputs have {dataset.d} columns, the recorded weights {self.hidden_shape[1]}"
            )
        return dataset

    @cached_property
    def no_dataset(self) -> str | None:
        """Why there are no data, or None when there are."""
        try:
            self.dataset  # noqa: B018 - built for its errors
            if changed := data_changes(self.run.config):
                return f"its data change on the way, at iteration {changed[0]}"
        except DynError as error:
            return f"its data cannot be read ({error})"
        return None

    @property
    def hidden_shape(self) -> tuple[int, int]:
        """Width m and dimension d of the hidden layer of a two-layer network."""
        return self.weight_shape("hidden_weight")

    def weights(self, i: int, name: str = "hidden_weight") -> Floats:
        """Return a weight matrix of state `i`; the hidden one is (m, d), a bias its last column.

        The rows of a convolution are its kernels.
        """
        weight = np.array(self.run.parameters[name][i], dtype=np.float64)
        return weight.reshape(len(weight), -1)

    def weight_shape(self, name: str) -> tuple[int, int]:
        """Return the shape of a weight matrix."""
        m, *columns = self.run.parameters[name].shape[1:]
        return int(m), math.prod(columns)

    def signs(self, i: int) -> Floats:
        """Return the signs (m,) of the output weights of state `i`; 0 without one for each."""
        recorded = self.run.parameters.get("output_weight")
        m = self.hidden_shape[0]
        if recorded is None or recorded[i].size != m:
            return np.zeros(m)
        return signs(np.array(recorded[i], dtype=np.float64).reshape(m))

    def network(self, i: int) -> Callable[[Floats], Floats]:
        """Return the network of state `i`, inputs (n, d) -> outputs (n,) or (n, C).

        Overflow gives infinity or NaN.
        """
        network = self.run.network(i)

        def h(x: Floats) -> Floats:
            with np.errstate(over="ignore", invalid="ignore"):
                outputs = np.asarray(network(x), dtype=np.float64)
            if outputs.ndim == 2 and outputs.shape[1] == 1:
                return outputs[:, 0]
            return outputs

        return h

    def line_function(self, i: int) -> Callable[[Floats], Floats]:
        """Return the network of state `i` for one input, (k,) -> (k,) or (k, C)."""
        h = self.network(i)
        bias = self.dataset.bias

        def function(t: Floats) -> Floats:
            columns = [t]
            if bias:
                columns.append(np.ones_like(t))
            return h(np.stack(columns, axis=-1))

        return function

    def curve_states(self, cost: int, most: int = CURVE_STATES) -> Ints:
        """Return indices of the states that a curve goes through, first and last included.

        They are all states, or some when there are many or one of them costs the work of `cost`
        weights: half of them evenly spread over the recorded states, half over the iterations.
        """
        most = int(np.clip(CURVE_NUMBERS // max(cost, 1), 12, most))
        if self.states <= most:
            return np.arange(self.states)
        steps = self.iterations[: self.states]
        even = np.searchsorted(steps, np.linspace(steps[0], steps[-1], most // 2))
        return np.union1d(spread(self.states, most // 2), even).astype(np.int64)


def spread(count: int, most: int) -> Ints:
    """Return at most `most` (>= 2) of the indices 0 .. count - 1, evenly spread, with both ends."""
    if count <= most:
        return np.arange(count)
    return np.unique(np.round(np.linspace(0, count - 1, most)).astype(np.int64))


def no_states(view: View) -> str | None:
    """Return why there is no state to draw, or None."""
    if view.states:
        return None
    return "no finite parameters are recorded yet"


def no_data(view: View) -> str | None:
    """Return why the data cannot be drawn, or None."""
    return view.no_dataset


def no_network(view: View) -> str | None:
    """Return why the network of a state cannot be evaluated, or None; the data must be there."""
    if not view.complete:
        return f"not all parameters of the network are recorded {SEE}"
    return no_states(view)


def no_neurons(view: View) -> str | None:
    """Return why there are no neurons of a two-layer network to draw, or None."""
    if "hidden_weight" not in view.run.parameters:
        return f"the hidden weights of a two-layer network are not recorded {SEE}"
    if not len(view.iterations):
        return "no state is recorded yet"
    if view.hidden_shape[1] == 1:
        return "inputs have a single column, so neurons only point up or down"
    return None


def no_layers(view: View) -> str | None:
    """Return why there are no weights of layers to draw, or None."""
    if not view.layers:
        return f"no weight matrices are recorded {SEE}"
    if not len(view.iterations):
        return "no state is recorded yet"
    return None
