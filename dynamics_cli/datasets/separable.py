"""Linearly separable classes: two opposite Gaussians."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import numpy as np
from pydantic import Field

from dynamics_cli.datasets.points import Coordinates, check_rows
from dynamics_cli.kinds import Dataset, Floats, Samples, Streams, check_size, make_samples
from dynamics_cli.kinds.base import Finding, Positive, PositiveInt, Sections


class Gaussians(Dataset, kind="gaussians"):
    """Two Gaussians at opposite means, each on its side of the origin (Sarussi et al. 2021)."""

    example = "{kind: gaussians, per_class: 50, mean: [1.0, 1.0], deviation: 0.5}"
    per_class: PositiveInt
    """Training points of each class."""
    mean: Coordinates
    """Mean of the positive class, the opposite of the other. Coordinates left out are 0."""
    dim: PositiveInt | None = None
    """Input dimension; by default the number of coordinates of `mean`."""
    deviation: Positive
    """Standard deviation everywhere. Points on the wrong side of `<mean, x> = 0` are redrawn."""
    outliers: Annotated[list[Coordinates], Field(min_length=1)] | None = None
    """Further positive training points."""
    test_per_class: PositiveInt | None = None
    """Held-out points of each class."""
    draw: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    """Draw from `numpy.random.default_rng(draw)` for every seed (default: the seed's stream)."""
    append_bias: bool = False
    """Append a constant 1 to every input, so that the last hidden weight is a bias."""

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield means and outliers that do not fit the dimension, and a loss that needs classes."""
        if getattr(sections.get("loss"), "labels", "real") == "classes":
            yield (
                ("dataset", "kind"),
                f"{self.kind} has labels ±1, which do not suit the loss {sections['loss'].kind}",
            )
        dim = self.dim or len(self.mean)
        if dim < len(self.mean):
            yield (
                ("dataset", "dim"),
                f"must be at least {len(self.mean)}, the coordinates of mean, not {dim}",
            )
        if not any(self.mean):
            yield ("dataset", "mean"), "must not be 0: both classes would be in one place"
        yield from check_rows("outliers", self.outliers or [], dim, "the mean")

    def load(self, streams: Streams) -> Samples:
        """Return points ordered by class, positives (outliers last) first."""
        dim = self.dim or len(self.mean)
        check_size(2 * (self.per_class + (self.test_per_class or 0)), dim + 1)
        mean = np.zeros(dim)
        mean[: len(self.mean)] = self.mean
        rng = streams.rng("data")
        if self.draw is not None:
            rng = np.random.default_rng(self.draw)

        def one_class(sign: float, count: int) -> Floats:
            """Return `count` points, those on the wrong side replaced by new draws."""
            x = np.zeros((count, dim))
            wrong = np.arange(count)
            while len(wrong):  # at least half of the draws are on their side
                x[wrong] = self.deviation * rng.standard_normal((len(wrong), dim)) + sign * mean
                wrong = np.flatnonzero(sign * (x @ mean) <= 0)
            return x

        outliers = np.array(self.outliers or np.empty((0, dim)))
        positive = np.concatenate([one_class(1.0, self.per_class), outliers])
        negative = one_class(-1.0, self.per_class)
        trained = len(positive) + len(negative)
        x = [positive, negative]
        y = [np.ones(len(positive)), -np.ones(len(negative))]
        if self.test_per_class is not None:
            x += [one_class(sign, self.test_per_class) for sign in (1.0, -1.0)]
            y.append(np.repeat([1.0, -1.0], self.test_per_class))
        return make_samples(
            np.concatenate(x), np.concatenate(y), trained=trained, append_bias=self.append_bias
        )
