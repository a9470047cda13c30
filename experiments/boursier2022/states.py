"""What the figures of this paper look at in a run: its data, and the network at the iterations that a caption names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.errors import InputError
from dynamics_cli.measures.neurons import kinks, norms, signs
from dynamics_cli.optimizers.gradient_flow import GradientFlow
from dynamics_cli.plotting.layout import format_number
from dynamics_cli.runs import Run

Floats = NDArray[np.float64]

LOSS_FACTOR = 2.0
"""The released code minimises 1/n sum (h - y)^2, twice the loss of Eq. 1."""
STEP = 1e-3
"""The step of all the paper's experiments. Time along gradient flow is counted in it, as iterations of descent."""
FLOW_TITLE, FLOW_CAPTION = (
    "on gradient flow",
    "Gradient flow itself: what is said of iteration k is measured at time k/1000.",
)
"""Of the variants of figures."""


@dataclass(frozen=True)
class State:
    """The network after `iteration` updates, in float64; along gradient flow at that many times `STEP`."""

    iteration: int
    when: str
    """How a panel says so: `it. 4 000`, or along gradient flow `$t = 4$`."""
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


def is_flow(run: Run) -> bool:
    """Return whether a run is gradient flow itself, not its approximation by descent."""
    return isinstance(run.config.optimizer, GradientFlow)


def clock(run: Run, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the iterations (k,) of the states with these numbers (k,); along gradient flow times over `STEP`."""
    optimizer = run.config.optimizer
    if isinstance(optimizer, GradientFlow):
        return np.rint(optimizer.times()[numbers] / STEP).astype(np.int64)
    return np.array(numbers)


def horizon(run: Run) -> int:
    """Return the iteration of the last state."""
    return int(clock(run, np.array([run.iterations]))[0])


def loss_curve(run: Run) -> tuple[NDArray[np.int64], Floats]:
    """Return iterations (k,) and losses (k,) there."""
    return clock(run, run.loss_iterations), np.array(run.losses)


def state_at(run: Run, iteration: int) -> State:
    """Return the recorded state nearest to an iteration.

    Raises InputError when the network is not a two-layer one.
    """
    i = nearest(run, iteration)
    parameters = run.state(i)
    if set(parameters) != {"hidden_weight", "output_weight"}:
        raise InputError(f"{run.path}: the figures of boursier2022 need architecture.kind two_layer")
    W, a = (parameters[name].astype(np.float64) for name in ("hidden_weight", "output_weight"))
    h = run.network(i)(run.dataset().x)
    reached = int(clock(run, run.snapshot_iterations)[i])
    return State(reached, time_text(reached, is_flow(run)), W, a, h, norms(W), signs(a))


def nearest(run: Run, iteration: int) -> int:
    """Return the number of the snapshot nearest to an iteration, the earlier of two."""
    return int(np.argmin(np.abs(clock(run, run.snapshot_iterations) - iteration)))


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
    network = run.network(nearest(run, iteration))

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
    """Return the step, which turns iterations into times of gradient flow."""
    optimizer = run.config.optimizer
    return STEP if isinstance(optimizer, GradientFlow) else optimizer.lr


def time_label(flow: bool) -> str:
    """Return how an axis of iterations is labelled; along gradient flow these are times over `STEP`."""
    return r"time $t\,/\,10^{-3}$" if flow else "iteration"


def time_text(iteration: float, flow: bool) -> str:
    """Return how a label names one iteration: `it. 4 000`, or along gradient flow `$t = 4$`."""
    return f"$t = {format_number(iteration * STEP)}$" if flow else f"it. {format_number(iteration)}"


def minimum_over(values: Floats) -> float:
    """Return the smallest value, NaN when there is none (an assumption that says there is one is violated)."""
    return float(values.min()) if values.size else float("nan")
