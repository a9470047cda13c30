"""Weights of a given scale, neuron by neuron or weight by weight, and PyTorch's own, scaled."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import ClassVar, Literal

import numpy as np
from numpy.random import Generator

from dynamics_cli.errors import InputError
from dynamics_cli.kinds import (
    Finding,
    Floats,
    Initialization,
    NonNegative,
    Positive,
    Problem,
    Sections,
    Streams,
)

DivideBy = Literal["none", "sqrt_width", "sqrt_dim", "sqrt_width_times_dim"]


def needs_two_layers(sections: Sections, key: str, what: str = "") -> Iterator[Finding]:
    """Yield that `key` of the initialisation, or its kind `what`, needs a two-layer network."""
    architecture = sections.get("architecture")
    if architecture is not None and not architecture.two_layers:
        yield ("initialization", key), f"{what} needs architecture.kind two_layer".lstrip()


def on_sphere(rng: Generator, shape: tuple[int, ...]) -> Floats:
    """Return rows (along the last axis) that are uniform on the unit sphere."""
    rows = rng.standard_normal(shape)
    on_it: Floats = rows / np.linalg.norm(rows, axis=-1, keepdims=True)
    return on_it


def unit_rows(rng: Generator, shape: tuple[int, ...]) -> Floats:
    """Return incoming weights on the unit sphere for every neuron of a layer; 0 for biases."""
    if len(shape) == 1:
        return np.zeros(shape)
    return on_sphere(rng, (shape[0], math.prod(shape[1:]))).reshape(shape)


def check_names(key: str, names: Iterable[str], parameters: Collection[str]) -> None:
    """Raise `InputError` where a key of the initialisation names no parameter of the network."""
    for name in names:
        if name not in parameters:
            raise InputError(
                f"initialization.{key}: no parameter {name!r}; this network has"
                f" {', '.join(parameters)}"
            )


class PerLayer(Initialization):
    """The base of kinds whose layers are independent of each other."""

    scales: list[NonNegative] | dict[str, NonNegative] | None = None
    """A further factor for each layer and its bias, inputs first; or for parameters by name."""

    def scaled(self, drawn: Mapping[str, Floats]) -> Mapping[str, Floats]:
        """Return the weights times the factors of their layers.

        Raises:
            InputError: there is another number of factors than of layers, or no parameter of a
                name.
        """
        if self.scales is None:
            return drawn
        if isinstance(self.scales, dict):
            check_names("scales", self.scales, drawn)
            return {name: self.scales.get(name, 1.0) * value for name, value in drawn.items()}
        layers = np.cumsum(["bias" not in name for name in drawn]) - 1
        if len(self.scales) != layers[-1] + 1:
            entries = f"initialization.scales has {len(self.scales)} entries"
            raise InputError(
                f"{entries}, the network has {layers[-1] + 1} layers: {', '.join(drawn)}"
            )
        return {
            name: self.scales[layer] * drawn[name]
            for name, layer in zip(drawn, layers, strict=True)
        }


class Scaled(Initialization):
    """The base of drawn initialisations: a scale, its divisor, and optional fixed output values."""

    titles: ClassVar[Mapping[str, str]] = {"scale": "scale λ"}
    scale: Positive
    """Scale lambda of the weights, before the division."""
    divide_by: DivideBy = "none"
    """Divide the scale by 1, sqrt(m), sqrt(d), sqrt(m d): width m, inputs d without the bias."""
    output_value: Positive | None = None
    """If given, output weights are ± this value instead of the kind's draws."""
    output_signs: Literal["random", "halves"] = "random"
    """Signs of the output weights: uniform on ±1, or + for the first half of neurons, then -."""
    only_two_layers: ClassVar[bool] = True
    """Whether the kind is defined for two-layer networks alone."""

    def divided(self, *, width: int, dim: int) -> float:
        """Return the scale of a layer of `width` neurons with `dim` inputs."""
        divisor = {
            "none": 1,
            "sqrt_width": width,
            "sqrt_dim": dim,
            "sqrt_width_times_dim": width * dim,
        }
        return self.scale / math.sqrt(divisor[self.divide_by])

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield the keys that two-layer networks alone have."""
        if self.only_two_layers:
            yield from needs_two_layers(sections, "kind", self.kind)
        elif self.output_value is not None:
            yield from needs_two_layers(sections, "output_value")

    def draw(self, problem: Problem, streams: Streams) -> Mapping[str, Floats]:
        """Return hidden weights, then output weights, of a two-layer network."""
        rng = streams.rng("initialization")
        shape = problem.shapes["hidden_weight"]
        s = self.divided(width=shape[0], dim=problem.dataset.input_dim)
        W = s * self.law(rng, shape)
        return {
            "hidden_weight": W,
            "output_weight": self.output(rng, s, W, problem.shapes["output_weight"]),
        }

    def law(self, rng: Generator, shape: tuple[int, ...]) -> Floats:
        """Return weights of scale 1."""
        return rng.standard_normal(shape)

    def output(self, rng: Generator, s: float, W: Floats, shape: tuple[int, ...]) -> Floats:
        """Return output weights (m,) of the norms of hidden weights `W` (m, d).

        Several outputs (C, m) have uniform directions.

        Raises:
            InputError: signs by halves are asked for and there are several outputs.
        """
        m = len(W)
        if self.output_value is None:
            largest = np.abs(W).max()  # scales below 1e-154 would underflow in the squares
            magnitudes: Floats = largest * np.linalg.norm(W / largest, axis=1)
        else:
            magnitudes = np.full(m, self.output_value)
        if len(shape) > 1:
            if self.output_signs == "halves":
                raise InputError(
                    "initialization.output_signs: halves needs a network with one output, not"
                    f" {shape[0]}"
                )
            return on_sphere(rng, (m, shape[0])).T * magnitudes
        if self.output_signs == "halves":
            signs = np.where(np.arange(m) < (m + 1) // 2, 1.0, -1.0)
        else:
            signs = rng.choice([-1.0, 1.0], m)
        return signs * magnitudes


class Balanced(Scaled, kind="balanced"):
    """Gaussian hidden weights and `a_j = ± ||w_j||` (Boursier et al. 2022, Eq. 4)."""

    example = "{kind: balanced, scale: 1.0e-3, divide_by: sqrt_width}"


class Unbalanced(PerLayer, Scaled, kind="unbalanced"):
    """Independent Gaussians for all weights."""

    example = "{kind: unbalanced, scale: 0.1}"
    only_two_layers = False

    def draw(self, problem: Problem, streams: Streams) -> Mapping[str, Floats]:
        """Return Gaussian weights of the scale of each layer; two layers have the same scale."""
        if problem.config.architecture.two_layers:
            return self.scaled(super().draw(problem, streams))
        rng = streams.rng("initialization")
        drawn = {
            name: self.divided(width=shape[0], dim=math.prod(shape[1:]) or 1) * self.law(rng, shape)
            for name, shape in problem.shapes.items()
        }
        return self.scaled(drawn)

    def output(self, rng: Generator, s: float, W: Floats, shape: tuple[int, ...]) -> Floats:
        """Return output weights of the same law, unless their value is given."""
        if self.output_value is None:
            return s * self.law(rng, shape)
        return super().output(rng, s, W, shape)


class Paired(Unbalanced, kind="paired"):
    """Gaussians, the last hidden layer in pairs: equal incoming and opposite outgoing weights.

    The network is 0 at first (up to the rounding of sums), as in Chizat et al. 2019 (the doubling
    trick), and the tangent kernel of a two-layer network is twice the kernel of half its neurons;
    in a deep network, earlier layers have the gradient 0 at first. Neuron j has the partner
    `j + m/2`.
    """

    example = "{kind: paired, scale: 0.1}"
    sphere: bool | None = None
    """Draw incoming weights uniformly on the sphere of radius `scale`, biases 0, outgoing weights
    of that size, instead of Gaussians (Kunin et al. 2024).
    """

    def law(self, rng: Generator, shape: tuple[int, ...]) -> Floats:
        """Return Gaussians, or rows on the unit sphere."""
        if self.sphere:
            return unit_rows(rng, shape)
        return super().law(rng, shape)

    def output(self, rng: Generator, s: float, W: Floats, shape: tuple[int, ...]) -> Floats:
        """Return output weights of the same law."""
        if self.sphere:
            return Scaled.output(self, rng, s, W, shape)
        return super().output(rng, s, W, shape)

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield another network, and a width that is odd."""
        yield from super().check(sections)
        architecture = sections.get("architecture")
        if architecture is None:
            return
        widths = getattr(architecture, "widths", [])
        place: tuple[str | int, ...] = ("architecture", "widths", len(widths) - 1)
        if architecture.two_layers:
            widths = [architecture.width]
            place = ("architecture", "width")
        if not widths:
            yield (
                ("initialization", "kind"),
                "paired needs the hidden layer of a two_layer or fully_connected network",
            )
        elif widths[-1] % 2:
            yield place, f"must be even for the initialization paired, not {widths[-1]}"

    def draw(self, problem: Problem, streams: Streams) -> Mapping[str, Floats]:
        """Return weights; the second half of the last hidden neurons takes the first half back."""
        drawn = {name: np.array(value) for name, value in super().draw(problem, streams).items()}
        *_, before, last = [name for name in drawn if "bias" not in name]
        half = len(drawn[before]) // 2
        names = list(drawn)
        for name in names[names.index(before) : names.index(last)]:
            drawn[name][half:] = drawn[name][:half]
        drawn[last][..., half:] = -drawn[last][..., :half]
        return drawn | {name: np.zeros_like(drawn[name]) for name in names[names.index(last) + 1 :]}


