"""Data that another network labels: teachers of any architecture, linear maps, power laws."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from dynamics_cli.errors import InputError
from dynamics_cli.kinds import (
    Architecture,
    Dataset,
    Floats,
    Initialization,
    OneOf,
    Streams,
    TeacherStreams,
)
from dynamics_cli.kinds.base import Finding, NonNegative, Positive, PositiveInt, Sections
from dynamics_cli.kinds.data import Samples, check_size, make_samples


class _WithoutSamples(SimpleNamespace):
    """The problem of an initialisation that draws a teacher: without samples, loss, optimizer."""

    def __getattr__(self, name: str) -> Any:
        raise InputError(
            f"dataset.initialization: weights of a teacher cannot depend on {name}; it labels the"
            " samples"
        )


class Teacher(Dataset, kind="teacher"):
    """Gaussian inputs labelled by a random network, `y = phi(x) + noise` (Goldt et al. 2019)."""

    example = (
        "{kind: teacher, n: 200, dim: 10, n_test: 200, architecture: {kind: two_layer, width: 2,"
        " activation: erf}}"
    )
    endless = True
    n: PositiveInt
    """Number of training samples."""
    dim: PositiveInt
    """Input dimension."""
    architecture: Annotated[Architecture, OneOf("architecture")]
    """The teacher."""
    initialization: Annotated[Initialization, OneOf("initialization")] | None = None
    """Draws the teacher's weights, as a network's; by default Gaussians of one `scale`."""
    scale: Positive = 1.0
    """Standard deviation of the teacher's weights."""
    output_value: float | None = None
    """If given, all output weights of a two-layer teacher."""
    divide_inputs: bool = False
    """Divide preactivations of the first layer by sqrt(dim), by dividing its weights."""
    noise: NonNegative = 0.0
    """Standard deviation of Gaussian noise on the training labels."""
    n_test: PositiveInt | None = None
    """Number of held-out samples, without noise."""
    sign: bool = False
    """Take the sign of the output, 1 for 0, for margin losses."""
    append_bias: bool = False
    """Append a constant 1 to every input of teacher and student."""
    generator: Literal["torch"] | None = None
    """Draw the teacher, its training and its held-out inputs one after the other from PyTorch's
    generator, as a script after `torch.manual_seed(seed)`; by default from streams of dyn's.
    """

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield sizes of weights beside an initialisation that draws them."""
        if self.initialization is None:
            return
        for key in ("scale", "output_value", "divide_inputs"):
            if getattr(self, key) != type(self).model_fields[key].default:
                yield (
                    ("dataset", key),
                    "does not go with dataset.initialization, which says the size of all weights",
                )

    def weights(self, streams: Streams) -> dict[str, Floats]:
        """Return the weights of the teacher by name.

        Raises InputError: they do not fit into memory, or cannot be drawn without samples.
        """
        d = self.dim + self.append_bias
        shapes = self.architecture.shapes(d)
        for shape in shapes.values():
            check_size(math.prod(shape), 1)
        streams = streams.by(self.generator)
        if self.initialization is not None:
            columns = _WithoutSamples(d=d, input_dim=self.dim, bias=self.append_bias)
            config = _WithoutSamples(architecture=self.architecture)
            problem: Any = _WithoutSamples(config=config, dataset=columns, shapes=shapes)
            if self.generator is None:
                seed = self.initialization.seed
                if seed is None:
                    seed = streams.seed
                streams = TeacherStreams(seed)
            return dict(self.initialization.draw(problem, streams))
        rng = streams.rng("teacher")
        weights = {name: self.scale * rng.standard_normal(shape) for name, shape in shapes.items()}
        if self.output_value is not None and "output_weight" in weights:
            weights["output_weight"][:] = self.output_value
        if self.divide_inputs:
            weights[next(iter(weights))] /= np.sqrt(self.dim)
        return weights

    def load(self, streams: Streams) -> Samples:
        """Draw inputs and label them.

        Raises InputError: the teacher does not suit them.
        """
        outputs = getattr(self.architecture, "outputs", None) or 1
        check_size(self.n + (self.n_test or 0), self.dim + self.append_bias + outputs)
        streams = streams.by(self.generator)
        phi = self.architecture.function(self.weights(streams))
        rng = streams.rng("data")

        def draw(count: int) -> tuple[Floats, Floats]:
            x = rng.standard_normal((count, self.dim))
            inputs = x
            if self.append_bias:
                inputs = np.column_stack([x, np.ones(count)])
            y = phi(inputs)
            if self.sign:
                y = np.where(y >= 0, 1.0, -1.0)
            return x, y

        x, y = draw(self.n)
        if self.noise:
            y = y + self.noise * streams.rng("label noise").standard_normal(y.shape)
        x_test = None
        y_test = None
        if self.n_test is not None:
            x_test, y_test = draw(self.n_test)
        return make_samples(x, y, x_test=x_test, y_test=y_test, append_bias=self.append_bias)


class SphereTeacher(Dataset, kind="sphere_teacher"):
    """Inputs on the unit sphere, `y = sum_k s_k relu(<t_k, x>)`, |t_k| = 1 (Chizat et al. 2019)."""

    example = "{kind: sphere_teacher, n: 100, dim: 10, n_test: 100}"
    endless = True
    n: PositiveInt
    """Number of training samples."""
    dim: PositiveInt
    """Input dimension."""
    neurons: PositiveInt = 3
    """Neurons of the teacher."""
    n_test: PositiveInt | None = None
    """Number of held-out samples."""

    def teacher(self, streams: Streams) -> tuple[Floats, Floats]:
        """Return the directions (neurons, dim) and their signs (neurons,)."""
        check_size(self.neurons, self.dim + self.n + (self.n_test or 0))
        rng = streams.rng("teacher")
        rows = rng.standard_normal((self.neurons, self.dim))
        signs = rng.choice([-1.0, 1.0], self.neurons)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True), signs

    def load(self, streams: Streams) -> Samples:
        """Draw inputs and label them.

        Raises InputError: they do not fit into memory.
        """
        check_size(self.n + (self.n_test or 0), self.dim)
        rng = streams.rng("data")
        T, s = self.teacher(streams)
        x = rng.standard_normal((self.n + (self.n_test or 0), self.dim))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        return make_samples(x, np.maximum(x @ T.T, 0.0) @ s, trained=self.n)


class SparseRegression(Dataset, kind="sparse_regression"):
    """`y = <beta, x> + noise`, first entries of beta `1/sqrt(nonzero)` (Woodworth et al. 2020)."""

    example = "{kind: sparse_regression, n: 20, dim: 50, nonzero: 3, noise: 0.1}"
    n: PositiveInt
    """Number of training samples."""
    dim: PositiveInt
    """Input dimension."""
    nonzero: PositiveInt
    """Entries of beta that are not 0."""
    noise: NonNegative = 0.0
    """Standard deviation of Gaussian noise on the labels."""

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield more entries than there are."""
        if self.nonzero > self.dim:
            yield ("dataset", "nonzero"), f"must be at most dim = {self.dim}, not {self.nonzero}"

    def beta(self) -> Floats:
        """Return the predictor (dim,) of norm 1."""
        return np.where(np.arange(self.dim) < self.nonzero, 1.0 / np.sqrt(self.nonzero), 0.0)

    def load(self, streams: Streams) -> Samples:
        """Draw inputs, then noise.

        Raises InputError: they do not fit into memory.
        """
        check_size(self.n, self.dim)
        rng = streams.rng("data")
        x = rng.standard_normal((self.n, self.dim))
        return make_samples(x, x @ self.beta() + self.noise * rng.standard_normal(self.n))


