"""The figures of Phuong and Lampert 2021 on runs that are really trained; the convolutional
network on a few images.
"""

from __future__ import annotations

import pytest

from dynamics_cli.reproduction.catalogue import load_figure
from tests.experiments.helpers import evidence_of


def test_figure_1_has_the_numbers_of_an_independent_run():
    e = evidence_of("phuong2021-fig1")
    assert e.layer.values[0] == pytest.approx(2.40, rel=0.1)
    assert e.layer.values[1] == pytest.approx(0.35, rel=0.15)
    assert e.layer.third < 0.05
    assert -0.92 < load_figure("phuong2021-fig1").numbers(e)["cosine of w+ and w-"] < -0.86
    assert e.directions.violations == 0
