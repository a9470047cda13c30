"""Measures of weights and neurons: distances, balance, singular values, norms, angles, margins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from dynamics_cli.errors import InputError
from dynamics_cli.gradients.derivatives import features_of
from dynamics_cli.kinds import (
    Architecture,
    Floats,
    Measure,
    Parameters,
    PositiveInt,
    Problem,
    Sections,
    State,
)
from dynamics_cli.measures.neurons import angle_of, cosines, norms
from dynamics_cli.measures.spectra import imbalances
from dynamics_cli.recording.measures import labelled_outputs, of_first


class OfLayer(Measure):
    """The base of measures of a layer's weights."""

    layer: str | None = None
    """Name of the weights, by default all; or `end_to_end`, the product of a linear network."""

    @property
    def name(self) -> str:
        """The kind, with the name of the layer."""
        return "_".join(filter(None, (self.kind, self.layer)))

    def offered(self, problem: Problem) -> bool:
        """Return True.

        Raises:
            InputError: there is no such layer, or the whole network is not linear.
        """
        if self.layer == "end_to_end" and not problem.config.architecture.is_linear:
            raise InputError("record.measures: layer end_to_end needs a linear network")
        if self.layer not in (None, "end_to_end", *problem.shapes):
            names = ", ".join(problem.shapes)
            raise InputError(
                f"record.measures: {self.kind}.layer {self.layer!r} is no weight of the network:"
                f" {names}"
            )
        return True

    def chosen(self, problem: Problem, parameters: Parameters) -> Floats:
        """Return the weights of the layer, or all of them as a vector, float64.

        The kernel of a convolution is the matrix (out, in * rows * columns), a row for each output
        channel, as it multiplies patches of the input.
        """
        if self.layer is None:
            return np.concatenate(
                [np.asarray(parameters[name], np.float64).ravel() for name in problem.shapes]
            )
        if self.layer == "end_to_end":
            return np.atleast_2d(problem.config.architecture.product(parameters))
        W = np.asarray(parameters[self.layer], np.float64)
        return W.reshape(len(W), -1) if W.ndim > 2 else W


def hidden_layers(architecture: Architecture) -> int:
    """Return how many layers of hidden neurons a network of layers has; 0 for others."""
    return max(0, len(architecture.matrices) - 1)


class Distance(OfLayer, kind="distance"):
    """Distance `||theta - theta_0||` from the initial weights, or relative to `||theta_0||`.

    Of all weights, or of a layer; small in the lazy regime (Chizat et al. 2019, Section 3).
    """

    relative: bool = False
    """Divide by the norm of the initial weights."""

    def measure(self, state: State) -> float:
        """Return the distance."""
        start = self.chosen(state.problem, state.start)
        distance = np.linalg.norm(self.chosen(state.problem, state.parameters) - start)
        if self.relative:
            distance = distance / np.linalg.norm(start)
        return float(distance)


class Predictor(Measure, kind="predictor"):
    """Entries of the product of a linear network's matrices; of a diagonal network, of `beta`.

    Weights are taken as they stand: `output_scale` and biases are no part of it.
    """

    example = """\
dataset: {kind: sparse_regression, n: 20, dim: 50, nonzero: 3}
architecture: {kind: diagonal_linear}
initialization: {kind: constant, scale: 0.1}
record: {measures: [predictor]}
"""
    needs = "a linear network of the program's own kinds"

    def offered(self, problem: Problem) -> bool:
        """Return whether the network is linear."""
        return problem.config.architecture.is_linear

    def measure(self, state: State) -> Floats:
        """Return the entries, by rows."""
        return state.problem.config.architecture.product(state.parameters).ravel()


class SingularValues(OfLayer, kind="singular_values"):
    """Singular values of the weights of a layer, or of the whole of a linear network.

    Of a linear network they are the strengths of the modes that it has learnt, one after the other
    (Saxe et al. 2014).
    """

    example = "{kind: singular_values, layer: hidden_weight}"
    layer: str
    """Name of the weights, or `end_to_end` for the product of the matrices of a linear network."""
    top: PositiveInt = 10
    """How many, the largest first."""

    def measure(self, state: State) -> Floats:
        """Return (top,) values, NaN beyond the smaller side or where a weight is not finite.

        Rows of a convolution are kernels.
        """
        W = self.chosen(state.problem, state.parameters)
        if not np.isfinite(W).all():
            return np.full(self.top, np.nan)
        values = np.linalg.svd(W.reshape(len(W), -1), compute_uv=False)[: self.top]
        return np.pad(values, (0, self.top - len(values)), constant_values=np.nan)


