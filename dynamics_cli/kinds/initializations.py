"""The base class of initialisations."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from dynamics_cli.kinds.arrays import Floats
from dynamics_cli.kinds.base import Kind, Positive
from dynamics_cli.kinds.streams import Streams

if TYPE_CHECKING:
    from dynamics_cli.kinds.problem import Problem


class Initialization(Kind):
    """Where the initial weights come from."""

    section: ClassVar[str] = "initialization"

    seed: Annotated[int, Field(ge=0)] | None = None
    """Seed of the initial weights (default: the run's seed)."""
    rescale: Positive | None = None
    """Multiplies all initial weights; by default 1."""

    @abstractmethod
    def draw(self, problem: Problem, streams: Streams) -> Mapping[str, Floats]:
        """Return the initial value of every parameter of `problem.shapes`, float64, by name.

        Draw from `streams.rng("initialization")`. `problem.dataset` holds the samples,
        `problem.loss` the loss.

        Raises:
            InputError: there are no such weights for this network or these data.
        """
