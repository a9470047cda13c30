"""The figures of Tachet des Combes et al. 2018 that come from closed forms, on networks that are really trained."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.tachet2018 import phase
from dynamics_cli._bundled.experiments.tachet2018.deep_modes import overtaking
from dynamics_cli._bundled.experiments.tachet2018.starving import DELTAS
from dynamics_cli._bundled.experiments.tachet2018.theory.modes import Outcome
from dynamics_cli._bundled.experiments.tachet2018.trained import crossing, order, outputs, sigmoidal, train_together
from matplotlib.axes import Axes

from dynamics_cli.errors import InputError
from dynamics_cli.reproduction.catalogue import load_figure, papers
from dynamics_cli.reproduction.obtain import RunSource
from dynamics_cli.reproduction.reproduce import reproduce

from .helpers import (
    Drawing,
    Evidence,
    drawing,
    evidence_of,
    has_line,
    labels,
    legend,
    lines,
    one_run,
    titles,
    verdicts,
)

MODES = pytest.param("extra-modes", marks=pytest.mark.long)  # of 256 networks
SHORT = ("optimizer.iterations=40", "record.snapshots.interval=8")


def evidence(name: str) -> Evidence:
    return evidence_of(f"tachet2018-{name}")


def picture(name: str) -> tuple[Evidence, Drawing]:
    shown = evidence(name)
    return shown, drawing(load_figure(f"tachet2018-{name}"), shown)


@pytest.mark.parametrize("name", ["fig2", "fig4", "fig6", MODES])
def test_runs_that_are_much_too_short_give_verdicts_and_a_picture(name: str) -> None:
    figure = load_figure(f"tachet2018-{name}")
    short = evidence_of(figure, SHORT)
    claims = figure.claims(short)
    assert all(one.verdict == "not reproduced" for one in claims if one.id in ("overlay", "sigmoidal", "starvation"))
    _, full = picture(name)
    drawn = drawing(figure, short)
    assert (titles(drawn), labels(drawn)) == (titles(full), labels(full))


def has_dots(axes: Axes, x: np.ndarray, y: np.ndarray) -> bool:
    """Return whether some line of dots shows only points of the curve (x, y), and several of them."""
    curve = set(zip(x.tolist(), y.tolist(), strict=True))
    shown = [set(map(tuple, np.asarray(line.get_xydata()).tolist())) for line in axes.lines if line.get_marker() == "o"]
    return any(len(dots) > 3 and dots <= curve for dots in shown)


def test_figure_1_shows_every_weight() -> None:
    shown, drawn = picture("fig1")
    (axes,) = drawn.axes
    d, h, _ = shown.widths
    first, second = (one for one in axes.collections if hasattr(one, "get_segments"))
    assert (len(first.get_segments()), len(second.get_segments())) == (d * h, h)
    assert {"$x$", "$W_t$", "$Z_t$"} <= {text.get_text() for text in axes.texts}


@pytest.mark.parametrize("name", ["fig2", "fig9"])
def test_diagrams_show_the_trained_cells_the_cases_and_all_curves(name: str) -> None:
    shown, drawn = picture(name)
    grid, curves = shown.diagram.grid, shown.diagram.curves
    left, middle, right = drawn.axes
    np.testing.assert_array_equal(np.asarray(left.collections[0].get_array()).ravel(), grid.trained.ravel())
    assert labels(drawn)[0] == ("$z_0$", "$y_0$")
    assert [text.get_text() for text in left.texts] == ["$c_1$", "$c_2$", "$c_3$"]
    for k, (z0, y0) in enumerate(phase.CASES.values()):
        assert has_line(left, grid.cases.z[:1, k], grid.cases.w[:1, k, 0])
        assert (grid.cases.z[0, k], grid.cases.w[0, k, 0]) == pytest.approx((z0, y0))
    for one in curves:
        assert has_line(middle, one.t, one.y_theory)
        assert has_line(right, one.t, one.P_theory)
        assert has_dots(middle, one.t, one.y)
        assert has_dots(right, one.t, one.P)
    assert legend(drawn) == ["solved", "frozen", "neuron dies", *(one.name for one in curves), "trained"]


def test_figure_3_shows_trajectories_the_separatrix_and_three_starts() -> None:
    shown, drawn = picture("fig3")
    right, left = drawn.axes
    paths = [np.array(line.get_data_3d()).T for line in left.lines]
    assert len(paths) == len(shown.trajectories) + 1
    for path, one in zip(paths, shown.trajectories, strict=False):
        assert set(map(tuple, path)) <= set(map(tuple, one.path))
        np.testing.assert_array_equal(path[0], one.path[0])
    np.testing.assert_array_equal(paths[-1], shown.curve[(np.abs(shown.curve) <= 2).all(axis=1)])
    for k, one in enumerate(shown.three):
        assert has_line(right, one.ode.t, one.ode.alpha)
        assert has_line(right, one.ode.t, one.ode.confidence_1)
        assert has_dots(right, one.ode.t, one.trained[:, 0])
        assert has_line(right, one.ode.t, one.ode.beta) == (k < 2)  # beta is 0 all along from the third start
    assert titles(drawn) == ["(b) Three starts", "(a) Trajectories, $c=1$"]
    assert legend(drawn)[-3:] == ["(0.1, 0.1, 0.1)", "(0.2, 0.9, 0.2)", "(1, 0, \N{MINUS SIGN}1.1)"]


def test_figure_7_shows_both_sheets() -> None:
    shown, drawn = picture("fig7")
    (axes,) = drawn.axes
    starts = [np.array(line.get_data_3d())[:, 0] for line in axes.lines]
    np.testing.assert_array_equal(starts, [one.path[0] for one in shown.drawn])
    np.testing.assert_array_equal(np.array(starts)[8:], np.array(starts)[:8, [1, 0, 2]] * [1, 1, -1])
    assert len(legend(drawn)) == 3


def test_figure_4_shows_logits_and_confidences() -> None:
    shown, drawn = picture("fig4")
    left, right = drawn.axes
    assert [(one.depth, one.norm) for one in shown.curves] == [(2, 1.0), (2, 2.0), (4, 1.0), (4, 2.0)]
    for one in shown.curves:
        assert has_line(left, one.t, one.y_theory)
        assert has_line(right, one.t, one.P_theory)
        assert has_dots(left, one.t, one.y)
        assert has_dots(right, one.t, one.P)
    assert labels(drawn) == [("time $t$", "logit $u(t)$"), ("time $t$", "confidence $P_t$")]
    assert len(legend(drawn)) == 6
    for k in (0, 1):
        assert has_line(right, *([value] for value in overtaking(shown.curves[k], shown.curves[k + 2])))


def test_figure_5_shows_times_and_both_solutions() -> None:
    shown, drawn = picture("fig5-time")
    (axes,) = drawn.axes
    (inset,) = axes.child_axes
    assert has_line(axes, shown.confidence, shown.cross_entropy)
    assert has_line(axes, shown.confidence, shown.hinge)
    for trained, curve in zip(shown.trained, shown.curves, strict=True):
        assert has_dots(axes, axes.lines[1].get_xdata(), trained)
        assert has_dots(inset, curve.t, curve.P)
    assert legend(drawn) == ["cross-entropy", "hinge", "trained"]


@pytest.mark.parametrize(("name", "bounds"), [("fig6", 2), ("fig10", 1)])
def test_starvation_shows_truth_and_bounds(name: str, bounds: int) -> None:
    shown, drawn = picture(name)
    (axes,) = drawn.axes
    for k, one in enumerate(shown.fine):
        assert has_line(axes, 1 - DELTAS, one.truth)
        assert all(has_line(axes, 1 - DELTAS, bound[k]) for bound in shown.bounds.values())
        assert has_dots(axes, one.frequent, one.rare)
    entries = legend(drawn)
    assert entries[:4] == [rf"$\lambda={value}$" for value in (0.5, 0.2, 0.1, 0.01)]
    assert (entries[4], entries[-1], len(entries)) == ("Eq. 8", "trained", 6 + bounds)


@pytest.mark.long
def test_extra_modes_show_four_groups() -> None:
    shown, drawn = picture("extra-modes")
    for axes, curves in zip(drawn.axes, (shown.layer, shown.orthogonal, shown.classes, shown.sampled), strict=True):
        assert len(lines(axes)) == 2 * len(curves)
        assert all(has_line(axes, one.t, one.P_theory) and has_dots(axes, one.t, one.P) for one in curves)
        assert legend(axes) == [*(one.name for one in curves), "trained"]


def test_the_index_has_the_figures_in_the_order_of_the_paper() -> None:
    figures = list(papers()["tachet2018"].figures)
    assert figures.index("tachet2018-fig4") < figures.index("tachet2018-fig6") < figures.index("tachet2018-fig10")


def test_figure_8_at_a_coarse_step() -> None:
    """Its own runs take long; N = 4 and 8 at ten times the step show the same."""
    figure = load_figure("tachet2018-fig8")
    wanted = {role: one for role, one in figure.wanted().items() if "coarse" in role}
    coarse = {one.role: one.run for one in RunSource().obtain(wanted)}
    shown = figure.evidence({**{role.split(",")[0]: run for role, run in coarse.items()}, **coarse})
    assert [one.depth for one in shown.curves] == [4, 4, 8, 8]
    assert max(one.error for one in shown.curves) < 1e-2  # ten times 1e-3, first order
    found = verdicts(figure.claims(shown))
    for id_ in ("closed-form", "sigmoidal", "equal-weights", "deeper", "deeper-early"):
        assert found[id_] == "reproduced"
    left, right = drawing(figure, shown).axes
    assert all(has_line(left, one.t, one.y_theory) and has_line(right, one.t, one.P_theory) for one in shown.curves)


def test_table_1_is_printed_written_and_drawn(tmp_path: Path) -> None:
    result = reproduce("tachet2018-table1", out=tmp_path)
    lines = (tmp_path / "tachet2018-table1.csv").read_text().splitlines()
    assert lines[0].startswith("confidence on x_1,lambda = 0.5")
    assert lines[1] == "99 %,91 % (90.87),71 % (71.48),61 % (61.29),51 % (51.15)"
    assert lines[2] == "99.99 %,99 % (99.01),86 % (86.32),72 % (71.53),52 % (52.30)"
    assert result.table is not None
    (axes,) = drawing(load_figure("tachet2018-table1"), evidence_of("tachet2018-table1")).axes
    assert [text.get_text() for text in axes.texts][6:10] == result.table[1][0][1:]


def test_no_network_that_did_not_learn_confirms_a_claim_of_starvation() -> None:
    for name in ("fig6", "fig10"):
        figure = load_figure(f"tachet2018-{name}")
        still = figure.claims(evidence_of(figure, ("optimizer.lr=1e-7", "optimizer.iterations=4000")))
        assert {one.verdict for one in still if one.kind == "claim"} == {"not reproduced"}


def test_the_diagram_is_trained_from_at_least_100_by_100_starts() -> None:
    grid = evidence("fig2").diagram.grid
    assert min(grid.trained.shape) >= 100
    solved, dies, frozen = (np.sum(grid.trained == end) for end in (Outcome.SOLVED, Outcome.DIES, Outcome.FROZEN))
    assert solved + dies + frozen == grid.trained.size
    assert frozen == grid.trained.size // 2  # y0 < 0
    assert dies / grid.trained.size == pytest.approx(0.7 / 8, abs=0.005)  # the triangle below y = -0.7 z


def test_networks_trained_together_are_those_trained_alone() -> None:
    alone = one_run("tachet2018/phase.yaml")
    together = train_together(alone, np.array([[1.0], [0.3]]), np.array([-0.5, 0.2]), snapshots=[0, 500, 2000])
    index = alone.index_of(500, exact=True)
    assert together.w[1, 0, 0] == pytest.approx(float(alone.parameters["hidden_weight"][index, 0, 0]), rel=1e-13)
    assert together.z[2, 0] == pytest.approx(float(alone.parameters["output_weight"][-1, 0]), rel=1e-13)
    assert together.t.tolist() == [0.0, 5.0, 20.0]


def test_wider_networks_are_not_trained_on_a_grid() -> None:
    run = one_run("tachet2018/two_classes.yaml", "optimizer.iterations=10", "record.snapshots.interval=1")
    with pytest.raises(InputError, match="one neuron"):
        phase.train_grid(run)


def test_outputs_are_those_of_the_run() -> None:
    run = one_run("tachet2018/classes.yaml", "optimizer.iterations=20", "record.snapshots.interval=10")
    x = np.random.default_rng(0).standard_normal((4, 3))
    for index in range(len(run.snapshot_iterations)):
        np.testing.assert_allclose(outputs(run, x)[index], run.network(index)(x), atol=1e-14)


def test_shapes_of_curves() -> None:
    t = np.linspace(-4.0, 4.0, 80)
    logistic = 1 / (1 + np.exp(-t))
    assert sigmoidal(t, logistic)
    assert not any(sigmoidal(t[part], logistic[part]) for part in (slice(0, 40), slice(40, 80)))  # half of one each
    assert not sigmoidal(t, -logistic)
    assert not sigmoidal(t, np.full(80, 0.5))


def test_crossing_and_order() -> None:
    t = np.array([0.0, 1.0, 2.0])
    assert crossing(t, np.array([0.0, 0.5, 1.5]), 1.0) == pytest.approx(1.5)
    assert crossing(t, np.array([2.0, 2.5, 3.0]), 1.0) == 0.0
    assert crossing(t, np.array([0.0, 0.1, 0.2]), 1.0) == np.inf
    assert order(4e-3, 1e-3, (2e-2, 1e-2)) == pytest.approx(2.0)
