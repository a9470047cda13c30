"""Figure 2: the cones S+, S- and Sdead and the fates of positive neurons."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.patches import Wedge

from dynamics_cli import kit
from dynamics_cli.theory.sphere_flow import sphere_flow

from .sketches import ASSUMED, TOY_X, TOY_Y, arrow, cone_angles, plain
from .theory.cones import DEAD, MINUS, PLUS, activation_counts, centres, correlation, regions

STARTS = 180
SHOWN = (140.0, 215.0)
"""Initial angles of the neurons drawn, both in S_-: one is repelled into S_+, one into S_dead."""


@dataclass(frozen=True)
class Evidence:
    """Cones, and where positive neurons of all directions end."""

    cones: dict[str, list[tuple[float, float]]]
    W: kit.Floats
    """(m, 2) the directions from which live neurons start."""
    ends: kit.Ints
    """(m,) regions."""
    tracks: kit.Floats
    """(T, 2, 2) directions of the neurons drawn."""
    fates: kit.Ints
    """(2,) where these end."""


def evidence(_: kit.Runs) -> Evidence:
    """Follow positive neurons from all directions."""
    angles = np.radians(np.arange(STARTS) * 360.0 / STARTS + 0.5)
    W = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    W = W[regions(TOY_X, TOY_Y, W) != DEAD]
    shown = np.radians(SHOWN)
    tracked = np.stack([np.cos(shown), np.sin(shown)], axis=1)
    times = [*np.linspace(0.0, 3.0, 300), np.inf]
    limits = sphere_flow(TOY_X, TOY_Y, W, np.ones(len(W)), [np.inf], loss_factor=6).directions[-1]
    cones = {
        "plus": cone_angles(TOY_X, TOY_Y > 0),
        "minus": cone_angles(TOY_X, TOY_Y < 0),
        "dead": cone_angles(TOY_X, np.zeros(6, dtype=bool)),
    }
    tracks = sphere_flow(TOY_X, TOY_Y, tracked, np.ones(len(tracked)), times, loss_factor=6).directions
    return Evidence(cones, W, _ends(limits), tracks, _ends(tracks[-1]))


def _ends(limits: kit.Floats) -> kit.Ints:
    """Return the regions (m,) of neurons `limits (m, 2)` that do not move any more."""
    ends = regions(TOY_X, TOY_Y, limits)
    ends[(TOY_X @ limits.T).max(axis=0) <= 1e-9] = DEAD  # a neuron that dies stops at the boundary
    return ends


def claims(e: Evidence) -> list[kit.Claim]:
    """Compare with the caption and Theorem 1."""
    active = activation_counts(TOY_X, TOY_Y, e.W)[:, 0] > 0
    from_minus = e.ends[regions(TOY_X, TOY_Y, e.W) == MINUS]
    arcs = [e.cones[name] for name in ("plus", "minus")]
    widest = max(max(high - low for low, high in one) if len(one) == 1 else 360.0 for one in arcs)
    return [
        kit.theory("mu", "The data satisfy Assumption 1 (mu)",
                   "Figure 2", kit.more_than(0.0), correlation(TOY_X, TOY_Y).mu),
        kit.theory("fates", "Every positive neuron ends in S+ or Sdead (neurons elsewhere)",
                   "Figure 2, Theorem 1", kit.exactly(0), np.count_nonzero(~np.isin(e.ends, (PLUS, DEAD)))),
        kit.theory("active", "One with some activation on positive data ends in S+ (those that do not)",
                   "Theorem 1", kit.exactly(0), np.count_nonzero(e.ends[active] != PLUS)),
        kit.theory("convex", "S+ and S- are convex cones: one arc each (the wider in degrees; 360 for several)",
                   "Section 3, Lemma 6", kit.less_than(180.0), widest),
        kit.theory("both", "From S- a positive neuron can reach either (kinds of ends)",
                   "Figure 2", kit.exactly(2), len(np.unique(from_minus))),
        kit.finding("dead", "Starts that end in Sdead", "Figure 2", np.count_nonzero(e.ends == DEAD)),
    ]  # fmt: skip


@kit.styled
def draw(e: Evidence) -> kit.Drawing:
    """Draw cones, data and tracks, each track on a circle of its own."""
    figure, (axes,) = kit.new_figure(1, width=3.6, aspect=0.84)
    plain(axes, 1.62, (-1.55, 1.15))
    shades = {"plus": kit.PALETTE.positive, "minus": kit.PALETTE.negative, "dead": kit.PALETTE.muted}
    names = {"plus": "$S_+$", "minus": "$S_-$", "dead": r"$S_\mathrm{dead}$"}
    for name, arcs in e.cones.items():
        for low, high in arcs:
            axes.add_patch(Wedge((0, 0), 1.35, low, high, color=shades[name], alpha=0.16, lw=0, zorder=0))
            middle = np.radians((low + high) / 2)
            axes.text(1.48 * np.cos(middle), 1.48 * np.sin(middle), names[name], color=shades[name], ha="center")
    for point, label in zip(kit.directions(TOY_X), TOY_Y, strict=True):
        arrow(axes, 0.45 * point, kit.PALETTE.sign(label), lw=0.9)
    for centre, sign in zip(kit.directions(np.array(centres(TOY_X, TOY_Y))), "+-", strict=True):
        arrow(axes, 0.72 * centre, kit.PALETTE.sign(float(f"{sign}1")), lw=2.2)
        place = 0.66 * centre - np.array([0.0, 0.13])
        axes.text(
            place[0], place[1], f"$x_{sign}$", color=kit.PALETTE.sign(float(f"{sign}1")), ha="center", va="center"
        )
    for k, track in enumerate(np.swapaxes(e.tracks, 0, 1)):
        circle = (0.85 + 0.16 * k) * track
        axes.plot(*circle.T, color=kit.PALETTE.measured, lw=1.2, zorder=3)
        axes.plot(*circle[0], kit.MARKER, color=kit.PALETTE.measured, mec="white", ms=5, zorder=4)
        axes.plot(*circle[-1], "X", color=kit.PALETTE.measured, mec="white", ms=7, zorder=4)
        middle = (
            1.08 * circle[int(np.argmin(np.linalg.norm(track - kit.directions((track[:1] + track[-1:]) / 2), axis=1)))]
        )
        fate = {PLUS: "reaches $S_+$", DEAD: "dies"}.get(int(e.fates[k]), "")
        axes.text(middle[0], middle[1], fate, color=kit.PALETTE.measured, fontsize=7, ha="center", va="center")
    return figure


FIGURE = kit.Figure(
    id="min2024-fig2",
    caption=(
        "Data of Figure 6 (thin arrows, purple +1, red -1), their centres x+ and x-, and the cones S+, S- and Sdead. "
        "Curves are directions of positive neurons along the directional flow, each on a circle of its own, from the "
        "dot to the cross."
    ),
    origin=ASSUMED,
)  # fmt: skip
