"""Modes of trained networks beside their closed forms, under either loss."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from scipy.integrate import solve_ivp
from scipy.special import expit

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.plotting.layout import set_axis_label
from dynamics_cli.plotting.style import PALETTE, SERIES
from dynamics_cli.runs import Run

from .theory.modes import hinge_mode, invariant, logistic_mode
from .trained import Curve, confidence, layers, one_point, preactivations, times


def mode_curve(run: Run, label: int) -> Curve:
    """Return the mode of the only neuron of a class in a two-layer network, trained and in closed form."""
    x, norm, p = one_point(run, label)
    neuron = 0 if label == 1 else -1
    t, y = times(run), preactivations(run, x[None])[:, 0, neuron]
    z0 = float(layers(run)[-1][0, 0, neuron])
    hinge = run.config.loss.kind == "hinge"
    path = (hinge_mode if hinge else logistic_mode)(t, float(y[0]), z0, norm, p=p, label=label)
    c = float(invariant(y[0], z0, norm))
    name = rf"$\Vert x\Vert={norm:g}$, $c={round(c, 9):g}$".replace("-", "\N{MINUS SIGN}")
    theory = label * path.u if hinge else path.confidence
    return Curve(name, t, y, path.y, confidence(run, x, label), theory)


def ode_check(y0: float, z0: float, norm: float, *, until: float, label: int = 1) -> tuple[float, float]:
    """Integrate Eq. 12 (16) independently; return the largest difference in P and the drift of the invariant."""

    def field(_: float, state: Floats) -> Floats:
        y, z = state
        f = float(expit(-label * y * z))
        return label * np.array([norm**2 * z * f, y * f])

    t = np.linspace(0.0, until, 200)
    y, z = solve_ivp(field, (0.0, until), [y0, z0], t_eval=t, method="DOP853", rtol=1e-12, atol=1e-14).y
    P = logistic_mode(t, y0, z0, norm, label=label).confidence
    c = invariant(y, z, norm)
    return float(np.abs(expit(label * y * z) - P).max()), float(np.abs(c - c[0]).max())


def draw_curves(
    axes: Axes, curves: Sequence[Curve], *, values: str, label: str, until: float | None = None
) -> list[Line2D]:
    """Draw closed forms as lines and trained networks as dots; `values` is `y` or `P`. Returns the lines."""
    lines = []
    for k, curve in enumerate(curves):
        theory = curve.y_theory if values == "y" else curve.P_theory
        trained = curve.y if values == "y" else curve.P
        color = SERIES[k % len(SERIES)]
        lines += axes.plot(curve.t, theory, color=color, lw=1.2, label=curve.name)
        dots = np.linspace(0, len(curve.t) - 1, 16).astype(int)[1:-1] + 2 * k
        dots = dots[dots < len(curve.t)]
        axes.plot(curve.t[dots], trained[dots], "o", ms=2.6, mfc="white", mec=color, mew=0.8)
    end = until or float(max(curve.t[-1] for curve in curves))
    axes.set_xlim(0, end)
    set_axis_label(axes.xaxis, "time $t$", (0.0, end))
    axes.set_ylabel(label)
    return lines


def trained_handle() -> Line2D:
    """Return the legend handle of trained networks."""
    look = {"ls": "none", "marker": "o", "ms": 2.8, "mfc": "white", "mec": PALETTE.theory, "mew": 0.8}
    return Line2D([], [], label="trained", **look)  # type: ignore[arg-type]
