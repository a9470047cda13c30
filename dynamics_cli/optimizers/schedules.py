"""How step sizes change along a run; `t = i / N` is the share of the run that is done at state i of N."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import Field

from dynamics_cli.config.base import NonNegative, Positive, PositiveInt
from dynamics_cli.config.bases import Schedule


class Constant(Schedule, kind="constant"):
    """The step size stays as it is."""

    def factor(self, iteration: int, iterations: int) -> float:
        """Return 1."""
        return 1.0


class Cosine(Schedule, kind="cosine"):
    """`(1 + cos(pi t)) / 2` after a linear rise over the first `warm_up` iterations (Loshchilov and Hutter 2017)."""

    warm_up: Annotated[int, Field(ge=0)] = 0
    """Iterations over which the factor rises from `1 / warm_up` to 1."""

    def factor(self, iteration: int, iterations: int) -> float:
        """Return the factor; 1 at the end of the warm-up, near 0 at the last update."""
        if iteration < self.warm_up:
            return (iteration + 1) / self.warm_up
        return (1 + math.cos(math.pi * (iteration - self.warm_up) / max(1, iterations - self.warm_up))) / 2


class Step(Schedule, kind="step"):
    """`gamma^k` after k times `every` iterations."""

    example = "{kind: step, every: 500}"
    every: PositiveInt
    """Iterations between two drops."""
    gamma: Positive = 0.1
    """What a drop multiplies the step size by."""

    def factor(self, iteration: int, iterations: int) -> float:
        """Return `gamma` to the number of drops so far."""
        return float(self.gamma ** (iteration // self.every))


class Power(Schedule, kind="power"):
    """`(1 + i / scale)^(-exponent)`."""

    example = "{kind: power, exponent: 0.5, scale: 100.0}"
    exponent: NonNegative
    """0.5 for `1 / sqrt(i)`, 1 for `1 / i`."""
    scale: Positive = 1.0
    """Iterations after which the decay sets in."""

    def factor(self, iteration: int, iterations: int) -> float:
        """Return the factor, 1 at state 0."""
        return float((1 + iteration / self.scale) ** -self.exponent)
