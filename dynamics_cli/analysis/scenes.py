"""Scenes of a run: the function of one input, the regions of two, and neurons in a plane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from dynamics_cli.analysis.view import Detail, View, spread
from dynamics_cli.kinds import Architecture
from dynamics_cli.measures.arrays import Floats
from dynamics_cli.measures.neurons import kinks, norms
from dynamics_cli.measures.spectra import leading_directions, project
from dynamics_cli.plotting.panels.inputs import (
    Frame,
    LineNetwork,
    common_zero,
    data_window,
    default_window,
    line_scene,
)
from dynamics_cli.plotting.panels.neurons import MANY_STARS, RaysData, rays_scene, round_up
from dynamics_cli.plotting.scene import Numbers, Role, Scene, SceneLayer, fixed, level_set, levels

BEYOND = 10.0
"""Where a run diverged, the window is at most so many times as high as the largest label."""

# -- function: of one input, with data and neurons (Boursier et al. 2022, Figure 2)


def not_one_input(view: View) -> str | None:
    """Return why there is no function of one input, or None; the data must be there."""
    if (d := view.dataset.input_dim) != 1:
        return f"it shows functions of one input, and here inputs have {d} dimensions"
    if view.outputs != 1:
        return f"it shows one output, and here there are {view.outputs}"
    return None


def function_scene(view: View, states: Sequence[int], detail: Detail) -> Scene:
    """Describe the learned function with data and neurons, on axes that suit all `states`."""
    data = view.dataset
    width = len(neurons(view, 0)[0])
    drawn = spread(width, detail.neurons)
    held = None
    if data.x_test is not None and data.y_test is not None:
        held = (data.x_test[:, 0], data.y_test)

    def network(i: int) -> LineNetwork:
        places, outputs = neurons(view, i)
        return LineNetwork(view.line_function(i), places[drawn], outputs[drawn])

    frame = common_frame(view, states)
    points = (data.x[:, 0], data.y)
    return line_scene(network, len(drawn), points, frame, held=held, points=detail.points)


def common_frame(view: View, states: Sequence[int]) -> Frame:
    """Return axes that contain the data, and the function and the neurons in all `states`."""
    data = view.dataset
    x = data.x
    y = data.y
    if data.x_test is not None:
        x = np.concatenate([x, data.x_test])
    if data.y_test is not None:
        y = np.concatenate([y, data.y_test])
    window = default_window(x[:, 0])
    grid = np.linspace(*window, 256)
    cap = np.inf
    if view.run.status == "diverged":
        cap = BEYOND * max(float(np.abs(y).max()), 1e-12)
    curves = [np.clip(view.line_function(i)(grid), -cap, cap) for i in states]
    stars = []
    for i in states:
        places, outputs = neurons(view, i)
        stars.append(outputs[(places >= window[0]) & (places <= window[1])])
    return Frame(window, *common_zero(np.concatenate([y, *curves]), np.concatenate(stars)))


def neurons(view: View, i: int) -> tuple[Floats, Floats]:
    """Return kinks (m,) and `s_j ||w_j||` (m,) of the neurons of state `i`; none if deep.

    Without bias every kink is at 0.
    """
    if not view.two_layer:
        return np.empty(0), np.empty(0)
    W = view.weights(i)
    places = kinks(W) if W.shape[1] == 2 else np.where(W[:, 0] != 0, 0.0, np.nan)
    return places, view.signs(i) * norms(W)


# -- regions: of two inputs, with the boundary of two classes (Sarussi et al. 2021)


def not_two_inputs(view: View) -> str | None:
    """Return why there is no function of two inputs, or None; the data must be there."""
    d = view.dataset.input_dim
    architecture = view.run.config.architecture
    if not isinstance(architecture, Architecture):
        return "the kind of its network is not loaded"
    if architecture.players or not architecture.between_samples:
        return "it shows one network of points in a plane"
    if d != 2:
        return f"it shows functions of two inputs, and here inputs have {d} dimensions"
    return None


def regions_scene(view: View, states: Sequence[int], detail: Detail) -> Scene:
    """Describe output or class in the plane of inputs, the data, and the boundary of classes."""
    data = view.dataset
    several = view.outputs > 1
    window = data_window(data.x[:, :2])
    sides = [np.linspace(low, high, detail.side) for low, high in (window[:2], window[2:])]
    points = np.stack([axis.ravel() for axis in np.meshgrid(*sides)], axis=1)
    if data.bias:
        points = np.column_stack([points, np.ones(len(points))])

    @lru_cache(maxsize=1)
    def outputs(i: int) -> Floats:
        return view.network(i)(points).reshape(detail.side, detail.side, view.outputs)

    def largest(i: int) -> Numbers:
        return np.asarray(outputs(i).argmax(axis=-1), np.uint8)

    def level(i: int) -> Numbers:
        return levels(outputs(i)[..., 0])

    def boundary(i: int) -> Floats:
        h = outputs(i)
        if several:
            return level_set(h[..., -1] - h[..., 0], window)
        return level_set(h[..., 0], window)

    kind = "class {}" if view.classifies else "output {}"
    first = 0 if view.classifies else 1
    classes = [Role(f"series-{c}", kind.format(c + first)) for c in range(view.outputs)]
    fill = [Role("positive", "$h(x)>0$"), Role("negative", "$h(x)<0$"), Role("ground", "$h(x)=0$")]
    if several:
        pixels = SceneLayer(form="classes", roles=classes, at=largest, z=-1, shade=(0.45, 0.0))
    else:
        pixels = SceneLayer(form="field", roles=fill, at=level, z=-1, shade=(0.18, 0.42))
    layers = [pixels]
    if view.labels != "real" and view.outputs <= 2:
        edge = [Role("theory", "decision boundary")]
        layers.append(SceneLayer(form="segments", roles=edge, at=boundary, z=1, size=1.1))
    for held, x, y in ((False, data.x, data.y), (True, data.x_test, data.y_test)):
        if x is not None and y is not None:
            layers.append(_labelled(view, x, y, held=held))
    title = "Decision regions"
    if view.labels == "real":
        title = (
            "Largest output in the plane of inputs" if several else "Output in the plane of inputs"
        )
    return Scene(
        title=title,
        alternative=(
            f"Map of what the network says in the plane of its two inputs, with {data.n} data"
            " points."
        ),
        layers=layers,
        window=window,
    )


def _labelled(view: View, x: Floats, y: Floats, *, held: bool) -> SceneLayer:
    """Describe samples in the plane by their labels; of a vector its largest number counts."""
    look: dict[str, Any] = {
        "size": 3.4,
        "hollow": held,
        "z": 3 - held,
        "moves": False,
        "form": "points",
    }
    if view.outputs > 1:
        label = y.argmax(axis=1) if y.ndim == 2 else y
        look |= {
            "name": "held-out data" if held else "data",
            "roles": [Role(f"series-{c}") for c in range(view.outputs)],
        }
    else:
        middle = 0.5 * view.classifies
        label = np.select([y.reshape(-1) > middle, y.reshape(-1) < middle], [0, 1], 2)
        ending = f"{middle:g}${', held out' * held}"
        look["roles"] = [
            Role("positive", f"$y>{ending}"),
            Role("negative", f"$y<{ending}", "s"),
            Role("unsigned", f"$y={ending}"),
        ]
    return SceneLayer(at=fixed(np.column_stack([x[:, :2], label])), **look)


# -- rays: the neurons of a two-layer network


def no_plane(view: View) -> str | None:
    """Return why neurons span no plane, or None; their weights must be there."""
    m, d = view.hidden_shape
    return "a single neuron spans no plane" if d > 2 and m == 1 else None


def rays_of_run(view: View, states: Sequence[int], detail: Detail) -> Scene:
    """Describe neurons as rays in the plane of their weights, on a scale that suits all `states`.

    Above two dimensions it is the plane of the two leading right-singular vectors of the last
    hidden weights.
    """
    m, d = view.hidden_shape
    data = None
    names = ("$w_{j,1}$", "$w_{j,2}$")
    plane: Callable[[int], Floats] = view.weights
    if d > 2:
        basis = leading_directions(view.weights(view.states - 1))
        names = ("PC 1", "PC 2")
        plane = lambda i: project(view.weights(i), basis)  # noqa: E731
    elif view.no_dataset is None:
        signed = view.dataset.y.ndim == 1 and not view.classifies
        data = RaysData(view.dataset.x, view.dataset.y if signed else None)
        names = ("weight $w_{j,1}$", "bias $w_{j,2}$") if view.dataset.bias else names
    drawn = spread(m, detail.neurons)
    longest = 0.0
    for i in states:
        w = plane(i)
        finite = w[np.isfinite(w).all(axis=1)]
        longest = max(longest, float(norms(finite).max(initial=0.0)))
    scene = rays_scene(
        lambda i: plane(i)[drawn],
        lambda i: view.signs(i)[drawn],
        round_up(longest),
        data=data,
        names=names,
        many=m > MANY_STARS,
    )
    title = "Neurons in the plane"
    where = "their weights"
    if d > 2:
        title = "Neurons along principal directions"
        where = "the two leading directions of the last weights"
    says = (
        f"{len(drawn)} of {m} neurons in the plane of {where}, coloured by the sign of their output"
        " weight."
    )
    return replace(scene, title=title, alternative=says)
