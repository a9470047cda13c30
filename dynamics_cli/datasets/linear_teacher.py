"""Linearly separable data: two opposite Gaussians, or Gaussian inputs that a linear teacher labels with a margin.

Every set is separable by a line through the origin, as Sarussi et al. 2021, Section 3, ask for; points that are not on
their side of the teacher are drawn again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated

import numpy as np
from pydantic import Field

from dynamics_cli.datasets.points import Coordinates, check_rows
from dynamics_cli.errors import InputError
from dynamics_cli.kinds import Dataset, Floats, Samples, Sizes, Streams, check_size, make_samples
from dynamics_cli.kinds.base import Finding, NonNegative, Positive, PositiveInt, Sections

_ROUNDS = 1000
"""Times that misplaced points are drawn again before the settings are refused."""
_TRIES, _RARE = 10_000, 1e-3
"""After so many draws they are refused as well when only so small a share is placed: all rounds would take minutes."""


class Signed(Dataset):
    """Data sets whose labels are ±1."""

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield a loss that needs classes."""
        if getattr(sections.get("loss"), "labels", "real") == "classes":
            yield ("dataset", "kind"), f"{self.kind} has labels ±1, which do not suit the loss {sections['loss'].kind}"


class Gaussians(Signed, kind="gaussians"):
    """Two Gaussians at opposite means, each on its side of the origin (Sarussi et al. 2021)."""

    example = "{kind: gaussians, per_class: 50, mean: [1.0, 1.0], deviation: 0.5}"
    per_class: PositiveInt
    """Training points of each class."""
    mean: Coordinates
    """Mean of the positive class; that of the negative class is the opposite. Coordinates left out are 0."""
    dim: PositiveInt | None = None
    """Input dimension; by default the number of coordinates of `mean`."""
    deviation: Positive
    """Standard deviation in every direction. Points on the wrong side of `<mean, x> = 0` are drawn again."""
    outliers: Annotated[list[Coordinates], Field(min_length=1)] | None = None
    """Further positive training points."""
    test_per_class: PositiveInt | None = None
    """Held-out points of each class."""
    draw: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    """Draw from `numpy.random.default_rng(draw)`, the same data for every seed; by default from the seed's stream."""
    append_bias: bool = False
    """Append a constant 1 to every input, so that the last hidden weight is a bias."""

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield means and outliers that do not fit the dimension."""
        yield from super().check(sections)
        dim = self.dim or len(self.mean)
        if dim < len(self.mean):
            yield ("dataset", "dim"), f"must be at least {len(self.mean)}, the coordinates of mean, not {dim}"
        if not any(self.mean):
            yield ("dataset", "mean"), "must not be 0: both classes would be in one place"
        yield from check_rows("outliers", self.outliers or [], dim, "the mean")

    def sizes(self) -> Sizes:
        """Return the sizes of what is drawn."""
        d, n = (self.dim or len(self.mean)) + self.append_bias, 2 * self.per_class + len(self.outliers or ())
        return Sizes(n, d, n_test=2 * (self.test_per_class or 0), bias=self.append_bias, labels=1.0)

    def load(self, streams: Streams) -> Samples:
        """Return points ordered by class, positives (outliers last) first.

        Raises InputError: hardly any point is on its side of the teacher, or the points do not fit into memory.
        """
        dim = self.dim or len(self.mean)
        check_size(2 * (self.per_class + (self.test_per_class or 0)), dim)
        mean = np.zeros(dim)
        mean[: len(self.mean)] = self.mean
        rng = streams.rng("data") if self.draw is None else np.random.default_rng(self.draw)

        def draw(count: int) -> tuple[Floats, Floats]:
            classes = []
            for sign in (1.0, -1.0):
                x = _redrawn(
                    lambda k, sign=sign: self.deviation * rng.standard_normal((k, len(mean))) + sign * mean,  # type: ignore[misc]
                    lambda x, sign=sign: sign * (x @ mean) > 0,  # type: ignore[misc]
                    count,
                )
                classes.append(x)
            return np.concatenate(classes), np.repeat([1.0, -1.0], count)

        x, y = draw(self.per_class)
        if self.outliers is not None:
            x = np.concatenate([x[: self.per_class], np.array(self.outliers), x[self.per_class :]])
            y = np.concatenate([np.ones(len(self.outliers)), y])
        x_test, y_test = draw(self.test_per_class) if self.test_per_class is not None else (None, None)
        return make_samples(x, y, x_test=x_test, y_test=y_test, append_bias=self.append_bias)


class LinearTeacher(Signed, kind="linear_teacher"):
    """Standard Gaussian inputs labelled by the sign of a random linear teacher (Sarussi et al. 2021, Section 3)."""

    example = "{kind: linear_teacher, n: 100, dim: 10, margin: 0.1, n_test: 100}"
    n: PositiveInt
    """Number of training points."""
    dim: PositiveInt
    """Input dimension."""
    margin: NonNegative = 0.0
    """Least distance of every point from the teacher's hyperplane; closer points are drawn again."""
    n_test: PositiveInt | None = None
    """Number of held-out points."""
    append_bias: bool = False
    """Append a constant 1 to every input, so that the last hidden weight is a bias."""

    def sizes(self) -> Sizes:
        """Return the sizes of what is drawn."""
        return Sizes(self.n, self.dim + self.append_bias, 1, self.n_test or 0, self.append_bias, labels=1.0)

    def load(self, streams: Streams) -> Samples:
        """Return standard Gaussian inputs at least `margin` away from the teacher's hyperplane.

        Raises InputError: hardly any point is on its side of the teacher, or the points do not fit into memory.
        """
        check_size(self.n + (self.n_test or 0), self.dim)
        rng = streams.rng("data")
        teacher = rng.standard_normal(self.dim)
        teacher /= np.linalg.norm(teacher)

        def draw(count: int) -> tuple[Floats, Floats]:
            x = _redrawn(
                lambda k: rng.standard_normal((k, self.dim)),
                lambda x: (np.abs(x @ teacher) > 0) & (np.abs(x @ teacher) >= self.margin),
                count,
            )
            return x, np.sign(x @ teacher)

        x, y = draw(self.n)
        x_test, y_test = draw(self.n_test) if self.n_test is not None else (None, None)
        return make_samples(x, y, x_test=x_test, y_test=y_test, append_bias=self.append_bias)


def _redrawn(draw: Callable[[int], Floats], good: Callable[[Floats], np.ndarray], count: int) -> Floats:
    """Return `count` points of `draw`, those that are not `good` replaced by new draws."""
    x, tries = draw(count), count
    for _ in range(_ROUNDS):
        bad = np.flatnonzero(~good(x))
        if not len(bad):
            return x
        if tries >= _TRIES and count - len(bad) < _RARE * tries:
            break
        x[bad] = draw(len(bad))
        tries += len(bad)
    raise InputError("dataset: hardly any point is on its side of the teacher; take a smaller margin or deviation")
