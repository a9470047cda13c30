"""Measures of the weights: how far they went, how balanced they are, their singular values; and of neurons."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from dynamics_cli.architectures.fully_connected import FullyConnected
from dynamics_cli.architectures.linear_models import DiagonalLinear, MatrixProduct
from dynamics_cli.architectures.two_layer import TwoLayer
from dynamics_cli.datasets.teachers import Teacher
from dynamics_cli.errors import InputError
from dynamics_cli.kinds import Architecture, Floats, Measure, Parameters, PositiveInt, Problem, Sections, State
from dynamics_cli.measures.least_distance import InfeasibleError, least_distance
from dynamics_cli.measures.spectra import effective_rank, imbalances, stable_rank
from dynamics_cli.recording.derivatives import features_of


class OfLayer(Measure):
    """The base of measures of a layer's weights."""

    layer: str | None = None
    """Name of the weights, by default all; or `end_to_end`: the product of the matrices of a linear network, `beta`."""

    @property
    def name(self) -> str:
        """The kind, with the name of the layer."""
        return self.kind if self.layer is None else f"{self.kind}_{self.layer}"

    def offered(self, problem: Problem) -> bool:
        """Return True.

        Raises:
            InputError: there is no such layer, or the whole network is not linear.
        """
        if self.layer == "end_to_end" and not is_linear(problem):
            raise InputError("record.measures: layer end_to_end needs a linear network")
        if self.layer not in (None, "end_to_end", *problem.shapes):
            there = ", ".join(problem.shapes)
            raise InputError(f"record.measures: {self.kind}.layer {self.layer!r} is no weight of the network: {there}")
        return True

    def chosen(self, problem: Problem, parameters: Parameters) -> Floats:
        """Return the weights of the layer, or all of them as a vector, float64."""
        if self.layer is None:
            return np.concatenate([np.asarray(parameters[name], np.float64).ravel() for name in problem.shapes])
        if self.layer == "end_to_end":
            return end_to_end(problem, parameters)
        return np.asarray(parameters[self.layer], np.float64)


def matrices(problem: Problem, parameters: Parameters) -> list[Floats]:
    """Return the weight matrices of a network without its biases, inputs first; the output weights as (C, m)."""
    return [
        np.atleast_2d(np.asarray(parameters[name], np.float64))
        for name in problem.shapes
        if name.startswith(("weight_", "hidden_weight", "output_weight"))
    ]


def end_to_end(problem: Problem, parameters: Parameters) -> Floats:
    """Return the product of the matrices of a linear network, without biases; of a diagonal network `beta` as a row."""
    if isinstance(architecture := problem.config.architecture, DiagonalLinear):
        return architecture.predictor(parameters)[None]
    first, *others = matrices(problem, parameters)
    for W in others:
        first = W @ first
    return first


def is_linear(problem: Problem) -> bool:
    """Return whether the network is a product of matrices, or diagonal."""
    architecture = problem.config.architecture
    if isinstance(architecture, TwoLayer | FullyConnected):
        return architecture.activation.kind == "linear" or hidden_layers(architecture) == 0
    return isinstance(architecture, MatrixProduct | DiagonalLinear)


def hidden_layers(architecture: Architecture) -> int:
    """Return how many layers of hidden neurons a fully connected network has; 0 for others."""
    return max(0, len(architecture.matrices) - 1)


class Distance(OfLayer, kind="distance"):
    """Distance of the weights from the initial weights, `||theta - theta_0||`, or relative to `||theta_0||`.

    Of all weights, or of a layer; small in the lazy regime (Chizat et al. 2019, Section 3).
    """

    relative: bool = False
    """Divide by the norm of the initial weights."""

    def measure(self, state: State) -> float:
        """Return the distance."""
        now, start = (self.chosen(state.problem, one) for one in (state.parameters, state.start))
        return float(np.linalg.norm(now - start) / (np.linalg.norm(start) if self.relative else 1.0))


class Predictor(Measure, kind="predictor"):
    """Entries of the product of the matrices of a linear network; of a diagonal network the coordinates of `beta`.

    Weights are taken as they stand: `output_scale`, `parametrization` and biases are no part of it.
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
        return is_linear(problem)

    def measure(self, state: State) -> Floats:
        """Return the entries, by rows."""
        return end_to_end(state.problem, state.parameters).ravel()


class Angle(OfLayer, kind="angle"):
    """Angle in radians between weights and a vector, or the hard-margin direction of the data (Soudry et al. 2018).

    That is `argmin ||w||` under `y_k <w, x_k> >= 1`, where layers have biases with inputs `(x, 1)`. Weights are taken
    as a vector if it has as many numbers, otherwise row by row. By default `layer` stands for all weights.
    """

    example = """\
