"""The analytic weights add modulo p once the network is wide enough."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit

from .theory.analytic import analytic_weights, outputs, participation

WIDTHS = {31: (15, 30, 45, 60, 90, 150, 300), 97: (24, 48, 96, 144, 192, 288, 500)}
"""p -> widths N."""
TICKS = (20, 100, 500)
DRAWS = 5
"""Draws of the phases."""


@dataclass(frozen=True)
class Evidence:
    """Networks of analytic weights."""

    accuracy: dict[int, kit.Floats]
    rest: float
    ipr: kit.Floats
    rows: kit.Floats


def evidence(runs: kit.Runs) -> Evidence:
    """Evaluate the networks on all pairs: `accuracy` is p -> (widths, draws), all else is of p =
    97, the last draw.
    """
    rng = np.random.default_rng(0)
    accuracy: dict[int, list[list[float]]] = {}
    for p, widths in WIDTHS.items():
        truth = np.add.outer(np.arange(p), np.arange(p)) % p
        accuracy[p] = []
        for N in widths:
            accuracy[p].append([])
            for _ in range(DRAWS):
                U, V, W = analytic_weights(p, N, rng)
                f = outputs(U, V, W)
                accuracy[p][-1].append(float(np.mean(f.argmax(-1) == truth)))
    s = np.arange(N) % ((p - 1) // 2) + 1  # of the last p and N
    wave = (
        np.cos(2 * np.pi * np.outer(np.arange(p), s) / p).sum(1) / 2
    )  # (p,): the output, without random phases
    noise = f - wave[(truth[..., None] - np.arange(p)) % p]
    return Evidence(
        accuracy={p: np.array(accuracies) for p, accuracies in accuracy.items()},
        rest=float(noise.std()) / np.sqrt(N),
        ipr=np.stack([participation(weights) for weights in (U, V, W.T)]),
        rows=U[:2],
    )


def claims(e: Evidence) -> list[kit.Claim]:
    p = 97
    N = WIDTHS[97][-1]
    return [
        kit.theory(
            "solves",
            f"Analytic weights of N = {N} solve addition modulo {p} (least accuracy of {DRAWS}"
            " draws)",
            "analytic solution (recalled)",
            kit.exactly(1),
            e.accuracy[p][-1].min(),
        ),
        kit.theory(
            "rest",
            "The outputs are the waves of n + m - q, N/2 at q = n + m, and a rest of random phases "
            r"(its deviation over $\sqrt N$)",
            "derived",
            kit.near(1, 0.1),
            e.rest,
        ),
        kit.theory(
            "cosines",
            "Rows are cosines: IPR of 1 (least)",
            "analytic solution",
            kit.near(1, 1e-9),
            e.ipr.min(),
        ),
    ]


def draw(e: Evidence) -> kit.Drawing:
    accuracies = e.accuracy.items()
    rows = [*enumerate(e.rows, 2)]  # not in the colours of the first panel
    return kit.charts(
        kit.chart(
            "Accuracy",
            "accuracy on all pairs",
            [kit.line(WIDTHS[p], shares.mean(1), f"$p = {p}$") for p, shares in accuracies],
            [kit.line(WIDTHS[p], shares, look=".") for p, shares in accuracies],
            xlabel="width $N$",
            log="x",
            ticks=TICKS,
            limits=(0, 1.03),
        ),
        kit.chart(
            "Two rows of $U$",
            "$U_{kn}$",
            *(kit.line(0, row, look=f"C{k} 0.9") for k, row in rows),
            xlabel="$n$",
        ),
        kit.chart(
            "Their spectra",
            "Fourier modulus",
            *(kit.line(0, np.abs(np.fft.rfft(row)), look=f"C{k} joined . 0.9") for k, row in rows),
            xlabel="frequency",
            limits_x=(-0.5, 10),
        ),
        legend="inside",
    )


FIGURE = kit.Figure(
    id="gromov2023-analytic",
    caption=(
        "Analytic weights, cosines with random phases that add up. (a) Accuracy on all pairs"
        " against the width, five draws of the phases (dots) and their mean. (b, c) Two rows of U"
        " for p = 97, and their Fourier moduli."
    ),
)
