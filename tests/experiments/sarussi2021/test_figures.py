"""The figures of Sarussi et al. 2021 on runs that are really trained."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.sarussi2021.extra_convergence import power
from dynamics_cli._bundled.experiments.sarussi2021.fig4 import largest_fall
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from dynamics_cli.errors import InputError
from dynamics_cli.measures.neurons import directions
from dynamics_cli.plotting.scene import ZERO
from dynamics_cli.reproduction.catalogue import load_figure
from dynamics_cli.reproduction.obtain import RunSource
from tests.experiments.helpers import (
    Evidence,
    by_id,
    drawing,
    evidence_of,
    has_line,
    labels,
    legend,
    lines,
    shown,
    titles,
    verdicts,
)
from tests.experiments.test_figures import DIGITS, FIGURES

# what is drawn


def check_curve(axes: Axes, label: str, x: np.ndarray, y: np.ndarray) -> None:
    """The line of that label goes through points of the curve, thinned out, from the first to the last."""
    (line,) = (one for one in axes.lines if one.get_label() == label)
    points = np.array(line.get_data(), dtype=float)
    np.testing.assert_array_equal(points[1], y[np.searchsorted(x, points[0])])
    assert points[0, [0, -1]].tolist() == [x[0], x[-1]]


def pixel(pixels: np.ndarray, window: tuple[float, ...], point: np.ndarray) -> int:
    """Return the level of the pixel in which a point lies."""
    low, size = np.array(window[::2]), window[1] - window[0]
    column, row = np.floor((point - low) / size * len(pixels)).astype(int)
    return int(pixels[row, column])


def check_neurons(axes: Axes, groups: Sequence[ArrayLike]) -> None:
    """Each group of neurons (k, 2) is drawn with its tips where its weights are."""
    for group in groups:
        assert has_line(axes, *np.transpose(group))


def test_figure_1_draws_regions_data_and_neurons_of_both_networks() -> None:
    evidence, drawn = shown("sarussi2021-fig1")
    for k, one in enumerate((evidence.large, evidence.small)):
        data = one.groups.data
        pixels, boundary = (layer.at(0) for layer in one.regions.layers[:2])
        np.testing.assert_array_equal(drawn.axes[k].images[0].get_array().shape[:2], pixels.shape)
        np.testing.assert_array_equal(np.reshape(drawn.axes[k].collections[0].get_segments(), (-1, 4)), boundary)
        for x, y in zip(data.x, data.y, strict=True):
            assert np.sign(pixel(pixels, one.regions.window, x) - ZERO) == y  # both networks classify the data
        for sign in (1, -1):
            assert has_line(drawn.axes[k], *data.x[data.y == sign].T)
        check_neurons(drawn.axes[k + 2], one.groups.last)
    assert titles(drawn)[2:] == ["(c) neurons, large", "(d) neurons, small"]
    assert legend(drawn)[2:] == ["decision boundary", "$y=+1$", "$y=-1$", "neurons $w_i$", "neurons $u_i$"]


def test_figure_2_draws_ratio_shares_and_every_slope() -> None:
    figure = load_figure("sarussi2021-fig2")
    evidence = evidence_of(figure, DIGITS)
    drawn = drawing(figure, evidence)
    for role, pair in (("0-1", "(0, 1)"), ("3-5", "(3, 5)")):
        one = evidence[role]
        check_curve(drawn.axes[0], f"digits {pair}", one.epochs, one.ratio)
        for part in ("training", "held-out"):
            check_curve(drawn.axes[1], f"{pair} {part}", one.epochs, one.outside[part])
    slopes = ["0.2", "0.35", "0.5", "0.65", "0.8"]
    assert legend(drawn.axes[2]) == slopes
    for slope in slopes:
        one = evidence["3-5" if slope == "0.5" else f"3-5-slope-{slope}"]
        check_curve(drawn.axes[2], slope, one.epochs, one.outside["training"])
    shown = {one.id for one in figure.claims(evidence) if one.kind == "finding"}
    assert {f"slope-{slope}" for slope in slopes} <= shown


def test_figure_3_draws_every_level_and_both_directions() -> None:
    evidence, drawn = shown("sarussi2021-fig3")
    levels, neurons = drawn.axes
    assert len(levels.collections) == 9  # from -2 to 2, every 0.5
    for collection, layer in zip(levels.collections, evidence.sets.layers[1:], strict=True):
        np.testing.assert_array_equal(np.reshape(collection.get_segments(), (-1, 4)), layer.at(0))
    assert np.argmax([one.get_linewidth()[0] for one in levels.collections]) == 4
    check_neurons(neurons, [[(1.0, 0.6)], [(-0.4, 0.9)]])
    assert evidence.inside >= 1_000_000  # the points that Theorem 5.1 speaks of


def test_figure_4_draws_predictions_over_what_was_learned_and_the_margins() -> None:
    evidence, drawn = shown("sarussi2021-fig4")
    boundary, weights, margins = drawn.axes
    (normal,) = [one for one in boundary.lines if one.get_label() == "predicted (PAR)"]
    np.testing.assert_allclose(evidence.predicted.boundary @ np.array(normal.get_data()), 0, atol=1e-12)
    largest = max(np.linalg.norm(group, axis=1).max() for group in evidence.plane.groups.last)
    check_neurons(weights, [group / largest for group in evidence.plane.groups.last])
    rays = [points[:, 1] for points in lines(weights)[-2:]]
    assert max(np.linalg.norm(ray) for ray in rays) == pytest.approx(1)
    for ray, direction in zip(rays, (evidence.predicted.w, evidence.predicted.u), strict=True):
        assert ray @ direction == pytest.approx(np.linalg.norm(ray) * np.linalg.norm(direction))
    one, late = evidence.limit_margins, evidence.limit_margins.late
    for label, values in (("normalised (Eq. 5)", one.normalised), ("smoothed (Eq. 6)", one.smoothed)):
        check_curve(margins, label, one.iterations[late], values[late])
    assert has_line(margins, [0, 1], [one.largest] * 2)
    assert has_line(margins, [0, 1], [one.needed] * 2)
    assert labels(drawn)[2] == ("step", "margin")


def test_figure_5_draws_the_sector_in_which_relu_is_0() -> None:
    evidence, drawn = shown("sarussi2021-fig5")
    leaky, relu = (np.asarray(axes.images[0].get_array()) for axes in drawn.axes)
    assert (leaky == 1).all(axis=2).sum() < len(leaky)  # on the boundary alone
    assert len(np.unique(relu.reshape(-1, 3), axis=0)) == 3
    np.testing.assert_array_equal((relu == 1).all(axis=2), evidence.relu.layers[0].at(0) == ZERO)
    assert legend(drawn)[-1] == "$N(x)=0$"


def test_figure_6_draws_every_pair_for_both_slopes() -> None:
    evidence, drawn = shown("sarussi2021-fig6", DIGITS)
    for role, pair in (("1-7", "(1, 7)"), ("6-0", "(6, 0)")):
        check_curve(drawn.axes[0], pair, evidence[role].epochs, evidence[role].ratio)
        for axes, one in zip(drawn.axes[1:], (evidence[role], evidence[f"{role}-slope-0.8"]), strict=True):
            check_curve(axes, f"{pair} held-out", one.epochs, one.outside["held-out"])
    assert [len(axes.lines) for axes in drawn.axes] == [5, 10, 10]


def test_figures_7_and_8_draw_both_measures_and_both_groups() -> None:
    figure = load_figure("sarussi2021-fig7")
    evidence = evidence_of(figure, DIGITS)
    ratio, angle = drawing(figure, evidence).axes
    check_curve(ratio, "digits (0, 1)", evidence["0-1"].epochs, evidence["0-1"].ratio)
    check_curve(angle, "digits (3, 5)", evidence["3-5"].epochs, evidence["3-5"].angle)
    figure = load_figure("sarussi2021-fig8")
    evidence = evidence_of(figure)
    for axes, kind in zip(drawing(figure, evidence).axes, "wu", strict=True):
        for dim in (10, 50, 100):
            check_curve(axes, f"{dim} dimensions", evidence[dim].epochs, evidence[dim].shares[kind])


def test_figure_9_draws_directions_disagreements_and_shares() -> None:
    evidence, drawn = shown("sarussi2021-fig9")
    _, drawn, disagreements, shares = drawn.axes
    groups = evidence.plane.groups
    check_neurons(drawn, [directions(group) for group in groups.last])
    for kind in "wu":
        check_curve(disagreements, f"neurons ${kind}_i$", groups.epochs, evidence.disagreements[kind])
        check_curve(shares, f"neurons ${kind}_i$", groups.epochs, evidence.shares[kind])


def test_the_extra_figure_draws_the_epochs_needed() -> None:
    evidence, drawn = shown("sarussi2021-extra-convergence")
    epsilons = np.geomspace(0.3, 2e-3, 30)
    for one in evidence.values():
        assert has_line(drawn.axes[0], 1 / epsilons, np.maximum(one, 1))
    assert legend(drawn)[-1] == "power 1"


# numbers


def test_margins_are_ordered_and_a_fall_is_seen() -> None:
    evidence = evidence_of("sarussi2021-fig4")
    for one in (evidence.limit_margins, evidence.sgd_margins):
        late = one.late
        assert late.any()
        assert not late[0]
        assert (one.smoothed[late] <= one.normalised[late]).all()  # Lyu and Li (2020), Lemma A.5
        assert one.normalised[-1] < one.largest
        assert largest_fall(one.smoothed[late]) == 0
    assert largest_fall(np.array([1.0, 4.0, 2.0, 1.9])) == 0.5


def test_theorem_4_1_holds_with_a_power_near_one() -> None:
    for needed in evidence_of("sarussi2021-extra-convergence").values():
        assert power(needed) == pytest.approx(1, abs=0.25)  # log t in the weights: loss ~ 1/t
        assert (np.diff(needed) >= 0).all()


def test_a_trained_second_layer_is_refused() -> None:
    with pytest.raises(InputError, match="train_output: false"):
        evidence_of("sarussi2021-fig1", ("architecture.train_output=true", "optimizer.epochs=1"))


@pytest.mark.parametrize("name", ["fig4", "fig9", "extra-convergence"])
def test_a_run_that_is_much_too_short_gives_verdicts_and_a_picture(name: str) -> None:
    figure = load_figure(f"sarussi2021-{name}")
    evidence = short_evidence(name)
    assert "not reproduced" in verdicts(by_id(figure.claims(evidence))).values()
    assert len(drawing(figure, evidence).axes) == FIGURES[figure.id].panels


def short_evidence(name: str) -> Evidence:
    """Return the evidence of runs of 5 steps or 1 epoch."""
    figure = load_figure(f"sarussi2021-{name}")
    short = {"limit": "optimizer.iterations=5", "symmetric": "optimizer.iterations=5"}
    wanted = figure.wanted().items()
    return figure.evidence(
        {role: RunSource().obtain({role: one}, (short.get(role, "optimizer.epochs=1"),))[0].run for role, one in wanted}
    )
