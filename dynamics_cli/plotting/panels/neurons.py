"""Neurons of a two-layer network by the sign of their output: as rays, in polar coordinates, and over training."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from dynamics_cli.plotting import time_axis
from dynamics_cli.plotting.layout import format_number, note, place_legend
from dynamics_cli.plotting.scene import Role, Scene, SceneLayer, Window, fixed
from dynamics_cli.plotting.style import PALETTE, SMALL, styled

SIGN_NAMES = {1: r"$\mathsf{s}_j=+1$", -1: r"$\mathsf{s}_j=-1$", 0: "no output"}
"""Signs in the order in which they are drawn, and their names in legends."""
MANY = 200
"""More neurons than this and curves over training are thinner; quantiles of norms are drawn over them."""
INNER = 0.28
"""Radius of the inner circle of polar coordinates when that of the outermost ring is 1."""
MANY_LARGE = 100
"""More stars than this in polar coordinates are smaller."""
MANY_STARS = 300
"""More neurons than this are drawn small and pale in the panels of a state."""
WITHIN = 1 / 1.22
"""Share of the half-width of a window of rays that the rays reach at most; the rest is room for the rim."""
RIM = 1.12 * WITHIN
"""Radius of the rim as a share of the half-width."""
LABEL_HEIGHT = 9.0
"""Distance in points that keeps two labels at the right edge apart."""


def as_signs(signs: ArrayLike, count: int) -> NDArray[np.int64]:
    """Return the signs (m,) of `signs` as -1, 0, 1 (0 for NaN). Raises ValueError unless there are `count`."""
    array = np.asarray(signs, dtype=np.float64).ravel()
    if len(array) != count:
        raise ValueError(f"{len(array)} signs for {count} neurons")
    return np.sign(np.nan_to_num(array)).astype(np.int64)


def sign_handle(sign: int, *, marker: str = "", size: float = 7.5) -> Line2D:
    """Return a legend handle for neurons of this sign: a marker, or a line when there is none."""
    shape: dict[str, Any] = (
        {"marker": marker, "ls": "none", "ms": size, "mec": "white", "mew": 0.3} if marker else {"lw": 1.6}
    )
    return Line2D([], [], color=PALETTE.sign(sign), label=SIGN_NAMES[sign], **shape)


def round_up(value: float) -> float:
    """Return the smallest of 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8 times a power of ten >= `value`; 1 for 0 or non-finite."""
    if not np.isfinite(value) or value <= 0:
        return 1.0
    power = 10.0 ** np.floor(np.log10(value))
    return float(
        next((m * power for m in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if m * power >= value * (1 - 1e-9)), value)
    )


def _groups(sign: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.bool_]]]:
    """Give each sign that occurs and the mask (m,) of its neurons."""
    for value in SIGN_NAMES:
        if (sign == value).any():
            yield value, sign == value


def _finite_plane(weights: ArrayLike, what: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return weights (m, 2) and which of them are finite. Raises ValueError for another shape."""
    w = np.asarray(weights, dtype=np.float64)
    if w.ndim != 2 or w.shape[1] != 2:
        raise ValueError(f"{what} need weights of shape (m, 2), not {w.shape}")
    finite = np.asarray(np.isfinite(w).all(axis=1))
    return w, finite


# Rays ---------------------------------------------------------------------------------------------------------------


class RaysData(NamedTuple):
    """Data that a picture of neurons shows by their directions."""

    x: NDArray[np.float64]
    """(n, 2)"""
    labels: NDArray[np.float64] | None = None
    """(n,): markers on the rim point up where they are positive, down where they are negative."""