class DefaultScaled(PerLayer, kind="default_scaled"):
    """PyTorch's default initialisation of a linear layer, times a factor."""

    factor: Positive = 1.0
    """Multiplies every initial weight."""
    only: list[str] | None = None
    """Names of the parameters that the factor multiplies (default: all); others stay as drawn."""
    generator: Literal["torch"] | None = None
    """Draw from PyTorch's generator, as a script that builds a `float32` network after
    `torch.manual_seed(seed)`; by default from a stream of dyn's.
    """

    def draw(self, problem: Problem, streams: Streams) -> Mapping[str, Floats]:
        """Draw weights and biases in ± 1/sqrt(fan in), as `torch.nn.Linear` and `Conv2d` do.

        Raises:
            InputError: `only` names a parameter that the network does not have.
        """
        shapes = problem.shapes
        rng = streams.by(self.generator).rng("initialization")
        check_names("only", self.only or (), shapes)
        parameters = {}
        fan_in = 1
        for name, shape in shapes.items():
            if len(shape) > 1:  # biases follow their weight and share its fan-in
                fan_in = math.prod(shape[1:])
            elif name == "output_weight":
                fan_in = shape[0]
            bound = 1 / math.sqrt(fan_in)
            parameters[name] = rng.uniform(-bound, bound, shape)
            if self.only is None or name in self.only:
                parameters[name] *= self.factor
        return self.scaled(parameters)
