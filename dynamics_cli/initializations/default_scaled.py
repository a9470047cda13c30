"""PyTorch's default initialisation, scaled."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from dynamics_cli.config.base import Positive
from dynamics_cli.config.bases import Floats, Initialization
from dynamics_cli.config.streams import Streams
from dynamics_cli.errors import InputError

if TYPE_CHECKING:
    from dynamics_cli.training.problem import Problem


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
