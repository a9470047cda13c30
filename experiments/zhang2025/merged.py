"""Merged key and query: the loss drops once; and the two-layer linear network on cubic features
that equals it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.signal import find_peaks

from dynamics_cli import kit
from dynamics_cli.kinds import Streams
from dynamics_cli.theory.linear_modes import linear_mode

from .theory.population import descent, moments, saddle_losses, setting

MERGED = "zhang2025/merged.yaml"
FEATURES = "zhang2025/features.yaml"
END = 0.13599507
"""Loss of the fixed point in the output of the released notebook, cell 6."""
WHITE = (
    "dataset.eigenvalues=[0.25, 0.25, 0.25, 0.25]",
    "optimizer.lr=5.0e-4",
    "optimizer.iterations=4000",
)
FROZEN = ("architecture.train=[weight_key_query, weight_value]",)
PEAK = 1e-3
"""Least prominence of a maximum of the speed at which the loss falls, over the largest speed."""
ROUNDING = 2.0**-23
"""Relative rounding of float32, of which every update adds one at most to growing weights."""


def fallen(losses: kit.Floats, levels: kit.Floats, share: float = 0.5) -> float:
    """Return the iteration at which losses (K,), one an iteration, have fallen by a share from
    first to last level.
    """
    return kit.crossing(
        np.arange(len(losses)), -losses, -(levels[0] + share * (levels[-1] - levels[0]))
    )


def sigmoid(run: kit.Run) -> kit.Floats:
    """Return the loss (K,) of the closed form for `Lambda = I tr / D`, from the weights that a run
    begins with.

    `U_i = u_i I / sqrt D` and `v_i` learn a single mode, `s = sum_i u_i v_i`, of correlation a sqrt
    D and curvature b; of small weights the part `(u_i + v_i) / 2` alone grows.
    """
    covariance, N, step = setting(run)
    D = len(covariance)
    start = kit.in_double(run.state(0))
    a, b = (float(moment[0]) for moment in moments(np.diag(covariance), N))
    u = np.trace(start["weight_key_query"], axis1=1, axis2=2) / np.sqrt(D)
    grows = np.sum((u + start["weight_value"][:, 0]) ** 2) / 4
    s = linear_mode(2 * step * run.loss_iterations, grows, a * np.sqrt(D), 2, lambda_=b)[:, 0]
    return np.asarray(np.trace(covariance) - 2 * a * np.sqrt(D) * s + b * s**2)


@dataclass(frozen=True)
class Merged:
    """Losses of both runs, and those of the theory."""

    losses: kit.Floats
    levels: kit.Floats
    population: kit.Floats
    white: kit.Floats
    white_levels: kit.Floats
    sigmoid: kit.Floats
    drops: int


def evidence_merged(runs: kit.Runs) -> Merged:
    """Return losses by role, `levels` of both covariances, and the losses of the theory:
    `population`, `sigmoid`.
    """
    run = runs["merged"]
    white = runs["white"]
    covariance, N, step = setting(run)
    data: Any = white.config.dataset
    speed = -np.diff(run.losses)
    drops = len(find_peaks(speed, prominence=PEAK * speed.max())[0])
    return Merged(
        losses=run.losses,
        levels=saddle_losses(np.linalg.eigvalsh(covariance), N),
        population=descent(run.state(0), covariance, N, step, run.loss_iterations)[0],
        white=white.losses,
        white_levels=saddle_losses(data.eigenvalues, data.context),
        sigmoid=sigmoid(white),
        drops=drops,
    )


def claims_merged(e: Merged) -> list[kit.Claim]:
    """Compare with two fixed points, the population's descent, and the closed form for white
    inputs.
    """
    width, exact = (
        fallen(losses, e.white_levels, 0.8) - fallen(losses, e.white_levels, 0.2)
        for losses in (e.white, e.sigmoid)
    )
    down = e.losses[-1] < e.levels.mean()
    return [
        kit.theory(
            "printed",
            "Loss of the fixed point that is the minimum",
            "released notebook, output of cell 6",
            kit.near(END, 1e-8),
            e.levels[-1],
        ),
        kit.theory(
            "start",
            "Loss of the fixed point 0 on these sequences (first loss over theory)",
            "theory",
            kit.around(1),
            e.losses[0] / e.levels[0],
        ),
        kit.claim(
            "one-drop",
            "The loss drops once (maxima of its speed that stand out by a thousandth of the"
            " largest)",
            "abstract",
            kit.exactly(1),
            kit.given(down, e.drops),
        ),
        kit.claim(
            "end",
            "Training ends in the minimum (final loss over the printed)",
            "released notebook, output of cell 6",
            kit.around(1),
            e.losses[-1] / END,
        ),
        kit.claim(
            "time",
            "The loss falls when descent on the population loss from the same weights says (ratio"
            " of half times)",
            "theory",
            kit.around(1),
            fallen(e.losses, e.levels) / fallen(e.population, e.levels),
        ),
        kit.claim(
            "white-time",
            "White inputs: the loss falls when the closed form says (ratio of half times)",
            "analytical time course of the abstract",
            kit.around(1),
            fallen(e.white, e.white_levels) / fallen(e.sigmoid, e.white_levels),
        ),
        kit.claim(
            "white-width",
            "White inputs: the loss falls as fast as the closed form (ratio of the times from 20 "
            "to 80 % of the fall)",
            "analytical time course of the abstract",
            kit.around(1),
            width / exact,
        ),
    ]


def draw_merged(e: Merged) -> kit.Drawing:
    """Draw both losses with their theory."""
    title = "Eigenvalues 0.4, 0.3, 0.2, 0.1"
    rows = (
        (title, e.losses, e.population, e.levels, "population loss"),
        ("White inputs", e.white, e.sigmoid, e.white_levels, "closed form"),
    )
    return kit.charts(
        *(
            kit.chart(
                title,
                "loss",
                kit.line(0, losses, "linear attention", "measured 2.2"),
                kit.line(0, predicted, name, "C1 dashed 1.0"),
                [kit.level(levels[m], "fixed points", "theory dotted 1") for m in (0, -1)],
            )
            for title, losses, predicted, levels, name in rows
        ),
        limits=(0, 1.1),
        legend="below",
    )


@dataclass(frozen=True)
class Features:
    """Losses of attention, of attention with blocks kept at 0 and of features, and least squares.

    It is the largest relative difference from attention on all tokens in float32, at the weights in
    the end.
    """

    losses: list[kit.Floats]
    updates: int
    levels: kit.Floats
    last: float
    least: float


def evidence_features(runs: kit.Runs) -> Features:
    """Return losses by role, the least squares of the features, and `last`, of the form of the last
    token's output.
    """
    run = runs["attention"]
    samples = runs["features"].dataset()
    solution, *_ = np.linalg.lstsq(samples.x, samples.y, rcond=None)
    data: Any = run.config.dataset.model_copy(update={"features": "tokens"})
    X = (
        data.samples(Streams(run.config.seed))
        .x[:500]
        .reshape(500, data.context + 1, -1)
        .astype(np.float32)
    )
    weights = [
        run.state(-1)[f"weight_{name}"]
        for name in ("key_query", "key_query_label", "value_input", "value")
    ]
    full = np.zeros(len(X), np.float32)
    for U, u, v, v_y in zip(*weights, strict=True):
        KQ = np.pad(np.vstack([U, u]), ((0, 0), (0, 1)))
        full += ((X @ KQ.T) @ X.transpose(0, 2, 1) @ (X @ np.append(v, v_y))[:, :, None])[:, -1, 0]
    short = run.network(-1)(run.dataset().x[:500])
    return Features(
        losses=[trained.losses for trained in runs.values()],
        updates=run.iterations,
        levels=saddle_losses(data.eigenvalues, data.context),
        last=np.abs(full - short).max() / np.abs(short).max(),
        least=float(np.mean((samples.x @ solution - samples.y) ** 2)),
    )


def claims_features(e: Features) -> list[kit.Claim]:
    attention, frozen, features = e.losses
    down = features[-1] < e.levels.mean()
    return [
        kit.claim(
            "equal",
            "The losses of linear attention and of the network on cubic features are the same"
            " (ratio, the farthest of all iterations)",
            "README of the released code",
            kit.around(1),
            kit.given(down, kit.farthest(attention / features)),
        ),
        kit.claim(
            "equal-exact",
            "Linear attention and the network on cubic features agree up to rounding where the "
            "blocks that begin at 0 are kept there (largest relative difference)",
            "identity; a rounding of float32 an update",
            kit.at_most(e.updates * ROUNDING),
            kit.given(down, np.max(np.abs(frozen / features - 1))),
        ),
        kit.theory(
            "last-token",
            "The last token's output is attention's on all tokens (largest relative difference "
            "in float32)",
            "identity; ten roundings",
            kit.at_most(10 * ROUNDING),
            e.last,
        ),
        kit.claim(
            "regression",
            "Both end at least squares on the cubic features (the larger loss over its)",
            "fixed point of the flow",
            kit.around(1),
            max(attention[-1], features[-1]) / e.least,
        ),
    ]


def draw_features(e: Features) -> kit.Drawing:
    attention, frozen, features = e.losses
    return kit.charts(
        kit.chart(
            "Loss",
            "loss",
            kit.line(0, attention, "linear attention", "measured 1.2"),
            kit.line(0, features, "network on cubic features", "C1 dotted 2.4"),
            kit.level(e.levels[-1], "minimum", "theory dotted 0.8"),
            limits=(0, 1.1),
        ),
        kit.chart(
            "Difference",
            "relative difference of the losses",
            kit.line(0, np.abs(attention / features - 1) + 1e-9, "all weights", "0.9"),
            kit.line(0, np.abs(frozen / features - 1) + 1e-9, "blocks kept at 0", "C2 0.9"),
            log="y",
        ),
        legend="below",
    )


FIGURES = kit.by_id(
    kit.Figure(
        id="zhang2025-merged",
        caption=(
            "Linear attention with merged key and query on in-context linear regression: the loss"
            " drops once, from the fixed point 0 to the minimum. Left: eigenvalues as 1 to 4, with"
            " descent on the population loss. Right: white inputs, with the closed form."
        ),
        configs={"merged": MERGED, "white": kit.Wanted(MERGED, WHITE)},
        passes={
            "wrong_gradient": {
                "time white-time white-width": (
                    "The wrong matrix, of values on inputs, begins at 0 and moves after the drop,"
                    " which comes as before; `one-drop` and `end` fail."
                )
            }
        },
    ),
    kit.Figure(
        id="zhang2025-features",
        caption=(
            "Linear attention and the two-layer linear network on cubic features, from the same"
            " weights: losses, and their relative difference, also with the blocks of attention"
            " that begin at 0 kept there."
        ),
        configs={
            "attention": MERGED,
            "blocks at 0": kit.Wanted(MERGED, FROZEN),
            "features": FEATURES,
        },
    ),
)
