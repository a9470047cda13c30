"""What the figures of this paper look at in a trained network: modes and logits over time, beside the closed form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from dynamics_cli.errors import InputError
from dynamics_cli.measures.arrays import Floats, Ints
from dynamics_cli.runs import Run
from dynamics_cli.training.problem import build_problem
from dynamics_cli.training.steppers.compiled import CompiledStepper


@dataclass(frozen=True)
class Curve:
    """A trained mode and what theory says of it, at K times."""

    name: str
    t: Floats
    """(K,) learning rate times updates."""
    y: Floats
    """(K,) preactivation of the trained network, theory beside it."""
    y_theory: Floats
    P: Floats
    """(K,) confidence in the class (under the hinge loss the margin, which is what it trains to 1)."""
    P_theory: Floats

    @property
    def error(self) -> float:
        """Largest difference of the confidences over the whole curve."""
        return float(np.abs(self.P - self.P_theory).max())


def step(run: Run) -> float:
    """Return the learning rate."""
    return float(run.config.optimizer.lr)  # type: ignore[union-attr]


def times(run: Run) -> Floats:
    """Return the time of every snapshot, (K,)."""
    return np.asarray(run.snapshot_iterations, dtype=np.float64) * step(run)


def layers(run: Run) -> list[Floats]:
    """Return the weights of every layer over time, `(K, rows, columns)`; the last of one output has one row."""
    parameters = {name: np.asarray(value, dtype=np.float64) for name, value in run.parameters.items()}
    if "hidden_weight" in parameters:
        return [parameters["hidden_weight"], parameters["output_weight"][:, None, :]]
    count = len(parameters)
    if set(parameters) != {f"weight_{k}" for k in range(1, count + 1)}:
        raise InputError(f"{run.path}: the figures of tachet2018 need a network without biases")
    return [parameters[f"weight_{k}"] for k in range(1, count + 1)]


def outputs(run: Run, x: Floats) -> Floats:
    """Return the outputs at every snapshot on `x (n, d)`: (K, n), or (K, n, C) for C classes."""
    *hidden, last = layers(run)
    values = np.broadcast_to(x.T, (len(last), *x.T.shape))  # (K, d, n)
    for weight in hidden:
        values = np.maximum(weight @ values, 0.0)
    result = last @ values  # (K, C, n)
    return np.asarray(result[:, 0]) if result.shape[1] == 1 else np.swapaxes(result, 1, 2)


def preactivations(run: Run, x: Floats) -> Floats:
    """Return `W x` of the first layer at every snapshot, (K, n, h)."""
    return np.asarray(x @ np.swapaxes(layers(run)[0], 1, 2))


def one_point(run: Run, label: int) -> tuple[Floats, float, float]:
    """Return the single vector of a class, its norm and its rate `p`; raises InputError when it has several."""
    dataset = run.dataset()
    members = dataset.x[dataset.y == label]
    points = np.unique(members, axis=0)
    if len(points) != 1:
        raise InputError(f"{run.path}: class {label} needs a single vector, repeated as often as you like")
    summed = run.config.loss.reduction == "sum"
    share = float(len(members)) if summed else len(members) / dataset.n
    return points[0], float(np.linalg.norm(points[0])), share


def confidence(run: Run, x: Floats, label: int) -> Floats:
    """Return the probability of class `label` on `x (d,)` over time, (K,); the margin under the hinge loss."""
    margin = label * outputs(run, x[None])[:, 0]
    return margin if run.config.loss.kind == "hinge" else np.asarray(expit(margin))


def order(coarse: float, fine: float, steps: tuple[float, float]) -> float:
    """Return the power of the step with which an error shrinks, from two of them; NaN when they do not tell."""
    if min(coarse, fine) <= 0 or steps[0] == steps[1]:
        return float("nan")
    return float(np.log(coarse / fine) / np.log(steps[0] / steps[1]))


def crossing(t: Floats, values: Floats, level: float) -> float:
    """Return when a curve first reaches `level`, interpolated; infinity when it does not."""
    above = values >= level
    if not above.any():
        return float("inf")
    k = int(np.argmax(above))
    if k == 0:
        return float(t[0])
    return float(np.interp(level, values[k - 1 : k + 1], t[k - 1 : k + 1]))


def pattern_changes(run: Run) -> int:
    """Count, over all snapshots, points and neurons, changes of activity, and changes of sign of output weights."""
    active = preactivations(run, run.dataset().x) > 0
    signs = np.sign(layers(run)[-1])
    return int((active != active[0]).sum() + (signs != signs[0]).sum())


@dataclass(frozen=True)
class Paths:
    """R networks of a single neuron trained side by side, at K times."""

    t: Floats
    """(K,)"""
    w: Floats
    """(K, R, d)"""
    z: Floats
    """(K, R)"""


def train_together(run: Run, w: Floats, z: Floats, *, snapshots: Sequence[int] | Ints) -> Paths:
    """Train the network of a run of one neuron again from other starts `w (R, d)`, `z (R,)`, all at once.

    `snapshots` are the updates after which the weights are kept, ascending. Raises InputError for wider networks.
    """
    problem = build_problem(run.config)
    if problem.shapes["hidden_weight"][0] != 1:
        raise InputError(f"{run.path}: one neuron is needed")
    stepper = CompiledStepper([problem] * len(w))
    stepper.write(w[:, None, :], z[:, None])
    kept_w, kept_z = [], []
    for iteration in snapshots:
        while stepper.iteration < iteration and not stepper.halted:
            stepper.advance(min(200, iteration - stepper.iteration))
        hidden, output = stepper.read()
        kept_w.append(hidden[:, 0])
        kept_z.append(output[:, 0])
    return Paths(np.asarray(snapshots) * step(run), np.array(kept_w), np.array(kept_z))
