"""Sparse regression at the paper's size, solved by the convex program, and trained networks on a
smaller problem.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from dynamics_cli import kit
from dynamics_cli.architectures.linear_models import DiagonalLinear

from .theory.minimum_q import minimum_l1, minimum_q

DIM = 1000
NONZERO = 5
NOISE = 0.1
SAMPLES = 100
THRESHOLD = 0.025
"""Population error that Figures 2c and 3c ask for."""
DEPTHS = (2, 3, 5)
COUNTS = (50, 60, 70, 80, 90, 100, 125, 150, 200)
SPARSE_COUNTS = (30, 40, *COUNTS)
"""N at which the interpolator of least L1 norm is computed."""
SEEDS = (0, 1000, 2000)
"""Data sets of Figures 2c and 3c, of which the median is shown: less the seed of the run, so
that runs share none.
"""
LOGS = np.arange(0.0, -14.01, -0.5)
"""log10 of mu = alpha^D."""
CONFIG = "woodworth2020/flow.yaml"
FITTED = 1e-8
"""Share of the first loss below which the flow has ended at `X beta = y`."""
ENDS = "The theorem is for a flow that ends at X beta = y; its last loss over the first"


FULL = ("dataset.n=40", "dataset.dim=200", "optimizer.until=300.0")
"""The trained problem of `--preset full`, 3 of 200 entries from 40 samples."""


def wanted(
    alphas: tuple[float, ...], depth: int = 2, more: tuple[str, ...] = ()
) -> dict[str, kit.Wanted]:
    """Return the runs of one depth, a role for every alpha; above 1 in the time of the kernel
    regime, `1 / alpha^2`.

    Below 0.1 the flow takes ten times as long: the time to leave 0 grows as `ln(1 / alpha)`, the
    tail is longer.

    Changes of all of them are `more`.
    """
    runs = {}
    for alpha in alphas:
        change = [*more, f"architecture.depth={depth}", f"initialization.scale={alpha}"]
        if alpha > 1:
            times = [
                f"optimizer.{key}={value / alpha**2!r}"
                for key, value in (("until", 20.0), ("first", 1e-3))
            ]
            change += [
                *times,
                "optimizer.stop_below=1e-6",
            ]  # the integrator resolves weights to 1e-8 of their size
        elif alpha < 0.1 and depth == 2 and not more:
            change.append("optimizer.until=200.0")
        runs[f"D = {depth}, alpha = {alpha:g}"] = kit.Wanted(CONFIG, tuple(change))
    return runs


def truth() -> kit.Floats:
    """Return beta* of the paper's size (1000,)."""
    return np.where(np.arange(DIM) < NONZERO, 1.0 / np.sqrt(NONZERO), 0.0)


def draw_samples(n: int, seed: int) -> tuple[kit.Floats, kit.Floats]:
    """Return inputs (n, 1000) and labels (n,): inputs are drawn first, then the noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, DIM))
    return X, X @ truth() + NOISE * rng.standard_normal(n)


def errors(beta: kit.Floats) -> kit.Floats:
    """Return the population errors `|beta - beta*|^2` of predictors (..., 1000)."""
    return np.asarray(((beta - truth()) ** 2).sum(axis=-1))


@cache
def thresholds(seed: int) -> tuple[kit.Floats, kit.Floats]:
    """Return medians over data sets: log10 of the largest mu with an error below the threshold, and
    errors of min-L1.

    The former (depths, N) are -inf where no mu has one, the latter (N,) belong to `SPARSE_COUNTS`.
    """
    largest = np.full((len(SEEDS), len(DEPTHS), len(COUNTS)), -np.inf)
    sparse = np.empty((len(SEEDS), len(SPARSE_COUNTS)))
    for s, more in enumerate(SEEDS):
        sparse[s] = [errors(minimum_l1(*draw_samples(n, seed + more))) for n in SPARSE_COUNTS]
        for k, n in enumerate(COUNTS):
            for j, depth in enumerate(DEPTHS):
                X, y = draw_samples(n, seed + more)
                betas = minimum_q(
                    X, y, 10.0**LOGS, depth, last=lambda beta: bool(errors(beta) <= THRESHOLD)
                )
                largest[s, j, k] = max(LOGS[errors(betas) <= THRESHOLD], default=-np.inf)
    return np.median(largest, axis=0), np.median(sparse, axis=0)


@dataclass(frozen=True)
class Limit:
    """The end of a run beside the convex program; NaN unless the samples are fitted.

    Numbers are NaN unless the samples are fitted: `difference` is the relative distance of the
    predictor from argmin Q, `norm` its L1 norm over the least of an interpolator, `drift` the
    largest relative change of `u v`, conserved for D = 2, `movement` the distance travelled over
    the norm of the initial weights.
    """

    alpha: float
    dim: int
    difference: float
    norm: float
    drift: float
    movement: float
    left: float
    """The last loss over the first."""


def limit(run: kit.Run) -> Limit:
    """Compare the end of a run with the convex program on its data."""
    samples = run.dataset()
    net = run.config.architecture
    first = run.state(0)
    last = run.state(-1)
    assert isinstance(net, DiagonalLinear)
    alpha, beta = float(run.config.initialization.scale), net.predictor(last)  # type: ignore[attr-defined]
    least = minimum_q(samples.x, samples.y, alpha**net.depth, net.depth)[0]
    product = np.asarray(run.parameters["u"], np.float64) * run.parameters["v"]
    moved = sum(float(np.sum((last[name] - first[name]) ** 2)) for name in ("u", "v"))
    size = sum(float(np.sum(first[name] ** 2)) for name in ("u", "v"))
    left = float(run.final_loss / run.losses[0])
    trained = 1.0 if left < 1e-5 else np.nan
    return Limit(
        alpha=alpha,
        dim=len(beta),
        left=left,
        difference=kit.given(left <= FITTED, np.linalg.norm(beta - least) / np.linalg.norm(least)),
        norm=trained * float(np.abs(beta).sum() / np.abs(minimum_l1(samples.x, samples.y)).sum()),
        drift=trained * float(np.abs(product / product[0] - 1.0).max()),
        movement=trained * float(np.sqrt(moved / size)),
    )
