"""What Figures 4 and 8 share: networks of N weights in a row, trained and in closed form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D
from scipy.integrate import solve_ivp
from scipy.special import expit

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.plotting.layout import figure_legend, panel_label
from dynamics_cli.plotting.style import PALETTE, SERIES, new_figure
from dynamics_cli.reproduction.claims import Claim, at_most, claim, less_than, near
from dynamics_cli.reproduction.figure import Origin, Wanted
from dynamics_cli.runs import Run
from dynamics_cli.theory.deep_mode import deep_logit, deep_rate

from .curves import trained_handle
from .trained import confidence, crossing, layers, one_point, order, outputs, step, times

CONFIG = "tachet2018/deep.yaml"
U0 = 0.05
"""Initial logit of every mode."""
LENGTHS = {2: 14000, 4: 8500, 8: 8500}
"""Updates at step 1e-3."""
COARSER = 10
ORIGIN: dict[str, Origin] = {"depths of Figure 8": "stated", "norms": "assumed", "u0": "assumed", "step": "assumed"}


def wanted(depth: int, *, coarse: bool = False) -> Wanted:
    """Return the run of two modes, norms 1 and 2, of N = `depth` weights in a row, that start at the logit `U0`."""
    z = [(U0 / norm) ** (1.0 / depth) for norm in (1.0, 2.0)]
    change = [
        f"initialization.y=[[{z[0]!r}], [{2.0 * z[1]!r}]]",
        f"initialization.z=[[{z[0]!r}], [{z[1]!r}]]",
        f"optimizer.iterations={LENGTHS[depth] // (COARSER if coarse else 1)}",
    ]
    if coarse:
        change += [f"optimizer.lr={1e-3 * COARSER}", f"record.snapshots.interval={40 // COARSER}"]
    if depth == 2:
        network = ("architecture.kind=two_layer", "architecture.width=2")
        return Wanted("tachet2018/two_classes.yaml", (*network, "loss.reduction=sum", *change))
    return Wanted(CONFIG, (f"architecture.widths={[2] * (depth - 1)}", *change))


def configs(*depths: int) -> dict[str, Wanted]:
    """Return the runs of the given depths, at the step and at the coarse one."""
    fine = {f"N = {depth}": wanted(depth) for depth in depths}
    return {**fine, **{f"N = {depth}, coarse": wanted(depth, coarse=True) for depth in depths}}


@dataclass(frozen=True)
class DeepCurve:
    """The logit of one trained mode, K times, and Eq. 5."""

    depth: int
    norm: float
    t: Floats
    u: Floats
    u_theory: Floats
    P: Floats
    P_theory: Floats
    imbalance: float
    """Largest difference of the weights in the row, divided by the largest weight: they stay equal (Appendix B)."""

    @property
    def error(self) -> float:
        """Largest difference of the confidences."""
        return float(np.abs(self.P - self.P_theory).max())


@dataclass(frozen=True)
class DeepEvidence:
    """The curves of all depths at both steps."""

    curves: list[DeepCurve]
    coarse: list[DeepCurve]
    steps: tuple[float, float]
    ode: float
    """Largest difference in P between the closed form and an ODE solver."""


def deep_evidence(runs: Mapping[str, Run]) -> DeepEvidence:
    """Compare all modes of the runs with Eq. 5."""
    fine = [run for role, run in runs.items() if "coarse" not in role]
    coarse = [run for role, run in runs.items() if "coarse" in role]
    curves = [_curve(run, label) for run in fine for label in (1, -1)]
    return DeepEvidence(
        curves=curves,
        coarse=[_curve(run, label) for run in coarse for label in (1, -1)],
        steps=(step(coarse[0]), step(fine[0])),
        ode=max(_ode_difference(one) for one in curves),
    )


def _curve(run: Run, label: int) -> DeepCurve:
    x, norm, p = one_point(run, label)
    weights, neuron = layers(run), 0 if label == 1 else 1
    u = label * outputs(run, x[None])[:, 0]
    u_theory = deep_logit(times(run), float(u[0]), len(weights), norm, p=p)
    row = [weights[0][:, neuron] @ x / norm, *(w[:, neuron, neuron] for w in weights[1:-1])]
    row.append(np.abs(weights[-1][:, 0, neuron]))
    table = np.array(row)  # (N, K)
    imbalance = float((np.ptp(table, axis=0) / table.max(axis=0)).max())
    P = confidence(run, x, label)
    return DeepCurve(len(weights), norm, times(run), u, u_theory, P, np.asarray(expit(u_theory)), imbalance)


def _ode_difference(one: DeepCurve) -> float:
    result = solve_ivp(
        lambda _, u: deep_rate(u, one.depth, one.norm),
        (0.0, float(one.t[-1])),
        [float(one.u_theory[0])],
        t_eval=one.t,
        method="DOP853",
        rtol=1e-11,
        atol=1e-13,
    )
    return float(np.abs(expit(result.y[0]) - one.P_theory).max())


def time_to(one: DeepCurve, P: float) -> float:
    """Return when the trained network reaches the confidence P."""
    return crossing(one.t, one.P, P)


def deep_claims(found: DeepEvidence) -> list[Claim]:
    """Compare the curves with Eq. 5 and what the paper says of norms."""
    worst, coarse = (max(one.error for one in curves) for curves in (found.curves, found.coarse))
    pairs = list(zip(found.curves[::2], found.curves[1::2], strict=True))
    return [
        claim(
            "overlay",
            "Trained deep diagonal networks follow Eq. 5 (largest |P_train - P_theory|, both classes)",
            "Section 4, Eqs. 5, 25; limit of small steps",
            expected=at_most(1e-3),
            measured=worst,
        ),
        claim(
            "first-order",
            "and deviate in proportion to the step (power of the step)",
            "gradient descent is Euler's method",
            expected=near(1.0, 0.1),
            measured=order(coarse, worst, found.steps),
        ),
        claim(
            "closed-form",
            "The closed form solves Eq. 5 (largest |dP| against an ODE solver)",
            "Eq. 5",
            expected=at_most(1e-8),
            measured=found.ode,
        ),
        claim(
            "equal-weights",
            "The weights in a row stay equal while they are trained (largest relative difference)",
            "Appendix B",
            expected=at_most(1e-8),
            measured=max(one.imbalance for one in found.curves),
        ),
        claim(
            "larger-norm",
            "Larger ||x|| converge faster (largest ratio of the times to P = 0.95, norm 2 to norm 1)",
            "Section 4, Appendix B",
            expected=less_than(1),
            measured=max(time_to(large, 0.95) / time_to(small, 0.95) for small, large in pairs),
        ),
        claim(
            "norm-fades",
            "The effect of ||x|| shrinks as N grows (ratio of those ratios, shallowest to deepest)",
            "Section 4, Appendix B",
            expected=less_than(1),
            measured=_gain(*pairs[0]) / _gain(*pairs[-1]),
        ),
    ]


def _gain(small: DeepCurve, large: DeepCurve) -> float:
    return time_to(large, 0.95) / time_to(small, 0.95)


def draw_deep(found: DeepEvidence) -> Drawing:
    """Draw logits and confidences, a colour per depth and norm."""
    figure, axes = new_figure(2, 1, aspect=0.74, extra_height=0.25)
    lines = []
    for k, one in enumerate(found.curves):
        color, name = SERIES[k % len(SERIES)], rf"$N={one.depth}$, $\Vert x\Vert={one.norm:g}$"
        dots = np.arange(6 + 4 * k, len(one.t), max(len(one.t) // 12, 1))
        for panel, theory, trained in ((axes[0], one.u_theory, one.u), (axes[1], one.P_theory, one.P)):
            (line,) = panel.plot(one.t, theory, color=color, label=name)
            panel.plot(one.t[dots], trained[dots], "o", ms=2.8, mfc="white", mec=color, mew=0.8)
        lines.append(line)
    axes[1].axhline(1.0, color=PALETTE.muted, lw=0.5)
    end = min(float(one.t[-1]) for one in found.curves)
    for panel, label in zip(axes, ("logit $u(t)$", "confidence $P_t$"), strict=True):
        panel.set(xlim=(0, end), xlabel="time $t$", ylabel=label)
    axes[0].set_ylim(0, None)
    axes[1].set_ylim(0.5, 1.01)
    panel_label(axes[0], 0, "Logit")
    panel_label(axes[1], 1, "Confidence")
    handles: list[Line2D] = [*lines, trained_handle()]
    figure_legend(figure, handles, columns=3)
    return figure
