"""Beyond the paper: the norm of the final network against the scale of initialisation (Proposition 1, Theorem 1).

`dyn reproduce boursier2022-extra-norm`. About 4 s, nearly all of them training.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure as Drawing

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.measures.clusters import cluster_directions
from dynamics_cli.measures.neurons import cosines, parameter_norm_squared
from dynamics_cli.plotting.layout import figure_legend, panel_label
from dynamics_cli.plotting.style import PALETTE, new_figure
from dynamics_cli.reproduction.claims import Claim, at_least, at_most, claim, exactly, finding, more_than, near
from dynamics_cli.reproduction.figure import Figure, Runs, Wanted
from dynamics_cli.runs import Run

from .orthogonal import Setting, assumption_claim, read_setting, violations
from .states import initial_scale, state_at
from .theory.minimum_norm import orthonormal_value

CONFIG = "boursier2022/orthonormal.yaml"
SCALES = ("10.0", "1.0", "1.0e-2", "1.0e-4", "1.0e-6", "1.0e-8", "1.0e-12", "1.0e-16")
MORE_SCALES = ("30.0", "3.0", "0.1", "1.0e-3", "1.0e-10", "1.0e-14", "1.0e-18")
"""Added by `--preset full`."""


@dataclass(frozen=True)
class Evidence:
    """Final norms, from the largest scale to the smallest."""

    setting: Setting
    """Of the smallest scale."""
    scales: Floats
    """(k,) lambda, the standard deviation of the initial weights, descending."""
    norms: Floats
    """(k,) final ||theta||^2."""
    losses: Floats
    """(k,) final losses."""
    groups: Floats
    """(k,) groups of neurons of non-negligible norm, within 5 degrees, in the final network."""
    two: float
    """Share of the sum of squared norms that the two heaviest groups hold, at the smallest scale."""
    least: float
    """2 n (||D_+|| + ||D_-||)."""
    cosines: tuple[float, float]
    """At the smallest scale, of the heaviest group of each sign with D_+ and -D_-."""

    @property
    def excess(self) -> Floats:
        """`||theta||^2 / least - 1` (k,)."""
        return self.norms / self.least - 1


def evidence(runs: Runs) -> Evidence:
    """Measure the final network at every scale."""
    ordered = sorted(runs.values(), key=initial_scale, reverse=True)
    last = [state_at(run, run.iterations) for run in ordered]
    groups = [cluster_directions(state.W, signs=state.a) for state in last]
    setting = read_setting(ordered[-1])
    return Evidence(
        setting=setting,
        scales=np.array([initial_scale(run) for run in ordered]),
        norms=np.array([float(parameter_norm_squared(state.W, state.a)) for state in last]),
        losses=np.array([run.final_loss for run in ordered]),
        groups=np.array([float(one.count) for one in groups]),
        two=float(groups[-1].masses[:2].sum() / np.sum(last[-1].norms ** 2)),
        least=orthonormal_value(setting.x, setting.y),
        cosines=_group_cosines(ordered[-1], setting),
    )


def _group_cosines(run: Run, setting: Setting) -> tuple[float, float]:
    state = state_at(run, run.iterations)
    means = [(state.W * state.norms[:, None])[state.signs == s].sum(axis=0) for s in (1, -1)]
    return float(cosines(means[0], setting.D_plus)), float(cosines(means[1], -setting.D_minus))


def claims(found: Evidence) -> list[Claim]:
    """Compare with Theorem 1 and Proposition 1."""
    falls = np.diff(found.norms)
    slope = float("nan")
    small = (found.scales < 0.1) & (found.excess > 1e-5)
    if small.sum() >= 2:
        slope = float(np.polyfit(np.log(found.scales[small]), np.log(found.excess[small]), 1)[0])
    return [
        assumption_claim(found.setting),
        claim(
            "interpolates",
            "Every run reaches zero loss (largest final loss)",
            "Theorem 1",
            expected=at_most(1e-10),
            measured=float(found.losses.max()),
        ),
        claim(
            "limit",
            "For the smallest scale ||theta||^2 is 2n (||D+|| + ||D-||) (ratio)",
            "Theorem 1, Proposition 1",
            expected=near(1.0, 1e-3),
            measured=float(found.norms[-1] / found.least),
        ),
        claim(
            "lower-bound",
            "No interpolator has a smaller norm (least ratio; the loss left allows 1e-4)",
            "Proposition 1",
            expected=at_least(1 - 1e-4),
            measured=float(found.norms.min() / found.least),
        ),
        claim(
            "monotone",
            "The norm falls to its limit as lambda goes to 0 (share of smaller scales that raise it by less than 1e-4)",
            "Theorem 1, Section 3.2",
            expected=exactly(1),
            measured=float(np.mean(falls <= 1e-4 * found.least)) if falls.size else float("nan"),
        ),
        claim(
            "two-neurons",
            "For the smallest scale the network is one of two neurons (share of the squared norms in two directions)",
            "Section 4.2, Proposition 1",
            expected=near(1.0, 1e-3),
            measured=found.two,
        ),
        claim(
            "collinear",
            "which are collinear with D+ and -D- (smaller cosine)",
            "Section 4.2, Proposition 1",
            expected=more_than(0.99),
            measured=min(found.cosines),
        ),
        finding("value", "2n (||D+|| + ||D-||) for these data", "Proposition 1", measured=found.least),
        finding("norm", "Final ||theta||^2 at the smallest scale", "Proposition 1", measured=float(found.norms[-1])),
        finding(
            "largest-excess",
            f"Excess of the final norm at the largest scale, lambda = {found.scales[0]:.3g}",
            "Section 3.2",
            measured=float(found.excess[0]),
        ),
        finding(
            "groups",
            "Groups of directions at the smallest scale, of neurons with 1 % of the largest norm or more",
            "Section 4.2",
            measured=float(found.groups[-1]),
        ),
        finding("rate", "Power of lambda with which the excess vanishes", "not in the paper", measured=slope),
    ]


def draw(found: Evidence) -> Drawing:
    """Draw the final norm, and its excess over the least one, against the scale."""
    figure, axes = new_figure(2, 1, aspect=0.72, extra_height=0.2)
    look: dict[str, Any] = {"marker": "o", "ms": 4, "color": PALETTE.measured}
    (line,) = axes[0].plot(found.scales, found.norms, label=r"final $\Vert\theta\Vert^2$", **look)
    theory = axes[0].axhline(
        found.least, color=PALETTE.theory, ls=(0, (4, 2)), lw=1.1, label=r"$2n(\Vert D_+\Vert+\Vert D_-\Vert)$"
    )
    axes[0].set(xscale="log", yscale="log", xlabel=r"initialisation scale $\lambda$", ylabel=r"$\Vert\theta\Vert^2$")
    panel_label(axes[0], 0, "Norm of the final network")
    excess = np.where(found.excess > 0, found.excess, np.nan)
    axes[1].plot(found.scales, excess, **look)
    axes[1].set(xscale="log", yscale="log", xlabel=r"initialisation scale $\lambda$", ylabel="relative excess")
    panel_label(axes[1], 1, "Excess over the least norm")
    figure_legend(figure, [line, theory])
    return figure


def _wanted(scales: tuple[str, ...]) -> dict[str, str | Wanted]:
    return {f"scale {scale}": Wanted(CONFIG, (f"initialization.scale={scale}",)) for scale in scales}


FIGURE = Figure(
    id="boursier2022-extra-norm",
    caption=(
        "Not in the paper: six orthonormal points in ten dimensions, trained to zero loss from several scales of "
        "initialisation. As lambda goes to 0 the norm of the final network falls to that of Proposition 1."
    ),
    configs=_wanted(SCALES),
    presets={"full": _wanted(MORE_SCALES)},
    origin={"all settings": "assumed"},
    evidence=evidence,
    claims=claims,
    draw=draw,
    remarks=lambda found: violations(found.setting),
)
