"""Tasks with a rule: modular arithmetic, polynomials, parity of some signs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from dynamics_cli.kinds import Dataset, Samples, Streams, check_size, make_samples
from dynamics_cli.kinds.arrays import Ints
from dynamics_cli.kinds.base import Finding, PositiveInt, Sections

Share = Annotated[float, Field(gt=0, le=1)]


class ModularArithmetic(Dataset, kind="modular_arithmetic"):
    """All pairs (a, b) modulo p with `a + b`, `a - b` or `a b` (Power et al. 2022, Gromov 2023)."""

    example = """\
dataset: {kind: modular_arithmetic, p: 23, train_fraction: 0.5, replaced_labels: 0.2}
architecture: {kind: two_layer, width: 100, activation: quadratic, outputs: 23}
initialization: {kind: unbalanced, scale: 0.1}
record: {measures: [{kind: train_accuracy, by_replaced: true}, test_accuracy]}
"""
    p: Annotated[int, Field(ge=2)]
    """The modulus."""
    operation: Literal["add", "subtract", "multiply"] = "add"
    """The operation modulo p."""
    train_fraction: Share = 0.5
    """Share of the p^2 pairs that is trained on, drawn at random; the others are held out."""
    labels: Literal["one_hot", "classes"] = "one_hot"
    """Vectors for square losses, or class numbers for cross entropy."""

    @property
    def modulus(self) -> int:  # type: ignore[override]
        """The modulus p."""
        return self.p

    def load(self, streams: Streams) -> Samples:
        """Return one-hot pairs (n, 2 p); labels (n, p), or class numbers (n,).

        Raises InputError: the pairs do not fit into memory.
        """
        p = self.p
        check_size(p * p, 3 * p)
        a, b = np.divmod(np.arange(p * p), p)
        c = {"add": a + b, "subtract": a - b, "multiply": a * b}[self.operation] % p
        x = np.concatenate([np.eye(p)[a], np.eye(p)[b]], axis=1)
        y = c.astype(np.float64)
        if self.labels == "one_hot":
            y = np.eye(p)[c]
        order = self.order(streams)
        return make_samples(x[order], y[order], trained=max(1, round(self.train_fraction * p * p)))

    def order(self, streams: Streams) -> Ints:
        """Return the order (p^2,) of the pairs `p a + b`; the first are trained."""
        return streams.rng("data").permutation(self.p**2)


class Polynomial(Dataset, kind="polynomial"):
    """A Chebyshev polynomial on an even grid of [-1, 1] (Cohen et al. 2021, Appendix D.1)."""

    example = "{kind: polynomial, degree: 3, n: 20}"
    degree: Annotated[int, Field(ge=0, le=1000)]
    """Degree k of `T_k(x) = cos(k arccos x)`."""
    n: PositiveInt = 20
    """Points of the grid, both ends included."""
    append_bias: bool = False
    """Append a constant 1 to every input, so that the last hidden weight is a bias."""

    random = False

    def load(self, streams: Streams) -> Samples:
        """Return the grid and the values of the polynomial there."""
        x = np.linspace(-1.0, 1.0, self.n)
        return make_samples(
            x[:, None], np.cos(self.degree * np.arccos(x)), append_bias=self.append_bias
        )


class SparseParity(Dataset, kind="sparse_parity"):
    """Uniform signs `x` in {-1, 1}^dim and their parity `prod_{i <= k} x_i` (Barak et al. 2022).

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

    def load(self, streams: Streams) -> Samples:
        """Draw the signs and multiply them."""
        count = self.n + (self.n_test or 0)
        check_size(count, self.dim + 1)
        x = streams.rng("data").choice([-1.0, 1.0], (count, self.dim))
        return make_samples(
            x, x[:, : self.k].prod(axis=1), trained=self.n, append_bias=self.append_bias
        )
