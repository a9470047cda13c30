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
READ_8 = kit.Interval(0.90, 1.15)
READ_16 = kit.Interval(0.86, 1.23)
"""Least and largest batch sharpness over 2/eta of batches of 8 and 16 in the released pictures,
where the loss is in `WINDOW`: 90 to 115 and 86 to 123 where 2/eta is 100.
"""
BATCHES = (8, 16, 32, 64, IMAGES)
OTHER_STEPS = {"8": "8, half the step", "16": "16, twice the step"}
"""Role -> the role of the same batch with another step."""
FORK = 1500
SMALL_FORK = 6500
"""Updates before the step is doubled, and before a tenth of it is, when its loss is as small."""
FORKS = {"unchanged": FORK, "doubled": FORK, "small step": SMALL_FORK}
"""Role -> updates before the step is doubled, or would be."""
AFTER = 200
"""Updates within which the loss spikes."""


@dataclass(frozen=True)
class Trained:
    """A network along its training; `sharpness` and `batch` are over `2 / eta` of the first step
    `lr`.

    `top` and `edge` are the medians of sharpness and batch sharpness where the loss is in `WINDOW`,
    NaN where there is no such record.
    """

    lr: float
    at: kit.Ints
    sharpness: kit.Floats
    batch: kit.Floats
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
        lr=optimizer.lr,
        at=at,
        sharpness=sharpness,
        batch=batch,
        steps=run.loss_iterations,
        losses=run.losses,
        top=median(sharpness[inside]),
        edge=median(batch[inside]),
    )


Evidence = dict[str, Trained]
"""Samples of a batch, and the step where it is another -> the network."""


def evidence(runs: kit.Runs) -> Evidence:
    """Read the runs of several sizes of batches."""
    return {role: trained(run) for role, run in runs.items()}


def over_other_step(e: Evidence, batch: str) -> float:
    """Return the batch sharpness with the other step over that with the step."""
    other = e[OTHER_STEPS[batch]]
    return (other.edge / other.lr) / (e[batch].edge / e[batch].lr)


