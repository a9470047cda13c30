"""Exact level sets of a piecewise linear network of two inputs: no grid, every corner is a corner of the network.

A convex polygon is cut by the lines at which neurons switch, layer by layer and depth first, until the network is
affine on it or provably stays between two neighbouring levels; the bounds replace every undecided neuron by the two
affine functions closest to it on the polygon. So the work grows with the pieces that a level set really crosses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.measures.arrays import Floats, as_floats

Layer = tuple[Floats, Floats]
"""Weights (m, d) and biases (m,) of a layer."""
Window = tuple[float, float, float, float]
"""x from, x to, y from, y to."""
MOST_PIECES = 200_000
_TINY = 1e-12
_SLIVER = 1e-14
"""Share of the window below which a polygon is rounding: three corners in one point."""


class TooManyPiecesError(ValueError):
    """The level sets cross more linear pieces than can be drawn."""


@dataclass(frozen=True)
class _Piece:
    """A polygon on which the inputs of layer `layer` are `A p + c`, with the known facts about that layer's neurons."""

    corners: Floats  # (k, 2)
    layer: int
    A: Floats  # (m, 2) pre-activations of the layer are A p + c
    c: Floats  # (m,)


def level_sets(
    layers: Sequence[tuple[ArrayLike, ArrayLike]],
    slope: float,
    window: Window,
    levels: ArrayLike = (0.0,),
    *,
    most: int = MOST_PIECES,
) -> list[list[Floats]]:
    """Return for each level the segments (2, 2) on which a network with one output has it, in a window of the plane.

    Args:
        layers: weights and biases from the input on, the first (m, 2), the last (1, m').
        slope: of the activation for negative arguments, at least 0 (0 is ReLU, 1 linear).
        window: the rectangle that is looked at.
        levels: ascending levels.
        most: pieces looked at before giving up.

    Raises:
        TooManyPiecesError: more than `most` pieces would be needed.
        ValueError: shapes do not match, or levels do not ascend.

    """
    checked = _checked(layers)
    heights = as_floats(levels, "levels", axes=1)
    if (np.diff(heights) <= 0).any() or not np.isfinite(heights).all():
        raise ValueError("levels must be finite and ascend")
    segments: list[list[Floats]] = [[] for _ in heights]
    x0, x1, y0, y1 = window
    corners = np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]], dtype=np.float64)
    reach = np.abs(corners).max(axis=0)  # (2,) largest coordinates
    todo = [_Piece(corners, 0, *checked[0])]
    done = 0
    while todo:
        piece = todo.pop()
        done += 1
        if done > most:
            raise TooManyPiecesError(f"more than {most} linear pieces meet in this window")
        if piece.layer < len(checked) - 1:
            todo += _cut(piece, checked, slope, reach, heights)
            continue
        values = piece.corners @ piece.A[0] + float(piece.c[0])
        for level, level_segments in zip(heights, segments, strict=True):
            if values.min() < level < values.max():
                level_segments.append(_crossing(piece.corners, values - level))
    return segments


def _checked(layers: Sequence[tuple[ArrayLike, ArrayLike]]) -> list[Layer]:
    result = [(as_floats(W, "weights", axes=2), as_floats(b, "biases", axes=1)) for W, b in layers]
    sizes = [2, *(len(W) for W, _ in result)]
    if not result or sizes[-1] != 1 or any(W.shape != (len(b), d) for (W, b), d in zip(result, sizes, strict=False)):
        raise ValueError("layers must go from two inputs to one output, with a bias for every row of weights")
    return result


def _cut(piece: _Piece, layers: list[Layer], slope: float, reach: Floats, levels: Floats) -> list[_Piece]:
    """Return the halves of a piece, the piece with the next layer, or nothing where it has none of the `levels`."""
    z = piece.corners @ piece.A.T + piece.c  # (k, m)
    low, high = z.min(axis=0), z.max(axis=0)
    least = _TINY * (np.abs(piece.A) @ reach + np.abs(piece.c))  # below it a value is rounding
    undecided = (low < -least) & (high > least)
    if slope == 1.0:
        undecided[:] = False
    factor = np.where(low + high > 0, 1.0, slope)  # (m,) of decided neurons
    W, b = layers[piece.layer + 1]
    if not undecided.any():
        return [_Piece(piece.corners, piece.layer + 1, (W * factor) @ piece.A, (W * factor) @ piece.c + b)]
    if piece.layer == len(layers) - 2 and _between(z, low, high, undecided, slope, W[0], float(b[0]), levels):
        return []
    balance = np.where(undecided, np.minimum(high, -low) / np.maximum(high - low, np.finfo(float).tiny), -1.0)
    j = int(np.argmax(balance))
    halves = (_clip(piece.corners, s * piece.A[j], s * float(piece.c[j])) for s in (1.0, -1.0))
    return [
        _Piece(half, piece.layer, piece.A, piece.c) for half in halves if _area(half) > _SLIVER * float(reach.prod())
    ]


def _between(
    z: Floats, low: Floats, high: Floats, undecided: Floats, slope: float, a: Floats, b: float, levels: Floats
) -> bool:
    """Return whether all outputs on a polygon surely lie between two neighbouring levels, from affine bounds."""
    decided = np.where(low + high > 0, 1.0, slope)
    span = np.where(undecided, high - low, 1.0)
    chord = np.where(undecided, (high - slope * low) / span, decided)  # sigma is convex: above it lies its chord
    rise = np.where(undecided, high - chord * high, 0.0)
    tangent = np.where(undecided, np.where(high > -low, 1.0, slope), decided)
    upper = (z @ (a * np.where(a > 0, chord, tangent)) + np.sum(np.where(a > 0, a * rise, 0.0)) + b).max()
    lower = (z @ (a * np.where(a > 0, tangent, chord)) + np.sum(np.where(a < 0, a * rise, 0.0)) + b).min()
    return int(np.searchsorted(levels, lower, side="left")) == int(np.searchsorted(levels, upper, side="right"))


def _crossing(corners: Floats, values: Floats) -> Floats:
    """Return where an affine function with these values at the corners is 0 on the rim: (2, 2)."""
    places = []
    for p, q, f, g in zip(corners, np.roll(corners, -1, axis=0), values, np.roll(values, -1), strict=True):
        if f == 0:
            places.append(p)
        elif f * g < 0:
            places.append(p + (q - p) * (f / (f - g)))
    return np.array([places[0], places[-1]])


def _clip(corners: Floats, g: Floats, c: float) -> Floats:
    """Return the part of a convex polygon with `<g, p> + c >= 0`, corners (k, 2)."""
    values = corners @ g + c
    kept: list[Floats] = []
    for p, q, f, h in zip(corners, np.roll(corners, -1, axis=0), values, np.roll(values, -1), strict=True):
        if f >= 0:
            kept.append(p)
        if f * h < 0:
            kept.append(p + (q - p) * (f / (f - h)))
    return np.array(kept).reshape(-1, 2)


def _area(corners: Floats) -> float:
    if len(corners) < 3:
        return 0.0
    x, y = (corners - corners[0]).T
    return float(abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2)