class PowerLaw(Dataset, kind="power_law"):
    """Gaussian inputs with variances of a power law, and a linear teacher (Bordelon et al. 2020).

    `x_i ~ N(0, lambda_i)` with `lambda_i = i^-decay`, `i = 1, ..., dim`, and `y = sum_i w_i x_i`
    with `lambda_i w_i^2 = i^-source`: the part of direction i in the mean square of labels.
    """

    example = "{kind: power_law, n: 200, dim: 100, decay: 1.5, source: 1.25, n_test: 200}"
    endless = True
    titles: ClassVar[Mapping[str, str]] = {"decay": "decay of variances α", "source": "source β"}
    n: PositiveInt
    """Number of training samples."""
    dim: PositiveInt
    """Input dimension d."""
    decay: Positive
    """The exponent of the variances of inputs."""
    source: Positive
    """The exponent of the parts of directions in labels."""
    noise: NonNegative = 0.0
    """Standard deviation of Gaussian noise on the training labels."""
    n_test: PositiveInt | None = None
    """Number of held-out samples, without noise."""

    def variances(self) -> Floats:
        """Return the variances (d,) of inputs."""
        return np.arange(1.0, self.dim + 1.0) ** -self.decay

    def weights(self) -> Floats:
        """Return the teacher's weights (d,)."""
        return np.arange(1.0, self.dim + 1.0) ** ((self.decay - self.source) / 2)

    def load(self, streams: Streams) -> Samples:
        """Draw inputs and label them."""
        count = self.n + (self.n_test or 0)
        check_size(count, self.dim)
        x = streams.rng("data").standard_normal((count, self.dim)) * np.sqrt(self.variances())
        y = x @ self.weights()
        if self.noise:
            y[: self.n] += self.noise * streams.rng("label noise").standard_normal(self.n)
        return make_samples(x, y, trained=self.n)


