from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_rgba

from dynamics_cli.plotting.panels.directions import LABEL_HEIGHT, cut_wraps, draw_directions
from dynamics_cli.plotting.panels.norms import draw_norms
from dynamics_cli.plotting.style import PALETTE, new_figure

TIMES = np.array([0, 10, 100])
NORMS = np.array([[1e-6, 2e-6, 0.0], [1e-3, 2e-6, 0.0], [1.0, 2e-6, 0.0]])


@pytest.fixture
def axes():
    figure, axes = new_figure()
    yield axes[0]
    figure.draw_without_rendering()


def test_norms_by_sign_on_a_log_axis(axes):
    panel = draw_norms(axes, TIMES, NORMS, [1, -1, -1])
    assert panel.log
    segments = panel.curves[1].get_segments()
    assert len(segments) == 1
    assert np.array_equal(segments[0], np.column_stack([TIMES, NORMS[:, 0]]))
    assert len(panel.curves[-1].get_paths()) == 2
    assert panel.curves[1].get_edgecolor()[0][:3] == pytest.approx(to_rgba(PALETTE.positive)[:3])
    assert axes.get_xlabel() == "iteration  (1 of norm 0)"
    assert panel.quantiles == {}
    assert [t.get_text() for t in panel.legend.get_texts()] == [r"$\mathsf{s}_j=+1$", r"$\mathsf{s}_j=-1$"]


def test_many_neurons_get_quantiles(axes):
    rng = np.random.default_rng(0)
    norms = np.exp(rng.normal(size=(3, 401)))
    panel = draw_norms(axes, TIMES, norms)
    assert list(panel.curves) == [0]
    assert panel.curves[0].get_alpha() < 0.15
    for line, share in zip(panel.quantiles[0], (0.05, 0.5, 0.95), strict=True):
        assert line.get_ydata() == pytest.approx(np.quantile(norms, share, axis=1))
    assert [t.get_text() for t in panel.legend.get_texts()] == ["median", "5 %, 95 %"]


@pytest.mark.parametrize("count", [1, 300])
@pytest.mark.parametrize("value", [0.0, np.nan, np.inf, 1.0])
@pytest.mark.parametrize("times", [[0], [5], [0, 1]])
@pytest.mark.parametrize("time_scale", ["linear", "log"])
def test_degenerate_norms_are_drawn(axes, count, value, times, time_scale):
    panel = draw_norms(axes, times, np.full((len(times), count), value), time_scale=time_scale)
    assert panel.log == (value == 1.0)
    assert axes.get_xlim()[0] < axes.get_xlim()[1]


def test_no_neurons(axes):
    assert draw_norms(axes, TIMES, np.empty((3, 0))).curves == {}


def test_cosines(axes):
    values = np.array([[0.1, -1.0], [0.5, np.nan], [1.0, np.nan]])
    panel = draw_directions(axes, TIMES, values, [1, -1], references={"$D_+$": 1.0})
    assert np.array_equal(panel.curves[1].get_segments()[0][:, 1], values[:, 0])
    assert axes.get_ylim() == (-1.06, 1.06)
    assert panel.references["$D_+$"].get_ydata()[0] == 1.0
    assert panel.labels["$D_+$"].get_text() == "$D_+$"


def test_angles_are_wrapped_and_cut(axes):
    panel = draw_directions(axes, TIMES, [[170.0], [190.0], [200.0]], [1], kind="angle", references={"a": 270.0})
    drawn = panel.curves[1].get_paths()[0].vertices[:, 1]
    assert drawn == pytest.approx([170.0, np.nan, -170.0, -160.0], nan_ok=True)
    assert panel.references["a"].get_ydata()[0] == -90.0
    times, angles = cut_wraps([0, 10, 20], [[170.0, 0.0], [-170.0, 10.0], [-160.0, 20.0]])
    assert times.tolist() == [0, 5, 10, 20]
    assert np.isnan(angles[1, 0])
    assert angles[:, 1].tolist() == [0, 5, 10, 20]


def test_labels_of_close_references_keep_their_distance():
    figure, (axes,) = new_figure()
    panel = draw_directions(axes, TIMES, np.zeros((3, 1)), kind="angle", references={"a": 26.0, "b": 27.0, "c": -90.0})
    figure.draw_without_rendering()
    centers = {name: label.get_window_extent() for name, label in panel.labels.items()}
    gap = (centers["b"].y0 + centers["b"].y1 - centers["a"].y0 - centers["a"].y1) / 2 * 72 / figure.dpi
    assert gap > 0.8 * LABEL_HEIGHT


def test_neurons_without_direction_are_counted(axes):
    draw_directions(axes, [0], np.full((1, 4), np.nan))
    assert axes.get_xlabel() == "iteration  (4 undirected)"


@pytest.mark.parametrize("draw", [draw_norms, draw_directions])
def test_shapes_are_checked(axes, draw):
    with pytest.raises(ValueError, match=r"expected \(k, m\)"):
        draw(axes, TIMES, NORMS[:2])
    with pytest.raises(ValueError, match="1 signs for 3 neurons"):
        draw(axes, TIMES, NORMS, [1])
