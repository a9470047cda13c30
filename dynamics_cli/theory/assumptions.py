"""What theories of gradient flow assume of a run: squared loss, plain flow, small steps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.kinds import State
from dynamics_cli.measures.arrays import Floats
from dynamics_cli.recording.curvature import Sharpness
from dynamics_cli.training.problem import build_problem

SMALL = 0.2
"""Largest `lr x curvature` that counts as a small step: a step contracts too much by twice this
share.
"""
MET = 5
"""States at which the curvature is taken, evenly spread."""


def times_of(run: Any, iterations: ArrayLike) -> Floats:
    """Return the times (K,) at `iterations` (K,): iterations x step, or by the run's clock."""
    steps = np.asarray(iterations, np.float64)
    if run.times is None:
        return steps * float(getattr(run.config.optimizer, "lr", 1.0))
    return np.asarray(np.interp(steps, run.loss_iterations, run.times))


def loss_factor(run: Any) -> float:
    """Return c of the loss `c / (2n) sum_k ||h(x_k) - y_k||^2`; times n for sums.

    Raises ValueError for another loss.
    """
    loss = run.config.loss
    if loss.square is None:
        raise ValueError(f"the loss is not squared, but {loss.kind}")
    n: int = run.dataset().n
    return float(loss.square * loss.sample_weight(n) * n)


def is_relu_network(architecture: Any) -> bool:
    """Return whether a network has one hidden layer of ReLUs and one output."""
    return bool(architecture.two_layer and architecture.sigma.negative_slope == 0)


def plain_violations(architecture: Any) -> list[str]:
    """Return that parts of a network are frozen, scaled or subtracted, if they are."""
    if architecture.plain:
        return []
    return ["all weights are trained, and the output is neither scaled nor centred"]


def largest_step(run: Any, states: int = MET) -> float:
    """Return the largest `lr x curvature`, the Hessian's largest eigenvalue, of some states.

    They are the first `states` of `MET` states, which are evenly spread over the recorded states;
    of a schedule the step of each is the largest between its neighbours, of the last up to the end
    of the run. States whose weights are not finite do not count.
    """
    problem = build_problem(run.config, run.dataset())
    steps = run.snapshot_iterations
    first = run.state(0)
    largest = 0.0
    chosen = np.unique(np.linspace(0, len(steps) - 1, MET).astype(int))
    varied = getattr(run.config.optimizer, "schedule", None) is not None
    for k, i in enumerate(chosen[:states]):
        weights = run.state(i)
        if not all(np.isfinite(weight).all() for weight in weights.values()):
            continue
        before = max(int(steps[i]) - 1, 0)
        after = before + 1
        if varied:
            before = int(steps[chosen[max(k - 1, 0)]])
            following = k + 1
            if following >= min(states, len(chosen)):
                following = -1
            after = int(steps[chosen[following]])
        times = times_of(run, np.arange(before, after + 1))
        time = float(np.diff(times).max(initial=0.0))
        with np.errstate(over="ignore", invalid="ignore"):  # of a run that diverges
            curvature = float(Sharpness().measure(State(problem, weights, lambda: first, 0)))
        largest = max(largest, time * curvature)
    return largest


def flow_violations(run: Any, *, squared: bool = True, states: int = MET) -> list[str]:
    """Return where a run is not gradient flow of a squared loss; steps are checked at `states`."""
    violations = []
    loss = run.config.loss
    optimizer = run.config.optimizer
    if squared and loss.square is None:
        violations.append(f"the loss is squared: loss.kind is {loss.kind}")
    violations += descent_violations(
        run.config, "training follows gradient flow", flow=True, batch=None
    )
    if states and optimizer.plain and (step := largest_step(run, states)) > SMALL:
        violations.append(f"steps are small: lr x curvature is {step:.3g}, more than {SMALL}")
    return violations


def descent_violations(
    config: Any, what: str, *, batch: int | None, flow: bool = False
) -> list[str]:
    """Return where a run is not trained by plain steps along batches of this size.

    With `flow`, gradient flow is allowed too. `what` names the training.
    """
    optimizer = config.optimizer
    violations = []
    if config.changes:
        violations.append(
            f"{what}: the run changes on the way, at iteration {config.changes[0].at}"
        )
    if not (optimizer.plain or (flow and optimizer.is_flow)):
        violations.append(f"{what}: optimizer.kind is {optimizer.kind}")
    if (size := getattr(optimizer, "batch_size", None)) != batch:
        violations.append(f"{what}: optimizer.batch_size is {size}")
    for key in ("momentum", "weight_decay", "layer_lr", "clip", "loss_scaled"):
        if value := getattr(optimizer, key, None):
            violations.append(f"{what}: optimizer.{key} is {value}")
    return violations
