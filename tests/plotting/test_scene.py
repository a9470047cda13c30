"""Scenes: the numbers of a state in layers, and the artists that Matplotlib makes of them."""

import numpy as np
import pytest

from dynamics_cli.plotting.panels.inputs import Frame, LineNetwork, default_window, line_scene
from dynamics_cli.plotting.panels.neurons import RaysData, rays_scene
from dynamics_cli.plotting.scene import (
    ZERO,
    Role,
    Scene,
    SceneLayer,
    draw_scene,
    fixed,
    levels,
    tint,
)
from dynamics_cli.plotting.style import MARKER, PALETTE, new_figure

X = np.array([-0.5, 2.0])
Y = np.array([-1.0, 1.0])
FRAME = Frame(default_window(X), (-2.0, 2.0), (-1.0, 1.0))
W = np.array([[0.3, 0.4], [-0.6, 0.0], [0.0, 0.0], [0.0, -1.0]])
SIGNS = np.array([1.0, -1.0, 1.0, -1.0])


def relu(t):
    return np.maximum(t - 0.123456, 0)


def drawn(scene, **look):
    figure, (axes,) = new_figure()
    made = draw_scene(axes, scene, 0, **look)
    figure.draw_without_rendering()
    return made


def line(*states, x=X, y=Y, frame=FRAME):
    return line_scene(states.__getitem__, len(states[0].kinks), (x, y), frame)


def lines(panel):
    return dict(
        zip(
            ("stars", "function", "data"), sorted(panel.right.lines, key=len_of_marker), strict=True
        )
    )


def len_of_marker(artist):
    return ["*", "None", MARKER].index(str(artist.get_marker()))


def test_data_function_and_stars_are_where_they_belong():
    kinks = np.array([-0.5, 0.123456, 2.0, 9.0, np.inf, np.nan])
    outputs = np.array([0.4, -0.3, 0.1, 1.0, 1.0, 0.0])
    panel = drawn(line(LineNetwork(relu, kinks, outputs)))
    found = lines(panel)
    assert np.array_equal(found["data"].get_xydata(), np.column_stack([X, Y]))
    on_screen = found["data"].get_transform().transform(found["data"].get_xydata())
    assert on_screen == pytest.approx(panel.axes.transData.transform(np.column_stack([X, Y])))
    stars = found["stars"].get_xydata()
    assert np.array_equal(stars[:3], np.column_stack([kinks[:3], outputs[:3]]))
    assert np.isnan(stars[3:]).all()
    colors = [found[name].get_markerfacecolor() for name in ("data", "stars")] + [
        found["function"].get_color()
    ]
    assert colors == [PALETTE.data, PALETTE.neurons, PALETTE.function]
    assert panel.axes.get_xlabel() == "input $x$  (3 \N{BLACK STAR} outside)"
    assert panel.right.get_ylabel() == r"neuron $\mathsf{s}_j\,\Vert w_j\Vert$"
    grid, values = found["function"].get_xydata().T
    assert 0.123456 in grid  # the function is evaluated at its kinks
    assert np.array_equal(values, relu(grid))
    assert panel.axes.get_xlim() == (-1.125, 2.625)
    assert [handle.get_label() for handle in panel.handles] == [
        "data",
        r"estimated function $h_\theta$",
        "neurons",
    ]


def test_another_state_moves_the_artists_and_nothing_else():
    first = LineNetwork(relu, np.array([0.0, 9.0]), np.array([0.5, 0.5]))
    second = LineNetwork(lambda t: t, np.array([0.25, 0.5]), np.array([-0.5, 0.5]))
    panel = drawn(line(first, second))
    before = (panel.axes.get_xlim(), panel.axes.get_ylim())
    panel.move(1)
    found = lines(panel)
    assert np.array_equal(found["function"].get_xdata(), found["function"].get_ydata())
    assert found["stars"].get_xydata().tolist() == [[0.25, -0.5], [0.5, 0.5]]
    assert (panel.axes.get_xlim(), panel.axes.get_ylim()) == before
    assert panel.axes.get_xlabel() == "input $x$"


@pytest.mark.parametrize(
    ("x", "y", "kinks", "outputs"),
    [
        ([1.0], [2.0], [], []),
        ([], [], [np.nan], [0.0]),
        ([0.0, np.nan], [1.0, np.inf], [0.0, 0.0], [0.0, 0.0]),
        ([-1.0, 1.0], [0.0, 0.0], [0.0], [np.inf]),
    ],
)
def test_degenerate_input_is_drawn(x, y, kinks, outputs):
    net = LineNetwork(lambda t: np.full_like(t, np.nan), np.array(kinks), np.array(outputs))
    assert drawn(line(net, x=x, y=y)).axes.get_ylim() == (-2, 2)


def test_rays_go_from_the_origin_to_the_weights_by_sign():
    data = RaysData(np.array([[3.0, 0.0], [0.0, -2.0], [0.0, 0.0]]), np.array([1, -1, 1]))
    panel = drawn(rays_scene(lambda _: W, lambda _: SIGNS, 1.0, data=data))
    tips = {
        line.get_markerfacecolor(): line.get_xydata()
        for line in panel.axes.lines
        if line.get_marker() == MARKER
    }
    for sign, color, rays in zip(
        (1, -1), (PALETTE.positive, PALETTE.negative), panel.axes.collections, strict=False
    ):
        segments = np.array(rays.get_segments())
        assert np.array_equal(segments[:, 0], np.zeros((2, 2)))
        assert np.array_equal(segments[:, 1], W[sign == SIGNS])
        assert np.array_equal(tips[color][:, :2], W[sign == SIGNS])
    rim = {
        line.get_marker(): line.get_xydata().tolist()
        for line in panel.axes.lines
        if len(line.get_xdata()) == 1
    }
    assert rim == {"^": [pytest.approx([1.12, 0.0])], "v": [pytest.approx([0.0, -1.12])]}
    assert panel.axes.get_aspect() == 1.0
    assert panel.axes.get_xlim() == pytest.approx((-1.22, 1.22))


def test_pixels_have_the_colours_of_their_signs_or_classes():
    values = levels(np.array([[0.001, -2.0], [0.0, np.nan]]))
    assert values.tolist() == [[ZERO + 1, 1], [ZERO, ZERO]]
    assert levels(np.zeros(2)).tolist() == [ZERO, ZERO]
    roles = [Role("positive", "above"), Role("negative", "below"), Role("ground", "zero")]
    about = {"title": "", "alternative": "", "window": (0.0, 1.0, 0.0, 1.0)}
    field = SceneLayer(form="field", roles=roles, at=fixed(values), shade=(0.2, 0.4))
    panel = drawn(Scene(layers=[field], **about))
    pixels = np.asarray(panel.axes.images[0].get_array())
    assert pixels[0, 1] == pytest.approx(tint(PALETTE.negative, 0.6))
    assert pixels[1, 0] == pytest.approx(np.ones(3))
    assert [handle.get_label() for handle in panel.handles] == ["above", "below", "zero"]
    classes = SceneLayer(
        form="classes",
        roles=[Role(f"series-{c}", str(c)) for c in range(9)],
        shade=(0.5, 0.0),
        at=fixed(np.array([[8, 1]], np.uint8)),
    )
    panel = drawn(Scene(layers=[classes], **about))
    assert np.asarray(panel.axes.images[0].get_array())[0, 0] == pytest.approx(
        tint(PALETTE.series[1], 0.5)
    )
    assert [handle.get_label() for handle in panel.handles] == ["1", "8"]