def rays_scene(
    weights: Callable[[int], NDArray[np.float64]], signs: Callable[[int], NDArray[np.float64]], limit: float, *,
    data: RaysData | None = None, names: tuple[str, str] = ("$w_{j,1}$", "$w_{j,2}$"),
    sign_names: Mapping[int, str] = SIGN_NAMES, many: bool = False,
) -> Scene:  # fmt: skip
    """Describe neurons (m, 2) as rays from 0 in the colours of their signs (m,), with a dot at the tip of each.

    `weights` and `signs` give those of a state by its index; `limit` is the half-width of the window, or less where
    there are data, whose markers stand on the rim. Neurons that are not finite are left out and counted. Raises
    ValueError for weights or data that are not two-dimensional, and for as many signs or labels as do not fit them.
    """
    roles = _sign_roles(sign_names)
    tips, lost = _by_sign(weights, signs, "rays")

    def own(i: int) -> Window:
        return _square_window(round_up(float(np.nanmax(np.hypot(*tips(i).T[:2]), initial=0.0))))

    rim = _circle(RIM)
    size, alpha, pale = (1.6, 0.4, 0.06) if many else (3.2, 1.0, 0.55)
    layers = [
        SceneLayer(form="points", roles=roles, at=tips, z=3, paths=True, size=size, alpha=alpha),
        SceneLayer(
            form="segments", roles=[Role(role.color) for role in roles], z=2, option="rays", size=0.9,
            at=lambda i: np.insert(tips(i), [0, 0], 0.0, axis=1), alpha=pale,
        ),
        SceneLayer(form="line", roles=[Role("faint")], at=fixed(rim), moves=False, rim=True, z=-2, size=0.7),
    ]  # fmt: skip
    if data is not None:
        on_rim = _directions(data)
        groups = [Role("function", "$x_k$, $y_k>0$", "^"), Role("function", "$x_k$, $y_k<0$", "v")]
        groups.append(Role("function", "data direction", "D"))
        layers.append(SceneLayer(form="points", roles=groups, at=fixed(on_rim), moves=False, rim=True, z=4, size=6.0))
    return Scene(
        title="Neurons in the plane", alternative="Neurons in the plane, by the sign of their output weight.",
        layers=layers, window=_square_window(limit), own=own, xlabel=names[0], ylabel=names[1], zero="xy",
        remark=lost,
    )  # fmt: skip


def _sign_roles(names: Mapping[int, str]) -> list[Role]:
    return [Role("positive", names[1]), Role("negative", names[-1]), Role("unsigned", names.get(0, ""))]


def _by_sign(
    weights: Callable[[int], NDArray[np.float64]], signs: Callable[[int], NDArray[np.float64]], name: str
) -> tuple[Callable[[int], NDArray[np.float64]], Callable[[int], str]]:
    """Return functions that give neurons of a state with the numbers of their roles (m, 3), and how many are lost."""

    def tips(i: int) -> NDArray[np.float64]:
        w, shown = _finite_plane(weights(i), name)
        sign = as_signs(signs(i), len(w))
        return np.where(shown[:, None], np.column_stack([w, np.select([sign > 0, sign < 0], [0, 1], 2)]), np.nan)

    def lost(i: int) -> str:
        count = int(np.isnan(tips(i)).any(axis=1).sum())
        return f"{count} not finite" if count else ""

    return tips, lost


def _square_window(limit: float) -> Window:
    """Return the window [-limit, limit]^2 with room for the markers on the rim."""
    return (-limit / WITHIN, limit / WITHIN, -limit / WITHIN, limit / WITHIN)


def _directions(data: RaysData) -> NDArray[np.float64]:
    """Return where the directions of data stand on the rim, in shares of the half-width, and their groups (n', 3)."""
    x = np.asarray(data.x, dtype=np.float64)
    if x.ndim != 2 or x.shape[1] != 2:
        raise ValueError(f"directions need data of shape (n, 2), not {x.shape}")
    y = np.zeros(len(x)) if data.labels is None else np.asarray(data.labels, dtype=np.float64).ravel()
    if len(y) != len(x):
        raise ValueError(f"{len(y)} labels for {len(x)} points")
    norm = np.linalg.norm(x, axis=1)
    directed = np.isfinite(norm) & (norm > 0)
    group = np.select([y > 0, y < 0], [0, 1], 2)
    return np.column_stack([RIM * x[directed] / norm[directed, None], group[directed]])


# Polar coordinates (Boursier et al. 2022, Fig. 6) -------------------------------------------------------------------


def polar_scene(
    coordinates: Callable[[int], NDArray[np.float64]], signs: Callable[[int], NDArray[np.float64]], limit: float, *,
    states: Iterable[int] = (0,), names: tuple[str, str] = ("PC 1", "PC 2"),
) -> Scene:  # fmt: skip
    """Describe each neuron (m, 2) as a star at its angle and at radius inner circle + norm; `limit` is the outer ring.

    The inner circle is norm 0, so that directions can be read while norms are still tiny. The labels of rings stand
    where neurons of `states` leave room. Neurons that are not finite are left out and counted. Raises ValueError for
    a wrong shape.
    """
    tips, lost = _by_sign(coordinates, signs, "polar coordinates")

    def stars(i: int) -> NDArray[np.float64]:
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
    circles = [SceneLayer(form="line", roles=[Role("faint")], at=fixed(_circle(r)), moves=False, z=-4, size=0.7)
               for r in radii[:-1]]  # fmt: skip
    circles += [SceneLayer(form="line", roles=[Role("muted")], at=fixed(_circle(r)), moves=False, z=-4, size=0.8)
                for r in (INNER, 1.0)]  # fmt: skip
    size, alpha = (2.6, 0.5) if m > MANY_STARS else (6.6 if m <= MANY_LARGE else 5.5, 1.0)
    roles = [role._replace(marker="*") for role in _sign_roles(SIGN_NAMES)]
    return Scene(
        title="Neurons by angle and norm", alternative="Neurons by angle and norm, by the sign of their output weight.",
        layers=[
            SceneLayer(form="points", roles=roles, at=stars, z=3, size=size, alpha=alpha),
            SceneLayer(form="segments", roles=[Role("faint")], at=fixed(spokes), moves=False, z=-5, size=0.7),
            *circles,
        ],
        window=(-1.16, 1.16, -1.16, 1.16), framed=False, remark=lost,
        texts=[(1.14, 0.0, names[0]), (0.0, 1.1, names[1]), (0.0, 0.0, "norm\n0"),
               *((r * np.cos(at), r * np.sin(at), format_number(norm)) for norm, r in zip(rings, radii, strict=True))],
    )  # fmt: skip


