"""The panel `regions` on every kind of network of two inputs."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from dynamics_cli.analysis.panels import PANELS, draw_panel
from dynamics_cli.analysis.scenes import regions_scene
from dynamics_cli.analysis.view import PRINT, View
from dynamics_cli.api import train
from dynamics_cli.config import RunConfig
from dynamics_cli.plotting.scene import ZERO
from tests.cases import read

BASE = read("""
name: regions
dataset:
  kind: points
  x: [[1.0, 0.2], [0.8, 1.0], [-1.0, 0.1], [-0.9, -1.0]]
  y: [1, 1, -1, -1]
architecture: {kind: two_layer, width: 9, activation: leaky_relu, slope: 0.1}
initialization: {kind: unbalanced, scale: 1.0}
loss: {kind: logistic}
optimizer: {kind: gd, lr: 0.1, iterations: 30}
""")
KINDS = read("""
plain: {}
bias:
  dataset:
    kind: points
    x: [[1.0, 0.2], [0.8, 1.0], [-1.0, 0.1], [-0.9, -1.0]]
    y: [1, 1, -1, -1]
    append_bias: true
deep:
  architecture: {kind: fully_connected, widths: [7, 6], activation: relu}
deep_without_bias:
  architecture: {kind: fully_connected, widths: [7, 6], activation: relu, bias: false}
centred:
  architecture: {kind: fully_connected, widths: [7, 6], activation: tanh, centered: true}
two_classes:
  dataset:
    kind: points
    x: [[1.0, 0.2], [0.8, 1.0], [-1.0, 0.1], [-0.9, -1.0]]
    y: [1, 1, 0, 0]
  architecture: {kind: fully_connected, widths: [7, 6], activation: relu, outputs: 2}
  loss: {kind: cross_entropy}
""")


def trained(tmp_path, **changes):
    return train(RunConfig.model_validate({**BASE, **changes}), out=tmp_path / "run")


def crossed(segments, points):
    """Return whether the straight way from each of the `points` (n, 2) to the next crosses
    `segments` oddly often.
    """
    p = np.asarray(points)[:, None]
    q = np.roll(points, -1, axis=0)[:, None]
    a, b = np.reshape(segments, (-1, 2, 2)).transpose(1, 0, 2)

    def side(u, v, w):
        return np.sign((v - u)[..., 0] * (w - u)[..., 1] - (v - u)[..., 1] * (w - u)[..., 0])

    both = (side(p, q, a) != side(p, q, b)) & (side(a, b, p) != side(a, b, q))
    return both.sum(axis=1) % 2 == 1


@pytest.mark.parametrize("kind", KINDS)
def test_regions_are_those_of_the_network(kind, tmp_path):
    run = trained(tmp_path, **KINDS[kind])
    view = View(run)
    assert PANELS["regions"].missing(view) is None
    last = len(run.snapshot_iterations) - 1
    scene = regions_scene(view, [last], PRINT)
    boundary = next(layer for layer in scene.layers if layer.form == "segments").at(last)
    x = np.random.default_rng(0).uniform(scene.window[::2], scene.window[1::2], (500, 2))

    def positive(x):
        h = run.network(last)(np.column_stack([x, np.ones(len(x))]) if kind == "bias" else x)
        return (h[:, 1] - h[:, 0] if h.ndim == 2 else h) > 0

    pixel = (scene.window[1] - scene.window[0]) / PRINT.side
    near = [
        positive(x + pixel * np.array(corner)) for corner in itertools.product((-1, 1), repeat=2)
    ]
    clear = x[np.all(near, axis=0) | ~np.any(near, axis=0)]
    assert len(clear) > 450
    assert_array_equal(crossed(boundary, clear), positive(clear) != np.roll(positive(clear), -1))
    for iteration in (None, 10):
        assert draw_panel(run, "regions", iteration).axes


CLASSES = read("""
dataset: {kind: points, x: [[1.0, 0.2], [0.8, 1.0], [-1.0, 0.1], [-0.9, -1.0]], y: [1, 2, 0, 0]}
architecture: {kind: fully_connected, widths: [7, 6], activation: relu, outputs: 3}
loss: {kind: cross_entropy}
""")


@pytest.mark.parametrize(
    "changes", [{"loss": {"kind": "mse"}}, CLASSES], ids=["real labels", "three classes"]
)
def test_without_two_classes_there_is_a_map_without_boundary(changes, tmp_path):
    run = trained(tmp_path, **changes)
    scene = regions_scene(View(run), [0], PRINT._replace(side=12))
    pixels = scene.layers[0]
    points = scene.layers[-1]
    assert "segments" not in [layer.form for layer in scene.layers]
    x0, x1, y0, y1 = scene.window
    x, y = np.meshgrid(np.linspace(x0, x1, 12), np.linspace(y0, y1, 12))
    h = run.network(0)(np.column_stack([x.ravel(), y.ravel()]))
    expected = h.argmax(axis=1) if h.ndim == 2 and h.shape[1] > 1 else np.sign(h.reshape(-1))
    found = pixels.at(0).reshape(-1).astype(float)
    assert_array_equal(found if pixels.form == "classes" else np.sign(found - ZERO), expected)
    assert len(points.at(0)) == 4
    assert draw_panel(run, "regions", 0).axes


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"dataset": {"kind": "points", "x": [[1.0], [2.0]], "y": [1, -1]}}, "1 dimensions"),
        ({"record": {"parameters": "none"}}, "not all parameters"),
    ],
)
def test_runs_without_regions_say_why(changes, reason, tmp_path):
    missing = PANELS["regions"].missing(View(trained(tmp_path, **changes)))
    assert missing is not None
    assert reason in missing
