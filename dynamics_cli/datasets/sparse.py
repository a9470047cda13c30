"""Inputs of which few numbers matter: the parity of some of many signs; features that are mostly 0."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from dynamics_cli.kinds import Dataset, Samples, Sizes, Streams, check_size, make_samples
from dynamics_cli.kinds.base import Finding, PositiveInt, Sections


class SparseParity(Dataset, kind="sparse_parity"):
    """Uniform signs `x` in {-1, 1}^dim, labelled by `prod_{i <= k} x_i`, the parity of the first k (Barak et al. 2022).

    Which k entries matter is a matter of their numbering, for networks that treat all inputs alike.
    """

    example = "{kind: sparse_parity, n: 200, dim: 20, k: 3, n_test: 200}"
    endless = True
    n: PositiveInt
    """Number of training samples."""
    dim: PositiveInt
    """Input dimension."""
    k: PositiveInt
    """Number of entries whose product is the label."""
    n_test: PositiveInt | None = None
    """Number of held-out samples."""
    append_bias: bool = False
    """Append a constant 1 to every input."""

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield more entries than there are."""
        if self.k > self.dim:
            yield ("dataset", "k"), f"must be at most dataset.dim = {self.dim}"

    def sizes(self) -> Sizes:
        """Return the sizes of what is drawn."""
        return Sizes(self.n, self.dim + self.append_bias, 1, self.n_test or 0, self.append_bias, 1.0)

    def load(self, streams: Streams) -> Samples:
        """Draw the signs and multiply them.

        Raises InputError: they do not fit into memory.
        """
        count = self.n + (self.n_test or 0)
        check_size(count, self.dim)
        x = streams.rng("data").choice([-1.0, 1.0], (count, self.dim))
        return make_samples(x, x[:, : self.k].prod(axis=1), trained=self.n, append_bias=self.append_bias)


class SparseFeatures(Dataset, kind="sparse_features"):
    """Features of which most are 0 in a sample, each its own label, `y = x` (Elhage et al. 2022)."""

    example = """\
dataset: {kind: sparse_features, n: 500, dim: 6, density: 0.2}
architecture: {kind: tied_autoencoder, width: 2, outputs: 6}
initialization: {kind: default_scaled}
loss: {kind: mse}
"""
    endless = True
    n: PositiveInt
    """Number of training samples."""
    dim: Annotated[int, Field(ge=2)]
    """Number of features."""
    density: Annotated[float, Field(gt=0, le=1)] | None = None
    """Probability of a feature to be other than 0; by default each sample has a single feature, drawn evenly."""
    values: Literal["uniform", "binary"] = "uniform"
    """Features that are not 0 are uniform in [0, 1], or 1."""

    def load(self, streams: Streams) -> Samples:
        """Draw the features.

        Raises InputError: they do not fit into memory.
        """
        check_size(self.n, 2 * self.dim)
        rng, shape = streams.rng("data"), (self.n, self.dim)
        if self.density is None:
            there = np.eye(self.dim)[rng.integers(0, self.dim, self.n)]
        else:
            there = (rng.random(shape) < self.density).astype(np.float64)
        x = there * rng.random(shape) if self.values == "uniform" else there
        return make_samples(x, x)
