"""The drawing of a network: as many units and weights as it has."""

from __future__ import annotations

import pytest

from dynamics_cli.plotting.style import new_figure
from experiments.tachet2018.fig1 import draw_network


def test_units_and_weights_are_those_of_the_network() -> None:
    _, (axes,) = new_figure()
    panel = draw_network(axes, (3, 5, 2), weights=("$W$", "$Z$"), layers=("a", "b", "c"), output="s")
    assert [len(units.get_offsets()) for units in panel.units] == [3, 5, 2]
    assert [len(edges.get_segments()) for edges in panel.edges] == [15, 10]
    assert [text.get_text() for text in panel.texts].count("s") == 2


@pytest.mark.parametrize("arguments", [((3,), {}), ((3, 0), {}), ((3, 2), {"weights": ("a", "b")})])
def test_networks_that_cannot_be_drawn_are_refused(arguments: tuple) -> None:
    _, (axes,) = new_figure()
    widths, options = arguments
    with pytest.raises(ValueError):  # noqa: PT011
        draw_network(axes, widths, **options)
