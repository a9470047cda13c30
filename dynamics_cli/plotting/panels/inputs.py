"""A network as a function of one input with data and neurons; windows around data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.plotting.panels.neurons import MANY_STARS
from dynamics_cli.plotting.scene import Limits, Role, Scene, SceneLayer, Window, fixed
from dynamics_cli.plotting.style import Floats

Function = Callable[[Floats], Floats]
INPUT = "input $x$"
OUTPUT = r"output $h_\theta(x)$"
NEURON = r"neuron $\mathsf{s}_j\,\Vert w_j\Vert$"

# -- One input: function, data and neurons (Boursier et al. 2022, Fig. 2)


class LineNetwork(NamedTuple):
    """A network of one input: its function, and where the stars of its m neurons stand."""

    function: Function
    """Inputs (k,) -> outputs (k,)."""
    kinks: Floats
    """(m,) `-b_j / w_j`."""
    outputs: Floats
    """(m,) `s_j ||w_j||`."""


class Frame(NamedTuple):
    """The axes that all states share: of inputs, of outputs, and on the right of neurons."""

    window: Limits
    limits: Limits
    neuron_limits: Limits


Data = tuple[Floats, Floats]
"""Inputs (n,) and labels (n,)."""


def line_scene(
    network: Callable[[int], LineNetwork],
    width: int,
    data: Data,
    frame: Frame,
    *,
    held: Data | None = None,
    points: int = 512,
) -> Scene:
    """Describe data, the function at `points` inputs and at kinks, and `width` neurons as stars.

    `network` gives a state by its index. The stars have their own axis on the right; the remark
    counts those outside of the frame, or at no finite position. Raises ValueError for data of
    unequal lengths.
    """
    low, high = frame.window
    grid = np.linspace(low, high, points)

    def curve(i: int) -> Floats:
        net = network(i)
        x = np.union1d(grid, net.kinks[(net.kinks >= low) & (net.kinks <= high)])  # kinks are sharp
        return np.column_stack([x, net.function(x)])

    def stars(i: int) -> Floats:
        net = network(i)
        seen = (net.kinks >= low) & (net.kinks <= high) & np.isfinite(net.outputs)
        return np.where(seen[:, None], np.column_stack([net.kinks, net.outputs]), np.nan)

    def remark(i: int) -> str:
        outside = int(np.isnan(stars(i)).any(axis=1).sum())
        if not outside:
            return ""
        return f"{outside} \N{BLACK STAR} outside"

    def samples(name: str, pair: Data, **look: Any) -> SceneLayer:
        roles = [Role("data", name)]
        rows = fixed(np.column_stack(pair))
        return SceneLayer(form="points", roles=roles, at=rows, moves=False, **look)

    layers = [samples("data", data, z=4, size=5.5)]
    if held is not None:
        layers.append(samples("held-out data", held, z=3, size=4.5, hollow=True))
    layers.append(
        SceneLayer(
            form="line", roles=[Role("function", r"estimated function $h_\theta$")], at=curve, z=2
        )
    )
    says = f"Curve of the network's output over its input, with {len(data[0])} data points"
    scene = Scene(
        title="Function and data",
        alternative=f"{says}.",
        layers=layers,
        window=(*frame.window, *frame.limits),
        xlabel=INPUT,
        ylabel=OUTPUT,
        square=False,
        zero="y",
        right_label=NEURON,
    )
    if not width:
        return scene
    look: dict[str, Any] = {"size": 7.0, "alpha": 1.0, "z": 2.5}
    if width > MANY_STARS:
        look = {"size": 3.0, "alpha": 0.3, "z": 1.0}  # pale stars lie below the function
    star = [Role("neurons", "neurons", "*")]
    layers.append(SceneLayer(form="points", roles=star, at=stars, right=True, **look))
    return replace(
        scene,
        title="Function, data and neurons",
        alternative=f"{says} and {width} neurons at their kinks, as high as sign times norm.",
        right=frame.neuron_limits,
        remark=remark,
    )


def default_window(x: ArrayLike) -> Limits:
    """Return the range of the finite inputs `x`, 25 % wider on both sides; 1 for a single input."""
    finite = np.asarray(x, dtype=np.float64)
    finite = finite[np.isfinite(finite)]
    if len(finite) == 0:
        return -1.0, 1.0
    margin = 0.25 * float(finite.max() - finite.min()) or 1.0
    return float(finite.min() - margin), float(finite.max() + margin)


def common_zero(left: ArrayLike, right: ArrayLike, margin: float = 0.1) -> tuple[Limits, Limits]:
    """Return limits of two y axes with level zeros and all finite values, with some `margin`.

    Values that are all 0 (or none) get the unit interval's share of the axis.
    """
    extents = [_extent(left), _extent(right)]
    shares = [(down / (down + up), up / (down + up)) for down, up in extents]
    down = max(share[0] for share in shares)
    up = max(share[1] for share in shares)
    limits = []
    for low, high in extents:
        unit = max(low / down if down else 0.0, high / up if up else 0.0)
        pad = margin * (down + up)
        limits.append((-unit * (down + pad), unit * (up + pad)))
    return limits[0], limits[1]


def _extent(values: ArrayLike) -> tuple[float, float]:
    """Return how far the finite values reach below and above 0; (0, 1) when they are all 0."""
    array = np.asarray(values, dtype=np.float64)
    array = array[np.isfinite(array)]
    down = float(-array.min(initial=0.0))
    up = float(array.max(initial=0.0))
    if down + up == 0:
        return 0.0, 1.0
    return down, up


def data_window(x: ArrayLike, margin: float = 0.25) -> Window:
    """Return a square window around data (n, 2) and origin; the margin is a share of its width."""
    points = np.concatenate([np.asarray(x, dtype=np.float64)[:, :2], np.zeros((1, 2))])
    low = points.min(axis=0)
    high = points.max(axis=0)
    middle = (low + high) / 2
    half = float((high - low).max()) * (0.5 + margin) or 1.0
    return (middle[0] - half, middle[0] + half, middle[1] - half, middle[1] + half)
