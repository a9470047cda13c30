"""Figures 1, 2, 3, 18 and 19: neurons, data and the flow as vectors in the plane, with cones and
fates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.patches import Wedge

from dynamics_cli import kit
from dynamics_cli.theory.sphere_flow import sphere_flow

from .theory.cones import (
    DEAD,
    MINUS,
    PLUS,
    activation_counts,
    centres,
    least_correlation,
    regions,
    x_a,
)

TOY_X: kit.Floats = np.array(
    [[2.95, 0.52], [2.60, 1.50], [2.12, 2.12], [-1.54, 1.28], [-1.82, 0.84], [-1.96, 0.34]]
)
TOY_Y: kit.Floats = np.array([1.0, 1.0, 1.0, -1.0, -1.0, -1.0])
"""The data of Figure 6."""


def plain(axes: kit.Axes, reach: float, y: tuple[float, float]) -> None:
    """Make a window without axes, `reach` to both sides of 0, from `y[0]` to `y[1]`."""
    axes.set(xlim=(-reach, reach), ylim=y, aspect="equal")
    axes.set_axis_off()
    axes.plot(0, 0, kit.MARKER, ms=2.5, color=kit.PALETTE.theory, zorder=5)


def arrow(
    axes: kit.Axes,
    tip: kit.Floats,
    color: str,
    label: str = "",
    *,
    start: kit.Floats | tuple[int, int] = (0, 0),
    lw: float = 1.4,
    head: float = 10.0,
) -> None:
    """Draw an arrow from `start` to `tip` (2,) with a label at its tip; `head` is the size of
    its head in points.
    """
    look = {
        "arrowstyle": "-|>",
        "color": color,
        "lw": lw,
        "shrinkA": 0,
        "shrinkB": 0,
        "mutation_scale": head,
    }
    axes.annotate("", tuple(tip), tuple(start), arrowprops=look, zorder=4)
    if label:
        place = tip + (0.08 + 0.025 * len(label.strip("$"))) * (tip - start) / np.linalg.norm(
            tip - start
        )
        axes.annotate(
            label, tuple(place), color=color, ha="center", va="center", fontsize=8.5, zorder=6
        )


def half_plane(axes: kit.Axes, normal: kit.Floats, reach: float) -> None:
    """Shade where `<normal, z> > 0` and draw its boundary."""
    angle = float(np.degrees(np.arctan2(normal[1], normal[0])))
    shade = Wedge(
        (0, 0),
        2 * reach,
        angle - 90,
        angle + 90,
        color=kit.PALETTE.faint,
        alpha=0.6,
        zorder=0,
        lw=0,
    )
    axes.add_patch(shade)
    axes.axline(
        (0.0, 0.0), (-normal[1], normal[0]), color=kit.PALETTE.muted, lw=0.8, ls="--", zorder=1
    )


def cone_angles(x: kit.Floats, inside: kit.Bools) -> list[tuple[float, float]]:
    """Return the arcs (degrees) of directions that are active on exactly the data `inside` (n,)
    of `x (n, 2)`.
    """
    degrees = np.arange(0.0, 360.0, 0.1)
    units = np.stack([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))])
    kept = ((x @ units > 0) == inside[:, None]).all(axis=0)
    if not kept.any():
        return []
    starts = np.flatnonzero(kept & ~np.roll(kept, 1))
    ends = np.flatnonzero(kept & ~np.roll(kept, -1))
    if ends[0] < starts[0]:
        ends = np.append(ends[1:], ends[0] + len(degrees))
    return [(float(a) * 0.1, float(b) * 0.1) for a, b in zip(starts, ends, strict=True)]


X_1: kit.Floats = np.array([[1.0, 0.55], [-0.35, 0.75], [-0.85, -0.75]])
Y_1: kit.Floats = np.array([1.0, -1.0, -1.0])
W_1: kit.Floats = np.array([0.28, 0.96])
"""Drawn with length 1."""
MOMENT = 1e-6


@dataclass(frozen=True)
class Fig1Evidence:
    """The directional flow of one neuron for a moment.

    `x_a` is `x_a(w)` (Eq. 5), `predicted` `P_w x_a(w)` (Eq. 4), `measured` the change of the
    direction during `MOMENT`.
    """

    w: kit.Floats
    x_a: kit.Floats
    predicted: kit.Floats
    measured: kit.Floats


def evidence_fig1(_: kit.Runs) -> Fig1Evidence:
    """Integrate the directional flow of a neuron `w` of length 1 for a moment."""
    w = W_1 / np.linalg.norm(W_1)
    force = x_a(X_1, Y_1, w)
    path = sphere_flow(X_1, Y_1, w[None], [1.0], [0.0, MOMENT], loss_factor=len(X_1)).directions[
        :, 0
    ]
    return Fig1Evidence(
        w=w, x_a=force, predicted=force - (force @ w) * w, measured=path[1] - path[0]
    )


def claims_fig1(e: Fig1Evidence) -> list[kit.Claim]:
    turn = e.measured @ e.x_a / (MOMENT * np.linalg.norm(e.x_a))
    error = np.linalg.norm(e.measured / MOMENT - e.predicted) / np.linalg.norm(e.predicted)
    return [
        kit.theory(
            "active",
            "x1 and x2 lie inside the half-space of w (active points)",
            "Figure 1",
            kit.exactly(2),
            np.count_nonzero(X_1 @ e.w > 0),
        ),
        kit.theory(
            "sum",
            "Here $x_a(w) = x_1 - x_2$ (largest deviation)",
            "Figure 1, Eq. 5",
            kit.at_most(1e-12),
            np.abs(e.x_a - (X_1[0] - X_1[1])).max(),
        ),
        kit.theory(
            "towards",
            "The flow pushes w towards $x_a$ (change of their cosine)",
            "Figure 1",
            kit.more_than(0.0),
            turn,
        ),
        kit.theory(
            "rate",
            "The direction moves by $P_w x_a(w)$ (relative deviation of the integrated flow)",
            "Eq. 4",
            kit.at_most(1e-4),
            error,
        ),
    ]


def draw_fig1(e: Fig1Evidence) -> kit.Drawing:
    figure, (axes,) = kit.new_figure(1, width=3.2, aspect=0.72)
    plain(axes, 1.75, (-1.0, 1.45))
    half_plane(axes, W_1, 1.75)
    for k, point in enumerate(X_1):
        arrow(axes, point, kit.PALETTE.sign(Y_1[k]), f"$x_{k + 1}$")
    arrow(axes, e.x_a, kit.PALETTE.rank, "$x_a(w_j)$")
    arrow(axes, e.w, kit.PALETTE.theory, "$w_j$")
    tip = e.w + 0.45 * e.predicted
    arrow(axes, tip, kit.PALETTE.measured, start=e.w, lw=1.8)
    axes.text(
        tip[0] + 0.1, tip[1] + 0.1, r"$\mathcal{P}_{w_j}x_a(w_j)$", color=kit.PALETTE.measured
    )
    axes.text(-1.65, 1.25, r"$\langle w_j, x\rangle > 0$", fontsize=8, color=kit.PALETTE.unsigned)
    return figure


FIGURE_1 = kit.Figure(
    id="min2024-fig1",
    caption=(
        "Point x1 has label +1, x2 and x3 have -1. x1 and x2 lie in the half-space of w (shaded),"
        " so x_a = x1 - x2, and the neuron, whose output weight is positive, turns towards it."
    ),
)


STARTS = 180
SHOWN = (140.0, 215.0)
"""Initial angles of the neurons drawn, both in S_-: one is repelled into S_+, one into S_dead."""


@dataclass(frozen=True)
class Fig2Evidence:
    """Where positive neurons end from all directions.

    `tracks` (T, 2, 2) are directions of the neurons drawn, `fates` (2,) the regions where these
    end, and `cones` the arcs of the regions.
    """

    cones: dict[str, list[tuple[float, float]]]
    W: kit.Floats
    ends: kit.Ints
    tracks: kit.Floats
    fates: kit.Ints


def evidence_fig2(_: kit.Runs) -> Fig2Evidence:
    """Follow positive neurons from all directions `W` (m, 2) to the regions `ends` (m,)."""
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
    tracks = sphere_flow(
        TOY_X, TOY_Y, tracked, np.ones(len(tracked)), times, loss_factor=6
    ).directions
    return Fig2Evidence(cones, W, ends=_ends(limits), tracks=tracks, fates=_ends(tracks[-1]))


def _ends(limits: kit.Floats) -> kit.Ints:
    """Return the regions (m,) of neurons `limits (m, 2)` that do not move any more."""
    ends = regions(TOY_X, TOY_Y, limits)
    ends[(TOY_X @ limits.T).max(axis=0) <= 1e-9] = DEAD  # a neuron that dies stops at the boundary
    return ends


def claims_fig2(e: Fig2Evidence) -> list[kit.Claim]:
    active = activation_counts(TOY_X, TOY_Y, e.W)[:, 0] > 0
    from_minus = e.ends[regions(TOY_X, TOY_Y, e.W) == MINUS]
    arcs = [e.cones[name] for name in ("plus", "minus")]
    widest = max(max(high - low for low, high in arc) if len(arc) == 1 else 360.0 for arc in arcs)
    return [
        kit.theory(
            "mu",
            r"The data satisfy Assumption 1 ($\mu$)",
            "Figure 2",
            kit.more_than(0.0),
            least_correlation(TOY_X, TOY_Y),
        ),
        kit.theory(
            "fates",
            "Every positive neuron ends in S+ or Sdead (neurons elsewhere)",
            "Figure 2, Theorem 1",
            kit.exactly(0),
            np.count_nonzero(~np.isin(e.ends, (PLUS, DEAD))),
        ),
        kit.theory(
            "active",
            "A neuron with some activation on positive data ends in S+ (neurons that do not)",
            "Theorem 1",
            kit.exactly(0),
            np.count_nonzero(e.ends[active] != PLUS),
        ),
        kit.theory(
            "convex",
            "S+ and S- are convex cones: one arc each (the wider in degrees; 360 for several)",
            "Section 3, Lemma 6",
            kit.less_than(180.0),
            widest,
        ),
        kit.theory(
            "both",
            "From S- a positive neuron can reach either (kinds of ends)",
            "Figure 2",
            kit.exactly(2),
            len(np.unique(from_minus)),
        ),
    ]


def draw_fig2(e: Fig2Evidence) -> kit.Drawing:
    figure, (axes,) = kit.new_figure(1, width=3.6, aspect=0.84)
    plain(axes, 1.62, (-1.55, 1.15))
    shades = {
        "plus": kit.PALETTE.positive,
        "minus": kit.PALETTE.negative,
        "dead": kit.PALETTE.muted,
    }
    names = {"plus": "$S_+$", "minus": "$S_-$", "dead": r"$S_\mathrm{dead}$"}
    for name, arcs in e.cones.items():
        for low, high in arcs:
            axes.add_patch(
                Wedge((0, 0), 1.35, low, high, color=shades[name], alpha=0.16, lw=0, zorder=0)
            )
            middle = np.radians((low + high) / 2)
            axes.text(
                1.48 * np.cos(middle),
                1.48 * np.sin(middle),
                names[name],
                color=shades[name],
                ha="center",
            )
    for point, label in zip(kit.directions(TOY_X), TOY_Y, strict=True):
        arrow(axes, 0.45 * point, kit.PALETTE.sign(label), lw=0.9)
    for centre, sign in zip(kit.directions(np.array(centres(TOY_X, TOY_Y))), "+-", strict=True):
        arrow(axes, 0.72 * centre, kit.PALETTE.sign(float(f"{sign}1")), lw=2.2)
        place = 0.66 * centre - np.array([0.0, 0.13])
        axes.annotate(
            f"$x_{sign}$",
            place,
            color=kit.PALETTE.sign(float(f"{sign}1")),
            ha="center",
            va="center",
        )
    for k, track in enumerate(np.swapaxes(e.tracks, 0, 1)):
        circle = (0.85 + 0.16 * k) * track
        axes.plot(*circle.T, color=kit.PALETTE.measured, lw=1.2, zorder=3)
        axes.plot(*circle[0], kit.MARKER, color=kit.PALETTE.measured, mec="white", ms=5, zorder=4)
        axes.plot(*circle[-1], "X", color=kit.PALETTE.measured, mec="white", ms=7, zorder=4)
        halfway = np.argmax(track @ (track[0] + track[-1]))
        fate = {PLUS: "reaches $S_+$", DEAD: "dies"}.get(int(e.fates[k]), "")
        axes.annotate(
            fate,
            1.08 * circle[halfway],
            color=kit.PALETTE.measured,
            fontsize=7,
            ha="center",
            va="center",
        )
    return figure


FIGURE_2 = kit.Figure(
    id="min2024-fig2",
    caption=(
        "Data of Figure 6 (thin arrows, purple +1, red -1), their centres x+ and x-, and the cones"
        " S+, S- and Sdead. Curves are directions of positive neurons along the directional flow,"
        " each on a circle of its own, from the dot to the cross."
    ),
)


SAMPLE = 2
"""The point at whose boundary Figure 3 draws a neuron."""


@dataclass(frozen=True)
class Fig3Evidence:
    """Eq. 4 at every boundary.

    `rates` (b,) are `d/dt <w/||w||, x_i y_i/||x_i||>` at `<x_i, w> = 0`, for all i and sides on
    which w is not dead; `w` and its `x_a` belong to the neuron drawn.
    """

    rates: kit.Floats
    w: kit.Floats
    x_a: kit.Floats


def evidence_fig3(_: kit.Runs) -> Fig3Evidence:
    """Evaluate Eq. 4 at every boundary."""
    rates = []
    drawn = np.zeros((2, 2))
    for i, point in enumerate(TOY_X):
        unit = point / np.linalg.norm(point)
        further = np.arange(len(TOY_X)) != i
        for side in (1, -1):
            w = side * np.array([-unit[1], unit[0]])
            if not (TOY_X[further] @ w > 0).any():
                continue
            force = x_a(TOY_X[further], TOY_Y[further], w)
            rates.append(float(TOY_Y[i] * unit @ (force - (force @ w) * w)))
            if i == SAMPLE and side == 1:
                drawn = np.stack([w, force])
    return Fig3Evidence(rates=np.array(rates), w=drawn[0], x_a=drawn[1])


def claims_fig3(e: Fig3Evidence) -> list[kit.Claim]:
    floor = least_correlation(TOY_X, TOY_Y) ** 1.5 * float(np.linalg.norm(TOY_X, axis=1).min())
    return [
        kit.theory(
            "inward",
            "At every boundary the flow of a live positive neuron points inward (boundaries where "
            "not)",
            "Eq. 7, Figure 3",
            kit.exactly(0),
            np.count_nonzero(e.rates <= 0),
        ),
        kit.theory(
            "floor",
            r"At every boundary this flow points inward at a rate of $\mu^{3/2} X_\mathrm{min}$ at "
            "least",
            "Lemmas 5 and 11",
            kit.at_least(floor),
            e.rates.min(),
        ),
    ]


def draw_fig3(e: Fig3Evidence) -> kit.Drawing:
    figure, (axes,) = kit.new_figure(1, width=3.2, aspect=0.72)
    plain(axes, 1.6, (-0.85, 1.45))
    point = TOY_X[SAMPLE] / np.linalg.norm(TOY_X[SAMPLE])
    half_plane(axes, point, 1.7)
    force = e.x_a / np.linalg.norm(e.x_a)
    arrow(axes, 1.25 * point, kit.PALETTE.positive, "$x_i y_i$")
    arrow(axes, e.w, kit.PALETTE.theory)
    beside = e.w - 0.16 * point
    tip = e.w + 0.6 * (force - (force @ e.w) * e.w)
    axes.annotate("$w_j$", beside, color=kit.PALETTE.theory, ha="center", va="center", fontsize=8.5)
    arrow(axes, 1.1 * force, kit.PALETTE.rank, "$x_a(w_j)$")
    arrow(axes, tip, kit.PALETTE.measured, start=e.w, lw=1.8)
    name = r"$\mathcal{P}_{w_j}x_a$"
    axes.text(
        tip[0] + 0.08, tip[1] + 0.08, name, color=kit.PALETTE.measured, va="center", fontsize=8.5
    )
    return figure


FIGURE_3 = kit.Figure(
    id="min2024-fig3",
    caption=(
        "A positive neuron orthogonal to x_i (dashed line): under Assumption 1 its x_a has a"
        " positive product with x_i y_i, so it moves into the shaded half-space. Data of Figure 6;"
        " the lengths of x_i and x_a are not to scale."
    ),
)


Y: kit.Floats = np.array([-1.0, 1.0])
CAUGHT: kit.Floats = np.array([[1.0, 0.0], [0.5, 0.8]])
"""A negative and a positive point of positive correlation: Assumption 1 is violated."""
CROSSED: kit.Floats = np.array([[1.0, 0.0], [-0.5, 0.8]])
"""With negative correlation it holds."""
STEP = 0.01
STEPS = 400
START: kit.Floats = np.array([0.35, 0.45])
"""A positive neuron that is active on both points."""
OVER = {"boxstyle": "square,pad=0.1", "fc": "white", "ec": "none", "alpha": 0.85}
"""Box of a text on the arrows of the flow."""


@dataclass(frozen=True)
class Boundary:
    """A positive neuron on both sides of a boundary.

    `off` and `on` are the rates of `<x_1, w>` on the inactive and on the active side of `<x_1, w> =
    0`.
    """

    x: kit.Floats
    off: float
    on: float
    path: kit.Floats


def around(x: kit.Floats) -> Boundary:
    """Follow a positive neuron by small steps of w' = x_a(w) (the flow of W at fixed small norm of
    v), path (T, 2).
    """
    off = x_a(x[1:], Y[1:], np.array([0.0, 1.0])) @ x[0]
    path = [START]
    for _ in range(STEPS):
        path.append(path[-1] + STEP * x_a(x, Y, path[-1]))
    return Boundary(x, off, on=off + Y[0] * x[0] @ x[0], path=np.array(path))


def _claims(e: Boundary, source: str, *, caught: bool) -> list[kit.Claim]:
    """Compare with Appendix E.2; `caught` where the paper's boundary catches the flow."""
    sides = e.path @ e.x[0] > 0
    crossings = np.count_nonzero(sides[1:] != sides[:-1])
    sign = kit.exactly(-1.0 if caught else 1.0)
    return [
        kit.theory(
            "sides",
            f"The flow on both sides points {'towards' if caught else 'through'} the boundary",
            source,
            sign,
            np.sign(e.off * e.on),
        ),
        kit.theory(
            "assumption",
            "Assumption 1 " + ("is violated" if caught else "holds") + r" (sign of $\mu$)",
            source,
            sign,
            np.sign(least_correlation(e.x, Y)),
        ),
        (
            kit.theory(
                "zeno",
                "The path is caught: small steps cross the boundary again and again (crossings)",
                source,
                kit.more_than(10),
                crossings,
            )
            if caught
            else kit.theory(
                "once",
                "The path leaves the boundary at once and crosses it once",
                source,
                kit.exactly(1),
                crossings,
            )
        ),
    ]


