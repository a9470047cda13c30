"""Figure 4: Muon aligns its factors in one small step, learns in one large step, and anneals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics_cli import kit

from .theory.factors import muon

READ_LOSSES = np.array([0.77, 0.76, 0.15])
"""Read off the picture: the loss after 2, 3 and 4 updates."""
SMALL = 1e-4
"""Released size of the weights, and of the first step."""
STEPS = np.array([SMALL, *np.sqrt(0.5) / 2 ** np.arange(14)])


@dataclass(frozen=True)
class Spike:
    """Singular values (K, r) of `W2 W1` along training, and `law` (K, r) of the scalar law.

    `misaligned` is the distance of `W2 W1` after two updates from half the polar factor P of the
    target, over the norm of the half; `sign` the product of the signs of the determinants of W1,
    W2 and P.
    """

    values: kit.Floats
    law: kit.Floats
    losses: kit.Floats
    s: kit.Floats
    misaligned: float
    sign: float


def evidence(runs: kit.Runs) -> Spike:
    """Measure the run."""
    run = runs["muon"]
    data: Any = run.config.dataset
    W1, W2 = kit.recorded(run, "weight_1", "weight_2")
    product = W2 @ W1
    s = np.array(data.singular_values)
    samples = run.dataset()
    U, _, Vt = np.linalg.svd(np.linalg.lstsq(samples.x, samples.y, rcond=None)[0].T)
    half = U @ Vt / 2
    signs = [np.linalg.slogdet(matrix)[0] for matrix in (W1[0], W2[0], half)]
    after_two = product[min(2, len(product) - 1)]
    return Spike(
        values=kit.singular_values(product),
        law=muon(SMALL, s, STEPS) ** 2,
        losses=np.asarray(run.losses, np.float64),
        s=s,
        misaligned=float(np.linalg.norm(after_two - half) / np.linalg.norm(half)),
        sign=float(np.prod(signs)),
    )


def claims(e: Spike) -> list[kit.Claim]:
    law = -np.sort(-e.law, axis=1)
    complete = e.values.shape == law.shape

    def of_one_sign(claim: kit.Claim) -> kit.Claim:
        """Return a claim of starts that no first step extinguishes.

        A step of the size of the orthogonal weights turns W1 into W1 (I + Q) with the orthogonal
        `Q = W1^T W2^T P` over its size. Of determinant -1 it has the eigenvalue -1, and a mode
        ends.
        """
        premise = "product of the signs of the determinants of W1, W2 and the target"
        return kit.presupposing(claim, premise, kit.around(1), e.sign)

    made = [
        kit.claim(
            "aligned",
            "Two updates align the factors: their product is half the polar factor of the target"
            " (distance over norm)",
            "Figure 4: all singular values at 0.5 after two updates; within 1 %",
            kit.less_than(0.01),
            e.misaligned,
        ),
        kit.claim(
            "values",
            "From then on singular values of the product are those of the scalar law, whose modes"
            " step towards sqrt(s_i) (ratio, the farthest of all modes and states)",
            "scalar law; Figure 4",
            kit.around(1),
            kit.farthest(e.values[2:] / law[2:]) if complete else np.nan,
        ),
        kit.claim(
            "losses",
            "The loss after 2, 3 and 4 updates is the drawn one (ratio, the farthest of three)",
            "read off Figure 4: 0.77, 0.76, 0.15",
            kit.around(1),
            kit.farthest(e.losses[2:5] / READ_LOSSES) if len(e.losses) > 4 else np.nan,
        ),
        kit.claim(
            "annealed",
            r"Steps that halve end within a step of the target (final loss; every mode within the"
            r" last step $\eta$ of $\sqrt{s_i}$ has at most $2 \eta^2 \sum_i s_i$)",
            "scalar law",
            kit.at_most(2 * STEPS[-1] ** 2 * e.s.sum()),
            e.losses[-1],
        ),
    ]
    return [*map(of_one_sign, made)]


def draw(e: Spike) -> kit.Drawing:
    return kit.charts(
        kit.chart(
            "Modes of $W_2 W_1$",
            "singular values",
            kit.lines(0, e.values, "network", "C0 0.8"),
            kit.lines(0, e.law, "scalar law", "theory _"),
        ),
        kit.chart(
            "Loss",
            "loss",
            kit.line(0, e.losses),
            kit.line([2, 3, 4], READ_LOSSES, "read off", "C0 hollow"),
        ),
        kit.chart("Schedule", r"step size $\eta$", kit.line(0, STEPS, look="C1")),
        limits=(0, None),
    )


FIGURE = kit.Figure(
    id="rhee2026-fig4",
    caption=(
        "Two factors under Muon with steps that are tiny at first, then large, then halve: singular"
        " values of the product with the scalar law, the loss with numbers read off the released"
        " picture, and the steps."
    ),
    configs={"muon": "rhee2026/spike.yaml"},
    nulls={
        "constant": ("optimizer.schedule={kind: constant}",),
        "unaligned": ("optimizer.schedule.factors.0=1.0",),
    },
)
