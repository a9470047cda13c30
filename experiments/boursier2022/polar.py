"""Neurons in polar coordinates, as in Figure 6: stars at their angles, at a radius that grows
with their norm.
"""

from __future__ import annotations

import numpy as np
from matplotlib.ticker import MaxNLocator

from dynamics_cli import kit
from dynamics_cli.plotting.panels.neurons import MANY_STARS, by_sign, circle, sign_roles
from dynamics_cli.plotting.scene import Role, Scene, SceneLayer, draw_scene, fixed

INNER = 0.28
"""Radius of the inner circle when that of the outermost ring is 1."""
MANY_LARGE = 100
"""More stars than this are smaller, and let those below them be seen."""
LABELS = np.array([np.cos(3 * np.pi / 8), np.sin(3 * np.pi / 8)])
"""Direction in which the norms of the rings stand."""


def draw_polar(axes: kit.Axes, neurons: kit.Floats, signs: kit.Floats, limit: float) -> None:
    """Draw each neuron (m, 2) as a star at its angle and at radius inner circle + norm; `limit` is
    the outer ring.

    The inner circle is norm 0, so that directions can be read while norms are still tiny. Neurons
    that are not finite are left out.
    """
    tips, _ = by_sign(lambda _: neurons, lambda _: signs)

    def radius(norms: kit.Floats) -> kit.Floats:
        return INNER + (1 - INNER) * norms / limit

    def stars(i: int) -> kit.Floats:
        x, y, role = tips(i).T
        angle = np.arctan2(y, x)
        r = radius(np.hypot(x, y))
        return np.column_stack([r * np.cos(angle), r * np.sin(angle), role])

    ticks = MaxNLocator(nbins=3, steps=[1, 2, 2.5, 5, 10]).tick_values(0, limit)
    rings = np.array([*(t for t in ticks if 0 < t < 0.9 * limit), limit])
    turns = np.arange(8) * np.pi / 4
    spokes = np.column_stack([r * f(turns) for r in (INNER, 1.0) for f in (np.cos, np.sin)])
    looks = [(r, "faint", 0.7) for r in radius(rings[:-1])] + [
        (r, "muted", 0.8) for r in (INNER, 1.0)
    ]
    m = len(signs)
    size, alpha = (2.6, 0.5) if m > MANY_STARS else (6.6, 1.0) if m <= MANY_LARGE else (4.0, 0.75)
    roles = [role._replace(marker="*") for role in sign_roles()]
    scene = Scene(
        title="Neurons by angle and norm",
        alternative="Neurons by angle and norm, by the sign of their output weight.",
        layers=[
            SceneLayer(form="points", roles=roles, at=stars, z=3, size=size, alpha=alpha),
            SceneLayer(
                form="segments",
                roles=[Role("faint")],
                at=fixed(spokes),
                moves=False,
                z=-5,
                size=0.7,
            ),
            *(
                SceneLayer(
                    form="line",
                    roles=[Role(color)],
                    at=fixed(circle(r)),
                    moves=False,
                    z=-4,
                    size=width,
                )
                for r, color, width in looks
            ),
        ],
        window=(-1.16, 1.16, -1.16, 1.16),
    )
    draw_scene(axes, scene, 0)
    axes.axis("off")
    names = [((1.14, 0.0), "PC 1"), ((0.0, 1.1), "PC 2"), ((0.0, 0.0), "norm\n0")]
    names += [
        (tuple(r * LABELS), kit.format_number(norm))
        for norm, r in zip(rings, radius(rings), strict=True)
    ]
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.85}
    for place, name in names:
        axes.text(
            *place,
            name,
            ha="center",
            va="center",
            fontsize=kit.SMALL,
            color=kit.PALETTE.unsigned,
            bbox=box,
            zorder=2,
        )
