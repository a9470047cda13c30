"""Bars, times and labels of a time line."""

from __future__ import annotations

from itertools import combinations, pairwise

from dynamics_cli._bundled.experiments.boursier2022.timeline import GAP, Instant, Phase, draw_timeline, place_flags
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamics_cli.plotting.style import new_figure, settle

PHASES = [Phase("Early alignment", 0, 4000), Phase("Fitting positive labels", 4000, 7000)]
TIMES = st.floats(0, 20_000)
NAMES = st.sampled_from(["a", "intermediate saddle", r"$-\dfrac{\ln\lambda}{\Vert D_+\Vert}$", "left the first saddle"])
LOOK = {"end": 20_000.0, "xlabel": "iteration", "titles": ("measured", "theory")}


def assert_apart(figure):
    settle(figure)
    figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in figure.axes[0].texts]
    for a, b in combinations(boxes, 2):
        assert not a.padded(-1).overlaps(b.padded(-1))
    return boxes


def test_bars_and_labels_are_at_their_times():
    figure, (axes,) = new_figure(width=5.5, aspect=0.4)
    draw_timeline(figure, [*PHASES, Phase("End", 7000, 20_000)], [Instant("t", 3500)], **LOOK)
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
    phases = [Phase("Fitting labels", a, b) for a, b in pairwise(edges)]
    draw_timeline(figure, phases, [Instant(*p) for p in predicted], **LOOK)
    assert len(axes.texts) == len(phases) + len(predicted)
    assert_apart(figure)


def test_a_single_instant_is_drawn():
    figure, (axes,) = new_figure()
    draw_timeline(figure, [], [Instant("a", 0.0)], **LOOK)
    assert_apart(figure)
    assert [text.get_text() for text in axes.texts] == ["a"]


LABELS = st.lists(st.tuples(st.floats(0, 300), st.floats(1, 120)), max_size=12)


@given(labels=LABELS)
def test_flags_never_overlap(labels):
    flags = place_flags([at for at, _ in labels], [width for _, width in labels], 0.0, 300.0)
    assert [flag.at for flag in flags] == [at for at, _ in labels]
    for i, a in enumerate(flags):
        for b in flags[:i]:
            assert a.level != b.level or a.left >= b.right + GAP or b.left >= a.right + GAP


@given(labels=LABELS)
def test_flags_stay_inside_where_they_can(labels):
    for flag, (at, width) in zip(
        place_flags(*zip(*labels, strict=True), 0.0, 300.0) if labels else [], labels, strict=True
    ):
        if at + width + 3 <= 300 or at - width - 3 >= 0:
            assert flag.left >= 0
            assert flag.right <= 300


def test_far_flags_share_the_lowest_row_and_leaders_cross_no_label():
    assert [flag.level for flag in place_flags([0, 100, 200], [50, 50, 50], 0, 300)] == [0, 0, 0]
    flags = place_flags([100, 120, 140], [80, 80, 80], 0, 300)
    assert sorted(flag.level for flag in flags) == [0, 0, 1]
    for a in flags:
        for b in flags:
            assert not (a.level > b.level and b.left <= a.at <= b.right)
