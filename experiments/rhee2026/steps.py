"""Figure 1c and 1d: the final loss against the step; gradient descent has a critical one, Muon has
none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics_cli import kit

from .modes import GD, MUON
from .theory.factors import cycle_losses

GD_STEPS = (0.03, 0.05, 0.07, 0.09, 0.1, 0.105, 0.11, 0.12, 0.13)
MUON_STEPS = (0.007, 0.014, 0.03, 0.06, 0.1, 0.2, 0.28, 0.6, 1.0, 2.8)
ROLES = ("gd {}", "muon {}")
STABLE = 0.09
UNSTABLE = 0.11
CYCLES = (0.105, 0.11, 0.12)
"""Steps at which mode 1 alternates between two numbers."""
CRITICAL = 0.14
"""The printed `critical LR`, at which gradient descent begins to diverge."""
READ_STABLE = 1e-10
READ_UNSTABLE = kit.Interval(0.01, 0.1)
"""Read off the picture: steps of 0.05 to 0.1, and those from there to 0.135."""
SLOPE = kit.near(2, 0.1)


@dataclass(frozen=True)
class Losses:
    """Final losses of networks by their step, `final` (a,), over the loss of W = 0.

    As in the notebook, they are means of the last two states. `sharpness` (a,) is of the last, NaN
    where it was not measured.
    """

    steps: kit.Floats
    final: kit.Floats
    sharpness: kit.Floats

    def at(self, step: float) -> int:
        """Return the place of the step nearest to a given one."""
        return int(np.argmin(np.abs(self.steps - step)))


def losses(runs: list[kit.Run], zero: float) -> Losses:
    """Read runs of one optimizer; `zero` is the loss of W = 0."""
    steps, final, sharpness = np.array([_row(run) for run in runs]).T
    return Losses(steps, final / zero, sharpness)


def _row(run: kit.Run) -> tuple[float, float, float]:
    """Return step, final loss and sharpness of a run."""
    optimizer: Any = run.config.optimizer
    sharpness = np.nan
    if "sharpness" in run.measures:
        sharpness = float(np.ravel(run.measures["sharpness"])[-1])
    return optimizer.lr, float(np.mean(run.losses[-2:])), sharpness


@dataclass(frozen=True)
class Evidence:
    """Losses of both optimizers, and those of the scalar laws, over the loss of W = 0.

    `cycle` (3,) are of gradient descent at the steps of `CYCLES`. Muon's is `prefactor eta^2`;
    `slope` fits `log final = slope log eta + c` to the steps where that is below one half.
    """

    gd: Losses
    muon: Losses
    s: kit.Floats
    cycle: kit.Floats
    prefactor: float
    slope: float


def evidence(runs: kit.Runs) -> Evidence:
    """Read the runs of both optimizers, by their steps."""
    of_gd, of_muon = ([*kit.by_values(runs, role).values()] for role in ROLES)
    data: Any = of_gd[0].config.dataset
    s = np.array(data.singular_values)
    zero = float(np.sum(s**2) / 2)
    muon = losses(of_muon, zero)
    prefactor = float(4 / 3 * np.sum(s) / np.sum(s**2))
    small = prefactor * muon.steps**2 < 0.5
    return Evidence(
        gd=losses(of_gd, zero),
        muon=muon,
        s=s,
        cycle=np.array([cycle_losses(s[0], step).mean() for step in CYCLES]) / zero,
        prefactor=prefactor,
        slope=kit.power(muon.steps[small], muon.final[small]),
    )


def claims(e: Evidence) -> list[kit.Claim]:
    """Compare with the pictures, and with the stability of the balanced minimum."""
    stable = e.gd.at(STABLE)
    learned = e.gd.final[stable] < READ_STABLE
    cycles = np.array([e.gd.final[e.gd.at(step)] for step in CYCLES]) / e.cycle
    return [
        kit.claim(
            "gd-stable",
            rf"Gradient descent: below $1/s_1 = 0.1$, at a step of {STABLE}, the loss vanishes"
            " (final loss over that of W = 0)",
            "Figure 1c, steps of 0.05 to 0.1",
            kit.less_than(READ_STABLE),
            e.gd.final[stable],
        ),
        kit.claim(
            "gd-sharpness",
            r"Gradient descent ends at a balanced minimum, where the sharpness is $2 s_1$ and the"
            r" critical step $2 / (2 s_1)$ (sharpness over $2 s_1$)",
            "abstract: critical threshold set by the sharpness; stability of gradient descent",
            kit.around(1),
            kit.given(learned, e.gd.sharpness[stable] / (2 * e.s[0])),
        ),
        kit.claim(
            "gd-unstable",
            f"Gradient descent: just above, at a step of {UNSTABLE}, the loss stays high (final"
            " loss over that of W = 0)",
            "Figure 1c, steps of 0.1 to 0.135",
            READ_UNSTABLE,
            kit.given(learned, e.gd.final[e.gd.at(UNSTABLE)]),
        ),
        kit.claim(
            "gd-cycle",
            "Gradient descent: there mode 1 alternates between two numbers (final loss over that"
            " of the scalar law, the farthest of three steps)",
            "scalar law",
            kit.around(1),
            kit.farthest(cycles),
        ),
        kit.claim(
            "muon-slope",
            r"Muon: the final loss falls as $\eta^2$ (exponent, over steps at which the scalar law"
            " is below one half)",
            "Figure 1d; scalar law",
            SLOPE,
            e.slope,
        ),
        kit.claim(
            "muon-above",
            "Muon: at twice the printed critical step of gradient descent training is stable and"
            " learns most of the matrix (final loss over that of W = 0)",
            "abstract; Figure 1d; most is more than half",
            kit.less_than(0.5),
            kit.given(SLOPE.holds(e.slope), e.muon.final[e.muon.at(2 * CRITICAL)]),
        ),
    ]


def numbers(e: Evidence) -> dict[str, float]:
    """Return the factor of the scalar law of Muon, and the networks' at small steps."""
    return {
        "final loss of Muon over eta^2 by the scalar law": e.prefactor,
        "the same of the networks, median over steps up to 0.28": float(
            np.median((e.muon.final / e.muon.steps**2)[e.muon.steps <= 0.28])
        ),
    }


