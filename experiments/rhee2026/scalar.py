"""Figure 2: two numbers whose product learns 1, by gradient descent and by Muon."""

from __future__ import annotations

from dataclasses import dataclass

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
            kit.around((1 - law[-1] ** 2) ** 2 / 2),
            (1 - gd[-1] ** 2) ** 2 / 2,
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


def draw(e: Scalars) -> kit.Drawing:
    figure, axes = kit.new_figure(2, rows=2, aspect=0.8, extra_height=0.2)
    grid = np.linspace(-2, 2, 201)
    P, Q = np.meshgrid(grid, grid)
    for axis, name, field in zip(
        axes, ("gd", "muon"), (P**2 - Q**2, np.abs(P) - np.abs(Q)), strict=False
    ):
        levels = np.linspace(-3, 3, 13) if name == "gd" else np.linspace(-1.8, 1.8, 13)
        axis.contour(P, Q, field, levels, colors=kit.PALETTE.muted, linewidths=0.5, linestyles="-")
        axis.contour(P, Q, P * Q, [1], colors=kit.PALETTE.theory, linestyles="--")
        p, q = e.paths[name]
        axis.plot(p, q, color="C0")
        axis.plot(p[0], q[0], "o", color="C0", ms=3)
        axis.set(xlabel="p", ylabel="q", xlim=(-2, 2), ylim=(-2, 2))
    line = np.linspace(-0.2, 2, 200)
    for axis, name in zip(axes[2:], ("gd", "muon"), strict=True):
        p = e.lines[name]
        axis.plot(line, (1 - line**2) ** 2 / 2, color=kit.PALETTE.theory, lw=0.8)
        axis.scatter(p, (1 - p**2) ** 2 / 2, c=np.arange(len(p)), cmap="viridis", s=14, zorder=3)
        axis.set(xlabel="p = q", ylabel="loss", ylim=(-0.03, 0.8))
    names = ("Gradient descent", "Muon")
    kit.panel_labels(axes, *names, *names)
    return figure


MUON = (
    "optimizer={{kind: muon, lr: {}, momentum: 0.0, nesterov: false, polar: exact, iterations: {}}}"
)
FREE = ("initialization={kind: unbalanced, scale: 0.7}", "record.snapshots.interval=20")
FIGURE = kit.Figure(
    id="rhee2026-fig2",
    caption=(
        "Two numbers p and q that learn pq = 1 (dashed): paths of six networks with small steps"
        " over curves of constant $p^2 - q^2$ and |p| - |q| (above); iterates along p = q from 0.06"
        " on the loss, dark to light (below)."
    ),
    configs={
        **{
            f"gd {seed}": kit.Wanted(
                "rhee2026/scalar.yaml",
                (*FREE, f"seed={seed}", f"optimizer.lr={SMALL}", "optimizer.iterations=4000"),
            )
            for seed in SEEDS
        },
        **{
            f"muon {seed}": kit.Wanted(
                "rhee2026/scalar.yaml", (*FREE, f"seed={seed}", MUON.format(SMALL, 600))
            )
            for seed in SEEDS
        },
        "line gd": "rhee2026/scalar.yaml",
        "line muon": kit.Wanted("rhee2026/scalar.yaml", (MUON.format(STEP, UPDATES),)),
    },
)