def _circle(radius: float) -> NDArray[np.float64]:
    angle = np.linspace(0, 2 * np.pi, 181)
    return radius * np.column_stack([np.cos(angle), np.sin(angle)])


def disc_positions(weights: NDArray[np.float64], limit: float) -> NDArray[np.float64]:
    """Return the positions (m, 2) on the disc of `weights` (m, 2): radius `INNER` at norm 0, 1 at norm `limit`."""
    radius = INNER + (1 - INNER) * (np.hypot(weights[:, 0], weights[:, 1]) / limit)
    angle = np.arctan2(weights[:, 1], weights[:, 0])
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def free_angle(angles: ArrayLike, candidates: ArrayLike) -> float:
    """Return the first candidate angle (radians) at least 0.35 away from all `angles`, else the one farthest away."""
    options, taken = np.asarray(candidates, dtype=np.float64), np.asarray(angles, dtype=np.float64)
    if len(taken) == 0:
        return float(options[0])
    away = np.abs((options[:, None] - taken[None, :] + np.pi) % (2 * np.pi) - np.pi).min(axis=1)
    return float(options[int(np.argmax(np.minimum(away, 0.35)))])


# Over training ------------------------------------------------------------------------------------------------------


def _draw_by_sign(
    axes: Axes, times: NDArray[np.float64], values: NDArray[np.float64], sign: NDArray[np.int64],
    time_scale: time_axis.TimeScale, *, angles: bool = False,
) -> None:  # fmt: skip
    """Draw values (k, m) over times (k,) as thin curves, paler the more there are, a collection for each sign."""
    m = values.shape[1]
    thin: dict[str, Any] = {"linewidths": 0.9 if m <= MANY else 0.4, "alpha": float(np.clip(40 / max(m, 1), 0.08, 0.8))}
    for value, group in _groups(sign):
        x, y = cut_wraps(times, values[:, group]) if angles else (times, values[:, group])
        look: dict[str, Any] = {"colors": PALETTE.sign(value), "zorder": 2, **thin}
        time_axis.draw_curves(axes, x, y, log_time=time_scale == "log", **look)


@styled
def draw_norms(
    axes: Axes, iterations: ArrayLike, norms: ArrayLike, signs: ArrayLike, *, log: bool = True,
    time_scale: time_axis.TimeScale = "linear",
) -> None:  # fmt: skip
    """Draw `norms` (k, m) of m neurons over `iterations` (k,), coloured by `signs` (m,).

    Of more than `MANY` neurons also the 5, 50 and 95 % quantiles of each sign. On the log axis a norm of 0 is a gap,
    and neurons that are 0 throughout are counted in a note. Raises ValueError for shapes that differ.
    """
    times, raw = time_axis.as_times(iterations), np.asarray(norms, dtype=np.float64)
    if raw.ndim != 2 or len(raw) != len(times):
        raise ValueError(f"norms of shape {raw.shape} for {len(times)} iterations: expected (k, m)")
    m = raw.shape[1]
    sign = as_signs(signs, m)
    is_log = time_axis.set_value_axis(axes, raw, r"norm $\Vert w_j^t\Vert$", log=log)
    values = time_axis.visible(raw, log=is_log)
    _draw_by_sign(axes, times, values, sign, time_scale)
    for value, group in _groups(sign) if m > MANY else ():
        look = {"color": PALETTE.sign(value), "log_time": time_scale == "log"}
        _draw_quantiles(axes, times, raw[:, group], log=is_log, **look)
    time_axis.set_time_axis(axes, times, time_scale)
    silent = int((~np.isfinite(values)).all(axis=0).sum())
    if is_log and silent:
        note(axes, f"{silent} of norm 0")
    handles: list[Artist] = [sign_handle(value) for value, _ in _groups(sign) if sign.any()]
    if m > MANY:
        handles.append(Line2D([], [], color=PALETTE.theory, lw=1.7, label="median"))
        handles.append(Line2D([], [], color=PALETTE.theory, lw=1.1, ls=(0, (4, 1.5)), label="5 %, 95 %"))
    place_legend(axes, handles)