class Balancedness(Measure, kind="balancedness"):
    """`||W_{l+1}^T W_{l+1} - W_l W_l^T||_F` of pairs of layers (Arora et al. 2018).

    Gradient flow of a linear network keeps it.
    """

    needs = "matrices that follow each other, without skip connections, of the program's own kinds"

    def offered(self, problem: Problem) -> bool:
        """Return whether the network has matrices that follow each other."""
        architecture = problem.config.architecture
        return architecture.multiplied and len(architecture.matrices or problem.shapes) > 1

    def measure(self, state: State) -> Floats:
        """Return the distances (L - 1,)."""
        return imbalances(state.problem.config.architecture.matrices_of(state.parameters))


class ActivationFlips(Measure, kind="activation_flips"):
    """Share of pairs of a neuron and a training sample that are active either now or at first.

    Times n and the number of neurons it is the Hamming distance of activation patterns (Chizat et
    al. 2019, Section 3).
    """

    needs = "hidden neurons of a network of layers of the program's own kinds"

    def offered(self, problem: Problem) -> bool:
        """Return whether there are hidden neurons, and an activation."""
        return hidden_layers(problem.config.architecture) > 0

    def active(self, state: State) -> Floats:
        """Return where preactivations are positive: (n, neurons), hidden layers side by side."""
        problem = state.problem
        layers = features_of(problem.config.architecture, state.parameters, problem.dataset.x)
        return np.concatenate([z > 0 for z, _ in layers], axis=1)

    def measure(self, state: State) -> float:
        """Return the share."""
        at_first = of_first(state, "active", self.active)
        return float(np.mean(self.active(state) != at_first))


class Alignment(Measure, kind="alignment"):
    """Mean over neurons, weighted by norm, of the largest `|cos|` with given directions.

    `sum_j max_i |<w_j, v_i>| / ||v_i|| / sum_j ||w_j||`: 1 where every neuron lies along one of
    them.
    """

    example = "{kind: alignment, directions: [[1.0, 0.0]]}"
    needs = "a weight `hidden_weight` (m, d), and directions in d dimensions"
    directions: list[list[float]]
    """Directions in the space of the inputs, the bias column included."""

    def offered(self, problem: Problem) -> bool:
        """Return whether there are neurons, with as many weights as directions have numbers."""
        shape = problem.shapes.get("hidden_weight")
        return shape is not None and {shape[1]}.issuperset(map(len, self.directions))

    def measure(self, state: State) -> float:
        """Return the mean, from 0 to 1."""
        W = np.asarray(state.parameters["hidden_weight"], np.float64)
        v = np.array(self.directions)
        lengths = np.linalg.norm(W, axis=1)
        cosines = np.abs(W @ (v / np.linalg.norm(v, axis=1, keepdims=True)).T).max(1)
        return float(cosines.sum() / lengths.sum())