dataset: {kind: linear_teacher, n: 50, dim: 5, margin: 0.2}
architecture: {kind: fully_connected, widths: []}
initialization: {kind: default_scaled}
loss: {kind: logistic}
record: {measures: [{kind: angle, to: hard_margin}]}
"""
    to: Literal["hard_margin"] | Annotated[list[float], Field(min_length=1)]
    """The vector, or `hard_margin`."""

    @property
    def name(self) -> str:
        """The kind, with the name of the layer, and whether it is with the hard margin."""
        return super().name + "_to_hard_margin" * (self.to == "hard_margin")

    def offered(self, problem: Problem) -> bool:
        """Return whether there are such weights.

        Raises:
            InputError: they have other numbers than the vector, or the data no hard margin.
        """
        v = self.direction(problem) if super().offered(problem) else np.empty(0)
        W = self.chosen(problem, {name: np.broadcast_to(0.0, shape) for name, shape in problem.shapes.items()})
        if len(v) not in (W.size, W.shape[-1]):
            raise InputError(f"record.measures: angle.to has {len(v)} numbers, the weights {W.shape}")
        return True

    def direction(self, problem: Problem) -> Floats:
        """Return the vector; of a hard margin without the part of the bias, where the weights have none.

        Raises:
            InputError: the labels are not ±1, or no line separates the data.
        """
        if self.to != "hard_margin":
            return np.array(self.to)
        x, y = problem.dataset.x, problem.dataset.y
        if y.ndim > 1 or not (np.abs(y) == 1).all():
            raise InputError("record.measures: angle.to hard_margin needs labels ±1")
        biased = any("bias" in name for name in problem.shapes)
        try:
            w = least_distance(y[:, None] * (np.column_stack([x, np.ones(len(x))]) if biased else x)).w
        except InfeasibleError as error:
            raise InputError(f"record.measures: angle.to hard_margin: {error}") from error
        return w if self.layer is None else w[: x.shape[1]]

    def measure(self, state: State) -> float | Floats:
        """Return the angle, or (m,) angles of the rows."""
        if "direction" not in state.memory:
            state.memory["direction"] = self.direction(state.problem)
        v, W = state.memory["direction"], self.chosen(state.problem, state.parameters)
        rows = W.reshape(-1, len(v))
        along = rows @ v / np.linalg.norm(v)
        across = np.linalg.norm(rows - along[:, None] * v / np.linalg.norm(v), axis=1)
        angles = np.arctan2(across, along)  # of small angles the cosine would lose half of the digits
        return float(angles[0]) if len(rows) == 1 else angles


class OfSpectrum(OfLayer):
    """The base of measures of the singular values of a layer."""

    layer: str
    """Name of the weights, or `end_to_end` for the product of the matrices of a linear network."""

    def samples(self, problem: Problem) -> int:
        """Return the cost of the decomposition, in evaluations of a sample."""
        shapes = [problem.shapes[self.layer]] if self.layer in problem.shapes else list(problem.shapes.values())
        sides = [(shape[0], math.prod(shape[1:])) for shape in shapes]
        return sum(10 * m * d * min(m, d) for m, d in sides) // max(problem.multiply_adds, 1)

    def matrix(self, state: State) -> Floats:
        """Return the weights as a matrix; the rows of a convolution are its kernels."""
        W = self.chosen(state.problem, state.parameters)
        return W.reshape(len(W), -1)


class SingularValues(OfSpectrum, kind="singular_values"):
    """Singular values of the weights of a layer, or of the whole of a linear network.

    Of a linear network they are the strengths of the modes that it has learnt, one after the other (Saxe et al. 2014).
    """

    example = "{kind: singular_values, layer: hidden_weight}"
    top: PositiveInt = 10
    """How many, the largest first."""

    def measure(self, state: State) -> Floats:
        """Return (top,) values; NaN beyond the smaller side of the matrix."""
        values = np.linalg.svd(self.matrix(state), compute_uv=False)[: self.top]
        return np.pad(values, (0, self.top - len(values)), constant_values=np.nan)


class StableRank(OfSpectrum, kind="stable_rank"):
    """`||W||_F^2 / ||W||_2^2` of a layer (Rudelson and Vershynin 2007)."""

    example = "{kind: stable_rank, layer: hidden_weight}"

    def measure(self, state: State) -> float:
        """Return the rank."""
        return float(stable_rank(self.matrix(state)))


class EffectiveRank(OfSpectrum, kind="effective_rank"):
    """Exponential of the entropy of the singular values of a layer, over their sum (Roy and Vetterli 2007)."""

    example = "{kind: effective_rank, layer: hidden_weight}"

    def measure(self, state: State) -> float:
        """Return the rank."""
        return effective_rank(np.linalg.svd(self.matrix(state), compute_uv=False))


class Balancedness(Measure, kind="balancedness"):
    """`||W_{l+1}^T W_{l+1} - W_l W_l^T||_F` of pairs of layers, kept by gradient flow if linear (Arora et al. 2018)."""

    needs = "matrices that follow each other, of the program's own kinds"

    def offered(self, problem: Problem) -> bool:
        """Return whether the network has matrices that follow each other."""
        layered = bool(problem.config.architecture.matrices) or problem.config.architecture.factors
        return layered and len(matrices(problem, {name: np.empty(0) for name in problem.shapes})) > 1

    def measure(self, state: State) -> Floats:
        """Return the distances (L - 1,)."""
        return imbalances(matrices(state.problem, state.parameters))


class OfNeurons(Measure):
    """The base of measures of the hidden neurons of fully connected networks."""

    needs = "hidden neurons of a fully connected network of the program's own kinds"

    def offered(self, problem: Problem) -> bool:
        """Return whether there are hidden neurons, and an activation."""
        return hidden_layers(problem.config.architecture) > 0

    def samples(self, problem: Problem) -> int:
        """Return the number of training samples."""
        return problem.dataset.n

    def active(self, state: State) -> Floats:
        """Return where neurons have a positive preactivation: (n, neurons), all hidden layers side by side."""
        problem = state.problem
        layers = features_of(problem.config.architecture, state.parameters, problem.dataset.x)
        return np.concatenate([z > 0 for z, _ in layers], axis=1)


class ActivationFlips(OfNeurons, kind="activation_flips"):
    """Share of pairs of neuron and training sample that are active now but not at first, or the other way round.

    Times n and the number of neurons it is the Hamming distance of activation patterns (Chizat et al. 2019, Section 3).
    """

    def measure(self, state: State) -> float:
        """Return the share: the Hamming distance of the activation patterns over their length."""
        if "active" not in state.memory:
            state.memory["active"] = self.active(state.first)
        return float(np.mean(self.active(state) != state.memory["active"]))


class DeadNeurons(OfNeurons, kind="dead_neurons"):
    """Share of the hidden neurons that are active on no training sample: `z_j(x_k) <= 0` for all k (Lu et al. 2019)."""

    def measure(self, state: State) -> float:
        """Return the share."""
        return float(np.mean(~np.asarray(self.active(state), bool).any(axis=0)))


class Alignment(Measure, kind="alignment"):
    """Mean over neurons, weighted by their norms, of the largest `|cos|` with given directions (two-layer networks).

    `sum_j max_i |<w_j, v_i>| / ||v_i|| / sum_j ||w_j||`: 1 where every neuron lies along one of them.
    """

    example = "{kind: alignment, directions: [[1.0, 0.0]]}"
    needs = "a weight `hidden_weight` (m, d), and directions in d dimensions"
    directions: list[list[float]]
    """Directions in the space of the inputs, the bias column included."""

    def offered(self, problem: Problem) -> bool:
        """Return whether there are neurons, and the directions are in the space of their weights."""
        shape = problem.shapes.get("hidden_weight")
        return shape is not None and all(len(one) == shape[1] for one in self.directions)

    def measure(self, state: State) -> float:
        """Return the mean, from 0 to 1."""
        W = np.asarray(state.parameters["hidden_weight"], np.float64)
        v = np.array(self.directions)
        lengths = np.linalg.norm(W, axis=1)
        cosines = np.abs(W @ (v / np.linalg.norm(v, axis=1, keepdims=True)).T).max(1)
        return float(cosines.sum() / lengths.sum())


class Overlaps(Measure):
    """Overlaps of a two-layer student with the two-layer teacher of its data (Goldt et al. 2019, Eq. 6)."""

    example = """\
