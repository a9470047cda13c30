"""Figure 1e and 1f: the matrices that each optimizer conserves once its factors are aligned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit

from .modes import GD, MUON

ALIGNED = 80
"""The update from which the notebook compares."""
GROWN = 5.0
"""Growth of the largest singular value of both factors without which nothing has been learned."""


@dataclass(frozen=True)
class Conserved:
    """Overlaps `<D(t), D(t*)> / |D(t*)|^2` (K,) at iterations `at` (K,), NaN where t* is missing.

    With A = W2^T W2 and B = W1 W1^T, `roots` is of `D = sqrt A - sqrt B` and `squares` of `D = A -
    B`. `growth` is that of the largest singular value of the factor that grows less.
    """

    at: kit.Ints
    roots: kit.Floats
    squares: kit.Floats
    growth: float

    def farthest(self, overlaps: kit.Floats) -> float:
        """Return the overlap farthest from 1 after t*, NaN where the factors have not grown."""
        after = overlaps[self.at >= ALIGNED]
        if not (self.growth > GROWN and len(after)):
            return np.nan
        return float(after[np.argmax(np.abs(after - 1))])


def conserved(run: kit.Run) -> Conserved:
    """Measure a run of two factors."""
    W1, W2 = kit.recorded(run, "weight_1", "weight_2")
    A = W2.transpose(0, 2, 1) @ W2
    B = W1 @ W1.transpose(0, 2, 1)
    tops = [kit.singular_values(W[[0, -1]])[:, 0] for W in (W1, W2)]
    at = run.snapshot_iterations
    return Conserved(
        at=at,
        roots=_overlaps(at, _root(A) - _root(B)),
        squares=_overlaps(at, A - B),
        growth=min(float(last / first) for first, last in tops),
    )


def _root(A: kit.Floats) -> kit.Floats:
    """Return the square roots (K, h, h) of symmetric matrices without negative eigenvalues."""
    values, vectors = np.linalg.eigh(A)
    scaled = vectors * np.sqrt(np.maximum(values, 0))[:, None]
    roots: kit.Floats = scaled @ vectors.transpose(0, 2, 1)
    return roots


def _overlaps(at: kit.Ints, D: kit.Floats) -> kit.Floats:
    places = np.flatnonzero(at == ALIGNED)
    if not len(places):
        return np.full(len(at), np.nan)
    aligned = D[places[0]]
    overlaps: kit.Floats = np.sum(D * aligned, axis=(1, 2)) / np.sum(aligned**2)
    return overlaps


def evidence(runs: kit.Runs) -> dict[str, Conserved]:
    """Measure the runs by role."""
    return {role: conserved(run) for role, run in runs.items()}


def claims(e: dict[str, Conserved]) -> list[kit.Claim]:
    """Compare with the conserved matrices of the abstract."""
    gd = e["gd"]
    muon = e["muon"]
    return [
        kit.claim(
            "muon-roots",
            r"Muon conserves $\sqrt{W_2^T W_2} - \sqrt{W_1 W_1^T}$ once the factors are aligned"
            f" (overlap with that at update {ALIGNED}, the farthest from 1)",
            "abstract; Figure 1f",
            kit.around(1),
            muon.farthest(muon.roots),
        ),
        kit.claim(
            "muon-squares",
            r"Muon does not conserve $W_2^T W_2 - W_1 W_1^T$ (the same; the picture ends at 2)",
            "Figure 1f",
            kit.more_than(2),
            muon.farthest(muon.squares),
        ),
        kit.claim(
            "gd-squares",
            r"Gradient descent conserves $W_2^T W_2 - W_1 W_1^T$ (overlap with that at update"
            f" {ALIGNED}, the farthest from 1)",
            "abstract; Figure 1e",
            kit.around(1),
            gd.farthest(gd.squares),
        ),
        kit.claim(
            "gd-roots",
            r"Gradient descent does not conserve $\sqrt{W_2^T W_2} - \sqrt{W_1 W_1^T}$ (the same;"
            " less than half is our reading)",
            "Figure 1e",
            kit.less_than(0.5),
            gd.farthest(gd.roots),
        ),
    ]


def draw(e: dict[str, Conserved]) -> kit.Drawing:
    return kit.charts(
        *(
            kit.chart(
                title,
                f"overlap with update {ALIGNED}",
                kit.line(run.at, run.roots, r"$\sqrt{W_2^T W_2} - \sqrt{W_1 W_1^T}$"),
                kit.line(run.at, run.squares, r"$W_2^T W_2 - W_1 W_1^T$"),
                kit.level(1, look="theory dotted 0.8"),
            )
            for title, run in (("Gradient descent", e["gd"]), ("Muon", e["muon"]))
        ),
        limits=(0, 2),
    )


LONGER = "optimizer.iterations=1200"
FIGURE = kit.Figure(
    id="rhee2026-conserved",
    caption=(
        "Overlaps of two matrices with themselves at update 80, along gradient descent and along"
        " Muon: each optimizer conserves one of them."
    ),
    configs={
        "gd": kit.Wanted(GD, (LONGER, "optimizer.lr=2.5e-3")),
        "muon": kit.Wanted(MUON, (LONGER, "optimizer.lr=5.0e-4")),
    },
    nulls={
        "gd": ("optimizer={kind: gd, lr: 2.5e-3, iterations: 1200}",),
        "muon": (
            "optimizer={kind: muon, lr: 5.0e-4, momentum: 0.0, nesterov: false, polar: exact,"
            " iterations: 1200}",
        ),
    },
    passes={
        "gd": {"gd-*": "It is about gradient descent, which this null leaves."},
        "muon": {"muon-*": "It is about Muon, which this null leaves."},
    },
)
