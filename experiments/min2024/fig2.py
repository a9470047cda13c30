"""Figure 2: the cones S+, S- and Sdead and the fates of positive neurons.

`dyn reproduce min2024-fig2`. About 2 s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure as Drawing
from matplotlib.patches import Wedge

from dynamics_cli.measures.arrays import Floats, Ints
from dynamics_cli.measures.correlation import correlation
from dynamics_cli.measures.neurons import directions
from dynamics_cli.measures.regions import DEAD, PLUS, activation_counts, regions
from dynamics_cli.plotting.style import PALETTE, new_figure, styled
from dynamics_cli.reproduction.claims import Claim, claim, exactly, finding, more_than
from dynamics_cli.reproduction.figure import Figure, Runs
from dynamics_cli.theory.sphere_flow import sphere_flow

from .sketches import ASSUMED, TOY_X, TOY_Y, arrow, cone_angles, plain

STARTS = 180
SHOWN = (140.0, 152.0, 215.0)
"""Initial angles of the neurons drawn: two that are repelled into S_+, one into S_dead, all from S_-."""


@dataclass(frozen=True)
class Evidence:
    """Cones, and where positive neurons of all directions end."""

    mu: float
    cones: dict[str, list[tuple[float, float]]]
    starts: Ints
    ends: Ints
    counts: Ints
    """(STARTS, 2) activation at first."""
    tracks: list[Floats]
    """(T, 2) directions of the neurons drawn."""


def evidence(_: Runs) -> Evidence:
    """Follow positive neurons from all directions."""
    angles = np.radians(np.arange(STARTS) * 360.0 / STARTS + 0.5)
    W = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    W = W[regions(TOY_X, TOY_Y, W) != DEAD]
    shown = np.radians(SHOWN)
    tracked = np.stack([np.cos(shown), np.sin(shown)], axis=1)
    times = [*np.linspace(0.0, 3.0, 300), np.inf]
    flow = sphere_flow(TOY_X, TOY_Y, W, np.ones(len(W)), [np.inf], loss_factor=6).directions[-1]
    tracks = sphere_flow(TOY_X, TOY_Y, tracked, np.ones(len(tracked)), times, loss_factor=6).directions
    ends = regions(TOY_X, TOY_Y, flow)
    ends[(TOY_X @ flow.T).max(axis=0) <= 1e-9] = DEAD  # a neuron that dies stops at the boundary
    cones = {
        "plus": cone_angles(TOY_X, TOY_Y > 0),
        "minus": cone_angles(TOY_X, TOY_Y < 0),
        "dead": cone_angles(TOY_X, np.zeros(6, dtype=bool)),
    }
    counts = activation_counts(TOY_X, TOY_Y, W)
    tracks_list = [tracks[:, k] for k in range(len(SHOWN))]
    return Evidence(correlation(TOY_X, TOY_Y).mu, cones, regions(TOY_X, TOY_Y, W), ends, counts, tracks_list)


def claims(found: Evidence) -> list[Claim]:
    """Compare with the caption and Theorem 1."""
    active = found.counts[:, 0] > 0
    lost = np.count_nonzero(~np.isin(found.ends, (PLUS, DEAD)))
    return [
        claim("mu", "The data satisfy Assumption 1 (mu)", "Figure 2", expected=more_than(0.0), measured=found.mu),
        claim(
            "fates",
            "Every positive neuron ends in S+ or Sdead (neurons elsewhere)",
            "Figure 2, Theorem 1",
            expected=exactly(0),
            measured=int(lost),
        ),
        claim(
            "active",
            "One with some activation on positive data ends in S+ (those that do not)",
            "Theorem 1",
            expected=exactly(0),
            measured=int(np.count_nonzero(found.ends[active] != PLUS)),
        ),
        claim(
            "convex",
            "S+ and S- are convex cones: one arc below 180 degrees each (widest)",
            "Section 3, Lemma 6",
            expected=exactly(1),
            measured=float(
                all(
                    len(found.cones[k]) == 1 and found.cones[k][0][1] - found.cones[k][0][0] < 180
                    for k in ("plus", "minus")
                )
            ),
        ),
        claim(
            "both",
            "From S- a positive neuron can reach either (kinds of ends)",
            "Figure 2",
            expected=exactly(2),
            measured=len(set(found.ends[found.starts == -1].tolist())),
        ),
        finding("dead", "Starts that end in Sdead", "Figure 2", measured=int(np.count_nonzero(found.ends == DEAD))),
    ]


@styled
def draw(found: Evidence) -> Drawing:
    """Draw cones, data and tracks, each track on a circle of its own."""
    figure, (axes,) = new_figure(1, width=3.4, aspect=1.0)
    plain(axes, 1.62)
    shades = {"plus": PALETTE.positive, "minus": PALETTE.negative, "dead": PALETTE.muted}
    names = {"plus": "$S_+$", "minus": "$S_-$", "dead": r"$S_\mathrm{dead}$"}
    for name, arcs in found.cones.items():
        for low, high in arcs:
            axes.add_patch(Wedge((0, 0), 1.35, low, high, color=shades[name], alpha=0.16, lw=0, zorder=0))
            middle = np.radians((low + high) / 2)
            axes.text(1.48 * np.cos(middle), 1.48 * np.sin(middle), names[name], color=shades[name], ha="center")
    for point, label in zip(directions(TOY_X), TOY_Y, strict=True):
        arrow(axes, 0.62 * point, PALETTE.positive if label > 0 else PALETTE.negative, lw=1.1)
    for k, track in enumerate(found.tracks):
        circle = (0.8 + 0.16 * k) * track
        axes.plot(*circle.T, color=PALETTE.measured, lw=1.2, zorder=3)
        axes.plot(*circle[0], "o", color=PALETTE.measured, mec="white", ms=5, zorder=4)
        axes.plot(*circle[-1], "X", color=PALETTE.measured, mec="white", ms=7, zorder=4)
    return figure


FIGURE = Figure(
    id="min2024-fig2",
    caption=(
        "Data of Figure 6 (arrows, purple +1, red -1) and the cones S+, S- and Sdead. Curves are directions "
        "of positive neurons along the directional flow, each on a circle of its own, from the dot to the "
        "cross."
    ),
    origin=ASSUMED,
    evidence=evidence,
    claims=claims,
    draw=draw,
)
