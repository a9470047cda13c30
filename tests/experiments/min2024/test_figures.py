"""The figures of Min et al. 2024: claims on runs that are really trained, cheap ones by default, and what is drawn."""

from __future__ import annotations

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.min2024 import paths, single_neuron, sketches
from matplotlib.axes import Axes
from matplotlib.colors import same_color, to_rgba
from matplotlib.patches import Wedge
from matplotlib.text import Annotation

from dynamics_cli.plotting.style import PALETTE
from dynamics_cli.plotting.time_axis import decimate
from dynamics_cli.reproduction.catalogue import load_figure
from dynamics_cli.reproduction.figure import Figure
from tests.experiments.helpers import (
    Evidence,
    by_id,
    drawing,
    evidence_of,
    has_line,
    labels,
    legend,
    lines,
    png,
    titles,
    verdicts,
)

FEW = ("dataset.per_class=60",)


def finished(figure_id: str) -> tuple[Figure, Evidence]:
    """Return a figure and its evidence on the runs of its configs."""
    figure = load_figure(figure_id)
    return figure, evidence_of(figure)


def arrows(axes: Axes) -> np.ndarray:
    """Return tail and tip of every arrow of a panel, (k, 2, 2)."""
    return np.array([[one.xyann, one.xy] for one in axes.texts if isinstance(one, Annotation)], dtype=float)


def has_arrow(axes: Axes, tip: np.ndarray, tail: np.ndarray | None = None) -> bool:
    """Return whether an arrow leads to `tip`, from 0 unless `tail` is given."""
    wanted = np.array([np.zeros(2) if tail is None else tail, tip])
    return any(np.allclose(one, wanted) for one in arrows(axes))


def texts(axes: Axes) -> set[str]:
    """Return what is written in a panel."""
    return {one.get_text() for one in axes.texts} - {""}


def test_figure_1_shows_the_data_the_neuron_and_where_it_turns() -> None:
    figure, e = finished("min2024-fig1")
    (axes,) = drawing(figure, e).axes
    for k, point in enumerate(sketches.X_1):
        assert has_arrow(axes, point)
        assert f"$x_{k + 1}$" in texts(axes)
    assert has_arrow(axes, e.x_a)
    assert has_arrow(axes, e.w)
    assert has_arrow(axes, e.w + 0.45 * e.predicted, tail=e.w)
    assert np.dot(e.predicted, e.w) == pytest.approx(0.0, abs=1e-12)


def test_figure_2_shades_the_cones_and_draws_each_track_on_a_circle() -> None:
    figure, e = finished("min2024-fig2")
    (axes,) = drawing(figure, e).axes
    shaded = [(one.theta1, one.theta2) for one in axes.patches if isinstance(one, Wedge)]
    assert shaded == [arc for arcs in e.cones.values() for arc in arcs]
    assert e.tracks.shape[1] == len(sketches.SHOWN)
    assert all(has_line(axes, *((0.85 + 0.16 * k) * e.tracks[:, k]).T) for k in range(2))
    assert {"$S_+$", "$x_+$", "$x_-$", "reaches $S_+$", "dies", "$S_-$", r"$S_\mathrm{dead}$"} <= texts(axes)


def test_figure_3_shows_the_flow_at_the_boundary_of_one_point() -> None:
    figure, e = finished("min2024-fig3")
    (axes,) = drawing(figure, e).axes
    point = sketches.TOY_X[2] / np.linalg.norm(sketches.TOY_X[2])
    assert point @ e.w == pytest.approx(0.0, abs=1e-15)
    assert has_arrow(axes, 1.25 * point)
    assert has_arrow(axes, e.w)
    assert has_arrow(axes, 1.1 * e.x_a / np.linalg.norm(e.x_a))


def test_figure_4_fills_the_marks_of_active_points() -> None:
    figure, e = finished("min2024-fig4")
    drawn = drawing(figure, e)
    (axes,) = drawn.axes
    filled = np.zeros_like(e.patterns)
    ringed = np.zeros_like(e.patterns)
    for line in axes.lines[:-4]:
        (column,), (row,) = line.get_data()
        if line.get_marker() == "o":
            ringed[int(column), -int(row)] = True
        else:
            filled[int(column), -int(row)] = not same_color(line.get_markerfacecolor(), "white")
    assert np.array_equal(filled, e.patterns)
    assert np.array_equal(ringed[1:], e.patterns[1:] != e.patterns[:-1])
    assert texts(axes) == {"$S_-$", "$S_+$"}
    assert len(axes.get_xticks()) == len(e.changes) + 1
    assert legend(drawn) == ["$y_i=+1$, active", "$y_i=-1$, active", "not active", "changed"]


