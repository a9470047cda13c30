"""Measures of Sarussi et al. 2021: clustering, agreement, margins."""

from __future__ import annotations

import numpy as np
import pytest

from dynamics_cli.measures.agreement import (
    agreed_pattern,
    agreement_margin,
    agreement_share,
    most_disagreements,
    perfect_agreement,
)
from dynamics_cli.measures.groups import (
    cluster_radius,
    clustering_ratio,
    group_means,
    largest_angle,
    outside_linear_regime,
)
from dynamics_cli.measures.margins import normalised_margin, smoothed_margin

W = np.array([[2.0, 1.0], [2.0, -1.0]])
U = np.array([[-1.0, 0.5], [-1.0, -0.5]])


def test_radius_ratio_and_regime_by_hand():
    w_bar, u_bar = group_means(W, U)
    assert w_bar.tolist() == [2.0, 0.0]
    assert u_bar.tolist() == [-1.0, 0.0]
    assert cluster_radius(W, U) == pytest.approx(1.0)
    assert clustering_ratio(W, U) == pytest.approx(2 / 3)
    # |<(3, 0), x>| < 2 ||x||: outside where |cosine| < 2/3
    x = np.array([[1.0, 0.0], [0.0, 1.0], [0.66, np.sqrt(1 - 0.66**2)], [0.67, np.sqrt(1 - 0.67**2)]])
    assert outside_linear_regime(x, W, U).tolist() == [False, True, True, False]
    assert np.isinf(clustering_ratio(W, W))


def test_measures_take_snapshots():
    many_w, many_u = np.stack([W, 10 * W]), np.stack([U, 10 * U])
    np.testing.assert_allclose(clustering_ratio(many_w, many_u), 2 / 3)
    np.testing.assert_allclose(cluster_radius(many_w, many_u), [1, 10])
    np.testing.assert_allclose(largest_angle(many_w), 2 * np.degrees(np.arctan(0.5)))
    assert outside_linear_regime(np.eye(2), many_w, many_u).shape == (2, 2)
    with pytest.raises(ValueError, match="two halves"):
        cluster_radius(W, np.ones((2, 3)))


def test_tiny_angles_are_accurate():
    assert largest_angle([[1.0, 0.0], [1.0, 1e-9]]) == pytest.approx(np.degrees(1e-9), rel=1e-6)
    assert np.isnan(largest_angle([[1.0, 0.0], [0.0, 0.0]]))


def test_agreement_by_hand():
    x, y = np.array([[1.0, 0.0], [-1.0, 0.2], [0.1, 1.0]]), np.array([1.0, -1.0, 1.0])
    assert perfect_agreement(x, y, W).tolist() == [True, False]  # (2, -1) puts (0.1, 1) on the wrong side
    assert agreement_share(x, y, W) == 0.5
    assert agreement_share(x, y, np.stack([W, W[[0, 0]]])).tolist() == [0.5, 1.0]
    assert perfect_agreement(x, y, -W, sign=-1).tolist() == [True, False]
    assert most_disagreements(x, W) == 1
    assert most_disagreements(x, np.stack([W, W[[0, 0]]])).tolist() == [1, 0]
    assert agreed_pattern(x, W).tolist() == [1.0, -1.0, 1.0]


def test_margin_of_a_regime_is_scale_free_and_negative_outside():
    x, c = np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([1.0, -1.0])
    norm = np.sqrt((W**2).sum() + (U**2).sum())
    assert agreement_margin(x, W, U, c, -c) == pytest.approx(1 / norm)
    assert agreement_margin(x, 7 * W, 7 * U, c, -c) == pytest.approx(1 / norm)
    assert agreement_margin(x, W, U, c, c) < 0


def test_margins_of_equations_5_and_6():
    h, y = np.array([2.0, -3.0, 5.0]), np.array([1.0, -1.0, 1.0])
    assert normalised_margin(h, y, 4.0) == pytest.approx(0.5)
    assert np.isnan(normalised_margin(h, y, 0.0))
    assert smoothed_margin(0.5, 1.0) == pytest.approx(np.log(1 / (np.exp(0.5) - 1)))
    # one point with margin q: L = log(1 + exp(-q)), so exp(L) - 1 = exp(-q) and the smoothed margin is q
    q = np.array([0.1, 3.0, 30.0, 600.0])
    np.testing.assert_allclose(smoothed_margin(np.log1p(np.exp(-q)), 2.0), q / 2, rtol=1e-12)
    assert np.isfinite(smoothed_margin(1000.0, 1.0))
    with pytest.raises(ValueError, match="not negative"):
        smoothed_margin(-1.0, 1.0)
