"""Figure 4: learning time and best step against depth, one mode of a deep linear network."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit

from .theory.modes import descent, infinite_depth, time_between

LAYERS = (3, 5, 11, 31, 51, 101)
"""N_l, input and output counted: n = N_l - 1 matrices."""
U0, U, S = 1e-3, 0.99, 1.0
RATES = np.geomspace(0.2, 4.0, 60)
"""Steps that are tried, in units of 1/n."""


@dataclass(frozen=True)
class Evidence:
    """By depth, `LAYERS`."""

    flow: kit.Floats
    """Iterations of gradient flow at the step 1/(n s^(2-2/n))."""
    best: kit.Floats
    """Least iterations of gradient descent,"""
    rate: kit.Floats
    """and the step that takes them."""
    limit: float


def evidence(runs: kit.Runs) -> Evidence:
    """Integrate Eq. 15 and iterate descent."""
    steps = [descent(N - 1, RATES / (N - 1), U0, U, S, limit=3000) for N in LAYERS]
    return Evidence(
        flow=np.array([(N - 1) * time_between(U0, U, S, N - 1) for N in LAYERS]),
        best=np.array([one.min() for one in steps]),
        rate=np.array([RATES[np.argmin(one)] / (N - 1) for N, one in zip(LAYERS, steps, strict=True)]),
        limit=infinite_depth(U0, U, S),
    )


def claims(e: Evidence) -> list[kit.Claim]:
    """Compare with Eqs. 15 to 17: with the step ~ 1/n learning time saturates with depth."""
    scaled = e.rate * (np.array(LAYERS) - 1)
    # fmt: off
    return [
        kit.theory("rising", "At the step 1/(n s^(2-2/n)) the time grows with depth (least growth)", "Eq. 15",
                   kit.more_than(0), np.diff(e.flow).min()),
        kit.theory("finite", "but stays below that of infinite depth (largest over it)", "Eqs. 16, 17",
                   kit.less_than(1), e.flow.max() / e.limit),
        kit.theory("limit", "which it tends to (time of 10 001 layers over it)", "Eqs. 16, 17", kit.near(1, 0.02),
                   1e4 * time_between(U0, U, S, 10000) / e.limit),
        kit.theory("saturates", "Gradient descent at its best step: 101 layers take hardly longer than 51 (ratio)",
                   "Figure 4; range ours", kit.less_than(1.25), e.best[-1] / e.best[-2]),
        kit.finding("step", "Best step times n, least over depths", "Figure 4 right", scaled.min()),
        kit.finding("step-most", "and largest", "Figure 4 right", scaled.max()),
    ]
    # fmt: on


@kit.styled
def draw(e: Evidence) -> kit.Drawing:
    """Draw times and steps over depth."""
    figure, (left, right) = kit.new_figure(2, aspect=0.8, extra_height=0.25)
    left.plot(LAYERS, e.flow, color=kit.PALETTE.theory, marker="o", label=r"flow, step $1/(n s^{2-2/n})$")
    left.plot(LAYERS, e.best, color=kit.PALETTE.measured, marker="o", label="descent, best step")
    left.axhline(e.limit, color=kit.PALETTE.theory, ls="--", lw=0.8, label="infinite depth, Eq. 17")
    left.set(xlabel="layers $N_l$", ylabel="iterations to $u = 0.99 s$", ylim=(0, 1.3 * e.limit))
    right.loglog(np.array(LAYERS), e.rate, color=kit.PALETTE.measured, marker="o", label="best step")
    right.loglog(LAYERS, 1 / (np.array(LAYERS) - 1), color=kit.PALETTE.theory, ls=":", label="$1/n$")
    right.set(xlabel="layers $N_l$", ylabel="step")
    right.set_xticks(LAYERS, labels=[str(N) for N in LAYERS])
    right.minorticks_off()
    handles = [*left.get_legend_handles_labels()[0], *right.get_legend_handles_labels()[0][1:]]
    kit.figure_legend(figure, handles)
    kit.panel_label(left, 0, "Learning time")
    kit.panel_label(right, 1, "Step")
    return figure


FIGURE = kit.Figure(
    id="saxe2014-fig4",
    caption=(
        "One mode of strength 1 from u0 = 0.001 in linear networks of several depths. Left: iterations to 0.99, of "
        "gradient flow at the step 1/(n s^(2-2/n)), of gradient descent at its best step, and for infinite depth. "
        "Right: that step. (The paper trains networks on MNIST with a threshold that we do not know)."
    ),
    origin={"equations, u0": "stated", "threshold": "assumed", "steps": "assumed"},
    evidence=evidence,
    claims=claims,
    draw=draw,
)
