"""Beyond the paper: the norm of the final network against the scale of initialisation (Proposition 1, Theorem 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics_cli import kit

from .orthogonal import Setting, assumption_claim, read_setting, violations
from .states import NAN, State, initial_scale, state_at
from .theory.minimum_norm import orthonormal_value

CONFIG = "boursier2022/orthonormal.yaml"
SCALES = ("10.0", "1.0", "1.0e-2", "1.0e-4", "1.0e-6", "1.0e-8", "1.0e-12", "1.0e-16")
MORE_SCALES = ("30.0", "3.0", "0.1", "1.0e-3", "1.0e-10", "1.0e-14", "1.0e-18")
"""Added by `--preset full`."""


@dataclass(frozen=True)
class Evidence:
    """Final networks, from the largest scale to the smallest."""

    scales: kit.Floats
    """(k,) lambda, the standard deviation of the initial weights, descending."""
    norms: kit.Floats
    """(k,) final ||theta||^2."""
    losses: kit.Floats
    """(k,) final losses."""
    least: float
    """2 n (||D_+|| + ||D_-||)."""
    setting: Setting
    """Of the smallest scale."""
    last: State
    """The final network there."""

    @property
    def excess(self) -> kit.Floats:
        """`||theta||^2 / least - 1` (k,)."""
        return self.norms / self.least - 1


def evidence(runs: kit.Runs) -> Evidence:
    """Measure the final network at every scale."""
    ordered = sorted(runs.values(), key=initial_scale, reverse=True)
    last = [state_at(run, run.iterations) for run in ordered]
    setting = read_setting(ordered[-1])
    return Evidence(
        scales=np.array([initial_scale(run) for run in ordered]),
        norms=np.array([float(kit.parameter_norm_squared(state.W, state.a)) for state in last]),
        losses=np.array([run.final_loss for run in ordered]),
        least=orthonormal_value(setting.x, setting.y),
        setting=setting,
        last=last[-1],
    )


def claims(e: Evidence) -> list[kit.Claim]:
    """Compare with Theorem 1 and Proposition 1."""
    falls, last = np.diff(e.norms), e.last
    monotone = float(np.mean(falls <= 1e-4 * e.least)) if falls.size else NAN
    small = (e.scales < 0.1) & (e.excess > 1e-5)
    power = float(np.polyfit(np.log(e.scales[small]), np.log(e.excess[small]), 1)[0]) if small.sum() >= 2 else NAN
    groups = kit.cluster_directions(last.W, signs=last.a)
    plus, minus = ((last.W * last.norms[:, None])[last.signs == s].sum(axis=0) for s in (1, -1))
    cosine = min(float(kit.cosines(plus, e.setting.D_plus)), float(kit.cosines(minus, -e.setting.D_minus)))
    # fmt: off
    return [
        assumption_claim(e.setting),
        kit.claim("interpolates", "Every run reaches zero loss (largest final loss)",
                  "Theorem 1", kit.at_most(1e-10), e.losses.max()),
        kit.claim("limit", "For the smallest scale ||theta||^2 is 2n (||D+|| + ||D-||) (ratio)",
                  "Theorem 1, Proposition 1", kit.near(1.0, 1e-3), e.norms[-1] / e.least),
        kit.claim("lower-bound", "No interpolator has a smaller norm (least ratio; the loss left allows 1e-4)",
                  "Proposition 1", kit.at_least(1 - 1e-4), e.norms.min() / e.least),
        kit.claim("monotone", "The norm falls to its limit as lambda goes to 0 "
                  "(share of smaller scales that raise it by less than 1e-4)",
                  "Theorem 1, Section 3.2", kit.exactly(1), monotone),
        kit.claim("two-neurons", "For the smallest scale the network is one of two neurons "
                  "(share of the squared norms in two directions)", "Section 4.2, Proposition 1",
                  kit.near(1.0, 1e-3), groups.masses[:2].sum() / np.sum(last.norms**2)),
        kit.claim("collinear", "which are collinear with D+ and -D- (smaller cosine)",
                  "Section 4.2, Proposition 1", kit.more_than(0.99), cosine),
        kit.finding("value", "2n (||D+|| + ||D-||) for these data", "Proposition 1", e.least),
        kit.finding("norm", "Final ||theta||^2 at the smallest scale", "Proposition 1", e.norms[-1]),
        kit.finding("largest-excess", f"Excess of the final norm at the largest scale, lambda = {e.scales[0]:.3g}",
                    "Section 3.2", e.excess[0]),
        kit.finding("groups",
                    "Groups of directions at the smallest scale, of neurons with 1 % of the largest norm or more",
                    "Section 4.2", groups.count),
        kit.finding("rate", "Power of lambda with which the excess vanishes", "not in the paper", power),
    ]
    # fmt: on


def draw(e: Evidence) -> kit.Drawing:
    """Draw the final norm, and its excess over the least one, against the scale."""
    figure, axes = kit.new_figure(2, 1, aspect=0.72, extra_height=0.2)
    look: dict[str, Any] = {"marker": "o", "ms": 4, "color": kit.PALETTE.measured}
    (line,) = axes[0].plot(e.scales, e.norms, label=r"final $\Vert\theta\Vert^2$", **look)
    theory = axes[0].axhline(
        e.least, color=kit.PALETTE.theory, ls=(0, (4, 2)), lw=1.1, label=r"$2n(\Vert D_+\Vert+\Vert D_-\Vert)$"
    )
    axes[1].plot(e.scales, np.where(e.excess > 0, e.excess, np.nan), **look)
    for one, ylabel in zip(axes, (r"$\Vert\theta\Vert^2$", "relative excess"), strict=True):
        one.set(xscale="log", yscale="log", xlabel=r"initialisation scale $\lambda$", ylabel=ylabel)
    kit.panel_label(axes[0], 0, "Norm of the final network")
    kit.panel_label(axes[1], 1, "Excess over the least norm")
    kit.figure_legend(figure, [line, theory])
    return figure


def _wanted(scales: tuple[str, ...]) -> dict[str, str | kit.Wanted]:
    return {f"scale {scale}": kit.Wanted(CONFIG, (f"initialization.scale={scale}",)) for scale in scales}


FIGURE = kit.Figure(
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
    remarks=lambda e: violations(e.setting),
)
