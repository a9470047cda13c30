"""Neurons in polar coordinates."""

from __future__ import annotations

import numpy as np
import pytest

from dynamics_cli.plotting.scene import draw_scene
from dynamics_cli.plotting.style import PALETTE, new_figure
from experiments.boursier2022.polar import INNER, polar_scene

W = np.array([[0.3, 0.4], [-0.6, 0.0], [0.0, 0.0], [0.0, -1.0]])
SIGNS = np.array([1.0, -1.0, 1.0, -1.0])


def test_polar_radius_is_the_inner_circle_plus_the_norm() -> None:
    scene = polar_scene(lambda i: W if i == 0 else -W[::-1], lambda i: SIGNS if i == 0 else -SIGNS, 2.0)
    panel = draw_scene(new_figure()[1][0], scene, 0)
    stars = {line.get_markerfacecolor(): line.get_xydata() for line in panel.axes.lines if line.get_marker() == "*"}
    for sign, color in ((1, PALETTE.positive), (-1, PALETTE.negative)):
        expected = INNER + (1 - INNER) * np.linalg.norm(W[sign == SIGNS], axis=1) / 2.0
        assert np.hypot(*stars[color].T) == pytest.approx(expected)
    assert np.arctan2(*stars[PALETTE.negative].T[::-1]) == pytest.approx([np.pi, -np.pi / 2])
    assert {text.get_text() for text in panel.axes.texts} >= {"2", "1", "PC 1", "PC 2", "norm\n0"}
    panel.move(1)
    moved = next(line for line in panel.axes.lines if line.get_markerfacecolor() == PALETTE.negative)
    assert moved.get_xydata()[0] == pytest.approx([0.0, INNER + (1 - INNER) * 0.5])
