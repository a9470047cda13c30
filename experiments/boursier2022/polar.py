"""Neurons in polar coordinates, as in Figure 6: stars at their angles, at a radius that grows with their norm."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from matplotlib.ticker import MaxNLocator

from dynamics_cli import kit
from dynamics_cli.plotting.panels.neurons import MANY_STARS, by_sign, circle, sign_roles
from dynamics_cli.plotting.scene import Role, Scene, SceneLayer, fixed

INNER = 0.28
"""Radius of the inner circle when that of the outermost ring is 1."""
MANY_LARGE = 100
"""More stars than this are smaller, and let those below them be seen."""


def polar_scene(
    coordinates: Callable[[int], kit.Floats], signs: Callable[[int], kit.Floats], limit: float, *,
    states: Iterable[int] = (0,), names: tuple[str, str] = ("PC 1", "PC 2"),
) -> Scene:  # fmt: skip
    """Describe each neuron (m, 2) as a star at its angle and at radius inner circle + norm; `limit` is the outer ring.

    The inner circle is norm 0, so that directions can be read while norms are still tiny. The labels of rings stand
    where neurons of `states` leave room. Neurons that are not finite are left out and counted.
    """
    tips, lost = by_sign(coordinates, signs)

    def stars(i: int) -> kit.Floats:
        return np.column_stack([disc_positions(rows := tips(i), limit), rows[:, 2]])

    states = list(states)
    w = np.concatenate([tips(i)[:, :2] for i in states])
    m = len(w) // max(len(states), 1)
    ticks = MaxNLocator(nbins=3, steps=[1, 2, 2.5, 5, 10]).tick_values(0, limit)
    rings = [*(float(t) for t in ticks if 0 < t < 0.9 * limit), limit]
    radii = [INNER + (1 - INNER) * norm / limit for norm in rings]
    away = np.nan_to_num(np.hypot(*w.T) / limit * (1 - INNER)) > 0.3 * INNER
    at = free_angle(np.arctan2(*w[away].T[::-1]), np.radians([67.5, 112.5, -67.5, -112.5, 22.5, 157.5, -22.5, -157.5]))
    turns = np.arange(8) * np.pi / 4
    spokes = np.column_stack([r * f(turns) for r in (INNER, 1.0) for f in (np.cos, np.sin)])
    circles = [SceneLayer(form="line", roles=[Role("faint")], at=fixed(circle(r)), moves=False, z=-4, size=0.7)
               for r in radii[:-1]]  # fmt: skip
    circles += [SceneLayer(form="line", roles=[Role("muted")], at=fixed(circle(r)), moves=False, z=-4, size=0.8)
                for r in (INNER, 1.0)]  # fmt: skip
    size, alpha = (2.6, 0.5) if m > MANY_STARS else (6.6, 1.0) if m <= MANY_LARGE else (4.0, 0.75)
    labels = [(r * np.cos(at), r * np.sin(at), kit.format_number(norm)) for norm, r in zip(rings, radii, strict=True)]
    roles = [role._replace(marker="*") for role in sign_roles()]
    return Scene(
        title="Neurons by angle and norm", alternative="Neurons by angle and norm, by the sign of their output weight.",
        layers=[
            SceneLayer(form="points", roles=roles, at=stars, z=3, size=size, alpha=alpha),
            SceneLayer(form="segments", roles=[Role("faint")], at=fixed(spokes), moves=False, z=-5, size=0.7),
            *circles,
        ],
        window=(-1.16, 1.16, -1.16, 1.16), framed=False, remark=lost,
        texts=[(1.14, 0.0, names[0]), (0.0, 1.1, names[1]), (0.0, 0.0, "norm\n0"), *labels],
    )  # fmt: skip


def disc_positions(weights: kit.Floats, limit: float) -> kit.Floats:
    """Return the positions (m, 2) on the disc of `weights` (m, 2): radius `INNER` at norm 0, 1 at norm `limit`."""
    radius = INNER + (1 - INNER) * (np.hypot(weights[:, 0], weights[:, 1]) / limit)
    angle = np.arctan2(weights[:, 1], weights[:, 0])
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def free_angle(angles: kit.Floats, candidates: kit.Floats) -> float:
    """Return the first candidate angle (radians) at least 0.35 away from all `angles`, else the one farthest away."""
    options, taken = np.asarray(candidates, dtype=np.float64), np.asarray(angles, dtype=np.float64)
    if len(taken) == 0:
        return float(options[0])
    away = np.abs((options[:, None] - taken[None, :] + np.pi) % (2 * np.pi) - np.pi).min(axis=1)
    return float(options[int(np.argmax(np.minimum(away, 0.35)))])