dataset: {kind: teacher, n: 200, dim: 10, architecture: {kind: two_layer, width: 2, activation: erf}}
architecture: {kind: two_layer, width: 4, activation: erf}
record: {measures: [student_overlaps, teacher_overlaps]}
"""
    needs = "the data set `teacher` of two layers, and a network of two layers"

    def offered(self, problem: Problem) -> bool:
        """Return whether data and network are a teacher and a student of two layers."""
        dataset = problem.config.dataset
        teacher = isinstance(dataset, Teacher) and isinstance(dataset.architecture, TwoLayer)
        return teacher and isinstance(problem.config.architecture, TwoLayer)

    def students(self, state: State) -> Floats:
        """Return the hidden weights of the student (K, N)."""
        return np.asarray(state.parameters["hidden_weight"], np.float64)


class StudentOverlaps(Overlaps, kind="student_overlaps"):
    """`Q_ik = <w_i, w_k> / N` of the student's neurons, N inputs (Saad and Solla 1995; Goldt et al. 2019, Eq. 6).

    With weights of size 1 / sqrt(N), as beside a teacher with `divide_inputs`, the order parameters are N times these:
    SGD of step eta on weights w with preactivations `w x / sqrt(N)` is that of step eta / N on `w / sqrt(N)`.
    """

    def measure(self, state: State) -> Floats:
        """Return `Q` (K, K)."""
        W = self.students(state)
        return np.asarray(W @ W.T / W.shape[1])


class TeacherOverlaps(Overlaps, kind="teacher_overlaps"):
    """`R_im = <w_i, v_m> / N` of the student's neurons with those of the teacher (Goldt et al. 2019, Eq. 6)."""

    def measure(self, state: State) -> Floats:
        """Return `R` (K, M)."""
        from dynamics_cli.kinds import Streams

        config = state.problem.config
        assert isinstance(config.dataset, Teacher)
        V = config.dataset.weights(config.dataset.own(Streams(config.seed)))["hidden_weight"]
        W = self.students(state)
        return np.asarray(W @ V.T / W.shape[1])