def draw(e: Evidence) -> kit.Drawing:
    loss = "final loss / loss of W = 0"
    law = e.prefactor * e.muon.steps**2
    return kit.charts(
        kit.chart(
            "Gradient descent",
            loss,
            kit.line(e.gd.steps, e.gd.final, "final loss", "joined"),
            kit.line(CYCLES, e.cycle, "scalar law", "theory _"),
            kit.upright(1 / e.s[0], "$1/s_1$", "theory dashed 0.8"),
            kit.upright(CRITICAL, "critical, printed"),
            log="y",
        ),
        kit.chart(
            "Muon",
            loss,
            kit.line(e.muon.steps, e.muon.final, "final loss", "joined"),
            kit.line(e.muon.steps, law, r"scalar law, $\eta^2$", "theory dashed 0.8"),
            log="xy",
        ),
        xlabel=r"step size $\eta$",
        legend="below",
    )


SETTING = (
    "initialization.scale=0.1",
    "optimizer.iterations=499",
    "record.snapshots.interval=499",
    "record.parameters=none",
)
SHARPNESS = "record.measures=[sharpness]"
FIGURE = kit.Figure(
    id="rhee2026-steps",
    caption=(
        "Mean of the last two losses of 499 updates of two factors that learn a matrix of singular"
        " values 10/i, against the step, for gradient descent and for Muon."
    ),
    configs={
        **kit.grid(GD, {"optimizer.lr": GD_STEPS}, ROLES[0], *SETTING, SHARPNESS),
        **kit.grid(MUON, {"optimizer.lr": MUON_STEPS}, ROLES[1], *SETTING),
    },
)
