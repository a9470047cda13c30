"""Figure 5: five points, large initialisation: the lazy regime, beside the interpolator of the tangent kernel.

`dyn reproduce boursier2022-fig5`. About 2 s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure as Drawing

from dynamics_cli.measures.activation import changed_patterns
from dynamics_cli.measures.arrays import Floats
from dynamics_cli.measures.clusters import distinct_kinks
from dynamics_cli.measures.curves import Plateau, find_plateaus, first_below, orders_fallen
from dynamics_cli.measures.neurons import relative_movement
from dynamics_cli.plotting.panels.inputs import default_window
from dynamics_cli.reproduction.claims import Claim, at_least, at_most, claim, exactly, finding
from dynamics_cli.reproduction.figure import Figure, Runs
from dynamics_cli.theory.ntk import NtkRegression, ntk_regression

from .five_points import ORIGIN
from .line_panels import draw_states
from .states import LOSS_FACTOR, LineState, line_state

NEARLY = 0.1
""""Approximately" and "not significantly": within 10 %."""


@dataclass(frozen=True)
class Evidence:
    """The first and the last state, and kernel regression from the first."""

    x: Floats
    """(n,) inputs without the constant."""
    y: Floats
    first: LineState
    last: LineState
    kernel: NtkRegression
    movement: float
    """Median of `||w_j - w_j^0|| / ||w_j^0||`."""
    changed: float
    """Share of (point, neuron) pairs whose activation changed."""
    kinks: int
    """Distinct kinks within the range of the inputs."""
    distance: float
    """Root mean square of h - kernel interpolator over that of h - h at initialisation, over the range of inputs."""
    orders: float
    """Orders of magnitude by which the loss fell."""
    plateaus: list[Plateau]
    below: float
    """First iteration with a loss below 1e-3; NaN if none."""
    start: float
    """Loss at initialisation."""


def evidence(runs: Runs) -> Evidence:
    """Compare the last state with the first, and with the kernel's interpolator."""
    run = runs["large"]
    dataset = run.dataset()
    first, last = line_state(run, 0), line_state(run, run.iterations)
    x = dataset.x[:, 0]
    kernel = ntk_regression(dataset.x, dataset.y, first.W, first.a, loss_factor=LOSS_FACTOR)
    grid = np.linspace(x.min(), x.max(), 2001)
    end, start = last.function(grid), first.function(grid)
    iterations, losses = np.array(run.loss_iterations), np.array(run.losses)
    below = first_below(iterations, losses, 1e-3)
    return Evidence(
        x=x,
        y=dataset.y,
        first=first,
        last=last,
        kernel=kernel,
        movement=float(np.median(relative_movement(last.W, first.W))),
        changed=float(changed_patterns(dataset.x, last.W, first.W)),
        kinks=len(distinct_kinks(last.W, within=(float(x.min()), float(x.max())))),
        distance=float(np.sqrt(np.mean((end - predict(kernel, grid)) ** 2) / np.mean((end - start) ** 2))),
        orders=orders_fallen(losses),
        plateaus=find_plateaus(iterations, losses, floor=1e-4),
        below=float("nan") if below is None else float(below),
        start=float(losses[0]),
    )


def predict(kernel: NtkRegression, x: Floats) -> Floats:
    """Return the kernel's interpolator at inputs (k,) without the constant."""
    return kernel(np.column_stack([x, np.ones_like(x)]))


def claims(found: Evidence) -> list[Claim]:
    """Compare with Appendix A.1."""
    return [
        claim(
            "lazy",
            "Neurons do not move significantly (median relative movement of hidden weights)",
            "Appendix A.1, Figure 5",
            expected=at_most(NEARLY),
            measured=found.movement,
        ),
        claim(
            "kinks",
            "The final function is not as simple as for small initialisation (kinks between the inputs: tens)",
            "Appendix A.1, Figure 5(b)",
            expected=at_least(20),
            measured=found.kinks,
        ),
        claim(
            "loss",
            "The loss converges to 0 within 5000 iterations (orders of magnitude fallen)",
            "Appendix A.1, Figure 5(b)",
            expected=at_least(4),
            measured=found.orders,
        ),
        claim(
            "no-saddle",
            "The trajectory does not go through saddle points (plateaus of the loss)",
            "Appendix A.1",
            expected=exactly(0),
            measured=len(found.plateaus),
        ),
        claim(
            "kernel",
            "The final function is approximately the interpolator of the tangent kernel at initialisation "
            "(distance over that from the initial function)",
            "Appendix A.1",
            expected=at_most(NEARLY),
            measured=found.distance,
        ),
        finding(
            "patterns",
            "Share of (point, neuron) pairs whose activation changed",
            "Appendix A.1",
            measured=found.changed,
        ),
        finding("start", "Loss at initialisation, which the paper does not print", "Figure 5(a)", measured=found.start),
        finding("speed", "First iteration with a loss below 1e-3", "Appendix A.1", measured=found.below),
    ]


def draw(found: Evidence) -> Drawing:
    """Draw the first and the last state, and over the last one the kernel's interpolator."""
    return draw_states(
        [found.first, found.last],
        ["Initialisation", "End of training"],
        found.x,
        found.y,
        overlay=lambda x: predict(found.kernel, x),
        overlay_label="NTK interpolator",
        window=default_window(found.x),
    )


FIGURE = Figure(
    id="boursier2022-fig5",
    caption=(
        "As Figure 4, with initialisation scale 10: between the first and the last state the neurons hardly move. "
        "Dashed: the interpolator of the tangent kernel at initialisation."
    ),
    configs={"large": "boursier2022/five_points_large.yaml"},
    origin=ORIGIN,
    evidence=evidence,
    claims=claims,
    draw=draw,
)
