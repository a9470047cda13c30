from __future__ import annotations

import numpy as np
import pytest

from dynamics_cli.plotting.panels.loss import draw_loss
from dynamics_cli.plotting.style import PALETTE


def test_curve_plateaus_and_labels(axes):
    iterations = np.arange(0, 20_001, 50)
    losses = np.where(iterations < 9000, 0.5, 0.1)
    panel = draw_loss(axes, iterations, losses, plateaus=[(0.5, 0, 9000), (0.1, 9000, 20_000)])
    assert panel.log
    assert axes.get_yscale() == "log"
    assert np.array_equal(panel.line.get_xdata(), iterations)
    assert np.array_equal(panel.line.get_ydata(), losses)
    assert panel.line.get_color() == PALETTE.measured
    assert [list(line.get_xdata()) for line in panel.plateaus] == [[0, 9000], [9000, 20_000]]
    assert [list(line.get_ydata()) for line in panel.plateaus] == [[0.5, 0.5], [0.1, 0.1]]
    assert [label.get_text() for label in panel.labels] == ["0.5", "0.1"]
    assert axes.get_ylabel() == r"training loss $L(\theta^t)$"


def test_a_long_curve_keeps_its_spike(axes):
    losses = np.ones(300_000)
    losses[123_456] = 7.0
    panel = draw_loss(axes, np.arange(300_000), losses)
    assert len(panel.line.get_ydata()) < 10_000
    assert panel.line.get_ydata().max() == 7.0


def test_exact_zeros_are_a_mark_on_the_log_axis(axes):
    panel = draw_loss(axes, np.arange(6), [1.0, 0.1, 0.01, 0.0, 0.0, 0.0])
    assert np.isnan(panel.line.get_ydata()).tolist() == [False] * 3 + [True] * 3
    assert [mark.get_text() for mark in panel.marks] == ["exactly 0 from 3"]
    assert axes.get_ylim()[0] > 1e-3


def test_divergence_is_marked(axes):
    panel = draw_loss(axes, np.arange(4), [1.0, 10.0, np.inf, np.nan])
    assert [mark.get_text() for mark in panel.marks] == ["not finite from 2"]


@pytest.mark.parametrize("losses", [[0.0, 0.0], [np.nan, np.nan], [1.0, 1.0], [0.3, 1e-30]])
@pytest.mark.parametrize("scale", ["log", "linear"])
@pytest.mark.parametrize("time_scale", ["log", "linear"])
def test_degenerate_losses_are_drawn(axes, losses, scale, time_scale):
    panel = draw_loss(axes, [0, 1], losses, scale=scale, time_scale=time_scale, plateaus=[(0.0, 0, 1)])
    assert panel.log == (scale == "log" and max(losses) > 0)


def test_one_iteration(axes):
    assert draw_loss(axes, [0], [0.5]).line.get_marker() == "o"


def test_two_runs_share_the_window(axes):
    draw_loss(axes, [0, 10], [1.0, 1e-6], label="a")
    draw_loss(axes, [0, 5], [1.0, 0.5], label="b")
    assert axes.get_ylim()[0] < 1e-6
    assert axes.get_xlim()[1] > 10


def test_shapes_are_checked(axes):
    with pytest.raises(ValueError, match="losses of shape"):
        draw_loss(axes, [0, 1, 2], [1.0, 2.0])
