from __future__ import annotations

import itertools

import pytest

from dynamics_cli.plotting.panels.table import draw_table, table_figure
from dynamics_cli.plotting.style import new_figure

HEADER = ["claim", "paper", "measured"]
ROWS = [["aligned with $D_+$", "> 0.99", "0.999"], ["a long sentence " * 12, "0.5", "\u22120.51"]]


def test_cells_hold_their_text_and_do_not_overlap():
    _, (axes,) = new_figure()
    width, _ = draw_table(axes, HEADER, ROWS, width=5.5)
    texts = [cell.get_text() for cell in axes.texts]
    assert texts[:6] == HEADER + ROWS[0]
    assert "\n" in texts[6]
    assert texts[6].split() == ROWS[1][0].split()
    assert [cell.get_ha() for cell in axes.texts[3:6]] == ["left", "left", "right"]
    assert width <= 5.5 * 72 + 0.01
    assert len(axes.lines) == 3


def test_the_figure_fits_the_table():
    figure = table_figure(HEADER, ROWS, width=5.5)
    figure.draw_without_rendering()
    (axes,) = figure.axes
    boxes = [[text.get_window_extent() for text in axes.texts[k : k + 3]] for k in range(0, 9, 3)]
    assert len(axes.texts) == 9
    for row in boxes:
        assert row[0].x1 < row[1].x0
        assert row[1].x1 < row[2].x0
        assert row[0].x0 >= 0
        assert row[2].x1 <= figure.bbox.x1
    for above, below in itertools.pairwise(boxes):
        assert min(box.y0 for box in above) > max(box.y1 for box in below)
    assert boxes[-1][0].y0 > 0


def test_a_table_without_rows_and_a_small_one():
    small = table_figure(["a", "b"], [])
    assert small.get_figwidth() < 1.5


@pytest.mark.parametrize(
    ("header", "rows", "align", "message"),
    [([], [], None, "as many cells"), (["a"], [["1", "2"]], None, "as many cells"), (["a"], [["1"]], "x", "1 letters")],
)
def test_bad_tables_are_refused(header, rows, align, message):
    _, (axes,) = new_figure()
    with pytest.raises(ValueError, match=message):
        draw_table(axes, header, rows, align=align)
