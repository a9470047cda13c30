"""The base class of theories."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dynamics_cli.kinds.arrays import Floats
from dynamics_cli.kinds.base import Kind


@dataclass(frozen=True)
class Curve:
    """A quantity of a run, and its prediction by a theory."""

    label: str
    x: Floats
    """(K,)"""
    measured: Floats
    """(K,), or (K, c) for c numbers each."""
    predicted: Floats
    """Of the same shape; NaN where the theory says nothing."""
    xlabel: str = "iteration"

    @property
    def deviation(self) -> float:
        """Largest `|predicted - measured|` over the largest `|measured|`.

        NaN where the theory says nothing at all.
        """
        gap = np.abs(np.asarray(self.predicted, np.float64) - self.measured)
        known = np.isfinite(gap)
        size = float(np.abs(self.measured[known]).max(initial=0.0))
        if size == 0:
            return math.nan
        return float(gap[known].max() / size)


class Theory(Kind):
    """The predictions of a theory for a run.

    `dyn plot RUN --theory` draws them beside the measured curves.

    Papers keep their own in `experiments/<paper>/theory/`. `example` names the sections of a run
    that it speaks of.
    """

    section: ClassVar[str] = "theory"

    @abstractmethod
    def applies(self, run: Any) -> list[str] | None:
        """Return the assumptions that a run (`runs.Run`) violates.

        None where the theory is about other networks.
        """

    @abstractmethod
    def predict(self, run: Any) -> Mapping[str, Floats | Curve]:
        """Return predictions by name.

        Of the recorded `loss` or a measure they are values at all its records, or a `Curve`.

        Raises:
            ValueError: nothing can be predicted for this run.
        """
