"""Local learning coefficients of trained deep linear networks against their exact values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

import numpy as np

from dynamics_cli import kit

from .theory.learning_coefficient import dln_learning_coefficient

CONFIG = "lau2023/exact.yaml"
PRINTED: dict[int, tuple[tuple[int, ...], float, float]] = {
    138: ((3, 6, 12, 4), 6.0, 6.907146),
    130: ((6, 5, 28), 72.5, 71.721878),
    137: ((6, 14, 6, 2, 5), 9.0, 9.775301),
    98: ((7, 8, 21), 73.5, 70.221153),
    51: ((16, 4, 2, 16, 9), 23.0, 33.054485),
}
"""Number of an experiment of the released notebook -> sizes of its layers, inputs first; printed:
the exact coefficient, and the estimate at the true weights. Of its 200, all of the largest rank,
these are the smallest.
"""
DRAWN = (
    ((9, 8, 6, 6), 1),
    ((4, 5, 11), 2),
    ((8, 9, 12, 10), 5),
    ((9, 12, 6, 11), 4),
    ((7, 11, 8), 1),
)
"""Sizes and ranks of singular maps: `default_rng(0)` draws two or three matrices, sizes of 4 to
12, a lower rank.
"""
N = 10_000
GAMMA = 3.0
SHARE = 0.04
"""Samples, force towards the trained weights, and the step times the largest curvature at
balanced weights.
"""
FITTED = 1e-5
"""Share of the first loss below which labels are fitted."""
SPREADS = 2.0
"""Standard deviations from chain to chain within which an estimate agrees with the exact value."""


def networks() -> list[tuple[tuple[int, ...], int]]:
    """Return sizes and rank of all networks."""
    return [(sizes, min(sizes)) for sizes, _, _ in PRINTED.values()] + list(DRAWN)


@dataclass(frozen=True)
class Evidence:
    """Estimates of all networks beside their exact values."""

    exact: kit.Floats
    mean: kit.Floats
    spread: kit.Floats
    hessian: kit.Floats
    weights: kit.Floats
    names: list[str]
    printed: kit.Floats


def evidence(runs: kit.Runs) -> Evidence:
    """Compare the estimates at the end of training with the exact values; NaN where labels are
    not fitted.
    """
    nets = networks()
    finished = list(runs.values())
    fitted = np.array([run.final_loss < FITTED * run.losses[0] for run in finished])
    estimates = np.array([run.measures["llc"][-1] for run in finished])
    return Evidence(
        exact=np.array([dln_learning_coefficient(rank, sizes)[0] for sizes, rank in nets]),
        mean=np.where(fitted, estimates[:, 0], np.nan),
        spread=np.where(fitted, estimates[:, 1], np.nan),
        hessian=np.array([(rank * (sizes[0] + sizes[-1]) - rank**2) / 2 for sizes, rank in nets]),
        weights=np.array([sum(a * b for a, b in pairwise(sizes)) for sizes, _ in nets]),
        names=["-".join(map(str, sizes)) + f", {rank}" for sizes, rank in nets],
        printed=np.array([estimate for _, _, estimate in PRINTED.values()]),
    )


def claims(e: Evidence) -> list[kit.Claim]:
    fitted = bool(np.isfinite(e.mean).all())
    ratio = e.mean / e.exact
    k = len(PRINTED)
    within = np.abs(e.mean - e.exact) <= SPREADS * e.spread
    exact = [
        dln_learning_coefficient(min(sizes), sizes)[0] == value
        for sizes, value, _ in PRINTED.values()
    ]
    nearer = np.abs(e.mean - e.exact) < np.abs(e.mean - e.hessian)
    return [
        kit.claim(
            "within",
            f"Estimates agree with the exact coefficients (share of networks within {SPREADS:g} "
            "standard deviations over chains)",
            "released README: accurate; most: more than half",
            kit.most(),
            kit.given(fitted, np.mean(within)),
        ),
        kit.claim(
            "close",
            "Estimates are within 10 % of the exact coefficient (share of networks)",
            "released README: accurate; most: more than half",
            kit.most(),
            kit.given(fitted, np.mean(np.abs(ratio - 1) <= 0.1)),
        ),
        kit.claim(
            "slope",
            "Estimates grow as the exact coefficients, from the smallest to the largest (slope of "
            "estimates by exact coefficients, through 0)",
            "plots_final.ipynb, cell 3",
            kit.around(1.0),
            kit.given(fitted, e.mean @ e.exact / (e.exact @ e.exact)),
        ),
        kit.claim(
            "regular",
            "At the largest rank all are (largest |estimate / exact - 1|)",
            "released README: accurate; within 10 %",
            kit.at_most(0.1),
            np.max(np.abs(ratio[:k] - 1)),
        ),
        kit.claim(
            "singular",
            "At lower ranks the estimate sees more than the Hessian: it is nearer to the exact "
            "coefficient than to half the Hessian's rank (share of networks)",
            "abstract, version 1; most: more than half",
            kit.most(),
            kit.given(fitted, np.mean(nearer[k:])),
        ),
        kit.theory(
            "printed",
            "The formula gives the exact coefficients that the released notebook printed (share of "
            "five)",
            "DLN_lambdahat_bounds.ipynb, output of cell 20",
            kit.exactly(1.0),
            np.mean(exact),
        ),
    ]


def draw(e: Evidence) -> kit.Drawing:
    figure, axes = kit.new_figure(2, 1, aspect=0.95, extra_height=0.55)
    k = len(PRINTED)
    ends = np.array([0.8, 1.2]) * [np.min(e.exact), np.max(e.exact)]
    at = np.arange(len(e.exact))
    ends_of_bars = e.mean + np.array([[-SPREADS], [SPREADS]]) * e.spread  # (2, networks)
    against = kit.chart(
        "Against exact values",
        r"estimate $\hat\lambda(w^*)$",
        kit.line(ends, ends, "exact", "theory dashed 0.9"),
        kit.line(e.exact[:k], e.printed, "printed estimate", "theory x"),
        xlabel=r"exact learning coefficient $\lambda$",
        log="xy",
        reach=ends_of_bars.ravel(),
    )
    by_network = kit.chart(
        "By network",
        r"share of $\lambda$",
        kit.level(1.0),
        kit.line(at[:k] + 0.3, e.printed / e.exact[:k], "printed estimate", "theory x"),
        kit.line(at - 0.3, e.hessian / e.exact, "half the rank of the Hessian", "C2 s"),
        kit.line(at - 0.3, e.weights / 2 / e.exact, "half the number of weights", "C3 +"),
        xlabel="sizes of layers, rank",
        limits_x=(-0.7, len(at) - 0.6),
        log="y",
        reach=(ends_of_bars / e.exact).ravel(),
    )
    handles = kit.panel(axes[0], 0, against)
    of_networks = kit.panel(axes[1], 1, by_network)
    for name, part, color in (
        ("largest rank", slice(0, k), "C0"),
        ("lower rank", slice(k, None), "C1"),
    ):
        look: dict[str, Any] = {
            "fmt": kit.MARKER,
            "ms": 4,
            "color": color,
            "capsize": 2.5,
            "lw": 1.0,
            "zorder": 1.9,
            "label": f"estimate, {name}",
        }
        bars = axes[0].errorbar(e.exact[part], e.mean[part], SPREADS * e.spread[part], **look)
        handles.append(cast(kit.Artist, bars))
        axes[1].errorbar(
            at[part], (e.mean / e.exact)[part], SPREADS * (e.spread / e.exact)[part], **look
        )
    axes[1].set_xticks(at, e.names, rotation=60, ha="right", rotation_mode="anchor")
    axes[1].set_yticks([0.5, 1, 2, 4, 8], ["0.5", "1", "2", "4", "8"])
    axes[1].tick_params(axis="x", labelsize=kit.SMALL)
    kit.figure_legend(figure, [*handles, *of_networks], columns=3)
    return figure


def wanted(factor: int = 1) -> dict[str, kit.Wanted]:
    """Return the runs of all networks, a role for each, with chains `factor` times as long."""
    runs = {}
    for sizes, rank in networks():
        nbeta = N / math.log(N)
        layers = len(sizes) - 1
        sampler = {
            "nbeta": nbeta,
            "gamma": GAMMA,
            "step": SHARE / (2 * layers * nbeta + GAMMA),
            "chains": 6,
        }
        lengths = {"burn_in": 10000 * factor, "draws": 10000 * factor}
        keys = ", ".join(f"{key}: {value:.6g}" for key, value in {**sampler, **lengths}.items())
        runs["-".join(map(str, sizes)) + f", rank {rank}"] = kit.Wanted(
            CONFIG,
            (
                f"dataset.inputs={sizes[0]}",
                f"dataset.outputs={sizes[-1]}",
                f"dataset.singular_values={[1.0] * rank}",
                f"architecture.widths={list(sizes[1:-1])}",
                f"architecture.outputs={sizes[-1]}",
                f"record.measures=[{{kind: llc, {keys}}}]",
            ),
        )
    return runs


FIGURE = kit.Figure(
    id="lau2023-exact",
    caption=(
        "Local learning coefficients of trained deep linear networks, estimated by Langevin"
        " dynamics (mean over six chains, bars of two standard deviations over them), against their"
        " exact values: five networks of the released notebook, at the largest rank, with the"
        " estimates that it printed, and five singular ones."
    ),
    configs=wanted(),
    presets={"full": wanted(4)},
)