def draw(e: Boundary) -> kit.Drawing:
    figure, (axes,) = kit.new_figure(1, width=3.6, aspect=0.82)
    plain(axes, 1.4, (-0.55, 1.75))
    half_plane(axes, e.x[0], 1.8)
    for point, label, name in zip(
        kit.directions(e.x), Y, ("$x_1$ ($y=-1$)", "$x_2$ ($y=+1$)"), strict=True
    ):
        arrow(axes, 0.9 * point, kit.PALETTE.sign(label))
        place = 0.9 * point + [0.0, -0.17 if point[1] < 0.1 else 0.04]
        where = "center" if point[1] < 0.1 else "left" if point[0] >= 0 else "right"
        axes.annotate(name, place, ha=where, va="bottom", fontsize=7.5, bbox=OVER, zorder=6)
    for w in np.stack(
        np.meshgrid(np.linspace(-1.3, 1.3, 10), np.linspace(-0.45, 1.65, 8)), axis=-1
    ).reshape(-1, 2):
        force = x_a(e.x, Y, w)
        if force.any():
            arrow(axes, w + 0.11 * force, kit.PALETTE.muted, start=w - 0.11 * force, lw=0.6, head=5)
        else:
            axes.plot(*w, ".", ms=2, color=kit.PALETTE.muted)
    kept = (np.abs(e.path) < 1.7).all(axis=1)
    axes.plot(*e.path[kept].T, color=kit.PALETTE.measured, lw=1.2, zorder=3)
    axes.plot(*e.path[0], kit.MARKER, color=kit.PALETTE.measured, mec="white", zorder=5)
    axes.text(
        0.03,
        -0.53,
        r"$\langle x_1, w\rangle = 0$",
        fontsize=7.5,
        color=kit.PALETTE.unsigned,
        bbox=OVER,
    )
    return figure


def _figure(number: int, x: kit.Floats, *, caught: bool, caption: str) -> kit.Figure:
    """Return a figure of the flow around the boundary of `x[0]` for the points `x (2, 2)` of
    labels `Y`.
    """
    return kit.Figure(
        id=f"min2024-fig{number}",
        caption=caption,
        evidence=lambda _: around(x),
        claims=lambda e: _claims(e, f"Appendix E.2, Figure {number}", caught=caught),
    )


FIGURES = kit.by_id(
    FIGURE_1,
    FIGURE_2,
    FIGURE_3,
    _figure(
        18,
        CAUGHT,
        caught=True,
        caption=(
            "A negative and a positive point of positive correlation. The flow of a positive neuron"
            " points to the boundary of x1 from both sides: no Caratheodory solution goes on. Blue:"
            " small steps, which chatter along it."
        ),
    ),
    _figure(
        19,
        CROSSED,
        caught=False,
        caption=(
            "As Figure 18 with points of negative correlation: the flow points the same way on both"
            " sides of the boundary of x1, so the neuron crosses it once. Blue: small steps."
        ),
    ),
)