class Neurons(Measure, kind="neurons"):
    """Norm, angle or cosine of each neuron, a row of the weights of a layer; a column by neuron.

    The measure is called `neurons_norm`, `neurons_angle` or `neurons_cosine`, its columns
    `neurons_angle.1` and so on, counted from 1 in the order of the rows. The bias is part of a
    neuron where inputs have a constant column.
    """

    example = "{kind: neurons, of: angle, which: [1, 2]}"
    needs = "a layer of weights whose rows are neurons"
    of: Literal["norm", "angle", "cosine"] = "norm"
    """Euclidean norm; angle from the first axis in degrees, for rows of two numbers; cosine with
    `direction`.

    A neuron that is 0 has neither angle nor cosine: NaN."""
    direction: list[float] | None = None
    """Direction of `cosine`, with a number for each column of the weights."""
    layer: str = "hidden_weight"
    """Name of the weights."""
    which: Annotated[list[PositiveInt], Field(min_length=1)] | None = None
    """Numbers of the neurons, from 1 on; by default all. Tables of sweeps show at most 16."""

    @property
    def name(self) -> str:
        """`neurons_angle`, with the name of the layer where it is another than `hidden_weight`."""
        return f"{self.kind}_{self.of}" + f"_{self.layer}" * (self.layer != "hidden_weight")

    def columns(self, sections: Sections) -> Sequence[str]:
        """Return the numbers of the neurons that are chosen."""
        return [str(number) for number in self.which or ()]

    def offered(self, problem: Problem) -> bool:
        """Return whether there is such a layer.

        Raises:
            InputError: it has no such neurons, or they no such angle or direction.
        """
        shape = problem.shapes.get(self.layer, ())
        if len(shape) < 2:
            return False
        neurons = shape[0]
        length = math.prod(shape[1:])
        told = ""
        most = max(self.which or [1])
        if most > neurons:
            told = f"neurons.which has {most}, {self.layer} has {neurons} neurons"
        elif self.of == "angle" and length != 2:
            told = (
                f"neurons.of: an angle needs neurons of 2 numbers, {self.layer} has {length}: take"
                " cosine"
            )
        elif (self.of == "cosine") != (self.direction is not None):
            told = "neurons.direction goes with `of: cosine`, which needs it"
        elif self.direction is not None and len(self.direction) != length:
            told = f"neurons.direction has {len(self.direction)} numbers, neurons have {length}"
        if told:
            raise InputError(f"record.measures: {told}")
        return True

    def measure(self, state: State) -> Floats:
        """Return the number of each neuron (m,)."""
        W = np.asarray(state.parameters[self.layer], np.float64)
        W = W.reshape(len(W), -1)  # a convolution has its kernels as rows
        if self.which is not None:
            W = W[np.array(self.which) - 1]
        if self.direction is not None:
            return cosines(W, self.direction)
        if self.of == "norm":
            return norms(W)
        return angle_of(W)


class FourierConcentration(Measure, kind="fourier_concentration"):
    """Mean inverse participation ratio of the Fourier power of weights (Gromov 2023, Eq. 12).

    With the power `P_f = |sum_a w_ja exp(-2 pi i f a / p)|^2` of neuron j, f = 1, ..., p // 2, the
    ratio is `sum_f P_f^2 / (sum_f P_f)^2`: 1 for a neuron that is periodic in its first number, `2
    / p` without structure. Of a transformer the neurons are the rows of its embedding.
    """

    FIRST: ClassVar[frozenset[str]] = frozenset({"hidden_weight", "weight_1", "weight_embedding"})
    example = """\
dataset: {kind: modular_arithmetic, p: 23}
architecture: {kind: two_layer, width: 100, activation: quadratic, outputs: 23}
initialization: {kind: unbalanced, scale: 0.1}
record: {measures: [fourier_concentration]}
"""
    needs = "the data set `modular_arithmetic`, and weights that its pairs enter first"

    def offered(self, problem: Problem) -> bool:
        """Return whether the data are pairs of numbers modulo p, and weights see them first."""
        pairs = problem.config.dataset.modulus is not None
        return pairs and bool(self.FIRST & problem.shapes.keys())

    def measure(self, state: State) -> float:
        """Return the mean over neurons."""
        p = state.problem.dataset.d // 2
        first = next(name for name in state.problem.shapes if name in self.FIRST)
        W = np.asarray(state.parameters[first], np.float64)[:, :p]
        power = np.abs(np.fft.rfft(W, axis=1)[:, 1:]) ** 2  # (neurons, p // 2)
        return float(np.mean((power**2).sum(1) / power.sum(1) ** 2))


class Margin(Measure, kind="margin"):
    """Smallest margin `min_k y_k h(x_k)` of training samples; of classes, the gap to the next."""

    example = """\
loss: {kind: logistic}
record: {measures: [margin]}
"""
    needs = "labels that are classes"

    def offered(self, problem: Problem) -> bool:
        """Return whether labels are classes."""
        return problem.loss.labels != "real"

    def measure(self, state: State) -> float:
        """Return the margin, positive when every sample is right."""
        samples = state.problem.dataset
        h = np.asarray(state.network(state.problem.dataset.x), np.float64)
        h, y = labelled_outputs(state.problem, h, samples.y)
        if state.problem.loss.labels == "signs":
            return float(np.min(y * h))
        y = y.astype(np.int64)
        others = np.where(np.eye(h.shape[1], dtype=bool)[y], -np.inf, h).max(1)
        return float(np.min(h[np.arange(len(y)), y] - others))
