"""Figure 3: the penalty Q_D of deeper diagonal networks, its way from L2 to L1, and sample
complexity by depth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit

from .regression import (
    COUNTS,
    DEPTHS,
    DIM,
    ENDS,
    FITTED,
    FULL,
    THRESHOLD,
    Limit,
    limit,
    thresholds,
    wanted,
)
from .theory.minimum_q import q

SMALL = 10.0 ** np.array([-6.0, -8.0, -12.0, -16.0])
"""mu at which the approach to L1 is compared with its formula."""
RANGES = {3: (1e-3, 1e-2), 4: (0.02, 0.063), 5: (0.02, 0.063)}
"""Depth -> alpha between which the power of the approach is taken."""


def ratio(mu: kit.Floats, depth: int) -> kit.Floats:
    """Return `Q(e_1) / Q(1_d / sqrt(d))` (M,): 1 for the L2 norm, `1/sqrt(d)` for L1."""
    return np.asarray(q(1.0 / mu, depth) / (DIM * q(1.0 / (np.sqrt(DIM) * mu), depth)))


@dataclass(frozen=True)
class Evidence:
    """Q by depth, and the trained networks."""

    mus: kit.Floats
    ratios: dict[int, kit.Floats]
    approach: kit.Floats
    powers: dict[int, float]
    largest: kit.Floats
    limits: list[Limit]


def evidence(runs: kit.Runs) -> Evidence:
    """Evaluate Q, `approach` and `powers` of `sqrt(d) ratio - 1` towards 0, and read the trained
    networks.
    """
    mus = 10.0 ** np.linspace(1, -16, 69)
    g = np.log(DIM) / 2
    formula = g / (np.log(1 / SMALL) - 1 - g)
    powers = {}
    for depth, ends in RANGES.items():
        excess = np.sqrt(DIM) * ratio(np.array(ends) ** depth, depth) - 1
        powers[depth] = float(np.diff(np.log(excess))[0] / np.diff(np.log(ends))[0])
    return Evidence(
        mus=mus,
        ratios={depth: ratio(mus, depth) for depth in DEPTHS},
        approach=(np.sqrt(DIM) * ratio(SMALL, 2) - 1) / formula,
        powers=powers,
        largest=thresholds(next(iter(runs.values())).config.seed)[0],
        limits=[limit(run) for run in runs.values()],
    )


def claims(e: Evidence) -> list[kit.Claim]:
    return [
        kit.presupposing(
            kit.claim(
                "limit",
                r"Gradient flow of depth 3 ends in $\arg\min Q_3$ (relative distance)",
                "Theorem for D > 2",
                kit.less_than(1e-3),
                np.max([end.difference for end in e.limits]),
            ),
            ENDS,
            kit.at_most(FITTED),
            max(end.left for end in e.limits),
        ),
        *(
            kit.theory(
                f"ends-{depth}",
                f"Q_{depth} goes from the L2 to the L1 norm: its ratio of a sparse to a dense "
                r"vector falls from 1 to $1/\sqrt d$ (share of smaller $\mu$ with less, between"
                " 0.99 and 1.01 first)",
                "Figure 3(b)",
                kit.exactly(1.0),
                (
                    float(np.mean(np.diff(e.ratios[depth]) < 1e-9))
                    if abs(e.ratios[depth][0] - 1) < 0.01
                    else 0.0
                ),
            )
            for depth in DEPTHS
        ),
        kit.theory(
            "exponential",
            r"D = 2: $\alpha$ must be exponentially small in the accuracy, $\sqrt d$ ratio $- 1 ="
            r" g/(\ln(1/\mu) - 1 - g)$, $g = \ln(d)/2$ (worst over that, $\mu$ 1e-6 to 1e-16)",
            "Section 4; next order 2 / z, z = 1 / (mu sqrt(d))",
            kit.near(1.0, 1e-3),
            e.approach[np.abs(e.approach - 1).argmax()],
        ),
        *(
            kit.theory(
                f"power-{depth}",
                rf"D = {depth}: polynomially, as $\alpha^{{D - 2}}$ (power)",
                "Section 4",
                kit.near(depth - 2.0, 0.05 * (depth - 2)),
                power,
            )
            for depth, power in e.powers.items()
        ),
        kit.theory(
            "deeper",
            r"Deeper networks reach the error with a larger $\mu = \alpha^D$ (share of N, where any"
            " does, at which D = 5 does with a larger one than D = 2)",
            "Figure 3(c)",
            kit.exactly(1.0),
            np.mean((e.largest[-1] > e.largest[0])[np.isfinite(e.largest[0])]),
        ),
    ]


def draw(e: Evidence) -> kit.Drawing:
    z = np.linspace(-10, 10, 401)
    largest = np.where(np.isfinite(e.largest), e.largest, np.nan)
    return kit.charts(
        kit.chart(
            "Penalty",
            "$q_D(z)$",
            kit.lines(z, {depth: q(z, depth) for depth in DEPTHS}, "$D={}$"),
            xlabel="$z$",
        ),
        kit.chart(
            "From L2 to L1",
            r"$Q(e_1)\,/\,Q(1_d/\sqrt{d})$",
            [kit.line(e.mus, e.ratios[depth]) for depth in DEPTHS],
            kit.level(1, r"$\ell_2$"),
            kit.level(DIM**-0.5, r"$\ell_1$", "theory dotted 0.8"),
            xlabel=r"$\mu=\alpha^D$",
            log="xy",
        ),
        kit.chart(
            "Samples",
            f"largest $\\mu$ with\nerror $\\leq$ {THRESHOLD}",
            kit.lines(COUNTS, 10.0**largest.T, "", "joined"),
            xlabel="samples $N$",
            log="y",
        ),
    )


FIGURE = kit.Figure(
    id="woodworth2020-fig3",
    caption=(
        "Diagonal networks of depth D: the penalty q_D of one entry, the ratio of Q of a sparse and"
        " a dense vector against mu = alpha^D in 1000 dimensions, and the largest mu with a small"
        " population error against the samples."
    ),
    configs=wanted((0.3,), 3),
    presets={"full": wanted((0.03, 0.1, 0.3, 1.0), 3, FULL)},
)
