"""Figures 12 and 13: changes in norms and in directions at the end of every epoch (Appendix A.5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure as Drawing

from dynamics_cli.measures.arrays import Floats, Ints
from dynamics_cli.measures.motion import motion
from dynamics_cli.plotting.layout import figure_legend
from dynamics_cli.plotting.style import PALETTE, SERIES, new_figure, styled
from dynamics_cli.plotting.time_axis import draw_curve, set_time_axis
from dynamics_cli.reproduction.figure import Runs

from .shared import first_at, read_states


@dataclass(frozen=True)
class Evidence:
    """Measures of the full data at epochs (E,)."""

    epochs: Ints
    loss: Floats
    norms: Floats
    """`sum_j d/dt ||w_j||^2`."""
    directions: Floats
    """`sum_j || d/dt w_j/||w_j|| ||`."""
    updates: int
    """Updates an epoch."""

    def peak(self, values: Floats) -> float:
        """Return the epoch at which values (E,) are largest, epoch 0 apart."""
        return float(self.epochs[1 + int(np.argmax(values[1:]))])

    def below(self, level: float) -> float:
        """Return the first epoch with a loss below a level."""
        return first_at(self.epochs, self.loss < level)

    def at(self, values: Floats, epoch: float) -> float:
        """Return the value nearest to an epoch."""
        return float(values[np.argmin(np.abs(self.epochs - epoch))])


def evidence(runs: Runs) -> Evidence:
    """Measure the full gradient at every recorded epoch."""
    run = runs["sgd"]
    states = read_states(run)
    loss = run.config.loss
    batch = getattr(run.config.optimizer, "batch_size", None) or len(states.x)
    updates = -(-len(states.x) // batch)
    x = states.x.astype(np.float32)
    values = np.array([motion(x, states.y, W, v, loss) for W, v in zip(states.W, states.v, strict=True)])
    return Evidence(states.iterations // updates, values[:, 0], values[:, 1], values[:, 2], updates)


@styled
def draw_motion(found: Evidence) -> Drawing:
    """Draw the loss (left axis), and both changes (right axes), leaving out epoch 0."""
    figure, (axes,) = new_figure(1, width=4.6, aspect=0.6, extra_height=0.2)
    epochs, kept = found.epochs[1:], slice(1, None)
    right, far = axes.twinx(), axes.twinx()
    far.spines["right"].set_position(("axes", 1.17))
    lines = []
    series = (
        (axes, found.loss, "loss", PALETTE.measured, "-"),
        (right, found.norms, "changes in neuron norms", PALETTE.rank, "--"),
        (far, found.directions, "changes in neuron directions", SERIES[2], "-."),
    )
    for where, values, label, color, style in series:
        lines.append(draw_curve(where, epochs, values[kept], color=color, ls=style, label=label))
        where.set_ylabel(label, color=color)
        where.tick_params(axis="y", colors=color)
        top, low = float(values[kept].max()), float(values[kept].min())
        where.set_ylim(min(0.0, 1.1 * low), 1.08 * top)
    for extra in (right, far):
        extra.spines["right"].set_visible(True)
    set_time_axis(axes, epochs, label="epoch")
    figure_legend(figure, lines, columns=3)
    return figure
