import itertools

import pytest

from dynamics_cli.plotting.panels.table import table_figure

HEADER = ["claim", "paper", "measured"]
ROWS = [
    ["aligned with $D_+$", "> 0.99", "0.999"],
    ["a sentence of some words", "0.5", "\u22120.51"],
]


def test_cells_hold_their_text_and_do_not_overlap():
    figure = table_figure(HEADER, ROWS)
    figure.draw_without_rendering()
    (table,) = figure.axes[0].tables
    cells = [[table[r, c].get_text() for c in range(3)] for r in range(3)]
    assert [[cell.get_text() for cell in row] for row in cells] == [HEADER, *ROWS]
    boxes = [[cell.get_window_extent() for cell in row] for row in cells]
    for row in boxes:
        assert all(left.x1 < right.x0 for left, right in itertools.pairwise(row))
        assert row[0].x0 >= 0
        assert row[2].x1 <= figure.bbox.x1
    for above, below in itertools.pairwise(boxes):
        assert min(box.y0 for box in above) > max(box.y1 for box in below)


@pytest.mark.parametrize(
    ("header", "rows", "align", "message"),
    [
        ([], [], None, "a cell for each"),
        (["a"], [["1", "2"]], None, "a cell for each"),
        (["a"], [["1"]], "x", "1 letters"),
    ],
)
def test_bad_tables_are_refused(header, rows, align, message):
    with pytest.raises(ValueError, match=message):
        table_figure(header, rows, align=align)
