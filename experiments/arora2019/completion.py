"""Trained products of matrices and the matrix of least nuclear norm, on the same entries of a
matrix of low rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from dynamics_cli import kit
from dynamics_cli.architectures.linear_models import MatrixProduct
from dynamics_cli.kinds import Dataset, Streams
from dynamics_cli.measures.spectra import effective_rank

from .datasets.completion import MatrixCompletion
from .theory.nuclear_norm import minimum_nuclear_norm

COUNTS = ("fewest", "few", "many")
"""Levels of the number of entries that are seen."""
DOUBLED = tuple(f"{count} of 2 r" for count in COUNTS)
"""The same for twice the rank: 3/4, 1 and 2.1 times the entries with which the nuclear norm
succeeds (NOTES).
"""
OBSERVED = {
    "default": (450, 700, 1250, 750, 1000, 2100),
    "full": (1500, 2000, 5000, 2600, 3500, 7500),
}
SCALES = (1e-1, 1e-2, 1e-3, 1e-4)
FULL_SCALES = (1e-5, 1e-6)
"""Scales of the product at the start: `||W(0)||_F` is about scale sqrt(n)."""
BASE = 1e-3
"""Scale of the panels against the count."""
FURTHER = ("few further", "many further")
"""Few and many entries, trained to a loss of 1e-8: at the released stop, 1e-6, errors below 1e-4
are decided by it and not by recovery, so that they do not tell scales apart.
"""
FITTED = 1e-2
"""Loss, of entries of mean square 1, at which a matrix fits those that are seen."""
ALWAYS = "No network takes part: the entries that are seen and the convex program decide it."


@cache
def problem(dataset: Dataset, seed: int) -> tuple[kit.Floats, kit.Floats, kit.Floats]:
    """Return the truth (n, n), the matrix of least nuclear norm (n, n) and its dual certificate
    (n, n).
    """
    assert isinstance(dataset, MatrixCompletion)
    truth = dataset.matrix(Streams(seed))
    places = dataset.samples(Streams(seed)).x.astype(np.int64)
    seen = np.zeros(truth.shape, bool)
    seen[tuple(places.T)] = True
    return truth, *minimum_nuclear_norm(truth, seen)


def solutions(runs: kit.Runs) -> list[Solution]:
    """Return what all runs of `wanted` found, then for every count the least nuclear norm and
    the truth.
    """
    trained = []
    references = {}
    for role, run in runs.items():
        count = role.split(",")[0]
        net = run.config.architecture
        scale = float(role.split()[-1])
        assert isinstance(net, MatrixProduct)
        truth, least, dual = problem(run.config.dataset, run.config.seed)
        W = net.product(run.state(-1))
        start = float(np.linalg.norm(net.product(run.state(0))))
        seen = run.dataset().n
        bound = float(np.sum(dual * truth))
        # a matrix with these entries has ||X||_* >= <Y, X>; W has them up to its residual
        excess = (float(np.linalg.norm(W, "nuc")) + float(np.sum(dual * (truth - W)))) / bound
        trained.append(
            _solution(
                W, truth, count, seen, net.depth, scale, start, excess=excess, loss=run.final_loss
            )
        )
        references[count] = [
            _solution(
                least, truth, count, seen, 0, gap=1 - bound / float(np.linalg.norm(least, "nuc"))
            ),
            _solution(truth, truth, count, seen, -1),
        ]
    return trained + [solution for pair in references.values() for solution in pair]


@dataclass(frozen=True)
class Solution:
    """A matrix that fits the entries that are seen.

    `depth` is the number of factors, 0 for the matrix of least nuclear norm, -1 for the truth;
    `scale` the size of the start, named by the role of the run, 0 where nothing is trained; `start`
    is `||W(0)||_F`, about sqrt(n) times the scale, the axis of the figures; `error` the mean square
    over all entries of the difference from the truth, `norm` the nuclear norm, `rank` the effective
    rank. Of a trained matrix: its `loss`, the mean square over the entries that are seen,
    and `excess`, its nuclear norm and what its residual may hide, over the bound of the
    certificate; of the matrix of least norm the relative `gap` of the certificate.
    """

    count: str
    observed: int
    depth: int
    scale: float
    start: float
    error: float
    norm: float
    rank: float
    loss: float = np.nan
    excess: float = np.nan
    gap: float = np.nan


def _solution(
    W: kit.Floats,
    truth: kit.Floats,
    count: str,
    observed: int,
    depth: int,
    scale: float = 0.0,
    start: float = 0.0,
    **more: float,
) -> Solution:
    """Describe a matrix `W` (n, n) that fits the entries that are seen, at a level `count` of their
    number.
    """
    s = kit.singular_values(W)
    return Solution(
        count,
        observed,
        depth,
        scale,
        start,
        error=float(np.mean((W - truth) ** 2)),
        norm=float(s.sum()),
        rank=effective_rank(s),
        **more,
    )


def pick(solutions: list[Solution], count: str, depth: int) -> list[Solution]:
    """Return solutions of one count and depth, the largest scale first."""
    chosen = [
        solution for solution in solutions if (solution.count, solution.depth) == (count, depth)
    ]
    return sorted(chosen, key=lambda solution: -solution.scale)


def base(solutions: list[Solution], count: str, depth: int) -> Solution:
    """Return the solution from the scale `BASE`, or the only one where nothing is trained."""
    return next(
        solution for solution in pick(solutions, count, depth) if solution.scale in (0.0, BASE)
    )


def wanted(
    counts: tuple[str, ...],
    depths: tuple[int, ...],
    scales: tuple[float, ...],
    preset: str = "default",
) -> dict[str, kit.Wanted]:
    """Return runs by role, `few, N = 3, scale 0.001`; the preset `full` has the released sizes
    and step.
    """
    released = (
        (
            "dataset.rows=100",
            "architecture.rows=100",
            "optimizer.lr=1e-3",
            "optimizer.iterations=1000000",
        )
        if preset == "full"
        else ()
    )
    ranks = {"default": (3, 6), "full": (5, 10)}[preset]
    seen = dict(zip(COUNTS + DOUBLED, OBSERVED[preset], strict=True))
    seen |= {count: seen[count.split()[0]] for count in FURTHER}
    return {
        f"{count}, N = {depth}, scale {scale:g}": kit.Wanted(
            "arora2019/completion.yaml",
            (
                *released,
                *(("optimizer.stop_below=1.0e-8",) if count in FURTHER else ()),
                f"dataset.rank={ranks[count in DOUBLED]}",
                f"dataset.observed={seen[count]}",
                f"architecture.depth={depth}",
                f"initialization.scale={scale ** (1 / depth):.6g}",
            ),
        )
        for count in counts
        for depth in depths
        for scale in scales
    }
