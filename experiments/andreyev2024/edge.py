"""SGD at the edge of stochastic stability: batch sharpness, not sharpness, stays at 2/eta; a
doubled step throws it off.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics_cli import kit

CONFIG = "andreyev2024/sgd.yaml"
IMAGES = 500
WINDOW = (1e-3, 0.1)
"""Losses between which a run is at the edge: before, curvature still rises; after, the labels are
fitted.
"""
PRINTED = {8: 34.21, 64: 190.21, 256: 215.90, 1024: 216.54}
"""Batch -> median sharpness from update 100 000 on in the released logs; 2/eta is 200 there."""
PRINTED_EDGE = 200.0
READ_8 = kit.Interval(0.95, 1.15)
READ_16 = kit.Interval(0.9, 1.3)
"""Batch sharpness over 2/eta of batches of 8 and 16, read off the released pictures: 95 to 115 and
90 to 130 where 2/eta is 100.
"""
BATCHES = (8, 16, 32, 64, IMAGES)
FORK = 1500
"""Updates before the step is doubled."""
AFTER = 200
"""Updates within which the loss spikes."""


@dataclass(frozen=True)
class Trained:
    """A network along its training; `sharpness` and `batch` are over `2 / eta` of the first step.

    `inside` (K,) are the records whose loss is in `WINDOW`. `top` and `edge` are the medians of
    sharpness and batch sharpness there, NaN where there is no such record.
    """

    at: kit.Ints
    sharpness: kit.Floats
    batch: kit.Floats
    inside: kit.Bools
    steps: kit.Ints
    losses: kit.Floats
    top: float
    edge: float


def median(values: kit.Floats) -> float:
    """Return the median, and NaN of no values."""
    return float(np.median(values)) if len(values) else np.nan


def trained(run: kit.Run) -> Trained:
    """Read a run that recorded both measures."""
    optimizer: Any = run.config.optimizer
    at = run.snapshot_iterations
    sharpness, batch = (
        run.measures[name].reshape(len(at), -1)[:, 0] * optimizer.lr / 2
        for name in ("sharpness", "batch_sharpness")
    )
    losses = np.interp(at, run.loss_iterations, run.losses)
    low, high = WINDOW
    inside = (losses >= low) & (losses <= high)
    return Trained(
        at=at,
        sharpness=sharpness,
        batch=batch,
        inside=inside,
        steps=run.loss_iterations,
        losses=run.losses,
        top=median(sharpness[inside]),
        edge=median(batch[inside]),
    )


Evidence = dict[int, Trained]
"""Samples of a batch -> the network."""


def evidence(runs: kit.Runs) -> Evidence:
    """Read the runs of several sizes of batches."""
    return {int(role): trained(run) for role, run in runs.items()}


def claims_edge(e: Evidence) -> list[kit.Claim]:
    """Compare with the released pictures, and the full batch with the released logs."""
    full = e[IMAGES]
    return [
        *[
            kit.claim(
                f"edge-{b}",
                f"Batches of {b}: batch sharpness stays at the edge (median over $2/\\eta$)",
                f"released picture, batches of {b}: its least and its largest after the rise",
                expected,
                e[b].edge,
            )
            for b, expected in ((8, READ_8), (16, READ_16))
        ],
        kit.claim(
            "below",
            "Batches of 8: where batch sharpness is at the edge, sharpness stays far below, at less"
            r" than half of $2/\eta$ (median over it)",
            "released logs, batches of 8: 34.2 of 200; picture: 35 of 100",
            kit.less_than(0.5),
            kit.given(READ_8.holds(e[8].edge), e[8].top),
        ),
        kit.claim(
            "full-batch",
            r"All images in a batch: sharpness is at $2/\eta$, or just above (median over it)",
            "released logs, batches of 1024: 216.5 of 200",
            kit.around(PRINTED[1024] / PRINTED_EDGE),
            full.top,
        ),
        kit.claim(
            "rayleigh",
            "All images in a batch: batch sharpness is at most the sharpness (largest ratio)",
            "definitions: a Rayleigh quotient of the Hessian; within 1 %, since iterations for the"
            " sharpness end",
            kit.at_most(1.01),
            np.max(full.batch / full.sharpness),
            always="The largest eigenvalue bounds every Rayleigh quotient, in any state.",
        ),
    ]


def numbers_edge(e: Evidence) -> dict[str, float]:
    """Return the level of the sharpness for batches of 8, and where training began."""
    return {
        "sharpness of batches of 8 over 2/eta (released logs: 0.171)": e[8].top,
        "batch sharpness of batches of 8 over 2/eta at the start": float(e[8].batch[0]),
    }


def draw_edge(e: Evidence) -> kit.Drawing:
    figure, axes = kit.new_figure(len(e), 2, aspect=0.8, extra_height=0.2)
    for column, (b, run) in enumerate(e.items()):
        top = axes[column]
        loss = axes[len(e) + column]
        top.plot(run.at, run.batch, color=kit.PALETTE.measured, label="batch sharpness")
        top.plot(run.at, run.sharpness, color="C1", label="sharpness")
        top.axhline(1, color=kit.PALETTE.theory, ls=kit.DASHED, lw=0.8, label=r"$2/\eta$")
        top.set_ylim(0, 1.4)
        loss.semilogy(run.steps, run.losses, color="C2")
        for level in WINDOW:
            loss.axhline(level, color=kit.PALETTE.muted, ls=":", lw=0.8)
        loss.set_ylim(5e-5, 3)
        for panel in (top, loss):
            kit.set_time_axis(panel, run.at)
            panel.set_xlim(0, 1.1 * run.at[-1])  # room for the last tick's label
        kit.panel_label(top, column, "Full batch" if b == IMAGES else f"Batches of {b}")
    axes[0].set_ylabel(r"curvature $\times\ \eta/2$")
    axes[len(e)].set_ylabel("training loss")
    kit.figure_legend(figure, kit.labelled(axes[0]))
    return figure


def claims_batches(e: Evidence) -> list[kit.Claim]:
    """Compare the levels of several sizes of batches with README and logs of the release."""
    levels = np.array([run.top for run in e.values()])
    edges = np.array([run.edge for run in e.values()])
    return [
        kit.claim(
            "higher",
            "The larger the batch, the higher the level of the sharpness (rises from 8 to 16, to "
            "32, to 64)",
            "README of the released code",
            kit.exactly(3),
            np.sum(np.diff(levels[:4]) > 0),
        ),
        kit.claim(
            "ratio",
            "Sharpness of batches of 64 is far above that of batches of 8 (ratio; more than two, "
            "our reading of far)",
            "released logs: 5.6",
            kit.more_than(2),
            e[64].top / e[8].top,
        ),
        kit.claim(
            "any-batch",
            r"Batch sharpness stays at $2/\eta$ whatever the batch (median over it, the farthest "
            "from 1)",
            "title and README of the released code",
            kit.around(1),
            edges[np.argmax(np.abs(edges - 1))] if np.isfinite(edges).all() else np.nan,
        ),
    ]


def numbers_batches(e: Evidence) -> dict[str, float]:
    """Return both levels of each size of batches."""
    return {
        f"{name} of batches of {b} over 2/eta": level
        for b, run in e.items()
        for name, level in (("sharpness", run.top), ("batch sharpness", run.edge))
    }


def draw_batches(e: Evidence) -> kit.Drawing:
    figure, (left, right) = kit.new_figure(2, aspect=0.8, extra_height=0.2)
    b = list(e)
    left.plot(b, [run.edge for run in e.values()], "s-", color="C0", label="batch sharpness")
    left.plot(b, [run.top for run in e.values()], "o-", color="C1", label="sharpness")
    left.set_xlabel("samples of a batch, of 500")
    right.plot(
        list(PRINTED),
        [level / PRINTED_EDGE for level in PRINTED.values()],
        "o-",
        color="C1",
        label="sharpness, printed",
    )
    right.set_xlabel("samples of a batch, of 8192")
    for panel in (left, right):
        panel.axhline(1, color=kit.PALETTE.theory, ls=kit.DASHED, lw=0.8, label=r"$2/\eta$")
        panel.set(xscale="log", ylim=(0, 1.3), ylabel=r"median $\times\ \eta/2$")
        kit.place_legend(panel, kit.labelled(panel), "below", columns=3)
    kit.panel_labels((left, right), "Here: MNIST", "Released logs: CIFAR-10")
    return figure


@dataclass(frozen=True)
class Doubled:
    """Three runs by role, and what the doubling of the step did.

    `spike` is the largest loss within `AFTER` updates of it over that of the run whose step stays,
    `quiet` the same of the small step over the loss at the doubling. `settled` is the median of
    batch sharpness later over the bound of the new step, `stable` the sharpness at the doubling
    over it, and `room` batch sharpness of the small step at the doubling over its new bound.
    """

    runs: dict[str, Trained]
    spike: float
    settled: float
    stable: float
    quiet: float
    room: float


def evidence_doubled(runs: kit.Runs) -> Doubled:
    """Read the runs around the update at which two of them double their steps."""
    e = {role: trained(run) for role, run in runs.items()}

    def largest(role: str) -> float:
        steps = e[role].steps
        near = (steps > FORK) & (steps <= FORK + AFTER)
        return float(e[role].losses[near].max()) if near.any() else np.nan

    def at_fork(role: str, values: kit.Floats, iterations: kit.Ints) -> float:
        return kit.value_at(iterations, values, FORK) if iterations[-1] > FORK else np.nan

    doubled = e["doubled"]
    small = e["small step"]
    return Doubled(
        runs=e,
        spike=largest("doubled") / largest("unchanged"),
        settled=2 * median(doubled.batch[doubled.at >= FORK + AFTER]),
        stable=2 * at_fork("doubled", doubled.sharpness, doubled.at),
        quiet=largest("small step") / at_fork("small step", small.losses, small.steps),
        room=2 * at_fork("small step", small.batch, small.at),
    )


def claims_doubled(e: Doubled) -> list[kit.Claim]:
    """Compare with the test of the release: a doubled step, with all else kept."""
    source = "README of the released code, checkpoint perturbations"
    spiked = e.spike > 3
    return [
        kit.claim(
            "spike",
            f"At the edge a doubled step makes the loss spike within {AFTER} updates (its largest "
            "over that of the same updates with the old step; three is our reading of a spike)",
            source,
            kit.more_than(3),
            e.spike,
        ),
        kit.claim(
            "not-by-sharpness",
            "It does though sharpness is below the bound of the doubled step, where gradient "
            r"descent would be stable (sharpness at the doubling over $2/\eta$ of the new step)",
            "title; stability of gradient descent",
            kit.less_than(1),
            kit.given(spiked, e.stable),
        ),
        kit.claim(
            "new-edge",
            "After it batch sharpness stays at the bound of the new step (median from "
            rf"{AFTER} updates later over $2/\eta$ of the new step)",
            "README of the released code; released picture, batches of 16",
            READ_16,
            kit.given(spiked, e.settled),
        ),
        kit.claim(
            "no-spike",
            r"Below the edge it makes none: of a tenth of the step, whose batch sharpness is below "
            r"$2/\eta$ of the new step (largest loss of the updates after over that before)",
            source,
            kit.less_than(3),
            kit.given(spiked and e.room < 1, e.quiet),
        ),
    ]


def draw_doubled(e: Doubled) -> kit.Drawing:
    figure, (loss, edge) = kit.new_figure(2, aspect=0.85, extra_height=0.2)
    colors = {"unchanged": "C0", "doubled": "C1", "small step": "C2"}
    for role, run in e.runs.items():
        loss.semilogy(run.steps, run.losses, color=colors[role], lw=0.9, label=role)
        edge.plot(run.at, run.batch, color=colors[role], lw=0.9)
    edge.axhline(1, color=kit.PALETTE.theory, ls=kit.DASHED, lw=0.8)
    edge.plot(
        [FORK, e.runs["doubled"].at[-1]], [0.5, 0.5], color=kit.PALETTE.theory, ls=":", lw=1.0
    )
    for panel in (loss, edge):
        panel.axvline(FORK, color=kit.PALETTE.muted, ls=":", lw=0.8)
        kit.set_time_axis(panel, e.runs["doubled"].at)
    loss.set_ylabel("training loss")
    edge.set(ylabel=r"batch sharpness $\times\ \eta/2$", ylim=(0, 1.4))
    kit.panel_labels((loss, edge), "Loss", "Batch sharpness")
    kit.figure_legend(figure, kit.labelled(loss))
    return figure


def _of_batches(*batches: int) -> dict[str, kit.Wanted]:
    """Return a run of each size; batch sharpness is of that size under every null too."""
    return {
        str(b): kit.Wanted(
            CONFIG,
            (
                f"optimizer.batch_size={b}",
                "record.measures=[sharpness, {kind: batch_sharpness, batches: 30,"
                f" batch_size: {b}}}]",
            ),
        )
        for b in batches
    }


DOUBLE = f"optimizer.schedule={{kind: step, every: {FORK}, gamma: 2.0}}"
LONGER = (
    "optimizer.iterations=2500",
    "record.loss_every=5",
)
FULL = {"full_batch": (f"optimizer.batch_size={IMAGES}",)}
FIGURES = kit.by_id(
    kit.Figure(
        id="andreyev2024-edge",
        caption=(
            "Batch sharpness and sharpness over 2/eta, and the loss, of networks trained by SGD"
            " with batches of 8 and 16 and by gradient descent on 500 images with permuted labels."
            " Dotted: the losses between which medians are taken."
        ),
        configs=_of_batches(8, 16, IMAGES),
        nulls=FULL,
        passes={
            "full_batch": {"full-batch": "It is about gradient descent, which this null leaves."}
        },
    ),
    kit.Figure(
        id="andreyev2024-batches",
        caption=(
            "Median sharpness and batch sharpness at the edge against the samples of a batch, and"
            " the sharpness that the released logs print for another network and data."
        ),
        configs=_of_batches(*BATCHES),
        nulls=FULL,
    ),
    kit.Figure(
        id="andreyev2024-doubled",
        caption=(
            "Batches of 16: loss, and batch sharpness over 2/eta of the run's first step, when the"
            " step is doubled (dotted vertical line) or not, and when a tenth of the step is."
            " Dashed: 2/eta; dotted: that of the doubled step."
        ),
        configs={
            "unchanged": kit.Wanted(CONFIG, LONGER),
            "doubled": kit.Wanted(CONFIG, (*LONGER, DOUBLE)),
            "small step": kit.Wanted(CONFIG, (*LONGER, DOUBLE, "optimizer.lr=0.02")),
        },
        nulls={"unchanged": ("optimizer.schedule=null",)},
    ),
)
