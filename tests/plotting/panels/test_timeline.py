from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamics_cli.plotting.panels.timeline import Instant, TimedPhase, draw_timeline
from dynamics_cli.plotting.style import new_figure, settle

PHASES = [TimedPhase("Early alignment", 0, 4000), TimedPhase("Fitting positive labels", 4000, 7000)]
TIMES = st.floats(0, 20_000)
NAMES = st.sampled_from(["a", "intermediate saddle", r"$-\dfrac{\ln\lambda}{\Vert D_+\Vert}$", "left the first saddle"])


def assert_apart(figure):
    settle(figure)
    figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in figure.axes[0].texts]
    for a, b in combinations(boxes, 2):
        assert not a.padded(-1).overlaps(b.padded(-1))
    return boxes


def test_bars_and_labels_are_at_their_times():
    figure, (axes,) = new_figure(width=5.5, aspect=0.4)
    predicted = [Instant("t", 3500), Instant("never", np.inf)]
    draw_timeline(axes, [*PHASES, TimedPhase("End", 7000, np.inf)], predicted, end=20_000)
    assert [(bar.get_x(), bar.get_width()) for bar in axes.patches] == [(0, 4000), (4000, 3000), (7000, 13_000)]
    *names, predicted = axes.texts
    assert {text.get_text() for text in names} == {"Early alignment", "Fitting positive labels", "End"}
    assert (len(names), predicted.get_text(), predicted.xy[0]) == (3, "t", 3500)
    assert predicted.xy[1] < 0
    assert [label.get_text() for label in axes.get_yticklabels()] == ["measured", "theory"]
    boxes = assert_apart(figure)
    assert min(box.x0 for box in boxes) >= 0
    assert max(box.y1 for box in boxes) <= figure.bbox.y1


@settings(deadline=None, max_examples=15)
@given(predicted=st.lists(st.tuples(NAMES, TIMES), max_size=7), cuts=st.lists(TIMES, max_size=4))
def test_labels_never_overlap(predicted, cuts):
    figure, (axes,) = new_figure(width=5.5, aspect=0.2)
    edges = sorted([0.0, *cuts, 20_000.0])
    phases = [TimedPhase("Fitting labels", a, b) for a, b in pairwise(edges)]
    draw_timeline(axes, phases, [Instant(*p) for p in predicted])
    assert len(axes.texts) == len(phases) + len(predicted)
    assert_apart(figure)


def test_beside_other_panels_the_figure_only_grows():
    figure, axes = new_figure(1, 2, width=5.5, aspect=0.15)
    before = figure.get_figheight()
    draw_timeline(axes[0], PHASES, [Instant(f"predicted time {k}", 3000 + 10 * k) for k in range(8)])
    assert figure.get_figheight() > before
    assert_apart(figure)
    figure, axes = new_figure(1, 2, width=5.5, aspect=1.0)
    draw_timeline(axes[0], PHASES)
    assert figure.get_figheight() == pytest.approx(11.0)


def test_without_a_time_there_is_no_line():
    _, (axes,) = new_figure()
    with pytest.raises(ValueError, match="at least one finite time"):
        draw_timeline(axes, [], [Instant("a", np.nan)])


def test_a_single_instant_is_drawn():
    figure, (axes,) = new_figure()
    draw_timeline(axes, [], [Instant("a", 0.0)])
    assert_apart(figure)
    assert [text.get_text() for text in axes.texts] == ["a"]
