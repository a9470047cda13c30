"""Panels that Figures 1, 2 and 4 share: singular values, rows of a weight matrix in the plane,
correlations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics_cli import kit

HIGH = 0.9
"""A correlation that the paper calls high."""
SHOWN = 10
"""Singular values drawn."""
RAYS = {"rank": "$w_+$", "function": "$w_-$"}
"""Roles of the colours of w+ and w-, with their names."""
NO_LINES = np.empty((0, 2))
WIDTH = 0.05
"""Of the bars of a histogram of correlations; `HIGH` is between two of them."""


def values_chart(title: str, values: kit.Floats) -> kit.Chart:
    """Chart the largest of singular values in descending order as dots."""
    shown = values[:SHOWN]
    return kit.chart(
        title,
        "singular value",
        kit.line(1, shown, look="theory points"),
        xlabel="index",
        ticks=(1, 4, 7, 10),
        limits_x=(0.5, SHOWN + 0.5),
        limits=(-0.05 * shown[0], 1.08 * shown[0]),
    )


def from_zero(ends: kit.Floats, look: str, name: str = "") -> list[kit.Line]:
    """Return lines from 0 to their ends (k, 2)."""
    return [kit.line((0, x), (0, y), name, look) for x, y in ends]


def ray_lines(rays: kit.Floats, length: float) -> list[kit.Line]:
    """Return dashed lines of a length along w+ and w- (2, 2), if they are given."""
    ends = zip(length * kit.directions(rays), RAYS.items(), strict=False)
    return [kit.line((0, x), (0, y), name, f"{role} dashed 1.2") for (x, y), (role, name) in ends]


def plane_chart(
    title: str,
    points: kit.Floats,
    side: NDArray[Any],
    names: Mapping[str, str],
    means: kit.Floats = NO_LINES,
    rays: kit.Floats = NO_LINES,
) -> kit.Chart:
    """Chart rows (m, 2) in the plane, each axis to its own scale: the second direction is often
    much the shorter one.

    `names` are roles of colours with the names of rows of a positive side (m,) and of the others.
    Lines from 0 are drawn along main directions (k, 2), dashed ones along w+ and w- (2, 2)
    projected on the plane.
    """
    far = 1.12 * float(kit.norms(points).max(initial=1e-12))
    ends = np.array([points.min(axis=0), points.max(axis=0), np.zeros(2)])
    low = ends.min(axis=0)
    high = ends.max(axis=0)
    half = 0.56 * np.maximum(high - low, 1e-12)
    (left, bottom), (right, top) = (low + high) / 2 - half, (low + high) / 2 + half
    x, y = points.T
    rows = zip((side > 0, side <= 0), names.items(), strict=False)
    return kit.chart(
        title,
        "2nd direction",
        *(kit.line(x[on], y[on], name, f"{role} .") for on, (role, name) in rows),
        from_zero(far * means, "theory 0.8", "mean directions"),
        ray_lines(rays, far),
        xlabel="1st singular direction",
        limits=(bottom, top),
        limits_x=(left, right),
    )


def correlations_chart(correlations: kit.Floats, side: NDArray[Any]) -> kit.Chart:
    """Chart the histograms of correlations (m,) by side (m,), in the colours of signs."""
    lowest = min(0.0, np.floor(np.nanmin(correlations) / WIDTH) * WIDTH)
    edges = np.linspace(lowest, 1.0, round((1.0 - lowest) / WIDTH) + 1)
    return kit.chart(
        "Correlations",
        "neurons",
        *(
            kit.stairs(edges, np.histogram(correlations[on], edges)[0], look=role)
            for on, role in ((side > 0, "positive"), (side <= 0, "negative"))
        ),
        kit.upright(HIGH, f"correlation {HIGH:g}", "theory dashed 0.9"),
        xlabel="correlation",
        limits=(0, None),
    )
