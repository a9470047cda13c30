"""The neurons of a two-layer network: `rays`, `polar`, `norms` and `directions`; of a deep network, norms of layers.

Also `images`, the first weights of networks of digits, and `spectrum`, the singular values of weights over training.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dynamics_cli.analysis.curves import draw_over_training, note_some, some_neurons, time_scale, value_scale
from dynamics_cli.analysis.registry import Detail, panel
from dynamics_cli.analysis.states import draw_scenes, scene_panel, shown_states
from dynamics_cli.analysis.view import View, no_states, spread
from dynamics_cli.measures.arrays import Floats, Ints
from dynamics_cli.measures.neurons import angle_of, cosines, norms
from dynamics_cli.measures.spectra import leading_directions, project, singular_values
from dynamics_cli.plotting.layout import figure_legend, format_number, place_legend
from dynamics_cli.plotting.panels.neurons import (
    MANY_STARS,
    RaysData,
    draw_directions,
    draw_norms,
    polar_scene,
    rays_scene,
    sign_handle,
)
from dynamics_cli.plotting.panels.spectrum import draw_spectrum
from dynamics_cli.plotting.scene import ZERO, Numbers, Role, Scene, SceneLayer, levels
from dynamics_cli.plotting.style import SERIES
from dynamics_cli.plotting.time_axis import TimeScale, draw_curve, set_time_axis, set_value_axis, visible

Plane = Callable[[int], Floats]
"""Index of a state -> coordinates (m, 2) of its neurons."""
LIMITS = (1, 1.5, 2, 3, 4, 8, 10, 15)
"""Norms of the outer ring of `polar` whose inner rings, at round norms, leave room for labels."""
SIDE, TILES = 28, 36
"""Pixels of a side of an image of a digit, and neurons whose weights are drawn as images at most."""
PIXELS = SIDE**2
NAMED_POINTS = 6
"""Data points up to which their directions are named in the margin of `directions`."""


def no_hidden_weights(view: View) -> str | None:
    """Return why there are no neurons to draw, or None."""
    if "hidden_weight" in view.run.parameters:
        return None if len(view.iterations) else "no state is recorded yet"
    return f"the hidden weights of a two-layer network are not recorded{_there(view)}"


def _there(view: View) -> str:
    """Return which weights are recorded, to end a message on missing weights."""
    there = ", ".join(view.run.parameters)
    return f"; there are {there}" if there else " (see record.parameters in its config)"


def no_layers(view: View) -> str | None:
    """Return why there are no weights of layers to draw, or None."""
    if view.layers and not len(view.iterations):
        return "no state is recorded yet"
    return None if view.layers else f"no weight matrices are recorded{_there(view)}"


def _not_two_columns(view: View) -> str | None:
    d = view.hidden_shape[1]
    return None if d == 2 else f"neurons have {d} weights and not 2, the bias included; see polar"


def _one_column(view: View) -> str | None:
    return "inputs have a single column, so neurons only point up or down" if view.hidden_shape[1] == 1 else None


def _no_plane(view: View) -> str | None:
    m, d = view.hidden_shape
    return "a single neuron spans no plane" if d > 2 and m == 1 else None


@panel("rays", "neurons in the plane as rays, on the scale of each state", no_hidden_weights, _not_two_columns)
def rays_figure(view: View, iteration: int | None) -> Figure:
    """Draw the neurons at the state nearest to `iteration`, or at four states, each on a scale of its own."""
    return draw_scenes(view, shown_states(view, iteration), plane_scene, own=True, columns=5)


def plane_scene(view: View, states: Sequence[int], detail: Detail) -> Scene:
    """Describe the neurons as rays in the plane of `plane_of`, on a scale that suits all `states`."""
    plane, names = plane_of(view)
    m, d = view.hidden_shape
    drawn, data = spread(m, detail.neurons), None
    if d == 2 and view.no_dataset is None:
        signed = view.dataset.y.ndim == 1 and not view.classifies
        data = RaysData(view.dataset.x, view.dataset.y if signed else None)
        names = ("weight $w_{j,1}$", "bias $w_{j,2}$") if view.dataset.bias else names
    scene = rays_scene(
        lambda i: plane(i)[drawn], lambda i: view.signs(i)[drawn], common_limit([plane(i) for i in states]),
        data=data, names=names, many=m > MANY_STARS,
    )  # fmt: skip
    where = "the plane of their weights" if d == 2 else "the plane of the two leading directions of the last weights"
    title = "Neurons in the plane" if d == 2 else "Neurons along principal directions"
    says = f"{len(drawn)} of {m} neurons in {where}, coloured by the sign of their output weight, with their paths."
    return replace(scene, title=title, alternative=says)


@panel(
    "polar", "neurons by angle and norm, on one scale", no_hidden_weights, _one_column, _no_plane, no_states,
    scene=plane_scene,
)  # fmt: skip
def polar_figure(view: View, iteration: int | None) -> Figure:
    """Draw the neurons at the state nearest to `iteration`, or at four states on a common scale."""
    look: dict[str, Any] = {"aspect": 1.0, "columns": 3, "title_pad": 9}
    return draw_scenes(view, shown_states(view, iteration), stars_scene, **look)


def stars_scene(view: View, states: Sequence[int], detail: Detail) -> Scene:
    """Describe the neurons in polar coordinates of the plane of `plane_of`, on a scale that suits all `states`."""
    plane, names = plane_of(view)
    return polar_scene(plane, view.signs, common_limit([plane(i) for i in states]), states=states, names=names)


def _no_images(view: View) -> str | None:
    if not hasattr(view.run.config.dataset, "chosen"):  # the digits in the order of their classes
        return "its inputs are no images of digits"
    seen = view.weight_shape(view.layers[0])[1]
    return None if seen in (PIXELS, PIXELS + 1) else "its first layer does not see all pixels"


@scene_panel("images", "first weights as images of digits", no_layers, _no_images, no_states)
def images_scene(view: View, states: Sequence[int], detail: Detail) -> Scene:
    """Describe the first weights of the neurons of the largest final norm as images, each state on its own scale."""

    def weights(i: int) -> Floats:
        return view.weights(i, view.layers[0])[:, :PIXELS]

    last = norms(weights(view.states - 1))
    chosen = np.sort(np.argsort(-last, kind="stable")[:TILES])
    columns = int(np.ceil(np.sqrt(len(chosen))))
    rows, side = -(-len(chosen) // columns), SIDE + 1

    def pixels(i: int) -> Numbers:
        whole = np.full((rows * side + 1, columns * side + 1), ZERO, np.uint8)
        for k, tile in enumerate(levels(weights(i)[chosen]).reshape(-1, SIDE, SIDE)):
            top, left = 1 + side * (k // columns), 1 + side * (k % columns)
            whole[top : top + SIDE, left : left + SIDE] = tile
        return whole[::-1]

    fill = [Role("positive", "above 0"), Role("negative", "below 0")]
    return Scene(
        title="Weights of the first layer as images",
        alternative=f"The weights of {len(chosen)} of {len(last)} neurons on the {SIDE} x {SIDE} pixels, those of the "
        "largest final norm; each state on the scale of its largest weight.",
        layers=[SceneLayer(form="field", roles=fill, at=pixels, shade=(0.0, 1.0))], framed=False,
        window=(0.0, columns * side + 1.0, 0.0, rows * side + 1.0),
        remark=lambda i: f"darkest: {format_number(float(np.abs(weights(i)[chosen]).max()))}",
    )  # fmt: skip


def plane_of(view: View) -> tuple[Plane, tuple[str, str]]:
    """Return the plane in which neurons are drawn, and the names of its two directions.

    Above two dimensions it is that of the two leading right-singular vectors of the last hidden weights.
    """
    if view.hidden_shape[1] == 2:
        return view.weights, ("$w_{j,1}$", "$w_{j,2}$")
    basis = leading_directions(view.weights(view.states - 1))
    return lambda i: project(view.weights(i), basis), ("PC 1", "PC 2")


def common_limit(coordinates: Sequence[Floats]) -> float:
    """Return a norm that no finite neuron of several states (m, 2) exceeds, one of `LIMITS` x a power of ten."""
    lengths = np.concatenate([norms(w[np.isfinite(w).all(axis=1)]) for w in coordinates])
    largest = float(lengths.max(initial=0.0))
    if not 0 < largest < np.inf:
        return 1.0
    power = int(np.floor(np.log10(largest)))
    return next(limit for m in LIMITS if (limit := float(f"{m}e{power}")) >= largest * (1 - 1e-9))


@panel("norms", "norms of neurons or layers over training", no_layers, no_states, log="xy")
def norms_figure(view: View, iteration: int | None) -> Figure:
    """Draw the norm of every neuron of two layers, or of every layer of a deep network; `iteration` is marked."""
    draw = _draw_neuron_norms if view.two_layer else _draw_layer_norms
    return draw_over_training(view, iteration, [lambda axes: draw(axes, view)], extra_height=0.25)


def _draw_neuron_norms(axes: Axes, view: View) -> None:
    m, d = view.hidden_shape
    states, drawn = view.curve_states(m * d), some_neurons(m)
    lengths = np.stack([norms(view.weights(i)[drawn]) for i in states])  # (k, m)
    steps, log = view.iterations[states], value_scale(lengths, view.log) == "log"
    signs = view.signs(view.states - 1)[drawn]
    draw_norms(axes, steps, lengths, signs, log=log, time_scale=time_scale(steps, lengths, asked=view.log))
    note_some(axes, len(drawn), m)


def _draw_layer_norms(axes: Axes, view: View) -> None:
    """Draw the Frobenius norm of every weight matrix."""
    states = view.curve_states(sum(int(np.prod(view.weight_shape(name))) for name in view.layers))
    lengths = np.stack([[norms(view.weights(i, name).ravel()) for name in view.layers] for i in states])  # (k, L)
    steps = view.iterations[states]
    log = set_value_axis(axes, lengths, r"norm $\Vert W_\ell^t\Vert_F$", log=value_scale(lengths, view.log) == "log")
    scale = time_scale(steps, lengths, asked=view.log)
    lines = []
    for k, (name, values) in enumerate(zip(view.layers, visible(lengths, log=log).T, strict=True)):
        look = {"color": SERIES[k % len(SERIES)], "label": layer_title(name), "ls": "-" if k < len(SERIES) else "--"}
        lines.append(draw_curve(axes, steps, values, log_time=scale == "log", **look))
    set_time_axis(axes, steps, scale)
    place_legend(axes, lines, "below", columns=4)


def layer_title(name: str) -> str:
    """Return `W_2` in mathtext for `weight_2`, `query1` for `weight_query1`, and `W` for the weights of two layers."""
    number = name.rpartition("_")[2]
    return f"$W_{{{number}}}$" if number.isdigit() else "$W$" if number == "weight" else number


@panel("directions", "directions of neurons over training", no_hidden_weights, _one_column, no_states, log="x")
def directions_figure(view: View, iteration: int | None) -> Figure:
    """Draw angles in the plane, or cosines in higher dimension; `iteration` is marked."""
    m, d = view.hidden_shape
    states, drawn = view.curve_states(m * d), some_neurons(m)
    kind: Literal["angle", "cosine"] = "angle" if d == 2 else "cosine"
    if d == 2:
        angles = np.stack([angle_of(view.weights(i)[drawn]) for i in states])  # (k, m)
        curves, references = {"direction of $w_j^t$ (degrees)": angles}, _data_angles(view)
    else:
        curves, references = _cosines(view, states, drawn), {}
    signs, steps = view.signs(view.states - 1)[drawn], view.iterations[states]
    scale = time_scale(steps, *curves.values(), asked=view.log)

    def drawer(label: str) -> Callable[[Axes], None]:
        def draw(axes: Axes) -> None:
            options: dict[str, Any] = {"kind": kind, "references": references, "time_scale": scale}
            draw_directions(axes, steps, curves[label], signs, ylabel=label, **options)
            note_some(axes, len(drawn), m)

        return draw

    figure = draw_over_training(view, iteration, [drawer(label) for label in curves], extra_height=0.25)
    figure_legend(figure, [sign_handle(value) for value in (1, -1) if (signs == value).any()])
    return figure


def _data_angles(view: View) -> dict[str, float]:
    """Return the angles of the data where they are few, by name."""
    if view.no_dataset or view.dataset.n > NAMED_POINTS:
        return {}
    angles = angle_of(view.dataset.x)
    return {f"$x_{{{k + 1}}}$": float(angle) for k, angle in enumerate(angles) if np.isfinite(angle)}


def _cosines(view: View, states: Ints, drawn: Ints) -> dict[str, Floats]:
    """Return cosines (k, m) with the leading direction of the last hidden weights and the label-weighted mean input.

    The second is where the gradient points at first, for neurons that are active on all data.
    """
    named: dict[str, Floats] = {}
    last = view.weights(view.states - 1)
    if norms(last).any():
        named["cosine with leading direction"] = leading_directions(last, 1)[0]
    if not view.no_dataset and view.dataset.y.ndim == 1 and not view.classifies:
        named[r"cosine with $\Sigma_k\, y_k x_k$"] = view.dataset.y @ view.dataset.x
    weights = [view.weights(i)[drawn] for i in states]
    return {label: np.stack([cosines(w, v) for w in weights]) for label, v in named.items()}


SVD_SPEED = 5
"""Multiplications of a decomposition that take as long as reading one weight."""


class Spectrum(NamedTuple):
    """Singular values (k, r) and stable rank (k,) of a weight matrix at k iterations."""

    iterations: Ints
    values: Floats
    rank: Floats


@panel("spectrum", "singular values and stable rank of weights over training", no_layers, no_states, log="xy")
def spectrum_figure(view: View, iteration: int | None) -> Figure:
    """Draw the spectrum of the hidden weights, or of every layer of a deep network; `iteration` is marked."""
    spectra = [read_spectrum(view, name) for name in view.layers]
    titles = [layer_title(name) for name in view.layers]
    scale: TimeScale = (
        "log" if "log" in {time_scale(s.iterations, s.values, s.rank, asked=view.log) for s in spectra} else "linear"
    )
    drawn: list[list[Line2D]] = []

    def drawer(spectrum: Spectrum, title: str) -> Callable[[Axes], None]:
        of = f"({title.strip('$')})" if "$" in title else ""
        label = rf"singular values $\sigma_i{of}$"
        log = value_scale(spectrum.values[:, 0], view.log) == "log"
        return lambda axes: drawn.append(draw_spectrum(axes, *spectrum, ylabel=label, log=log, time_scale=scale))

    draw = [drawer(spectrum, title) for spectrum, title in zip(spectra, titles, strict=True)]
    aspect = 0.72 if len(spectra) == 1 else 0.8
    figure = draw_over_training(view, iteration, draw, titles=titles, aspect=aspect, extra_height=0.3)
    figure_legend(figure, max(drawn, key=len), columns=5)
    return figure


def read_spectrum(view: View, name: str) -> Spectrum:
    """Decompose a weight matrix at the recorded states, or at some of them when that takes long."""
    m, d = view.weight_shape(name)
    states = view.curve_states(m * d * min(m, d) // SVD_SPEED)
    values = np.stack([singular_values(view.weights(i, name)) for i in states])  # (k, r)
    top = values[:, :1]
    shares = np.divide(values, top, out=np.full_like(values, np.nan), where=top > 0)
    return Spectrum(view.iterations[states], values, np.sum(shares**2, axis=1))
