"""What the figures of this paper look at in a run: its data, and the network at the iterations that a caption names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.config.optimizer import GradientFlow
from dynamics_cli.errors import InputError
from dynamics_cli.measures.neurons import kinks, norms, signs
from dynamics_cli.runs import Run

Floats = NDArray[np.float64]

LOSS_FACTOR = 2.0
"""The released code minimises 1/n sum (h - y)^2, twice the loss of Eq. 1."""


@dataclass(frozen=True)
class State:
    """The network after `iteration` updates, in float64."""

    iteration: int
    W: Floats
    """(m, d) hidden weights, the bias as last column where there is one."""
    a: Floats
    """(m,) output weights."""
    h: Floats
    """(n,) outputs on the data."""
    norms: Floats
    """(m,) `||w_j||`."""
    signs: Floats
    """(m,) signs of the output weights now."""


@dataclass(frozen=True)
class LineState(State):
    """A state of a network of one input and a bias: what the panels of Figures 2, 4 and 5 show."""

    kinks: Floats
    """(m,) `-w_{j,2} / w_{j,1}`."""
    outputs: Floats
    """(m,) `s_j ||w_j||`."""
    function: Callable[[Floats], Floats]
    """Inputs (k,) -> outputs (k,)."""


def state_at(run: Run, iteration: int) -> State:
    """Return the recorded state nearest to an iteration.

    Raises InputError when the network is not a two-layer one.
    """
    i = run.index_of(iteration)
    parameters = run.state(i)
    if set(parameters) != {"hidden_weight", "output_weight"}:
        raise InputError(f"{run.path}: the figures of boursier2022 need architecture.kind two_layer")
    W, a = (parameters[name].astype(np.float64) for name in ("hidden_weight", "output_weight"))
    h = run.network(i)(run.dataset().x)
    return State(int(run.snapshot_iterations[i]), W, a, h, norms(W), signs(a))


def states_at(run: Run, iterations: Sequence[int]) -> list[State]:
    """Return the recorded states nearest to several iterations."""
    return [state_at(run, iteration) for iteration in iterations]


def line_state(run: Run, iteration: int) -> LineState:
    """Return the recorded state of a network of one input and a bias nearest to an iteration.

    Raises InputError when the inputs are others.
    """
    state = state_at(run, iteration)
    if state.W.shape[1] != 2 or not run.dataset().bias:
        raise InputError(f"{run.path}: this figure needs one input and a bias (dataset.append_bias: true)")
    network = run.network(run.index_of(iteration))

    def function(x: Floats) -> Floats:
        return np.asarray(network(np.column_stack([x, np.ones_like(x)])), dtype=np.float64)

    return LineState(**vars(state), kinks=kinks(state.W), outputs=state.signs * state.norms, function=function)


def initial_scale(run: Run) -> float:
    """Return lambda, the standard deviation of the initial hidden weights (Eq. 4).

    From the config where it says so, else the root mean square of the recorded weights.
    """
    section, dataset = run.config.initialization, run.dataset()
    m = getattr(run.config.architecture, "width", 1)
    divisors = {
        "none": 1,
        "sqrt_width": m,
        "sqrt_dim": dataset.input_dim,
        "sqrt_width_times_dim": m * dataset.input_dim,
    }
    scale, divide_by = getattr(section, "scale", None), getattr(section, "divide_by", None)
    if scale is not None and divide_by in divisors:
        return float(scale / np.sqrt(divisors[divide_by]))
    W = state_at(run, 0).W
    largest = np.abs(W).max()
    return float(largest * np.sqrt(np.mean((W / largest) ** 2)))


def learning_rate(run: Run) -> float:
    """Return the step, which turns iterations into times of gradient flow; along the flow, the time between states."""
    optimizer = run.config.optimizer
    return optimizer.until / optimizer.points if isinstance(optimizer, GradientFlow) else optimizer.lr


def minimum_over(values: Floats) -> float:
    """Return the smallest value, NaN when there is none (an assumption that says there is one is violated)."""
    return float(values.min()) if values.size else float("nan")
