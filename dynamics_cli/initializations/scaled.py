"""Gaussian and uniform weights of a given scale, and PyTorch's own, scaled."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.random import Generator

from dynamics_cli.config.base import Finding, Positive, Sections
from dynamics_cli.config.bases import Floats, Initialization
from dynamics_cli.config.streams import Streams
from dynamics_cli.errors import InputError

if TYPE_CHECKING:
    from dynamics_cli.training.problem import Problem

DivideBy = Literal["none", "sqrt_width", "sqrt_dim", "sqrt_width_times_dim"]


def needs_two_layers(sections: Sections, key: str, what: str = "") -> Iterator[Finding]:
    """Yield that `key` of the initialisation, or its kind `what`, needs a two-layer network where there is another."""
    architecture = sections.get("architecture")
    if architecture is not None and architecture.kind != "two_layer":
        yield ("initialization", key), f"{what} needs architecture.kind two_layer".lstrip()


class Scaled(Initialization):
    """What the drawn initialisations share: a scale, what divides it, and optional fixed output values."""

    scale: Positive
    """Scale lambda of the weights, before the division."""
    divide_by: DivideBy = "none"
    """Divide the scale by 1, sqrt(m), sqrt(d) or sqrt(m d); m is the width, d the input dimension without the bias."""
    output_value: Positive | None = None
    """If given, output weights are ± this value instead of what the kind draws."""
    output_signs: Literal["random", "halves"] = "random"
    """Signs of the output weights: uniform on ±1, or + for the first half of the neurons and - for the second."""
    only_two_layers: ClassVar[bool] = True
    """Whether the kind is defined for two-layer networks alone."""

    def divided(self, *, width: int, dim: int) -> float:
        """Return the scale of a layer of `width` neurons with `dim` inputs."""
        divisor = {"none": 1, "sqrt_width": width, "sqrt_dim": dim, "sqrt_width_times_dim": width * dim}
        return self.scale / math.sqrt(divisor[self.divide_by])

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield what is defined for two-layer networks alone."""
        if self.only_two_layers:
            yield from needs_two_layers(sections, "kind", self.kind)
        elif self.output_value is not None:
            yield from needs_two_layers(sections, "output_value")

    def draw(self, problem: Problem, streams: Streams) -> Mapping[str, Floats]:
        """Return hidden weights, then output weights, of a two-layer network."""
        rng, (m, columns) = streams.rng("initialization"), problem.shapes["hidden_weight"]
        s = self.divided(width=m, dim=problem.dataset.input_dim)
        W = self.hidden(rng, s, (m, columns))
        return {"hidden_weight": W, "output_weight": self.output(rng, s, W)}

    def hidden(self, rng: Generator, s: float, shape: tuple[int, ...]) -> Floats:
        """Return hidden weights (m, d) of scale `s`."""
        return s * rng.standard_normal(shape)

    def output(self, rng: Generator, s: float, W: Floats) -> Floats:
        """Return output weights (m,) for hidden weights `W` (m, d) of scale `s`."""
        m = len(W)
        magnitudes = np.full(m, self.output_value) if self.output_value is not None else self.magnitudes(s, W)
        if self.output_signs == "halves":
            signs = np.where(np.arange(m) < (m + 1) // 2, 1.0, -1.0)
        else:
            signs = rng.choice([-1.0, 1.0], m)
        return signs * magnitudes

    def magnitudes(self, s: float, W: Floats) -> Floats:
        """Return `|a_j|` (m,), by default the norms of the neurons."""
        largest = np.abs(W).max()  # scales below 1e-154 would underflow in the squares
        norms: Floats = largest * np.linalg.norm(W / largest, axis=1)
        return norms


class Balanced(Scaled, kind="balanced"):
    """Gaussian hidden weights and `a_j = ± ||w_j||` (Boursier et al. 2022, Eq. 4)."""

    example = "{kind: balanced, scale: 1.0e-3, divide_by: sqrt_width}"


class Unbalanced(Scaled, kind="unbalanced"):
    """Independent Gaussians for all weights."""

    example = "{kind: unbalanced, scale: 0.1}"
    only_two_layers = False

    def draw(self, problem: Problem, streams: Streams) -> Mapping[str, Floats]:
        """Return Gaussian weights, each of the scale of its own layer; of two-layer networks all of the same."""
        if problem.config.architecture.kind == "two_layer":
            return super().draw(problem, streams)
        rng = streams.rng("initialization")
        return {
            name: self.divided(width=shape[0], dim=math.prod(shape[1:]) or 1) * rng.standard_normal(shape)
            for name, shape in problem.shapes.items()
        }

    def output(self, rng: Generator, s: float, W: Floats) -> Floats:
        """Return Gaussian output weights (m,), unless their value is given."""
        return s * rng.standard_normal(len(W)) if self.output_value is None else super().output(rng, s, W)


class Dominated(Scaled, kind="dominated"):
    """Hidden weights uniform in ± s and `|a_j| = s sqrt(columns)`, so that `|a_j| >= ||w_j||`."""

    example = "{kind: dominated, scale: 0.1}"

    def hidden(self, rng: Generator, s: float, shape: tuple[int, ...]) -> Floats:
        """Return uniform hidden weights (m, d)."""
        return rng.uniform(-s, s, shape)

    def magnitudes(self, s: float, W: Floats) -> Floats:
        """Return the largest norm that a neuron can have."""
        return np.full(len(W), s * math.sqrt(W.shape[1]))


class DefaultScaled(Initialization, kind="default_scaled"):
    """PyTorch's default initialisation of a linear layer, times a factor."""

    factor: Positive = 1.0
    """Multiplies every initial weight."""
    only: list[str] | None = None
    """Names of the parameters that the factor multiplies, the others stay as drawn; by default all."""

    def draw(self, problem: Problem, streams: Streams) -> Mapping[str, Floats]:
        """Draw uniformly in ± 1/sqrt(fan in), weights and biases alike, as `torch.nn.Linear` and `Conv2d` do.

        Raises:
            InputError: `only` names a parameter that the network does not have.
        """
        shapes, rng = problem.shapes, streams.rng("initialization")
        for name in self.only or ():
            if name not in shapes:
                raise InputError(f"initialization.only: no parameter {name!r}; this network has {', '.join(shapes)}")
        parameters = {}
        fan_in = 1
        for name, shape in shapes.items():
            if len(shape) > 1:  # biases follow their weight and share its fan-in
                fan_in = math.prod(shape[1:])
            elif name == "output_weight":
                fan_in = shape[0]
            bound = 1 / math.sqrt(fan_in)
            factor = self.factor if self.only is None or name in self.only else 1.0
            parameters[name] = factor * rng.uniform(-bound, bound, shape)
        return parameters
