"""Orthonormal inputs (Boursier et al. 2022, Assumption 1)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dynamics_cli.config.base import Finding, PositiveInt, Sections
from dynamics_cli.config.bases import Dataset
from dynamics_cli.config.streams import Streams
from dynamics_cli.datasets.points import Labels, counted
from dynamics_cli.datasets.samples import Samples, Sizes, check_size, make_samples


class Orthonormal(Dataset, kind="orthonormal"):
    """`n` orthonormal inputs in `dim` dimensions (Boursier et al. 2022, Assumption 1)."""

    example = "{kind: orthonormal, n: 10, dim: 20}"
    n: PositiveInt
    """Number of samples; at most `dim`."""
    dim: PositiveInt
    """Input dimension."""
    y: Labels | None = None
    """Labels (n,); by default standard Gaussian draws."""

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield too many vectors, labels of another number, and missing labels where they must be signs or classes."""
        if self.n > self.dim:
            yield ("dataset", "n"), f"must be at most dim = {self.dim}, not {self.n}: no more vectors are orthonormal"
        if self.y is not None and len(self.y) != self.n:
            labels = counted(len(self.y), "label")
            yield ("dataset", "y"), f"has {labels}, but n is {self.n}; there must be one label per sample"
        loss = sections.get("loss")
        if self.y is None and getattr(loss, "labels", "real") != "real":
            yield ("dataset", "y"), f"is missing; Gaussian labels do not suit the loss {sections['loss'].kind}"

    def sizes(self) -> Sizes:
        """Return the sizes of what is drawn."""
        return Sizes(self.n, self.dim, labels=0.5 if self.y is None else np.array(self.y))

    def load(self, streams: Streams) -> Samples:
        """Draw `n` uniformly distributed orthonormal rows in `dim` dimensions, and labels where none are given.

        Raises InputError: they do not fit into memory.
        """
        check_size(self.n, self.dim)
        rng = streams.rng("data")
        q, r = np.linalg.qr(rng.standard_normal((self.dim, self.n)))  # (dim, n)
        x = (q * np.sign(np.diag(r))).T  # signs make the distribution uniform (Mezzadri 2007)
        y = rng.standard_normal(self.n) if self.y is None else np.array(self.y, dtype=np.float64)
        return make_samples(x, y)
