"""Linearly separable data: two opposite Gaussians, or Gaussian inputs that a linear teacher labels with a margin.

Every set is separable by a line through the origin, as Sarussi et al. 2021, Section 3, ask for; points that are not on
their side of the teacher are drawn again.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dynamics_cli.config.dataset import GaussiansDataset, LinearTeacherDataset
from dynamics_cli.datasets.dataset import Dataset, Floats, check_size, make_dataset
from dynamics_cli.datasets.streams import stream
from dynamics_cli.errors import InputError

_ROUNDS = 1000
"""Times that misplaced points are drawn again before the settings are refused."""
_TRIES, _RARE = 10_000, 1e-3
"""After so many draws they are refused as well when only so small a share is placed: all rounds would take minutes."""


def load(config: GaussiansDataset | LinearTeacherDataset, seed: int) -> Dataset:
    """Draw training points, then held-out ones, from the data stream of `seed`.

    Raises:
        InputError: hardly any point is on its side of the teacher by the margin, or the points do not fit into memory.

    """
    return _gaussians(config, seed) if isinstance(config, GaussiansDataset) else _linear_teacher(config, seed)


def _gaussians(config: GaussiansDataset, seed: int) -> Dataset:
    """Return points ordered by class, positives (outliers last) first."""
    dim = config.dim or len(config.mean)
    check_size(2 * (config.per_class + (config.test_per_class or 0)), dim)
    mean = np.zeros(dim)
    mean[: len(config.mean)] = config.mean
    rng = stream(seed, "data") if config.draw is None else np.random.default_rng(config.draw)

    def draw(count: int) -> tuple[Floats, Floats]:
        classes = []
        for sign in (1.0, -1.0):
            x = _redrawn(
                lambda k, sign=sign: config.deviation * rng.standard_normal((k, len(mean))) + sign * mean,  # type: ignore[misc]
                lambda x, sign=sign: sign * (x @ mean) > 0,  # type: ignore[misc]
                count,
            )
            classes.append(x)
        return np.concatenate(classes), np.repeat([1.0, -1.0], count)

    x, y = draw(config.per_class)
    if config.outliers is not None:
        x = np.concatenate([x[: config.per_class], np.array(config.outliers), x[config.per_class :]])
        y = np.concatenate([np.ones(len(config.outliers)), y])
    x_test, y_test = draw(config.test_per_class) if config.test_per_class is not None else (None, None)
    return make_dataset(x, y, x_test=x_test, y_test=y_test, append_bias=config.append_bias)


def _linear_teacher(config: LinearTeacherDataset, seed: int) -> Dataset:
    """Return standard Gaussian inputs at least `margin` away from the teacher's hyperplane."""
    check_size(config.n + (config.n_test or 0), config.dim)
    rng = stream(seed, "data")
    teacher = rng.standard_normal(config.dim)
    teacher /= np.linalg.norm(teacher)

    def draw(count: int) -> tuple[Floats, Floats]:
        x = _redrawn(
            lambda k: rng.standard_normal((k, config.dim)),
            lambda x: (np.abs(x @ teacher) > 0) & (np.abs(x @ teacher) >= config.margin),
            count,
        )
        return x, np.sign(x @ teacher)

    x, y = draw(config.n)
    x_test, y_test = draw(config.n_test) if config.n_test is not None else (None, None)
    return make_dataset(x, y, x_test=x_test, y_test=y_test, append_bias=config.append_bias)


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
