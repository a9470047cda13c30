"""Figure 2: two numbers whose product learns 1, by gradient descent and by Muon."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics_cli import kit

from .theory.factors import descent

START = 0.06
UPDATES = 12
STEP = 0.11
"""Muon's step along p = q."""
SMALL = 0.005
"""Step of networks that follow the flows."""
SEEDS = range(6)
LEARNED = 1e-3


@dataclass(frozen=True)
class Scalars:
    """Paths p, q (K, draws) of networks from random starts, and p (K,) from p = q = 0.06."""

    paths: dict[str, tuple[kit.Floats, kit.Floats]]
    lines: dict[str, kit.Floats]

    def drift(self, name: str, power: int) -> kit.Floats:
        """Return `|p|^power - |q|^power` (K, draws); NaN unless all networks have learned."""
        p, q = self.paths[name]
        learned = np.all(np.square(1 - p[-1] * q[-1]) < LEARNED)
        return np.where(learned, np.abs(p) ** power - np.abs(q) ** power, np.nan)


def evidence(runs: kit.Runs) -> Scalars:
    """Read the weights."""
    paths = {}
    lines = {}
    for name in ("gd", "muon"):
        draws = [runs[f"{name} {seed}"] for seed in SEEDS]
        networks = [kit.recorded(run, "weight_1", "weight_2") for run in draws]
        p, q = np.moveaxis(np.array(networks)[..., 0, 0], 0, -1)  # (K, draws)
        paths[name] = (p, q)
        (p,) = kit.recorded(runs[f"line {name}"], "weight_1")
        lines[name] = p[:, 0, 0]
    return Scalars(paths, lines)


def claims(e: Scalars) -> list[kit.Claim]:
    of_gd = e.drift("gd", 2)
    of_muon = e.drift("muon", 1)
    gd = e.lines["gd"]
    muon = e.lines["muon"]
    crossings = np.abs(np.diff(np.sign(muon[-4:] - 1)))
    law = descent(np.array([START]), np.array([1.0]), 0.4, UPDATES)[:, 0]
    return [
        kit.claim(
            "gd-flow",
            "Gradient descent follows curves of constant $p^2 - q^2$ (last over first, the farthest"
            f" of {len(SEEDS)} networks that have learned)",
            "Figure 2, flow lines of the first panel",
            kit.around(1),
            kit.farthest(of_gd[-1] / of_gd[0]),
        ),
        kit.claim(
            "muon-flow",
            "Muon follows curves of constant |p| - |q| (largest change among as many networks; a"
            " step across 0 changes it by two steps at most)",
            "Figure 2, flow lines of the second panel",
            kit.at_most(2 * SMALL + 1e-6),
            np.max(np.abs(of_muon - of_muon[0])),
        ),
        kit.claim(
            "gd-converges",
            "Along p = q gradient descent converges (loss after 12 updates)",
            "scalar law; Figure 2, third panel",
            kit.around(loss(law[-1])),
            loss(gd[-1]),
        ),
        kit.claim(
            "muon-oscillates",
            "Along p = q Muon ends by stepping to and fro over the minimum (of the last three"
            " updates, those that cross 1)",
            "Figure 2, fourth panel",
            kit.exactly(3),
            np.sum(crossings == 2),
        ),
    ]


def loss(p: Any) -> Any:
    """Return the loss where p = q."""
    return (1 - p**2) ** 2 / 2


def draw(e: Scalars) -> kit.Drawing:
    half = np.linspace(0.5, 2, 100)
    line = np.linspace(-0.2, 2, 200)
    names = {"gd": "Gradient descent", "muon": "Muon"}
    figure = kit.charts(
        *(
            kit.chart(
                title,
                "q",
                [kit.Line(x=p, y=q, path=True) for p, q in np.transpose(e.paths[name], (2, 0, 1))],
                [kit.line(sign * half, sign / half, look="theory dashed") for sign in (1, -1)],
                xlabel="p",
                limits=(-2, 2),
                limits_x=(-2, 2),
            )
            for name, title in names.items()
        ),
        *(
            kit.chart(
                title,
                "loss",
                kit.line(line, loss(line), look="theory 0.8"),
                kit.Line(x=e.lines[name], y=loss(e.lines[name]), path=True),
                kit.line(e.lines[name], loss(e.lines[name]), look="C0 ."),
                xlabel="p = q",
                limits=(-0.03, 0.8),
            )
            for name, title in names.items()
        ),
    )
    P, Q = np.meshgrid(np.linspace(-2, 2, 201), np.linspace(-2, 2, 201))
    fields = ((P**2 - Q**2, 3), (np.abs(P) - np.abs(Q), 1.8))
    for axes, (field, high) in zip(figure.axes, fields, strict=False):
        look: dict[str, Any] = {"linewidths": 0.5, "linestyles": "-", "zorder": 1}
        levels = np.linspace(-high, high, 13)
        axes.contour(P, Q, field, levels, colors=kit.PALETTE.muted, **look)
    return figure


MUON = (
    "optimizer={{kind: muon, lr: {}, momentum: 0.0, nesterov: false, polar: exact, iterations: {}}}"
)
CONFIG = "rhee2026/scalar.yaml"
LONG = "optimizer.iterations=4000"
FREE = ("initialization={kind: unbalanced, scale: 0.7}", "record.snapshots.interval=20")
FIGURE = kit.Figure(
    id="rhee2026-fig2",
    caption=(
        "Two numbers p and q that learn pq = 1 (dashed): paths of six networks with small steps"
        " over curves of constant $p^2 - q^2$ and |p| - |q| (above); iterates along p = q from 0.06"
        " (hollow) on the loss (below)."
    ),
    configs={
        **kit.grid(CONFIG, {"seed": SEEDS, "optimizer.lr": [SMALL]}, "gd {}", *FREE, LONG),
        **kit.grid(CONFIG, {"seed": SEEDS}, "muon {}", *FREE, MUON.format(SMALL, 600)),
        "line gd": CONFIG,
        "line muon": kit.Wanted(CONFIG, (MUON.format(STEP, UPDATES),)),
    },
)
