"""What the figures of this paper look at in a trained network: modes and logits over time,
beside the closed form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.special import expit

from dynamics_cli import kit
from dynamics_cli.initializations.given import Values
from dynamics_cli.training.backends import build_stepper, choose
from dynamics_cli.training.problem import build_problem

from .theory.modes import hinge_mode, invariant, logistic_mode

LEARNT = 0.9
"""Confidence (margin under the hinge loss) that a network must reach for its curve to count."""


@dataclass(frozen=True)
class ModeCurve:
    """A trained mode and its theory, at K times."""

    name: str
    t: kit.Floats
    """(K,) learning rate times updates."""
    y: kit.Floats
    """(K,) preactivation of the trained network, theory beside it."""
    y_theory: kit.Floats
    P: kit.Floats
    """(K,) confidence in the class (under the hinge loss the margin, which it trains to 1)."""
    P_theory: kit.Floats

    @property
    def error(self) -> float:
        """Largest difference of the confidences over the whole curve."""
        return float(np.abs(self.P - self.P_theory).max())


def if_learnt(reached: float, value: float) -> float:
    """Return `value`, or NaN unless the confidence `reached` is at least `LEARNT`.

    A network that stays where it starts follows its closed form, too, and keeps all that training
    conserves.
    """
    return kit.given(reached >= LEARNT, value)


def reached(curves: Sequence[ModeCurve]) -> float:
    """Return the largest confidence on a trained curve, the least of all curves."""
    return min(float(curve.P.max()) for curve in curves)


def largest_error(curves: Sequence[ModeCurve]) -> float:
    """Return the largest difference from the closed forms; NaN unless all trained networks reach
    `LEARNT`.
    """
    return if_learnt(reached(curves), max(curve.error for curve in curves))


def sigmoidal(t: kit.Floats, values: kit.Floats) -> bool:
    """Return whether a curve (K,) is slow at first, then accelerates, then saturates: convex
    before, concave after.
    """
    slopes = np.diff(values) / np.diff(t)
    bends = np.diff(slopes)
    signs = np.sign(bends[np.abs(bends) > 1e-9 * np.abs(slopes).max()])  # rounding has no shape
    return bool(len(signs) and signs[0] > 0 > signs[-1] and np.count_nonzero(np.diff(signs)) == 1)


def step(run: kit.Run) -> float:
    """Return the learning rate."""
    return float(run.config.optimizer.lr)  # type: ignore[attr-defined]


def times(run: kit.Run) -> kit.Floats:
    """Return the time of every snapshot, (K,)."""
    return np.asarray(run.snapshot_iterations, dtype=np.float64) * step(run)


def layers(run: kit.Run) -> list[kit.Floats]:
    """Return the weights of every layer over time, `(K, rows, columns)`; the last of one output
    has one row.
    """
    parameters = kit.in_double(run.parameters)
    if "hidden_weight" in parameters:
        return [parameters["hidden_weight"], parameters["output_weight"][:, None, :]]
    count = len(parameters)
    if set(parameters) != {f"weight_{k}" for k in range(1, count + 1)}:
        raise kit.InputError(f"{run.path}: the figures of tachet2018 need a network without biases")
    return [parameters[f"weight_{k}"] for k in range(1, count + 1)]


def outputs(run: kit.Run, x: kit.Floats) -> kit.Floats:
    """Return the outputs at every snapshot on `x (n, d)`: (K, n)."""
    *hidden, last = layers(run)
    values = np.broadcast_to(x.T, (len(last), *x.T.shape))  # (K, d, n)
    for weight in hidden:
        values = np.maximum(weight @ values, 0.0)
    return np.asarray((last @ values)[:, 0])


def one_point(run: kit.Run, label: int) -> tuple[kit.Floats, float, float]:
    """Return the single vector of a class, its norm and its rate `p`; raises InputError when it
    has several.
    """
    dataset = run.dataset()
    members = dataset.x[dataset.y == label]
    points = np.unique(members, axis=0)
    if len(points) != 1:
        raise kit.InputError(
            f"{run.path}: class {label} needs a single vector, repeated as often as you like"
        )
    summed = run.config.loss.reduction == "sum"
    share = float(len(members)) if summed else len(members) / dataset.n
    return points[0], float(np.linalg.norm(points[0])), share


def confidence(run: kit.Run, x: kit.Floats, label: int) -> kit.Floats:
    """Return the probability of class `label` on `x (d,)` over time, (K,); the margin under the
    hinge loss.
    """
    margin = label * outputs(run, x[None])[:, 0]
    return margin if run.config.loss.kind == "hinge" else np.asarray(expit(margin))


def mode_curve(run: kit.Run, label: int) -> ModeCurve:
    """Return the mode of the only neuron of a class in a two-layer network, trained and in
    closed form.
    """
    x, norm, p = one_point(run, label)
    neuron = 0 if label == 1 else -1
    t = times(run)
    y = layers(run)[0][:, neuron] @ x
    z0 = float(layers(run)[-1][0, 0, neuron])
    hinge = run.config.loss.kind == "hinge"
    path = (hinge_mode if hinge else logistic_mode)(t, float(y[0]), z0, norm, p=p, label=label)
    c = float(invariant(y[0], z0, norm))
    name = rf"$\Vert x\Vert={norm:g}$, $c={round(c, 9):g}$".replace("-", "\N{MINUS SIGN}")
    theory = label * path.u if hinge else path.confidence
    return ModeCurve(name, t, y, path.y, confidence(run, x, label), theory)


def ode_drift(y0: float, z0: float, norm: float, label: int, *, until: float) -> float:
    """Integrate Eq. 12 (16), and return the largest change of the invariant."""

    def field(_: float, state: kit.Floats) -> kit.Floats:
        y, z = state
        f = float(expit(-label * y * z))
        return label * np.array([norm**2 * z * f, y * f])

    t = np.linspace(0.0, until, 200)
    y, z = solve_ivp(
        field, (0.0, until), [y0, z0], t_eval=t, method="DOP853", rtol=1e-12, atol=1e-14
    ).y
    c = invariant(y, z, norm)
    return float(np.abs(c - c[0]).max())


@dataclass(frozen=True)
class Paths:
    """R networks of a single neuron trained side by side, at K times."""

    t: kit.Floats
    """(K,)"""
    w: kit.Floats
    """(K, R, d)"""
    z: kit.Floats
    """(K, R)"""


def train_together(
    run: kit.Run, w: kit.Floats, z: kit.Floats, *, snapshots: Sequence[int] | kit.Ints
) -> Paths:
    """Train the network of a run of one neuron again from other starts `w (R, d)`, `z (R,)`, all at
    once.

    `snapshots` are the updates after which the weights are kept, ascending. Raises InputError for
    wider networks and other optimizers than full-batch gradient descent.
    """
    problem = build_problem(run.config, run.dataset())
    if problem.shapes["hidden_weight"][0] != 1 or run.config.optimizer.kind != "gd":
        raise kit.InputError(
            f"{run.path}: one neuron is needed, trained by gradient descent on all samples"
        )
    starts = [
        Values(kind="values", hidden_weight=[a], output_weight=[b])
        for a, b in zip(w.tolist(), z, strict=True)
    ]
    problems = [
        replace(problem, config=problem.config.model_copy(update={"initialization": start}))
        for start in starts
    ]
    stepper = build_stepper(problems, choose(problems))
    kept_w = []
    kept_z = []
    for iteration in snapshots:
        while stepper.iteration < iteration and not stepper.halted:
            stepper.advance(min(200, iteration - stepper.iteration))
        now = stepper.parameters()
        kept_w.append(now["hidden_weight"].reshape(w.shape))
        kept_z.append(now["output_weight"].reshape(z.shape))
    return Paths(np.asarray(snapshots) * step(run), np.array(kept_w), np.array(kept_z))


def over_time(
    title: str,
    ylabel: str,
    curves: Sequence[ModeCurve],
    key: str,
    end: float,
    *more: kit.Line,
    **words: Any,
) -> kit.Chart:
    """Return closed forms as lines and trained networks as dots until `end`; `key` is `y` or
    `P`.
    """
    lines = [TRAINED]
    for k, curve in enumerate(curves):
        at = np.arange(6 + 4 * k, len(curve.t), max(int((curve.t < end).sum()) // 8, 1))
        lines += [
            kit.line(curve.t, getattr(curve, f"{key}_theory"), curve.name, f"C{k}"),
            dots(curve.t, getattr(curve, key), at, f"C{k}"),
        ]
    words = {"xlabel": "time $t$", "limits_x": (0, end), **words}
    return kit.chart(title, ylabel, *lines, *more, **words)


def dots(x: kit.Floats, y: kit.Floats, at: kit.Ints, color: str) -> kit.Line:
    """Return values (K,) of a trained network in those of the states `at` that there are."""
    at = at[at < len(x)]
    return kit.line(x[at], y[at], look=f"{color} hollow")


TRAINED = kit.entry("trained", "theory hollow")
"""What the legend says of `dots`."""