class Fourier(Measure):
    """Fourier power `|sum_a w_ja exp(-2 pi i f a / p)|^2` of the neurons' weights of the first number of pairs.

    Of a transformer the neurons are the rows of its embedding.
    """

    FIRST: ClassVar[frozenset[str]] = frozenset({"hidden_weight", "weight_1", "weight_embedding"})

    example = """\
dataset: {kind: modular_arithmetic, p: 23}
architecture: {kind: two_layer, width: 100, activation: quadratic, outputs: 23}
initialization: {kind: unbalanced, scale: 0.1}
record: {measures: [fourier_concentration, fourier_spectrum]}
"""
    needs = "the data set `modular_arithmetic`, and weights that its pairs enter first"

    def offered(self, problem: Problem) -> bool:
        """Return whether the data are pairs of numbers modulo p, and weights see them first."""
        return problem.config.dataset.kind == "modular_arithmetic" and bool(self.FIRST & problem.shapes.keys())

    def power(self, state: State) -> Floats:
        """Return the power (neurons, p // 2) of the frequencies 1, 2, ...; constants are left out."""
        p = state.problem.dataset.d // 2
        W = matrices(state.problem, state.parameters)[0][:, :p]
        return np.asarray(np.abs(np.fft.rfft(W, axis=1)[:, 1:]) ** 2)


class FourierConcentration(Fourier, kind="fourier_concentration"):
    """Mean inverse participation ratio of the Fourier power of the first p inputs' weights (Gromov 2023, Eq. 12).

    `sum_f P_f^2 / (sum_f P_f)^2`: 1 for a neuron that is periodic in its first number, `2 / p` without structure.
    """

    def measure(self, state: State) -> float:
        """Return the mean over neurons."""
        power = self.power(state)
        return float(np.mean((power**2).sum(1) / power.sum(1) ** 2))


class FourierSpectrum(Fourier, kind="fourier_spectrum"):
    """Fourier power of the first p inputs' weights by frequency 1, ..., p // 2, as shares (Nanda et al. 2023).

    `sum_j P_jf / sum_jf P_jf`, neurons `j`: few frequencies remain where a network computes with waves.
    """

    def measure(self, state: State) -> Floats:
        """Return the shares (p // 2,), whose sum is 1."""
        power = self.power(state)
        return np.asarray(power.sum(0) / power.sum())