def claims_edge(e: Evidence) -> list[kit.Claim]:
    """Compare with the released pictures, and the full batch with the released logs."""
    full = e[str(IMAGES)]
    return [
        *[
            kit.claim(
                f"edge-{b}",
                f"Batches of {b}: batch sharpness stays at the edge (median over $2/\\eta$)",
                f"released picture, batches of {b}: its least and its largest at such losses",
                expected,
                e[b].edge,
            )
            for b, expected in (("8", READ_8), ("16", READ_16))
        ],
        *[
            kit.claim(
                f"step-{b}",
                f"Batches of {b}: with {step} the step, batch sharpness is {level} as large (ratio"
                " of the medians)",
                r"title and README of the released code: at $2/\eta$",
                kit.around(ratio),
                over_other_step(e, b),
            )
            for b, step, level, ratio in (("8", "half", "twice", 2), ("16", "twice", "half", 0.5))
        ],
        kit.claim(
            "below",
            "Batches of 8: where batch sharpness is at the edge, sharpness stays far below, at less"
            r" than half of $2/\eta$ (median over it)",
            "released logs, batches of 8: 34.2 of 200; picture: 35 of 100",
            kit.less_than(0.5),
            kit.given(READ_8.holds(e["8"].edge), e["8"].top),
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
    numbers = {
        "sharpness of batches of 8 over 2/eta (released logs: 0.171)": e["8"].top,
        "batch sharpness of batches of 8 over 2/eta at the start": float(e["8"].batch[0]),
    }
    for other in OTHER_STEPS.values():
        numbers[f"batch sharpness of batches of {other}, over its 2/eta"] = e[other].edge
    return numbers


def draw_edge(e: Evidence) -> kit.Drawing:
    tops = []
    losses = []
    for b in ("8", "16", str(IMAGES)):
        run = e[b]
        others = [e[OTHER_STEPS[b]]] if b in OTHER_STEPS else []
        other = "batch sharpness, other step"
        tops.append(
            kit.chart(
                "Full batch" if b == str(IMAGES) else f"Batches of {b}",
                r"curvature $\times\ \eta/2$",
                kit.line(run.at, run.batch, "batch sharpness", "measured"),
                kit.line(run.at, run.sharpness, "sharpness", "C1"),
                [kit.line(one.at, one.batch, other, "C3 0.8") for one in others],
                kit.level(1, r"$2/\eta$"),
                limits=(0, 1.4),
            )
        )
        losses.append(
            kit.chart(
                "",
                "training loss",
                kit.line(run.steps, run.losses, look="C2"),
                [kit.line(one.steps, one.losses, look="C3 0.8") for one in others],
                [kit.level(at, look="muted dotted 0.8") for at in WINDOW],
                log="y",
                limits=(5e-5, 3),
            )
        )
    return kit.charts(*tops, *losses)


def claims_batches(e: Evidence) -> list[kit.Claim]:
    """Compare the levels of several sizes of batches with README and logs of the release."""
    levels = np.array([run.top for run in e.values()])
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
            e["64"].top / e["8"].top,
        ),
        kit.claim(
            "any-batch",
            r"Batch sharpness stays at $2/\eta$ whatever the batch (median over it, the farthest "
            "from 1)",
            "title and README of the released code",
            kit.around(1),
            kit.farthest([run.edge for run in e.values()]),
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
    b = [*map(int, e)]
    median = r"median $\times\ \eta/2$"
    edge = kit.level(1, r"$2/\eta$")
    printed = np.array([*PRINTED.values()]) / PRINTED_EDGE
    return kit.charts(
        kit.chart(
            "Here: MNIST",
            median,
            kit.line(b, [run.edge for run in e.values()], "batch sharpness", "joined s"),
            kit.line(b, [run.top for run in e.values()], "sharpness", "joined"),
            edge,
            xlabel="samples of a batch, of 500",
        ),
        kit.chart(
            "Released logs: CIFAR-10",
            median,
            kit.line([*PRINTED], printed, "sharpness, printed", "C1 joined"),
            edge,
            xlabel="samples of a batch, of 8192",
        ),
        log="x",
        limits=(0, 1.3),
        legend="below",
    )


@dataclass(frozen=True)
class Doubled:
    """Three runs by role, and what the doubling of the step did.

    `spike` is the largest loss within `AFTER` updates of it over that of the run whose step stays;
    `jump` and `quiet` are the largest losses of the step and of the small step over the losses
    when they are doubled, and `alike` the second of these losses over the first. `settled` is the
    median of batch sharpness later over the bound of the new step, `stable` the sharpness at the
    doubling over it, and `room` batch sharpness of the small step at its doubling over its new
    bound.
    """

    runs: dict[str, Trained]
    spike: float
    settled: float
    stable: float
    jump: float
    quiet: float
    alike: float
    room: float


def evidence_doubled(runs: kit.Runs) -> Doubled:
    """Read the runs around the update at which two of them double their steps."""
    e = {role: trained(run) for role, run in runs.items()}

    def largest(role: str) -> float:
        steps = e[role].steps
        near = (steps > FORKS[role]) & (steps <= FORKS[role] + AFTER)
        return float(e[role].losses[near].max()) if near.any() else np.nan

    def at_fork(role: str, values: kit.Floats, iterations: kit.Ints) -> float:
        fork = FORKS[role]
        return kit.value_at(iterations, values, fork) if iterations[-1] > fork else np.nan

    doubled = e["doubled"]
    small = e["small step"]
    before = at_fork("doubled", doubled.losses, doubled.steps)
    before_small = at_fork("small step", small.losses, small.steps)
    return Doubled(
        runs=e,
        spike=largest("doubled") / largest("unchanged"),
        settled=2 * median(doubled.batch[doubled.at >= FORK + AFTER]),
        stable=2 * at_fork("doubled", doubled.sharpness, doubled.at),
        jump=largest("doubled") / before,
        quiet=largest("small step") / before_small,
        alike=before_small / before,
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
        kit.presupposing(
            kit.presupposing(
                kit.claim(
                    "no-spike",
                    "Below the edge it makes none: of a tenth of the step, doubled when the loss "
                    f"has become as small (largest loss of the {AFTER} updates after over that at "
                    "the doubling, which at the edge is more than three too)",
                    source,
                    kit.less_than(3),
                    kit.given(e.jump > 3, e.quiet),
                ),
                r"Batch sharpness of the small step over $2/\eta$ of its new step",
                kit.less_than(1),
                e.room,
            ),
            "Its loss at the doubling over the loss at the other doubling",
            kit.at_most(2),
            e.alike,
        ),
    ]


def numbers_doubled(e: Doubled) -> dict[str, float]:
    """Return the losses around both doublings, as ratios."""
    return {
        "doubled: largest loss after over that at the doubling": e.jump,
        "small step: largest loss after over that at the doubling": e.quiet,
        "loss of the small step at its doubling over that of the step": e.alike,
    }


def draw_doubled(e: Doubled) -> kit.Drawing:
    runs = [(run, FORKS[role], role) for role, run in e.runs.items()]
    return kit.charts(
        kit.chart(
            "Loss",
            "training loss",
            [kit.line(run.steps - fork, run.losses, role, "0.9") for run, fork, role in runs],
            kit.upright(0),
            log="y",
        ),
        kit.chart(
            "Batch sharpness",
            r"batch sharpness $\times\ \eta/2$",
            [kit.line(run.at - fork, run.batch, look="0.9") for run, fork, _ in runs],
            kit.level(1),
            kit.line([0, LONG - FORK], [0.5, 0.5], look="theory dotted 1"),
            kit.upright(0),
            limits=(0, 1.4),
        ),
        xlabel="updates from the doubling on",
        limits_x=(-FORK, LONG - FORK),
    )


def _of_batch(b: int, *more: str) -> kit.Wanted:
    """Return a run; batch sharpness is of this size under every null too."""
    measures = f"[sharpness, {{kind: batch_sharpness, batches: 30, batch_size: {b}}}]"
    return kit.Wanted(CONFIG, (f"optimizer.batch_size={b}", f"record.measures={measures}", *more))


def _lasting(updates: int, fork: int | None = None) -> tuple[str, ...]:
    """Return the changes to a run around a fork, after which its step is doubled."""
    changes = [f"optimizer.iterations={updates}", "record.loss_every=5"]
    if fork is not None:
        changes.append(f"optimizer.schedule={{kind: step, every: {fork}, gamma: 2.0}}")
    return tuple(changes)


LONG = 2500
FULL = {"full_batch": (f"optimizer.batch_size={IMAGES}",)}
FIGURES = kit.by_id(
    kit.Figure(
        id="andreyev2024-edge",
        caption=(
            "Batch sharpness and sharpness over 2/eta, and the loss, of networks trained by SGD"
            " with batches of 8 and 16 and by gradient descent on 500 images with permuted labels."
            " Batch sharpness and loss with half the step (batches of 8) and twice the step (of 16)"
            " too, over their own 2/eta. Dotted: the losses between which medians are taken."
        ),
        configs={
            **{str(b): _of_batch(b) for b in (8, 16, IMAGES)},
            OTHER_STEPS["8"]: _of_batch(8, "optimizer.lr=0.1", "optimizer.iterations=5000"),
            OTHER_STEPS["16"]: _of_batch(16, "optimizer.lr=0.4"),
        },
        nulls={**FULL, "same_step": ("optimizer.lr=0.2",)},
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
        configs={str(b): _of_batch(b) for b in BATCHES},
        nulls=FULL,
    ),
    kit.Figure(
        id="andreyev2024-doubled",
        caption=(
            "Batches of 16: loss, and batch sharpness over 2/eta of the run's first step, when the"
            f" step is doubled after {FORK} updates or not, and when a tenth of the step is doubled"
            f" after {SMALL_FORK}, as its loss has become as small. Dashed: 2/eta; dotted: that of"
            " the doubled step."
        ),
        configs={
            "unchanged": kit.Wanted(CONFIG, _lasting(LONG)),
            "doubled": kit.Wanted(CONFIG, _lasting(LONG, FORK)),
            "small step": kit.Wanted(
                CONFIG, (*_lasting(SMALL_FORK + LONG - FORK, SMALL_FORK), "optimizer.lr=0.02")
            ),
        },
        nulls={"unchanged": ("optimizer.schedule=null",)},
    ),
)
