"""Figure 3: singular values along gradient descent from a multiple of the identity, and the
equation that they obey.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit
from dynamics_cli.architectures.linear_models import MatrixProduct
from dynamics_cli.kinds import Streams
from dynamics_cli.measures.spectra import effective_rank, imbalances

from .datasets.completion import MatrixCompletion
from .theory.singular_values import gradients, integrated

DEPTHS = (1, 2, 3)
BALANCED = (2, 3, 4)
SHOWN = 10
STEP = 2e-3
ROLE = "balanced, N = {}, step {:g}"
PRINTED = {1: 0.8195478, 2: 0.0988251, 3: 0.0016707}
"""Depth -> least error of all iterations that the released notebook printed, of its own draw."""
FACTOR = 3.0
"""Within which such an error is the same: it hangs on the draw, and falls all the time."""


@dataclass(frozen=True)
class Evidence:
    """All products, decomposed."""

    descents: list[Descent]
    balanced: dict[int, tuple[float, float]]
    """Depth -> the orders of the deviation and of the imbalance: ratios at a step to half of it."""


def evidence(runs: kit.Runs) -> Evidence:
    """Decompose all products: `descents` from the identity, small `balanced` ones for the
    theorem.
    """
    at = kit.by_values(runs, ROLE)
    return Evidence(
        descents=[_descent(depth, runs[f"N = {depth}"]) for depth in DEPTHS],
        balanced={depth: _orders(at[depth, STEP], at[depth, STEP / 2]) for depth in BALANCED},
    )


def _orders(whole: kit.Run, half: kit.Run) -> tuple[float, float]:
    """Return how far a run from balanced layers is from the theorem, over one at half of its step.

    That are the largest difference of measured and predicted singular values over the largest
    value, and the largest `||W_(j+1)^T W_(j+1) - W_j W_j^T||_F`.
    """
    return _deviation(whole) / _deviation(half), _imbalance(whole) / _imbalance(half)


def _deviation(run: kit.Run) -> float:
    s, predicted = integrated(run)
    return float(np.abs(predicted - s).max() / s.max())


def _imbalance(run: kit.Run) -> float:
    layers = kit.recorded(run, *run.config.architecture.shapes(2))
    return max(float(imbalances(state).max()) for state in zip(*layers, strict=True))


@dataclass(frozen=True)
class Descent:
    """A product of matrices along training.

    `values` (K, n) at `iterations` (K,) are its singular values, descending, `truth` (r,) the true
    ones, `on` and `off` (K,) the mean sizes of the diagonal of `U^T grad L V` and of the rest.
    `gap` is the ratio of the first and the last of the r values when the first reaches half of its
    true value, NaN where it never does, `learning` (K,) whether the first has, but not the last.
    Mean squares over all entries: `error` at the end, `least` of all records, `unseen` where
    entries that are not seen stay 0.
    """

    depth: int
    iterations: kit.Ints
    values: kit.Floats
    gap: float
    learning: kit.Bools
    on: kit.Floats
    off: kit.Floats
    truth: kit.Floats
    error: float
    least: float
    unseen: float


def _descent(depth: int, run: kit.Run) -> Descent:
    """Decompose a product of matrices along training."""
    dataset = run.config.dataset
    net = run.config.architecture
    assert isinstance(dataset, MatrixCompletion)
    assert isinstance(net, MatrixProduct)
    W = net.product(run.parameters)
    U, s, Vt = np.linalg.svd(W, full_matrices=False)
    along = np.abs(U.swapaxes(1, 2) @ gradients(run, W) @ Vt.swapaxes(1, 2))
    n = along.shape[1]
    on = np.trace(along, axis1=1, axis2=2)
    matrix = dataset.matrix(Streams(run.config.seed))
    iterations = run.snapshot_iterations
    samples = run.dataset()
    errors = np.mean((W - matrix) ** 2, axis=(1, 2))
    assert samples.y_test is not None
    truth = kit.singular_values(matrix)[: dataset.rank]
    reached = s[:, : len(truth)] >= truth / 2
    halves = np.where(reached.any(0), iterations[reached.argmax(0)], np.nan)
    at = s[iterations == halves[0]]
    return Descent(
        depth,
        iterations,
        values=s,
        gap=float(at[0, 0] / at[0, len(truth) - 1]) if len(at) else np.nan,
        learning=(iterations >= halves[0]) & ~(iterations >= halves[-1]),
        on=on / n,
        off=(along.sum((1, 2)) - on) / (n * n - n),
        truth=truth,
        error=float(errors[-1]),
        least=float(errors.min()),
        unseen=float(np.sum(samples.y_test**2) / matrix.size),
    )


def claims(e: Evidence) -> list[kit.Claim]:
    single, two, three = e.descents
    ranks = [effective_rank(run.values[-1]) for run in e.descents]
    same = [
        kit.around(x) if N == 1 else kit.Interval(x / FACTOR, x * FACTOR)
        for N, x in PRINTED.items()
    ]
    ratio = (two.on / two.off)[two.learning].min(initial=np.inf)
    return [
        kit.claim(
            "unseen",
            "A single matrix leaves what it does not see at 0 (error over the mean square there)",
            "Figure 3, N = 1",
            kit.near(1.0, 0.03),
            single.error / single.unseen,
        ),
        kit.claim(
            "ranks",
            "The deeper, the lower the effective rank (steps from N = 1 to 2 to 3 that lower it)",
            "Figure 3",
            kit.exactly(2),
            np.sum(np.diff(ranks) < 0),
        ),
        kit.claim(
            "gaps",
            "The deeper, the wider the gaps between singular values as they rise (first over last"
            " of the truth's when the first is half there, N = 3 over N = 2)",
            "Section 3, Figure 3",
            kit.more_than(1),
            three.gap / two.gap,
        ),
        kit.claim(
            "diagonal",
            r"$U^\top \nabla L V$ is dominated by its diagonal, N = 2 (mean size of its entries"
            " over the rest's, least while values are learnt)",
            "Figure 3, last column",
            kit.more_than(2),
            ratio,
        ),
        *(
            kit.claim(
                f"theorem-{depth}",
                f"Balanced layers, N = {depth}: singular values move as the theorem says, up to"
                " the error of Euler's method (deviation at a step over that at half of it)",
                "Theorem 3; order of Euler's method",
                kit.near(2.0, 0.2),
                deviation,
            )
            for depth, (deviation, _) in e.balanced.items()
        ),
        *(
            kit.claim(
                f"balance-{depth}",
                f"Layers stay balanced, N = {depth}, up to the same (imbalance at a "
                "step over that at half of it)",
                "Section 3; order of Euler's method",
                kit.near(2.0, 0.2),
                imbalance,
            )
            for depth, (_, imbalance) in e.balanced.items()
        ),
        *(
            kit.claim(
                f"printed-{run.depth}",
                f"N = {run.depth}: the least error of all iterations is as the notebook printed it"
                f" of its own draw{'' if run.depth == 1 else f' (within a factor of {FACTOR:g})'}",
                "released notebook, output of cell 9",
                expected,
                run.least,
            )
            for run, expected in zip(e.descents, same, strict=True)
        ),
    ]


def draw(e: Evidence) -> kit.Drawing:
    two = e.descents[1]
    return kit.charts(
        *(
            kit.chart(
                f"$N = {run.depth}$; dotted: truth",
                "singular value",
                kit.line(run.iterations, run.values[:, len(run.truth) : SHOWN], look="muted"),
                kit.lines(run.iterations, run.values[:, : len(run.truth)], "", "1.4"),
                [kit.level(value, look="theory dotted 0.8") for value in run.truth],
                limits=(0, 1.35 * max(run.truth)),
            )
            for run in e.descents
        ),
        kit.chart(
            r"$U^\top \nabla \ell(W)\, V$, $N = 2$",
            "mean size",
            kit.lines(two.iterations[1:], {"diagonal": two.on[1:], "rest": two.off[1:]}),
            log="y",
        ),
        legend="inside",
    )


def _wanted() -> dict[str, kit.Wanted]:
    released = (
        "dataset.rows=100",
        "dataset.rank=5",
        "dataset.observed=2000",
        "architecture.rows=100",
    )
    length = "optimizer.iterations=20000", "record.snapshots.interval=100"
    depth = "architecture.depth"
    return {
        **kit.grid("arora2019/identity.yaml", {depth: DEPTHS}, "N = {}", *released, *length),
        **kit.grid(
            "arora2019/balanced.yaml",
            {depth: BALANCED, "optimizer.lr": (STEP, STEP / 2)},
            ROLE,
            lambda _, step: f"optimizer.iterations={round(0.8 / step)}",
        ),
    }


FIGURE = kit.Figure(
    passes={
        "early": {
            "balance-* theorem-*": (
                "Layers stay balanced, and Euler's error is of first order, from the first"
                " update on."
            )
        },
        "slow": {
            "balance-*": "Layers stay balanced, up to first order in the step, at every speed."
        },
        "random_features": {
            "unseen printed-1": (
                "A single matrix has no layer behind it: this null leaves it as it is."
            )
        },
    },
    id="arora2019-fig3",
    caption=(
        "Gradient descent from a small multiple of the identity on entries of a matrix of low rank:"
        " the ten largest singular values of a single matrix and of products of two and three, and"
        " for two the sizes of the gradient in the frame of the singular vectors. The deeper, the"
        " more apart singular values are, as the theorem has it."
    ),
    configs=_wanted(),
    nulls={"unbalanced": ("initialization={kind: lecun, scale: 1.0}",)},
)
