from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_rgba

from dynamics_cli.plotting.panels.polar import INNER, disc_radius, draw_polar
from dynamics_cli.plotting.panels.rays import draw_rays
from dynamics_cli.plotting.panels.shared import as_signs, free_angle, round_up, sign_handle
from dynamics_cli.plotting.style import PALETTE, new_figure

W = np.array([[0.3, 0.4], [-0.6, 0.0], [0.0, 0.0], [0.0, -1.0]])
SIGNS = np.array([1, -1, 1, -1])


def test_rays_go_from_the_origin_to_the_weights_by_sign():
    figure, (axes,) = new_figure()
    panel = draw_rays(axes, W, SIGNS, data=[[3.0, 0.0], [0.0, -2.0], [0.0, 0.0]], labels=[1, -1, 1])
    figure.draw_without_rendering()
    for sign, color in ((1, PALETTE.positive), (-1, PALETTE.negative)):
        segments = np.array(panel.rays[sign].get_segments())
        assert np.array_equal(segments[:, 0], np.zeros((2, 2)))
        assert np.array_equal(segments[:, 1], W[sign == SIGNS])
        assert np.array_equal(panel.tips[sign].get_xydata(), W[sign == SIGNS])
        assert panel.tips[sign].get_markerfacecolor() == color
    assert panel.limit == 1.0
    assert [d.get_marker() for d in panel.directions] == ["^", "v"]
    assert panel.directions[0].get_xydata() == pytest.approx(np.array([[1.12, 0.0]]))
    assert panel.directions[1].get_xydata() == pytest.approx(np.array([[0.0, -1.12]]))
    assert axes.get_aspect() == 1.0
    assert len(panel.legend.get_texts()) == 4


def test_rays_of_degenerate_neurons():
    figure, axes = new_figure(3)
    assert draw_rays(axes[0], np.zeros((3, 2)), [1, 1, -1]).limit == 1.0
    panel = draw_rays(axes[1], [[np.nan, 1.0], [1e-9, 0.0]], [1, 0])
    assert list(panel.rays) == [0]
    assert "1 not finite" in axes[1].get_xlabel()
    assert draw_rays(axes[2], np.empty((0, 2)), [], data=[[1, 1]]).directions[0].get_marker() == "D"
    figure.draw_without_rendering()


def test_polar_radius_is_the_inner_circle_plus_the_norm():
    figure, (axes,) = new_figure()
    panel = draw_polar(axes, W, SIGNS, limit=2.0)
    figure.draw_without_rendering()
    at = np.asarray(panel.stars.get_offsets())
    assert np.hypot(*at.T) == pytest.approx(INNER + (1 - INNER) * np.linalg.norm(W, axis=1) / 2.0)
    moving = [0, 1, 3]
    assert np.arctan2(*at[moving].T[::-1]) == pytest.approx(np.arctan2(*W[moving].T[::-1]))
    colors = [to_rgba(PALETTE.positive if s > 0 else PALETTE.negative) for s in SIGNS]
    assert np.array_equal(panel.stars.get_facecolors(), colors)
    assert panel.inner.get_radius() == INNER
    assert {norm: ring.get_radius() for norm, ring in panel.rings.items()}[2.0] == pytest.approx(1.0)
    assert [t.get_text() for t in panel.legend.get_texts()] == [r"$\mathsf{s}_j=-1$", r"$\mathsf{s}_j=+1$"]


def test_log_radius():
    assert disc_radius([0.0, 1e-30, 1e-24, 1e-12, 1.0], 1.0, 1e-24) == pytest.approx(
        [INNER, INNER, INNER, INNER + (1 - INNER) / 2, 1.0]
    )
    figure, (axes,) = new_figure()
    panel = draw_polar(axes, W * 1e-12, SIGNS, limit=1.0, log=True, floor=1e-24)
    figure.draw_without_rendering()
    assert np.hypot(*np.asarray(panel.stars.get_offsets())[3]) == pytest.approx(INNER + (1 - INNER) / 2)
    with pytest.raises(ValueError, match="floor of a log radius"):
        draw_polar(axes, W, SIGNS, limit=1.0, log=True, floor=2.0)


@pytest.mark.parametrize("log", [True, False])
def test_polar_of_degenerate_neurons(log):
    figure, axes = new_figure(3)
    assert draw_polar(axes[0], np.zeros((3, 2)), [1, 1, -1], log=log).limit == 1.0
    panel = draw_polar(axes[1], [[np.inf, 1.0], [1e-9, 0.0]], [1, 0], log=log)
    assert len(panel.stars.get_offsets()) == 1
    assert "1 not finite" in [text.get_text() for text in axes[1].texts]
    draw_polar(axes[2], np.empty((0, 2)), [], log=log)
    figure.draw_without_rendering()


@pytest.mark.parametrize("draw", [draw_rays, draw_polar])
def test_shapes_are_checked(draw):
    _, (axes,) = new_figure()
    with pytest.raises(ValueError, match="shape"):
        draw(axes, np.zeros((3, 3)), [1, 1, 1])
    with pytest.raises(ValueError, match="2 signs for 3 neurons"):
        draw(axes, np.zeros((3, 2)), [1, 1])


def test_rays_check_the_data():
    _, (axes,) = new_figure()
    with pytest.raises(ValueError, match="directions need data"):
        draw_rays(axes, W, SIGNS, data=[[1.0]])
    with pytest.raises(ValueError, match="1 labels for 2 points"):
        draw_rays(axes, W, SIGNS, data=[[1, 0], [0, 1]], labels=[1])


def test_shared_pieces():
    assert as_signs([2.5, -0.1, 0, np.nan], 4).tolist() == [1, -1, 0, 0]
    assert [round_up(v) for v in (0.0, np.nan, 1.0, 1.01, 0.13, 9.0, 3e-20)] == pytest.approx(
        [1, 1, 1, 1.5, 0.15, 10, 3e-20]
    )
    assert free_angle([], [0.5, 1.0]) == 0.5
    assert free_angle([0.5, np.nan], [0.6, 1.0]) == 1.0
    assert sign_handle(1).get_color() == PALETTE.positive
    assert sign_handle(-1, marker="*").get_marker() == "*"