@pytest.mark.parametrize("number", [6, 7, pytest.param(8, marks=pytest.mark.long), 9])
def test_figures_in_the_plane_show_all_neurons_at_three_moments(number: int) -> None:
    figure, e = finished(f"min2024-fig{number}")
    drawn = drawing(figure, e)
    reach = np.linalg.norm(e.states.x, axis=1).max()
    for axes, now in zip(drawn.axes, e.moments, strict=True):
        for sign in (1, -1):
            (dots,) = [
                line
                for line in axes.lines
                if line.get_marker() == "o"
                and line.get_markersize() == 3.2
                and to_rgba(line.get_markerfacecolor()) == to_rgba(PALETTE.sign(sign))
            ]
            members = now.W[np.sign(now.v) == sign]
            shown = np.array(dots.get_data(), dtype=float).T
            assert shown.shape == members.shape
            scale = np.linalg.norm(shown) / np.linalg.norm(members)
            np.testing.assert_allclose(shown, scale * members, rtol=1e-9, atol=1e-12)
            assert np.linalg.norm(shown, axis=1).max() <= reach * (1 + 1e-9)
        assert has_line(axes, *e.states.x[e.states.y > 0].T)
        counted = {f"{np.count_nonzero(now.strays)} outside $S_+$"} if number > 6 else set()
        assert {text for text in texts(axes) if "outside" in text} == counted
    first = {6: "End of alignment\niteration 3\N{THIN SPACE}300"}.get(number, "Alignment\niteration 7\N{THIN SPACE}000")
    assert titles(drawn)[1] == f"(b) {first}"
    assert legend(drawn)[2 if number == 6 else 1 :][:2] == ["$v_j>0$", "$v_j<0$"]


@pytest.mark.parametrize("number", [5, 10, 11])
def test_digits_align_early_on_few_images(number: int) -> None:
    figure = load_figure(f"min2024-fig{number}")
    e = evidence_of(figure, (*FEW, "optimizer.iterations=3000"))
    claims = by_id(figure.claims(e))
    assert claims["not-by-chance"].verdict == "reproduced"
    assert ("opposite" in claims) == ("loss-falls" in claims) == ("aligned" in claims) == (number == 5)
    assert e.history.least[-1] <= e.history.smaller[-1]
    assert e.history.smaller[-1] > 0.9
    assert e.history.stable_rank[0] > 20
    assert e.history.stable_rank[-1] < 1.5

    drawn = drawing(figure, e)
    heat, alignment, convergence, images = drawn.axes[:4]
    assert np.array_equal(heat.images[0].get_array(), e.products)
    for line, group in zip(alignment.lines[:2], (e.history.plus, e.history.minus), strict=True):
        assert np.array_equal(line.get_data(), decimate(e.states.iterations, group.mean))
    assert len(alignment.collections) == 2
    assert has_line(convergence, *decimate(e.states.loss_iterations, e.states.losses))
    assert has_line(convergence, *decimate(e.states.iterations, e.history.stable_rank))
    assert has_line(convergence, *decimate(e.states.iterations, e.history.squared_norm))
    shown = [np.ravel(one.get_array()) for one in images.images]
    assert np.array_equal(shown, np.concatenate([e.tiles, e.tiles + e.mean], axis=1).reshape(8, -1))
    assert titles(drawn)[:4] == [
        "(a) Data correlation",
        "(b) Alignment with $x_+$, $x_-$",
        "(c) Convergence and rank",
        "(d) Data and neurons",
    ]


@pytest.mark.parametrize(
    ("number", "reproduced"), [(12, ("order", "norms-rest", "loss-late")), (13, ("norms-first", "directions-first"))]
)
def test_sgd_has_two_phases_on_both_layers_only(number: int, reproduced: tuple[str, ...]) -> None:
    figure = load_figure(f"min2024-fig{number}")
    e = evidence_of(figure, (*FEW, "optimizer.batch_size=20"))
    stated = verdicts(figure.claims(e))
    assert [stated[id_] for id_ in reproduced] == ["reproduced"] * len(reproduced)
    drawn = drawing(figure, e)
    for axes, values in zip(drawn.axes, (e.loss, e.norms, e.directions), strict=True):
        assert np.array_equal(lines(axes), [[e.epochs[1:], values[1:]]])
    assert labels(drawn)[0] == ("epoch", "loss")
    assert legend(drawn) == ["loss", "changes in neuron norms", "changes in neuron directions"]


