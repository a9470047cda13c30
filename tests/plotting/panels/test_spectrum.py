from __future__ import annotations

import numpy as np
import pytest

from dynamics_cli.plotting.panels.spectrum import draw_explained_variance, draw_spectrum
from dynamics_cli.plotting.style import PALETTE


def test_singular_values_and_stable_rank(axes):
    sigma = np.array([[1.0, 0.5, 0.2, 0.1, 0.0], [2.0, 0.5, 0.2, 0.1, 0.0]])
    rank = (sigma**2).sum(axis=1) / sigma[:, 0] ** 2
    handles = draw_spectrum(axes, [0, 100], sigma, rank, ylabel="values")
    assert axes.get_yscale() == "log"
    for i in range(4):
        assert np.array_equal(axes.lines[i].get_ydata(), sigma[:, i])
    assert np.isnan(axes.lines[4].get_ydata()).all()
    assert np.array_equal(handles[-1].get_ydata(), rank)
    assert handles[-1].axes is not axes
    assert handles[-1].axes.get_ylim()[0] == 0
    names = [handle.get_label() for handle in handles]
    assert names == [r"$\sigma_{1}$", r"$\sigma_{2}$", r"$\sigma_{3}$", "others", "stable rank"]


@pytest.mark.parametrize("sigma", [np.zeros((1, 2)), np.full((2, 1), np.nan), np.ones((1, 4)), np.empty((2, 0))])
def test_degenerate_spectra_are_drawn(axes, sigma):
    draw_spectrum(axes, np.arange(len(sigma)), sigma, np.full(len(sigma), np.nan), ylabel="values", time_scale="log")
    assert len(axes.lines) == sigma.shape[1]


def test_spectrum_shapes_are_checked(axes):
    with pytest.raises(ValueError, match=r"expected \(k, r\)"):
        draw_spectrum(axes, [0, 1], np.ones((3, 2)), np.ones(2), ylabel="values")


def test_explained_variance_bars(axes):
    ratios = np.array([0.5, 0.25, *[0.03125] * 8])
    draw_explained_variance(axes, [*ratios, 0.015625, 0.015625])
    assert [bar.get_height() for bar in axes.patches] == ratios.tolist()
    assert [bar.get_center()[0] for bar in axes.patches] == pytest.approx(range(1, 11))
    assert [label.get_text() for label in axes.texts] == ["first 2: 0.750", "2 not shown: 0.031"]
    assert axes.texts[0].get_color() == PALETTE.measured


@pytest.mark.parametrize("ratios", [[1.0], [np.nan, np.nan], [0.0, 0.0]])
def test_degenerate_ratios_are_drawn(axes, ratios):
    draw_explained_variance(axes, ratios)
    assert len(axes.patches) == len(ratios)


def test_explained_variance_needs_a_row(axes):
    with pytest.raises(ValueError, match="one non-empty row"):
        draw_explained_variance(axes, [])