class LayerSimilarity(OfNeurons, kind="layer_similarity"):
    """Linear CKA of every hidden layer with its initial state, on the training inputs (Kornblith et al. 2019).

    `||B^T A||_F^2 / (||A^T A||_F ||B^T B||_F)` of centred features (Eq. 4). The panel `similarity` draws it
    between any two recorded times.
    """

    between_layers: bool | None = None
    """Take it between every two hidden layers of a state instead, in the order 1-2, 1-3, ..., 2-3, ..."""

    @property
    def name(self) -> str:
        """The kind, and whether it is between layers."""
        return f"{self.kind}_pairs" if self.between_layers else self.kind

    def offered(self, problem: Problem) -> bool:
        """Return whether there are hidden neurons; two layers of them for CKA between layers."""
        return hidden_layers(problem.config.architecture) > bool(self.between_layers)

    def samples(self, problem: Problem) -> int:
        """Return the cost of two passes and the products of features, in evaluations of a sample."""
        squares = sum(size**2 for size in problem.layer_sizes)
        return problem.dataset.n * (2 + squares // max(problem.multiply_adds, 1))

    def columns(self, sections: Sections) -> Sequence[str]:
        """Return the pairs of layers."""
        layers = range(1, len(getattr(sections["architecture"], "widths", "1")) + 1)
        if self.between_layers:
            return [f"layers {a}-{b}" for a, b in combinations(layers, 2)]
        return [f"layer {a}" for a in layers]

    def measure(self, state: State) -> Floats:
        """Return the similarity of each hidden layer, or of each pair, from 0 to 1."""
        now = features(state)
        if self.between_layers:
            return np.array([linear_cka(a, b) for a, b in combinations(now, 2)])
        first = features(state.first)
        return np.array([linear_cka(a, b) for a, b in zip(now, first, strict=True)])


def features(state: State) -> list[Floats]:
    """Return the activations (n, m) of the hidden layers on the training inputs."""
    layers = features_of(state.problem.config.architecture, state.parameters, state.problem.dataset.x)
    return [h for _, h in layers]


def linear_cka(a: Floats, b: Floats) -> float:
    """Return `||B^T A||^2 / (||A^T A|| ||B^T B||)` of centred features (n, m) and (n, m')."""
    with np.errstate(over="ignore", invalid="ignore"):  # NaN of features whose squares overflow
        a, b = a - a.mean(0), b - b.mean(0)
        bottom = np.linalg.norm(a.T @ a) * np.linalg.norm(b.T @ b)
        return float(np.linalg.norm(b.T @ a) ** 2 / bottom) if bottom else float("nan")


class Margin(Measure, kind="margin"):
    """Smallest margin `min_k y_k h(x_k)` of the training samples, of classes the gap to the largest other output."""

    example = """\
loss: {kind: logistic}
record: {measures: [margin]}
"""
    needs = "labels that are classes; normalized, a fully connected network of the program's own kinds"
    normalized: bool | None = None
    """Divide by `||theta||^L`, L the number of layers: grows to a stationary value if homogeneous (Lyu and Li 2020)."""
    quantiles: Annotated[list[Annotated[float, Field(ge=0, le=1)]], Field(min_length=1)] | None = None
    """Quantiles of the margins of all training samples to record in place of the smallest, such as `[0, 0.1, 0.5]`."""

    @property
    def name(self) -> str:
        """The kind, whether normalised and in quantiles."""
        return "normalized_" * bool(self.normalized) + self.kind + "_quantiles" * bool(self.quantiles)

    def offered(self, problem: Problem) -> bool:
        """Return whether labels are classes; to be normalised, of a network of layers."""
        layered = bool(problem.config.architecture.matrices)
        return problem.loss.labels != "real" and (layered or not self.normalized)

    def samples(self, problem: Problem) -> int:
        """Return the number of training samples."""
        return problem.dataset.n

    def columns(self, sections: Sections) -> Sequence[str]:
        """Return the quantiles."""
        return [f"{100 * share:g} %" for share in self.quantiles or ()]

    def measure(self, state: State) -> float | Floats:
        """Return the margin, positive when every sample is right; or its quantiles."""
        found = margins(state)
        if self.normalized:
            squares = sum(float(np.sum(np.square(w, dtype=np.float64))) for w in state.parameters.values())
            found = found / squares ** (len(matrices(state.problem, state.parameters)) / 2)
        return float(np.min(found)) if self.quantiles is None else np.quantile(found, self.quantiles)


def margins(state: State) -> Floats:
    """Return the margins (n,) of the training samples."""
    samples = state.problem.dataset
    h = np.asarray(state.network(samples.x), np.float64)
    if state.problem.loss.labels == "signs":
        return np.asarray(samples.y * h)
    y = samples.y.astype(np.int64)
    others = np.where(np.eye(h.shape[1], dtype=bool)[y], -np.inf, h).max(1)
    return np.asarray(h[np.arange(len(y)), y] - others)