@pytest.mark.parametrize("number", [14, 15, 16, 17])
def test_paths_are_drawn_on_the_grid(number: int) -> None:
    figure, e = finished(f"min2024-fig{number}")
    (axes,) = drawing(figure, e).axes
    longest = e.paths[0]
    if number == 14:
        assert has_line(axes, *(longest.counts - 0.09).T)
        return
    assert has_line(axes, *(longest.counts + 0.06).T)
    assert has_line(axes, *(paths.LARGEST - 0.06).T)
    partners = len(arrows(axes)) - len(longest.edges) - len(paths.LARGEST) + 1
    if number == 15:
        assert partners == 0
    else:
        assert 0 < partners <= np.count_nonzero(longest.kind(loses=number == 16))


@pytest.mark.parametrize("number", [18, 19])
def test_paths_at_a_boundary_chatter_or_cross_once(number: int) -> None:
    figure, e = finished(f"min2024-fig{number}")
    (axes,) = drawing(figure, e).axes
    assert has_line(axes, *e.path[(np.abs(e.path) < 1.7).all(axis=1)].T)
    for point in e.x:
        assert has_arrow(axes, 0.9 * point / np.linalg.norm(point))
    assert texts(axes) == {"$x_1$ ($y=-1$)", "$x_2$ ($y=+1$)", r"$\langle x_1, w\rangle = 0$"}
    assert np.array_equal(e.path[0], sketches.START)


def test_single_neurons_show_where_descent_ends_and_which_solutions_there_are() -> None:
    figure, descents = finished("min2024-fig20")
    _, moved = drawing(figure, descents).axes
    for step, path in zip(single_neuron.STEPS, descents, strict=True):
        assert has_line(moved, step * np.arange(1, len(path)), np.linalg.norm(path[1:, :2] - path[0, :2], axis=1))

    figure, e = finished("min2024-fig21")
    drawn = drawing(figure, e)
    assert np.array_equal(lines(drawn.axes[1]), [[e.times, path[:, 0]] for path in e.paths])
    assert legend(drawn) == [f"leaves at $t_0={at:g}$" for at in single_neuron.LEAVES[:3]] + ["stays for ever"]
    assert labels(drawn)[1] == ("time $t$", r"$\langle x, w(t)\rangle$")


@pytest.mark.parametrize("number", [4, 6, 9])
def test_a_run_that_is_much_too_short_gives_a_verdict_and_a_picture(number: int) -> None:
    figure = load_figure(f"min2024-fig{number}")
    e = evidence_of(figure, ("optimizer.iterations=40",))
    assert "not reproduced" in verdicts(figure.claims(e)).values()
    assert png(drawing(figure, e)).startswith(b"\x89PNG")


def test_the_measured_alignment_times_are_those_of_the_notes() -> None:
    figure, e = finished("min2024-extra-mu")
    for mu, time in ((np.sin(0.1), 2.99), (np.sin(0.01), 5.29), (np.sin(0.001), 7.61)):
        k = int(np.argmin(np.abs(e.mu - mu)))
        assert e.flow[k] == pytest.approx(time, abs=0.02)
    # the trained network that meets the hypothesis of Theorem 1: its slowest neuron starts at random
    assert 0.3 < e.met <= e.law[-1] + 0.01

    drawn = drawing(figure, e)
    (axes,) = drawn.axes
    assert all(has_line(axes, e.mu, one) for one in (e.flow, e.trained))
    for line, values in zip(lines(axes)[:2], (e.bound, e.law), strict=True):
        np.testing.assert_allclose(np.interp(e.mu, *line), values, rtol=1e-2)
    assert has_line(axes, e.mu[-1:], [e.met])
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert labels(drawn) == [(r"data separability $\mu$", "time to $S_+$ (flow on the summed loss)")]


@pytest.mark.long
def test_balanced_flow_never_leaves_in_other_seeds() -> None:
    figure = load_figure("min2024-fig6")
    stated = verdicts(figure.claims(evidence_of(figure, seed_offset=1)))
    assert stated["flow-ends"] == stated["flow-stays"] == "reproduced"
