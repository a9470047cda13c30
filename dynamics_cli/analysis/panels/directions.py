"""`directions`: where the neurons of a two-layer network point over training."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from matplotlib.figure import Figure

from dynamics_cli.analysis.panels.common import mark_iteration, some_neurons
from dynamics_cli.analysis.scales import time_scale
from dynamics_cli.analysis.view import View
from dynamics_cli.measures.arrays import Floats, Ints
from dynamics_cli.measures.neurons import angle_of, cosines, norms
from dynamics_cli.measures.spectra import leading_directions
from dynamics_cli.plotting.layout import figure_legend, note, panel_label
from dynamics_cli.plotting.panels.directions import draw_directions
from dynamics_cli.plotting.panels.shared import sign_handle
from dynamics_cli.plotting.style import new_figure

NAMED_POINTS = 6
"""Data points up to which their directions are named in the margin."""


@dataclass(frozen=True)
class Curves:
    """Directions (k, m) of the neurons, as angles in degrees or as cosines, and directions to compare with."""

    kind: Literal["angle", "cosine"]
    label: str
    values: Floats
    references: dict[str, float] = field(default_factory=dict)


def directions_missing(view: View) -> str | None:
    """Return why directions cannot be drawn, or None."""
    if "hidden_weight" not in view.run.parameters:
        return "the hidden weights of a two-layer network are not recorded"
    if view.hidden_shape[1] == 1:
        return "inputs have a single column, so neurons only point up or down"
    return None if view.states else "no finite weights are recorded yet"


def directions_figure(view: View, iteration: int | None) -> Figure:
    """Draw angles in the plane, or cosines in higher dimension; `iteration` is marked."""
    m, d = view.hidden_shape
    states, drawn = view.curve_states(m * d), some_neurons(m)
    curves = [_angles(view, states, drawn)] if d == 2 else _cosines(view, states, drawn)
    signs = view.signs(view.states - 1)[drawn]
    steps = view.iterations[states]
    figure, axes = new_figure(len(curves), extra_height=0.25)
    scale = time_scale(steps, *(shown.values for shown in curves))
    for k, (panel, shown) in enumerate(zip(axes, curves, strict=True)):
        draw_directions(
            panel,
            steps,
            shown.values,
            signs,
            kind=shown.kind,
            references=shown.references,
            time_scale=scale,
            legend="none",
            ylabel=shown.label,
        )
        if len(drawn) < m:
            note(panel, f"{len(drawn)} of {m} neurons")
        if len(curves) > 1:
            panel_label(panel, k)
        mark_iteration(panel, view, iteration)
    figure_legend(figure, [sign_handle(value) for value in (1, -1) if (signs == value).any()])
    return figure


def _angles(view: View, states: Ints, drawn: Ints) -> Curves:
    """Return angles, and those of the data where they are few."""
    angles = np.stack([angle_of(view.weights(i)[drawn]) for i in states])
    references = {}
    if not view.no_dataset and view.dataset.n <= NAMED_POINTS:
        references = {f"$x_{{{k + 1}}}$": float(angle) for k, angle in enumerate(angle_of(view.dataset.x))}
        references = {name: angle for name, angle in references.items() if np.isfinite(angle)}
    return Curves("angle", "direction of $w_j^t$ (degrees)", angles, references)


def _cosines(view: View, states: Ints, drawn: Ints) -> list[Curves]:
    """Return cosines with the leading direction of the last hidden weights and with the label-weighted mean input.

    The second is where the gradient points at first, for neurons that are active on all data.
    """
    named: list[tuple[str, Floats]] = []
    last = view.weights(view.states - 1)
    if norms(last).any():
        named.append(("cosine with leading direction", leading_directions(last, 1)[0]))
    if not view.no_dataset:
        data = view.dataset
        named.append((r"cosine with $\Sigma_k\, y_k x_k$", data.y @ data.x))
    weights = [view.weights(i)[drawn] for i in states]
    return [Curves("cosine", label, np.stack([cosines(w, v) for w in weights])) for label, v in named]