def _draw_quantiles(
    axes: Axes, times: NDArray[np.float64], norms: NDArray[np.float64], *, log: bool, **curve: Any
) -> None:
    """Draw the 5, 50 and 95 % quantiles over a group's finite norms (k, m_s): the median solid, the others dashed."""
    clean = np.where(np.isfinite(norms), norms, np.nan)
    some = np.isfinite(clean).any(axis=1)
    for share in (0.05, 0.5, 0.95):
        values = np.full(len(times), np.nan)
        values[some] = np.nanquantile(clean[some], share, axis=1)
        look: dict[str, Any] = {"lw": 1.7, "ls": "-"} if share == 0.5 else {"lw": 1.2, "ls": (0, (4, 1.5))}
        look["path_effects"] = [withStroke(linewidth=look["lw"] + 1.4, foreground="white")]
        time_axis.draw_curve(axes, times, time_axis.visible(values, log=log), zorder=3, **look, **curve)


@styled
def draw_directions(
    axes: Axes, iterations: ArrayLike, values: ArrayLike, signs: ArrayLike, *, kind: Literal["cosine", "angle"],
    ylabel: str, references: Mapping[str, float] | None = None, time_scale: time_axis.TimeScale = "linear",
) -> None:  # fmt: skip
    """Draw `values` (k, m), cosines or angles in degrees, of m neurons over `iterations` (k,), by `signs` (m,).

    Angles are shown in (-180, 180]; where a curve passes from one end to the other it is interrupted. `references` are
    dashed lines with labels in the right margin, such as `{"$D_+$": 26.6}`. Non-finite values (neurons without
    direction) are gaps. Raises ValueError for shapes that differ.
    """
    times, array = time_axis.as_times(iterations), time_axis.visible(values, log=False)
    if array.ndim != 2 or len(array) != len(times):
        raise ValueError(f"directions of shape {array.shape} for {len(times)} iterations: expected (k, m)")
    sign = as_signs(signs, array.shape[1])
    known = dict(references or {})
    if kind == "angle":
        array = 180 - (180 - array) % 360
        known = {name: 180 - (180 - value) % 360 for name, value in known.items()}
    _draw_by_sign(axes, times, array, sign, time_scale, angles=kind == "angle")
    time_axis.set_time_axis(axes, times, time_scale)
    reach, ticks = (190, [-180, -90, 0, 90, 180]) if kind == "angle" else (1.06, [-1, -0.5, 0, 0.5, 1])
    axes.set(ylim=(-reach, reach), yticks=ticks, ylabel=ylabel)
    _draw_references(axes, known)
    lost = int((~np.isfinite(array)).all(axis=0).sum())
    if lost:
        note(axes, f"{lost} undirected")


def cut_wraps(times: ArrayLike, angles: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return times and angles (k', m) in degrees with a row added, NaN where an angle jumps by over 180 degrees."""
    x, a = np.asarray(times, dtype=np.float64), np.asarray(angles, dtype=np.float64)
    jumps = np.abs(np.diff(a, axis=0)) > 180  # (k - 1, m)
    rows = np.flatnonzero(jumps.any(axis=1))
    middle = (a[rows] + a[rows + 1]) / 2
    middle[jumps[rows]] = np.nan
    return np.insert(x, rows + 1, (x[rows] + x[rows + 1]) / 2), np.insert(a, rows + 1, middle, axis=0)


def _draw_references(axes: Axes, references: Mapping[str, float]) -> None:
    """Draw a dashed line for every reference and its name at the right edge, pushed apart where they would touch."""
    low, high = axes.get_ylim()
    height = max(axes.get_window_extent().height * 72 / axes.figure.dpi, 1.0) / (high - low)  # points a unit
    previous = -np.inf
    for name, value in sorted(references.items(), key=lambda item: item[1]):
        axes.axhline(value, color=PALETTE.theory, lw=0.8, ls=(0, (4, 2)), zorder=2.5)
        at = max(value * height, previous + LABEL_HEIGHT)
        previous = at
        axes.annotate(
            name, (1.0, value), xycoords=axes.get_yaxis_transform(), xytext=(4, at - value * height),
            textcoords="offset points", va="center", fontsize=SMALL + 0.5, color=PALETTE.theory,
        )  # fmt: skip
