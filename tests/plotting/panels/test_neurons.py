from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from matplotlib.colors import to_rgba

from dynamics_cli.plotting.panels import neurons
from dynamics_cli.plotting.style import PALETTE, new_figure

W = np.array([[0.3, 0.4], [-0.6, 0.0], [0.0, 0.0], [0.0, -1.0]])
SIGNS = np.array([1, -1, 1, -1])
TIMES = np.array([0, 10, 100])
ANGLES = {"kind": "angle", "ylabel": "degrees"}
NORMS = np.array([[1e-6, 2e-6, 0.0], [1e-3, 2e-6, 0.0], [1.0, 2e-6, 0.0]])


def test_shared_pieces():
    assert neurons.as_signs([2.5, -0.1, 0, np.nan], 4).tolist() == [1, -1, 0, 0]
    assert [neurons.round_up(v) for v in (0.0, np.nan, 1.0, 1.01, 0.13, 9.0, 3e-20)] == pytest.approx(
        [1, 1, 1, 1.5, 0.15, 10, 3e-20]
    )
    assert neurons.free_angle([], [0.5, 1.0]) == 0.5
    assert neurons.free_angle([0.5], [0.6, 1.0]) == 1.0
    assert neurons.sign_handle(1).get_color() == PALETTE.positive
    assert neurons.sign_handle(-1, marker="*").get_marker() == "*"


def test_norms_by_sign_on_a_log_axis(axes):
    neurons.draw_norms(axes, TIMES, NORMS, [1, -1, -1])
    assert axes.get_yscale() == "log"
    positive, negative = axes.collections
    segments = positive.get_segments()
    assert len(segments) == 1
    assert np.array_equal(segments[0], np.column_stack([TIMES, NORMS[:, 0]]))
    assert len(negative.get_paths()) == 2
    assert positive.get_edgecolor()[0][:3] == pytest.approx(to_rgba(PALETTE.positive)[:3])
    assert axes.get_xlabel() == "iteration  (1 of norm 0)"
    assert not axes.lines
    assert [t.get_text() for t in axes.get_legend().get_texts()] == [r"$\mathsf{s}_j=+1$", r"$\mathsf{s}_j=-1$"]


def test_many_neurons_get_quantiles(axes):
    rng = np.random.default_rng(0)
    norms = np.exp(rng.normal(size=(3, 401)))
    neurons.draw_norms(axes, TIMES, norms, np.zeros(401))
    (curves,) = axes.collections
    assert curves.get_alpha() < 0.15
    for line, share in zip(axes.lines, (0.05, 0.5, 0.95), strict=True):
        assert line.get_ydata() == pytest.approx(np.quantile(norms, share, axis=1))
    assert [t.get_text() for t in axes.get_legend().get_texts()] == ["median", "5 %, 95 %"]


@pytest.mark.parametrize("count", [1, 300])
@pytest.mark.parametrize("value", [0.0, np.nan, np.inf, 1.0])
@pytest.mark.parametrize("times", [[0], [5], [0, 1]])
@pytest.mark.parametrize("time_scale", ["linear", "log"])
def test_degenerate_norms_are_drawn(axes, count, value, times, time_scale):
    neurons.draw_norms(axes, times, np.full((len(times), count), value), np.ones(count), time_scale=time_scale)
    assert (axes.get_yscale() == "log") == (value == 1.0)
    assert axes.get_xlim()[0] < axes.get_xlim()[1]


def test_no_neurons(axes):
    neurons.draw_norms(axes, TIMES, np.empty((3, 0)), [])
    assert not axes.collections


def test_cosines(axes):
    values = np.array([[0.1, -1.0], [0.5, np.nan], [1.0, np.nan]])
    neurons.draw_directions(axes, TIMES, values, [1, -1], kind="cosine", ylabel="cosine", references={"$D_+$": 1.0})
    assert np.array_equal(axes.collections[0].get_segments()[0][:, 1], values[:, 0])
    assert axes.get_ylim() == (-1.06, 1.06)
    assert axes.lines[0].get_ydata()[0] == 1.0
    assert [label.get_text() for label in axes.texts] == ["$D_+$"]


def test_angles_are_wrapped_and_cut(axes):
    neurons.draw_directions(axes, TIMES, [[170.0], [190.0], [200.0]], [1], **ANGLES, references={"a": 270.0})
    drawn = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert drawn == pytest.approx([170.0, np.nan, -170.0, -160.0], nan_ok=True)
    assert axes.lines[0].get_ydata()[0] == -90.0
    times, angles = neurons.cut_wraps([0, 10, 20], [[170.0, 0.0], [-170.0, 10.0], [-160.0, 20.0]])
    assert times.tolist() == [0, 5, 10, 20]
    assert np.isnan(angles[1, 0])
    assert angles[:, 1].tolist() == [0, 5, 10, 20]


def test_labels_of_close_references_keep_their_distance():
    figure, (axes,) = new_figure()
    neurons.draw_directions(axes, TIMES, np.zeros((3, 1)), [1], **ANGLES, references={"a": 26.0, "b": 27.0, "c": -90.0})
    figure.draw_without_rendering()
    centers = {label.get_text(): label.get_window_extent() for label in axes.texts}
    gap = (centers["b"].y0 + centers["b"].y1 - centers["a"].y0 - centers["a"].y1) / 2 * 72 / figure.dpi
    assert gap > 0.8 * neurons.LABEL_HEIGHT


def test_neurons_without_direction_are_counted(axes):
    neurons.draw_directions(axes, [0], np.full((1, 4), np.nan), np.zeros(4), **ANGLES)
    assert axes.get_xlabel() == "iteration  (4 undirected)"


@pytest.mark.parametrize("draw", [neurons.draw_norms, partial(neurons.draw_directions, kind="angle", ylabel="angle")])
def test_shapes_of_curves_are_checked(axes, draw):
    with pytest.raises(ValueError, match=r"expected \(k, m\)"):
        draw(axes, TIMES, NORMS[:2], [1, 1, 1])
    with pytest.raises(ValueError, match="1 signs for 3 neurons"):
        draw(axes, TIMES, NORMS, [1])
