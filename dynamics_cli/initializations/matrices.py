"""Weights drawn matrix by matrix: of fitting variance, orthogonal, or with a given product.

Biases are 0; the output weights (m,) of a two-layer network are the matrix (1, m).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.random import Generator

from dynamics_cli.errors import InputError, alternatives
from dynamics_cli.initializations.scaled import PerLayer
from dynamics_cli.kinds import (
    Finding,
    Floats,
    Initialization,
    Positive,
    Problem,
    Sections,
    Shapes,
    Streams,
    all_kinds,
)

CHAINS = ("two_layer", "fully_connected", "matrix_product")
"""Networks that are the product of their weights where the activation is linear."""
CUT = 2.0
"""Standard deviations at which the truncated Gaussians of `law` end."""


def matrices(shapes: Shapes, kind: str) -> dict[str, tuple[int, ...]]:
    """Return the shapes of all weights but biases, of at least two axes.

    Raises:
        InputError: there is a vector that is no bias.
    """
    weights = {name: shape for name, shape in shapes.items() if "bias" not in name}
    for name, shape in weights.items():
        if name == "output_weight" and len(shape) == 1:
            weights[name] = (1, *shape)
        elif len(shape) < 2:
            others = "unbalanced and default_scaled draw weights of any shape"
            raise InputError(f"initialization.kind {kind}: {name} {shape} is no matrix; {others}")
    return weights


def zeros(shapes: Shapes) -> dict[str, Floats]:
    """Return zeros for all weights, which biases keep."""
    return {name: np.zeros(shape) for name, shape in shapes.items()}


def orthonormal(rng: Generator, rows: int, columns: int) -> Floats:
    """Return a uniform (Haar) `Q (rows, columns)` with orthonormal columns, or rows if fewer."""
    if rows < columns:
        return orthonormal(rng, columns, rows).T
    Q, R = np.linalg.qr(rng.standard_normal((rows, columns)))
    return Q * np.where(np.diag(R) < 0, -1.0, 1.0)  # of one sign by LAPACK's choice otherwise


class PerMatrix(PerLayer):
    """The base of kinds that draw every matrix alone."""

    scale: Positive = 1.0
    """Multiplies all weights."""

    def draw(self, problem: Problem, streams: Streams) -> Mapping[str, Floats]:
        """Return weights; biases are 0."""
        rng = streams.rng("initialization")
        drawn = zeros(problem.shapes)
        for name, shape in matrices(problem.shapes, self.kind).items():
            drawn[name] = self.scale * self.matrix(rng, shape, problem).reshape(
                problem.shapes[name]
            )
        return self.scaled(drawn)

    @abstractmethod
    def matrix(self, rng: Generator, shape: tuple[int, ...], problem: Problem) -> Floats:
        """Return the weights (out, in) or (out, in, rows, columns) of a layer."""


class Orthogonal(PerMatrix, kind="orthogonal"):
    """Uniform matrices with `W^T W` or `W W^T` (of the fewer) `= scale^2 I` (Saxe et al. 2014).

    Convolutions are matrices (out, in x pixels), as in `torch.nn.init.orthogonal_`.
    """

    def matrix(self, rng: Generator, shape: tuple[int, ...], problem: Problem) -> Floats:
        """Return an orthogonal matrix."""
        return orthonormal(rng, shape[0], math.prod(shape[1:]))


class FanScaled(PerMatrix):
    """The base of kinds whose variance follows from the number of inputs or outputs of a neuron."""

    law: Literal["normal", "uniform", "truncated_normal"] = "normal"
    """Gaussian, uniform around 0, or Gaussian cut at two standard deviations; of one variance."""

    @abstractmethod
    def variance(self, fan_in: int, fan_out: int, problem: Problem) -> float:
        """Return the variance of weights between `fan_in` inputs and `fan_out` outputs."""

    def matrix(self, rng: Generator, shape: tuple[int, ...], problem: Problem) -> Floats:
        """Return independent weights."""
        pixels = math.prod(shape[2:])
        deviation = math.sqrt(self.variance(shape[1] * pixels, shape[0] * pixels, problem))
        if self.law == "normal":
            return deviation * rng.standard_normal(shape)
        if self.law == "uniform":
            return rng.uniform(-1.0, 1.0, shape) * (math.sqrt(3) * deviation)
        from scipy.special import ndtr, ndtri

        drawn: Floats = np.clip(ndtri(rng.uniform(ndtr(-CUT), ndtr(CUT), shape)), -CUT, CUT)
        density = math.exp(-(CUT**2) / 2) / math.sqrt(2 * math.pi)
        inside = math.erf(CUT / math.sqrt(2))
        return drawn * (deviation / math.sqrt(1 - 2 * CUT * density / inside))


class Lecun(FanScaled, kind="lecun"):
    """Variance `1 / fan_in`: preactivations of linear networks keep theirs (LeCun et al. 1998)."""

    def variance(self, fan_in: int, fan_out: int, problem: Problem) -> float:
        """Return `1 / fan_in`."""
        return 1 / fan_in


class Xavier(FanScaled, kind="xavier"):
    """Variance `2 / (fan_in + fan_out)`, of outputs and gradients (Glorot, Bengio 2010, Eq. 12)."""

    def variance(self, fan_in: int, fan_out: int, problem: Problem) -> float:
        """Return `2 / (fan_in + fan_out)`."""
        return 2 / (fan_in + fan_out)


class Kaiming(FanScaled, kind="kaiming"):
    """Variance `2 / ((1 + alpha^2) fan_in)` for a negative slope alpha (He et al. 2015, Eq. 15).

    alpha is 0 for ReLU and activations without a slope, 1 for linear networks.
    """

    def variance(self, fan_in: int, fan_out: int, problem: Problem) -> float:
        """Return the variance."""
        sigma = getattr(problem.config.architecture, "sigma", None)
        alpha = getattr(sigma, "negative_slope", None) or 0.0
        return 2 / ((1 + alpha**2) * fan_in)


class Product(Initialization):
    """The base of kinds that give the product `W_L ... W_1` and split it evenly.

    With the product `U S V^T` of rank k, `W_l = R_l S^(1/L) R_(l-1)^T`, `R_0 = V`, `R_L = U`, and
    the R_l between of k random orthonormal columns: then `W_(l+1)^T W_(l+1) = W_l W_l^T`.
    """

    scale: Positive

    @abstractmethod
    def product(
        self, rng: Generator, problem: Problem, outputs: int
    ) -> tuple[Floats, Floats, Floats]:
        """Return `U (C, k)`, descending singular values (k,), `V (d, k)`; widths cut all three."""

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield a network that is no product of matrices."""
        architecture = sections.get("architecture")
        if architecture is None:
            return
        if not architecture.multiplied:
            able = alternatives([name for name in CHAINS if name in all_kinds("architecture")])
            yield ("initialization", "kind"), f"{self.kind} needs architecture.kind {able}"

    def draw(self, problem: Problem, streams: Streams) -> Mapping[str, Floats]:
        """Return the weights; biases are 0.

        Raises:
            InputError: a layer's inputs do not match the neurons of the layer before.
        """
        rng = streams.rng("initialization")
        shapes = matrices(problem.shapes, self.kind)
        first = next(iter(shapes.values()))
        sizes = [first[1], *(shape[0] for shape in shapes.values())]  # d, m_1, ..., C
        if list(shapes.values()) != [(after, before) for before, after in pairwise(sizes)]:
            raise InputError(
                f"initialization.kind {self.kind}: {', '.join(shapes)} are no matrices to be"
                " multiplied"
            )
        U, s, V = self.product(rng, problem, sizes[-1])
        k = min(len(s), *sizes)
        root = s[:k] ** (1 / len(shapes))
        R = [V[:, :k], *(orthonormal(rng, size, k) for size in sizes[1:-1]), U[:, :k]]
        drawn = zeros(problem.shapes)
        for name, (before, after) in zip(shapes, pairwise(R), strict=True):
            drawn[name] = ((after * root) @ before.T).reshape(problem.shapes[name])
        return drawn


