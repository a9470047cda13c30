"""Neurons in polar coordinates."""

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.boursier2022.polar import INNER, draw_polar

from dynamics_cli.plotting.style import PALETTE, new_figure

W = np.array([[0.3, 0.4], [-0.6, 0.0], [0.0, 0.0], [0.0, -1.0]])
SIGNS = np.array([1.0, -1.0, 1.0, -1.0])


def test_polar_radius_is_the_inner_circle_plus_the_norm():
    (axes,) = new_figure()[1]
    draw_polar(axes, W, SIGNS, 2.0)
    stars = {
        line.get_markerfacecolor(): line.get_xydata()
        for line in axes.lines
        if line.get_marker() == "*"
    }
    for sign, color in ((1, PALETTE.positive), (-1, PALETTE.negative)):
        expected = INNER + (1 - INNER) * np.linalg.norm(W[sign == SIGNS], axis=1) / 2.0
        assert np.hypot(*stars[color].T) == pytest.approx(expected)
    assert np.arctan2(*stars[PALETTE.negative].T[::-1]) == pytest.approx([np.pi, -np.pi / 2])
    assert {text.get_text() for text in axes.texts} >= {"2", "1", "PC 1", "PC 2", "norm\n0"}
