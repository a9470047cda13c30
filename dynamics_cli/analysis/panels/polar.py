"""`polar`: the neurons by angle and norm, in their plane or in that of the two leading directions of the last state."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dynamics_cli.analysis.panels.rays import MANY_STARS
from dynamics_cli.analysis.states import shown_states, state_row
from dynamics_cli.analysis.view import View
from dynamics_cli.measures.arrays import Floats
from dynamics_cli.measures.neurons import norms
from dynamics_cli.measures.spectra import leading_directions, project
from dynamics_cli.plotting.layout import figure_legend
from dynamics_cli.plotting.panels.polar import draw_polar
from dynamics_cli.plotting.panels.shared import sign_handle

Plane = Callable[[int], Floats]
"""Index of a state -> coordinates (m, 2) of its neurons."""
LIMITS = (1, 1.5, 2, 3, 4, 8, 10, 15)
"""Norms of the outer ring whose inner rings, at round norms, leave room for labels."""


def polar_missing(view: View) -> str | None:
    """Return why neurons cannot be drawn in polar coordinates, or None."""
    if "hidden_weight" not in view.run.parameters:
        return "the hidden weights of a two-layer network are not recorded"
    m, d = view.hidden_shape
    if d == 1:
        return "inputs have a single column, so neurons only point up or down"
    if d > 2 and m == 1:
        return "a single neuron spans no plane"
    return None if view.states else "the recorded weights are not finite"


def polar_figure(view: View, iteration: int | None) -> Figure:
    """Draw the neurons at the state nearest to `iteration`, or at four states on a common scale."""
    states = shown_states(view, iteration)
    plane, names = plane_of(view)
    coordinates = [plane(state.index) for state in states]
    limit = common_limit(coordinates)
    figure, axes = state_row(len(states), 1.0, single=1.0)
    handles: list[Artist] = []
    for panel, state, w in zip(axes, states, coordinates, strict=True):
        signs = view.signs(state.index)
        draw_plane(panel, w, signs, limit, names)
        panel.set_title(state.title, pad=9)
        handles += sign_handles(signs)
    figure_legend(figure, handles, columns=3)
    return figure


def plane_of(view: View) -> tuple[Plane, tuple[str, str]]:
    """Return the plane in which neurons are drawn, and the names of its two directions.

    Above two dimensions it is that of the two leading right-singular vectors of the last hidden weights.
    """
    if view.hidden_shape[1] == 2:
        return view.weights, ("$w_{j,1}$", "$w_{j,2}$")
    basis = leading_directions(view.weights(view.states - 1))
    return lambda i: project(view.weights(i), basis), ("PC 1", "PC 2")


def draw_plane(axes: Axes, coordinates: Floats, signs: Floats, limit: float, names: tuple[str, str]) -> None:
    """Draw neurons (m, 2) with their signs (m,) in a disc of radius `limit`, small when they are very many."""
    panel = draw_polar(axes, coordinates, signs, limit=limit, legend="none", names=names)
    if len(coordinates) > MANY_STARS:
        panel.stars.set(sizes=[7.0], linewidths=0, alpha=0.5, rasterized=True)


def common_limit(coordinates: list[Floats]) -> float:
    """Return a norm that no finite neuron of several states (m, 2) exceeds, one of `LIMITS` x a power of ten."""
    lengths = np.concatenate([norms(w[np.isfinite(w).all(axis=1)]) for w in coordinates])
    largest = float(lengths.max(initial=0.0))
    if not 0 < largest < np.inf:
        return 1.0
    power = int(np.floor(np.log10(largest)))
    return next(limit for m in LIMITS if (limit := float(f"{m}e{power}")) >= largest * (1 - 1e-9))


def sign_handles(signs: Floats) -> list[Artist]:
    """Return legend handles for the signs that there are."""
    return [sign_handle(value, marker="*") for value in (1, -1, 0) if (signs == value).any()]
