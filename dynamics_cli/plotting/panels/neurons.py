"""Neurons of a two-layer network in the plane, as rays in the colours of their signs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from matplotlib.lines import Line2D

from dynamics_cli.plotting.scene import Role, Scene, SceneLayer, Window, fixed
from dynamics_cli.plotting.style import PALETTE, Floats

SIGN_NAMES = {1: r"$\mathsf{s}_j=+1$", -1: r"$\mathsf{s}_j=-1$", 0: "no output"}
"""Signs in the order in which they are drawn, and their names in legends."""
SIGN_ROLES = {1: "positive", -1: "negative", 0: "unsigned"}
"""The roles of their colours."""
MANY_STARS = 300
"""More neurons than this are drawn small and pale in the panels of a state."""
WITHIN = 1 / 1.22
"""Share of the half-width of a window that rays reach at most; the rim has the rest."""
RIM = 1.12 * WITHIN
"""Radius of the rim as a share of the half-width."""


def sign_handle(sign: int, *, marker: str = "", size: float = 7.5) -> Line2D:
    """Return a legend handle for neurons of this sign: a marker, or a line when there is none."""
    shape: dict[str, Any] = {"lw": 1.6}
    if marker:
        shape = {"marker": marker, "ls": "none", "ms": size, "mec": "white", "mew": 0.3}
    return Line2D([], [], color=PALETTE.sign(sign), label=SIGN_NAMES[sign], **shape)


def round_up(value: float) -> float:
    """Return the smallest of 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8 times a power of ten >= `value`.

    It is 1 for 0 and for values that are not finite.
    """
    if not np.isfinite(value) or value <= 0:
        return 1.0
    power = 10.0 ** np.floor(np.log10(value))
    for factor in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10):
        if factor * power >= value * (1 - 1e-9):
            return float(factor * power)
    return value


# -- Rays


class RaysData(NamedTuple):
    """Data that a picture of neurons shows by their directions."""

    x: Floats
    """(n, 2)"""
    labels: Floats | None = None
    """(n,): markers on the rim point up where they are positive, down where they are negative."""


def rays_scene(
    weights: Callable[[int], Floats],
    signs: Callable[[int], Floats],
    limit: float,
    *,
    data: RaysData | None = None,
    names: tuple[str, str] = ("$w_{j,1}$", "$w_{j,2}$"),
    sign_names: Mapping[int, str] = SIGN_NAMES,
    many: bool = False,
) -> Scene:
    """Describe neurons (m, 2) as rays from 0, with dots, in the colours of their signs (m,).

    `weights` and `signs` return them for the index of a state; `limit` is the half-width of the
    window, or less where there are data, whose markers stand on the rim. Neurons that are not
    finite are left out and counted.
    """
    roles = sign_roles(sign_names)
    tips, lost = by_sign(weights, signs)

    def window_of(i: int) -> Window:
        return _square_window(round_up(float(np.nanmax(np.hypot(*tips(i).T[:2]), initial=0.0))))

    rim = circle(RIM)
    size, alpha, pale = (1.6, 0.4, 0.06) if many else (3.2, 1.0, 0.55)
    layers = [
        SceneLayer(form="points", roles=roles, at=tips, z=3, size=size, alpha=alpha),
        SceneLayer(
            form="segments",
            roles=[Role(role.color) for role in roles],
            z=2,
            size=0.9,
            at=lambda i: np.insert(tips(i), [0, 0], 0.0, axis=1),
            alpha=pale,
        ),
        SceneLayer(
            form="line", roles=[Role("faint")], at=fixed(rim), moves=False, rim=True, z=-2, size=0.7
        ),
    ]
    if data is not None:
        on_rim = _directions(data)
        groups = [Role("function", "$x_k$, $y_k>0$", "^"), Role("function", "$x_k$, $y_k<0$", "v")]
        groups.append(Role("function", "data direction", "D"))
        layers.append(
            SceneLayer(
                form="points", roles=groups, at=fixed(on_rim), moves=False, rim=True, z=4, size=6.0
            )
        )
    return Scene(
        title="Neurons in the plane",
        alternative="Neurons in the plane, by the sign of their output weight.",
        layers=layers,
        window=_square_window(limit),
        window_of=window_of,
        xlabel=names[0],
        ylabel=names[1],
        zero="xy",
        remark=lost,
    )


def sign_roles(names: Mapping[int, str] = SIGN_NAMES) -> list[Role]:
    """Return the roles of the signs 1, -1 and 0, by the names of a legend."""
    return [Role(color, names.get(sign, "")) for sign, color in SIGN_ROLES.items()]


def by_sign(
    weights: Callable[[int], Floats], signs: Callable[[int], Floats]
) -> tuple[Callable[[int], Floats], Callable[[int], str]]:
    """Return functions of a state: its neurons with their roles (m, 3), and how many are lost."""

    def tips(i: int) -> Floats:
        w = np.asarray(weights(i), np.float64)
        sign = signs(i)
        shown = np.asarray(np.isfinite(w).all(axis=1))
        return np.where(
            shown[:, None], np.column_stack([w, np.select([sign > 0, sign < 0], [0, 1], 2)]), np.nan
        )

    def lost(i: int) -> str:
        count = int(np.isnan(tips(i)).any(axis=1).sum())
        if not count:
            return ""
        return f"{count} not finite"

    return tips, lost


def _square_window(limit: float) -> Window:
    """Return the window [-limit, limit]^2 with room for the markers on the rim."""
    return (-limit / WITHIN, limit / WITHIN, -limit / WITHIN, limit / WITHIN)


def _directions(data: RaysData) -> Floats:
    """Return places of data on the rim, as shares of the half-width, and their groups (n', 3)."""
    x = np.asarray(data.x, dtype=np.float64)
    y = np.zeros(len(x))
    if data.labels is not None:
        y = np.asarray(data.labels, dtype=np.float64).ravel()
    norm = np.linalg.norm(x, axis=1)
    directed = np.isfinite(norm) & (norm > 0)
    group = np.select([y > 0, y < 0], [0, 1], 2)
    return np.column_stack([RIM * x[directed] / norm[directed, None], group[directed]])


def circle(radius: float) -> Floats:
    """Return points (181, 2) of a circle about 0."""
    angle = np.linspace(0, 2 * np.pi, 181)
    return radius * np.column_stack([np.cos(angle), np.sin(angle)])