class LinearMap(Dataset, kind="linear_map"):
    """`y = U diag(s) V^T x`, orthonormal `U`, `V`: modes of strength s (Saxe et al. 2014)."""

    example = """\
dataset: {kind: linear_map, inputs: 8, outputs: 5, singular_values: [4.0, 2.0, 1.0]}
architecture: {kind: fully_connected, widths: [8], outputs: 5, activation: linear, bias: false}
initialization: {kind: unbalanced, scale: 0.01}
"""
    endless = True
    inputs: PositiveInt
    """Input dimension."""
    outputs: PositiveInt
    """Dimension of the labels."""
    singular_values: list[Positive] = Field(min_length=1)
    """Singular values `s` of the map, at most as many as inputs and as outputs."""
    n: PositiveInt | None = None
    """Number of samples; by default as many as inputs, orthogonal: `sum_k x_k x_k^T / n = I`."""
    noise: NonNegative = 0.0
    """Standard deviation of Gaussian noise on the labels."""
    anisotropy: NonNegative | None = None
    """`gamma`: input k has variance `(d / (H k))^gamma`, `H = sum_k 1/k`, in place of 1."""

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield more singular values than the map can have."""
        if len(self.singular_values) > min(self.inputs, self.outputs):
            most = min(self.inputs, self.outputs)
            yield (
                ("dataset", "singular_values"),
                f"has {len(self.singular_values)} values, the map at most {most}",
            )
        if self.n is None and getattr(sections.get("optimizer"), "samples", None) == "fresh":
            yield (
                ("dataset", "n"),
                (
                    "is missing; fresh samples are Gaussian, as those that the loss is recorded on"
                    " must be"
                ),
            )

    def vectors(self, streams: Streams) -> tuple[Floats, Floats]:
        """Return `U` (outputs, r) and `V` (inputs, r), drawn from the Haar measure."""
        rng = streams.rng("teacher")
        r = len(self.singular_values)
        U, _ = np.linalg.qr(rng.standard_normal((self.outputs, r)))
        V, _ = np.linalg.qr(rng.standard_normal((self.inputs, r)))
        return U, V

    def load(self, streams: Streams) -> Samples:
        """Return inputs of unit covariance, unless they are anisotropic, and their images."""
        n = self.n or self.inputs
        check_size(n, self.inputs + self.outputs)
        U, V = self.vectors(streams)
        x = streams.rng("data").standard_normal((n, self.inputs))
        if self.n is None:
            x = np.sqrt(n) * np.linalg.qr(x)[0]
        if self.anisotropy:
            k = np.arange(1, self.inputs + 1)
            x *= (self.inputs / (k * np.sum(1 / k))) ** (self.anisotropy / 2)
        y = x @ V * np.array(self.singular_values) @ U.T
        if self.noise:
            y = y + self.noise * streams.rng("label noise").standard_normal(y.shape)
        if self.outputs == 1:
            y = y[:, 0]
        return make_samples(x, y)