class Decoupled(Product, kind="decoupled"):
    """Linear networks along the singular vectors of the correlation (Saxe et al. 2014, Section 1).

    `sum_k y_k x_k^T / n = U S V^T`, and the network starts as `W_L ... W_1 = scale U V^T` in
    balanced layers: every mode at the strength `scale`. Where `sum_k x_k x_k^T / n` is diagonal in
    V, the modes are learned independently. Class numbers stand for unit vectors; modes whose
    singular value is 0 are left out.
    """

    example = """\
architecture: {kind: two_layer, width: 8, activation: linear}
initialization: {kind: decoupled, scale: 1.0e-3}
"""
    scale: Positive
    """Initial strength of every mode, from input to output."""

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield the settings that make modes interact: activations and biases."""
        yield from super().check(sections)
        architecture = sections.get("architecture")
        activation = getattr(architecture, "activation", None)
        if activation is not None and not activation.is_linear:
            yield ("architecture", "activation"), "must be linear for the initialization decoupled"
        if getattr(architecture, "bias", False):
            yield ("architecture", "bias"), "must be false for the initialization decoupled"

    def product(
        self, rng: Generator, problem: Problem, outputs: int
    ) -> tuple[Floats, Floats, Floats]:
        """Return the singular vectors of the correlation of labels and inputs, and equal strengths.

        Raises:
            InputError: labels and inputs are not correlated.
        """
        x = problem.dataset.x
        y = problem.dataset.y
        labels = y.reshape(len(x), -1)
        if problem.loss.labels == "classes":
            labels = np.eye(outputs)[y.astype(int)]
        U, s, Vt = np.linalg.svd(labels.T @ x / len(x), full_matrices=False)
        rank = int((s > 1e-12 * s[0]).sum())
        if rank == 0:
            raise InputError(
                "initialization.kind decoupled: no input is correlated with any label, there are no"
                " modes"
            )
        return U[:, :rank], np.full(rank, self.scale), Vt[:rank].T
