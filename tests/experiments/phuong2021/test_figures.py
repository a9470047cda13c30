"""The figures of Phuong and Lampert 2021 on runs that are really trained; the convolutional network on a few images."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.phuong2021.extra_dead import Fates
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba

from dynamics_cli.errors import InputError
from dynamics_cli.plotting.style import PALETTE
from dynamics_cli.reproduction.catalogue import load_figure
from dynamics_cli.reproduction.figure import Evidence
from dynamics_cli.reproduction.obtain import RunSource
from tests.experiments.helpers import (
    by_id,
    check_pure,
    drawing,
    evidence_of,
    has_line,
    labels,
    legend,
    lines,
    png,
    points,
    titles,
    verdicts,
)

FEW = ("dataset.per_class=10", "dataset.test_per_class=2", "optimizer.epochs=2", "optimizer.batch_size=10")
EXTRA = "phuong2021-extra-theorem1"


def heights(axes: Axes) -> np.ndarray:
    """Return the heights of all bars of a panel."""
    return np.array([bar.get_height() for bar in axes.patches])


def check_colors(axes: Axes, side: np.ndarray) -> None:
    """Check that the dots (m,) of a panel have the colour of the sign of `side`, negative where it is 0."""
    expected = [to_rgba(PALETTE.positive if one > 0 else PALETTE.negative) for one in side]
    np.testing.assert_array_equal(axes.collections[0].get_facecolors(), expected)


def test_figure_1_shows_the_network_of_which_all_claims_are_reproduced() -> None:
    figure = load_figure("phuong2021-fig1")
    e = evidence_of(figure)
    assert set(verdicts(by_id(figure.claims(e))).values()) == {"reproduced"}
    drawn = check_pure(figure, e)
    values, plane, correlations = drawn.axes
    assert has_line(values, np.arange(1, 11), e.layer.values[:10])
    assert np.array_equal(points(plane)[0], e.layer.points)
    check_colors(plane, e.signs)
    positive, negative = heights(correlations).reshape(2, -1)  # stacked
    assert (positive.sum(), negative.sum()) == (np.sum(e.signs > 0), np.sum(e.signs <= 0))
    assert positive[-1] + negative[-1] == np.sum(e.correlations > 0.95)
    assert lines(correlations)[0][0].tolist() == [0.9, 0.9]
    assert titles(drawn) == ["(a) Singular values", "(b) Neurons", "(c) Correlations"]
    assert legend(drawn) == ["$a_j > 0$", "$a_j < 0$", "mean directions", "$w_+$", "$w_-$"]


def test_table_1_lists_the_layers_that_are_trained() -> None:
    figure = load_figure("phuong2021-table1")
    e = evidence_of(figure)
    assert set(verdicts(by_id(figure.claims(e))).values()) == {"reproduced"}
    drawn = check_pure(figure, e)
    assert figure.table is not None
    header, rows = figure.table(e)
    written = [text.get_text() for text in drawn.axes[0].texts]
    assert written == [cell for row in (header, *rows) for cell in row]
    assert [row[3] for row in rows][-2:] == ["128 x 3136", "1 x 128"]


def test_figure_1_has_the_numbers_of_an_independent_run() -> None:
    e = evidence_of("phuong2021-fig1")
    assert e.layer.values[0] == pytest.approx(2.40, rel=0.1)
    assert e.layer.values[1] == pytest.approx(0.35, rel=0.15)
    assert e.layer.third < 0.05
    assert -0.92 < e.directions.cosine < -0.86
    assert e.directions.violations == 0


def test_figure_2_shows_two_directions_after_a_tenth_of_the_epochs() -> None:
    figure = load_figure("phuong2021-fig2")
    e = evidence_of(figure, ("optimizer.epochs=50",))
    claims = by_id(figure.claims(e))
    assert [claims[f"grown-{k}"].measured for k in (1, 2, 3)] == [2, 2, 2]
    assert claims["learnt"].verdict == "reproduced"
    drawn = check_pure(figure, e)
    assert len(drawn.axes) == 7
    for k, layer in enumerate(e.layers):
        assert has_line(drawn.axes[k], np.arange(1, 11), layer.values[:10])
        assert np.array_equal(points(drawn.axes[4 + k])[0], layer.points)
    check_colors(drawn.axes[4], e.closest)
    assert labels(drawn)[3] == ("correlation", "neurons")


def test_figures_1_and_2_of_a_run_that_is_much_too_short_say_so() -> None:
    for figure_id in ("phuong2021-fig1", "phuong2021-fig2"):
        figure = load_figure(figure_id)
        e = evidence_of(figure, ("optimizer.epochs=1",))
        assert verdicts(figure.claims(e))["learnt"] == "not reproduced"
        assert png(drawing(figure, e)).startswith(b"\x89PNG")


@pytest.mark.parametrize("figure_id", ["phuong2021-fig1", "phuong2021-fig2"])
def test_narrow_networks_are_not_of_rank_two_by_default(figure_id: str) -> None:
    figure, short = load_figure(figure_id), "optimizer.epochs=1"
    e = evidence_of(figure, ("architecture.width=2", short))
    ranks = {id: verdict for id, verdict in verdicts(figure.claims(e)).items() if id.startswith(("rank", "second"))}
    assert set(ranks.values()) == {"not reproduced"}
    assert png(drawing(figure, e)).startswith(b"\x89PNG")
    with pytest.raises(InputError, match="width of 2 or more"):
        evidence_of(figure, ("architecture.width=1", short))


def test_figures_of_another_architecture_are_refused() -> None:
    overrides = ("architecture={kind: fully_connected, widths: [5]}", "optimizer.epochs=1")
    with pytest.raises(InputError, match="needs architecture.kind residual"):
        evidence_of("phuong2021-fig2", overrides)


def test_figure_3_counts_every_pair_and_layer_0_is_the_input() -> None:
    figure = load_figure("phuong2021-fig3")
    e = evidence_of(figure, FEW)
    by_id(figure.claims(e))
    assert len(e.before) == len(e.after) == 8
    for one in (*e.before, *e.after):
        counted = {sort: int(counts.sum()) for sort, counts in one.counts.items()}
        assert counted == {"across": 100, "first": 45, "second": 45}
    assert all(one.satisfied["first"] == one.satisfied["second"] == 1 for one in e.before[:1])
    assert all(one.edges[0] >= 0 for one in e.after[1:])
    drawn = check_pure(figure, e)
    assert titles(drawn) == ["(a) input", *(f"({letter}) layer {k}" for k, letter in enumerate("bcdefgh", 1))]
    assert all(len(axes.patches) == 6 for axes in drawn.axes)  # a filled and a drawn outline of three sorts
    assert legend(drawn) == ["different digits", "both 0", "both 1"]


def test_figure_4_shows_the_first_fully_connected_layer() -> None:
    figure = load_figure("phuong2021-fig4")
    e = evidence_of(figure, FEW)
    by_id(figure.claims(e))
    values, plane = check_pure(figure, e).axes
    assert has_line(values, np.arange(1, 11), e.values[:10])
    assert np.array_equal(points(plane)[0], e.points)
    check_colors(plane, e.signs)


def test_theorem_1_on_small_data() -> None:
    figure = load_figure(EXTRA)
    e = evidence_of(figure, only=("scale 1.0e-2", "flow 2 11", "flow 3 31", "sgd 2 11"))
    # both rates are limits: at 1e-2 the crossover is at log t = 231
    assert {id_ for id_, verdict in verdicts(figure.claims(e)).items() if verdict != "reproduced"} <= {
        "rate",
        "rate-late",
        "kept",
    }
    (path,), flow = e.paths, e.flows[0]
    assert path.distances[-1] < 0.01
    assert np.diff(flow.counts[:, 1:3].sum(axis=1)).min() >= 0
    drawn = check_pure(figure, e)
    late, after = path.log_times > 0.1, flow.times > 0
    assert has_line(drawn.axes[0], path.log_times[late], path.distances[late])
    assert np.array_equal(lines(drawn.axes[1]), [[flow.times[after], flow.counts[after, k]] for k in range(4)])
    assert has_line(drawn.axes[2], e.angles, e.G)
    assert titles(drawn) == ["(a) Theorem 1", "(b) Lemmas 1 and 3", "(c) Lemma 2"]


def test_small_networks_die_as_the_circle_says() -> None:
    """Four points in two cones: the arcs of directions from which neurons die, by hand from the flow of tiny ones."""
    figure = load_figure("phuong2021-extra-dead")
    wanted = {role: replace(one, replicas=500) for role, one in figure.wanted().items()}
    e = figure.evidence({one.role: one.run for one in RunSource().obtain(wanted)})
    assert set(verdicts(by_id(figure.claims(e))).values()) == {"reproduced"}
    drawn = check_pure(figure, e)
    shares, counts = drawn.axes
    assert has_line(shares, range(1, 7), 0.5 ** np.arange(1, 7))
    assert has_line(shares, range(1, 7), [one.share for one in e.orthogonal])
    assert heights(counts).tolist() == np.bincount(e.orthogonal[-1].dead, minlength=7).tolist()
    assert legend(shares) == ["$2^{-p}$", "one orthogonal point a class", "four points, two cones"]
    # a_j > 0, active on negative points only, goes along minus these until it is not; 240 to 310 degrees are dead.
    # Which way it goes parts at 147.5 degrees, between the two points; for a_j < 0 it parts at 45
    q = ((310 - 147.5) + (360 + 45 - 240)) / 720
    for one in e.cone:
        neurons = one.p * len(one.dead)
        assert one.dead.sum() / neurons == pytest.approx(q, abs=3.5 * np.sqrt(q * (1 - q) / neurons))
    assert e.plane.dead.sum() == 0
    assert e.orthogonal[2].dead.max() == 3


def test_more_deaths_than_the_bound_allows_are_not_reproduced() -> None:
    dead = [np.full(100, p) * (np.arange(100) < 100 / 2**p) for p in (1, 2)]  # the bound itself
    good = [Fates(p, one, 0, 0) for p, one in zip((1, 2), dead, strict=True)]
    bad = [Fates(1, np.ones(100, dtype=np.int64), 2, 1), good[1]]
    figure = load_figure("phuong2021-extra-dead")
    plane = Fates(1, np.zeros(100, dtype=np.int64), 0, 0)
    for side, expected in ((good, "reproduced"), (bad, "not reproduced")):
        stated = verdicts(figure.claims(Evidence(orthogonal=side, cone=good, plane=plane, violations=0)))
        assert {stated[key] for key in ("bound", "attained", "stays", "decided")} == {expected}
    assert bad[0].excess == pytest.approx(0.5 / np.sqrt(0.25 / 100))
