"""Figures 12 and 13: changes in norms and in directions under SGD, at the ends of epochs (Appendix
A.5).

`--preset full` takes all 12 665 images in batches of 2 000.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit
from dynamics_cli.gradients.derivatives import derivatives_of
from dynamics_cli.kinds import State
from dynamics_cli.training.problem import build_problem

from .theory.cones import centres
from .theory.motion import motion

BOTH = ("architecture.train_output=true", "initialization.output_value=null")
"""Changes that train both layers."""
FULL = ("dataset.source=full", "optimizer.batch_size=2000")


@dataclass(frozen=True)
class Evidence:
    """Loss and changes at the ends of epochs, each (E,).

    `growth` (E,) is the rate of the logarithm of the norm of W, over `|x_+| / n`.
    """

    epochs: kit.Ints
    loss: kit.Floats
    norms: kit.Floats
    directions: kit.Floats
    growth: kit.Floats


def evidence(runs: kit.Runs) -> Evidence:
    """Measure loss, `sum_j d/dt ||w_j||^2` and `sum_j || d/dt w_j/||w_j|| ||` of all data at
    epochs, each (E,).
    """
    run = runs["sgd"]
    problem = build_problem(run.config, run.dataset())
    first = run.state(0)
    changes = []
    growth = []
    trained = "hidden_weight" in (run.config.architecture.train or problem.shapes)
    for k in range(len(run.snapshot_iterations)):
        state = State(problem, run.state(k), lambda: first, 0)
        W = state.parameters["hidden_weight"].astype(np.float64)
        gradient = np.zeros_like(W)  # of weights that are not trained
        if trained:
            gradient = derivatives_of(state).gradient()[: W.size].reshape(W.shape)
        changes.append(motion(W, gradient))
        growth.append(changes[-1][0] / (2 * np.sum(W**2)))
    norms, directions = np.array(changes).T
    loss = run.losses[np.searchsorted(run.loss_iterations, run.snapshot_iterations)]
    epochs = run.snapshot_iterations // problem.steps_per_epoch
    data = run.dataset()
    x_plus, _ = centres(data.x, data.y)
    return Evidence(
        epochs,
        loss,
        norms,
        directions,
        growth=np.array(growth) * data.n / np.linalg.norm(x_plus),
    )


def _peak(e: Evidence, values: kit.Floats) -> float:
    """Return the epoch at which values (E,) are largest, epoch 0 apart."""
    return float(e.epochs[1 + int(np.argmax(values[1:]))])


def claims_fig12(e: Evidence) -> list[kit.Claim]:
    """Compare the order of events with the caption of Figure 12 and Appendix A.5: two phases."""
    turned = _peak(e, e.directions)
    grew = _peak(e, e.norms)
    first_below = kit.first_at(e.epochs, e.loss < 0.99)
    before = max(turned, 1.0)  # a run of one step has no epoch behind it
    norms = abs(kit.value_at(e.epochs, e.norms, turned)) / e.norms[1:].max()
    directions = kit.value_at(e.epochs, e.directions, grew) / e.directions[1:].max()
    return [
        kit.claim(
            "order",
            "Directions change first, norms later (epoch of the largest change in norms over that"
            " in directions)",
            "Figure 12, Appendix A.5",
            kit.more_than(1.0),
            kit.given(np.isfinite(first_below), grew / before),
        ),
        kit.claim(
            "norms-rest",
            "In the early phase norms do not grow (their change when directions change most, over "
            "its largest)",
            "Figure 12 (caption); less than 1 % is our reading of do not grow",
            kit.less_than(0.01),
            kit.given(np.isfinite(first_below), norms),
        ),
        kit.claim(
            "directions-rest",
            "In the second stage norms grow (change in directions when norms change most, "
            "over its largest)",
            "Figure 12; less than a tenth is our reading of the figure",
            kit.less_than(0.1),
            directions,
        ),
        kit.claim(
            "loss-late",
            "In the second stage the loss starts to decrease (epoch of a loss of 0.99 over the "
            "epoch of fastest turns)",
            "Figure 12 (caption)",
            kit.more_than(1.0),
            first_below / before,
        ),
        kit.claim(
            "growth",
            "Neurons grow by the data of their own label alone (rate of their norms at a loss of "
            "0.99, over |x+| / n)",
            "Section 3.1, Final convergence; Eq. 13",
            kit.around(1.0),
            kit.given(np.isfinite(first_below), kit.value_at(e.epochs, e.growth, first_below)),
        ),
    ]


def claims_fig13(e: Evidence) -> list[kit.Claim]:
    """Compare with the caption of Figure 13: one phase."""
    decayed = all(values[-1] < values[1] / 2 for values in (e.norms, e.directions))
    return [
        kit.claim(
            "norms-first",
            "There is no phase in which only directions change: norms change most in the first "
            "epoch shown",
            "Figure 13",
            kit.exactly(1),
            kit.given(decayed, _peak(e, e.norms)),
        ),
        kit.claim(
            "directions-first",
            "There is no alignment phase: directions change most in the first epoch shown",
            "Figure 13",
            kit.exactly(1),
            kit.given(decayed, _peak(e, e.directions)),
        ),
        kit.claim(
            "together",
            "Both decay together (correlation of the two curves)",
            "Figure 13; 0.9 is our reading of together",
            kit.at_least(0.9),
            kit.given(decayed, np.corrcoef(e.norms[1:], e.directions[1:])[0, 1]),
        ),
    ]


def draw(e: Evidence) -> kit.Drawing:
    figure, (axes,) = kit.new_figure(1, width=4.6, aspect=0.6, extra_height=0.2)
    epochs = e.epochs[1:]
    kept = slice(1, None)
    right = axes.twinx()
    lines = []
    series = (
        (axes, e.loss, "loss", kit.PALETTE.measured, "-"),
        (axes, e.norms, "changes in neuron norms", kit.PALETTE.rank, "--"),
        (right, e.directions, "changes in neuron directions", "C2", "-."),
    )
    for where, values, label, color, style in series:
        lines.append(
            kit.draw_curve(where, epochs, values[kept], color=color, ls=style, label=label)
        )
    axes.set_ylabel("loss, changes in neuron norms")
    axes.set_ylim(min(0.0, 1.1 * float(e.norms[kept].min())), None)
    right.set_ylabel("changes in neuron directions", color="C2")
    right.tick_params(axis="y", colors="C2")
    right.set_ylim(0.0, 1.08 * float(e.directions[kept].max()))
    right.spines["right"].set_visible(True)
    kit.set_time_axis(axes, epochs, label="epoch")
    kit.figure_legend(figure, lines, columns=3)
    return figure


FIGURES = kit.by_id(
    kit.Figure(
        id="min2024-fig12",
        caption=(
            "Loss, changes in neuron norms and changes in neuron directions of the full gradient at"
            " the end of every second epoch: first only directions change, then norms grow and the"
            " loss decreases."
        ),
        configs={"sgd": "min2024/sgd_both.yaml"},
        presets={"full": {"sgd": kit.Wanted("min2024/sgd_both.yaml", FULL)}},
        passes={
            "linear": {
                "order *-rest loss-late": (
                    "From a small start linear networks turn before they grow too."
                )
            }
        },
    ),
    kit.Figure(
        id="min2024-fig13",
        caption=(
            "The quantities of Figure 12 with output weights fixed at 1 or -1: both decay together"
            " from the first epoch on. Epoch 0 is left out, where directions of weights of size"
            " 1e-6 change at a rate of millions."
        ),
        configs={"sgd": "min2024/sgd_first.yaml"},
        presets={"full": {"sgd": kit.Wanted("min2024/sgd_first.yaml", FULL)}},
        nulls={"both_layers": BOTH},
        passes={
            "linear": {
                "norms-first directions-first together": (
                    "Fixed output weights take the phases from linear networks too."
                ),
            },
        },
    ),
)
