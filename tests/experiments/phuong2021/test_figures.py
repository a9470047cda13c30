"""The figures of Phuong and Lampert 2021 on runs that are really trained; the convolutional
network on a few images.
"""

from dataclasses import replace

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.phuong2021 import mnist

from dynamics_cli.reproduction.catalogue import load_figure
from tests.experiments.helpers import by_id, evidence_of


def test_figure_1_has_the_numbers_of_an_independent_run():
    e = evidence_of("phuong2021-fig1")
    (layer,) = e.layers
    assert layer.values[0] == pytest.approx(2.40, rel=0.1)
    assert layer.values[1] == pytest.approx(0.35, rel=0.15)
    assert layer.third < 0.05
    assert -0.92 < load_figure("phuong2021-fig1").numbers(e)["cosine of w+ and w-"] < -0.86
    assert e.directions.violations == 0


def test_nothing_is_claimed_of_a_network_that_has_not_learnt():
    """Under a wrong gradient the rank was two, and correlations were high, without learning."""
    figure = load_figure("phuong2021-fig1")
    unlearnt = by_id(figure.claims(replace(evidence_of(figure), loss=0.69)))
    for key in ("rank", "grown", "second", "directions", "correlation", "learnt"):
        assert unlearnt[key].verdict == "not reproduced"


def test_a_late_neuron_does_not_decide_whether_others_stay():
    """Lemma 3 and Lemma B.1 are about neurons that have arrived."""
    figure = load_figure("phuong2021-theorem1")
    evidence = evidence_of(figure)
    late = replace(evidence.flow, settled=0.975)
    claims = by_id(figure.claims(replace(evidence, followed={"flow": late})))
    assert claims["sectors"].verdict == "not reproduced"
    assert (claims["absorbing"].measured, claims["stays-active"].measured) == (0, 0)
    nowhere = replace(late, settled=0.0)
    claims = by_id(figure.claims(replace(evidence, followed={"flow": nowhere})))
    assert claims["absorbing"].verdict == "not reproduced"


def test_shifts_up_the_layers_are_compared_with_orders_of_the_layers():
    """Of eight numbers in any order 95 % have 0.75 rising pairs or fewer (Kendall's tau of 0.5); a
    coin gives four of seven rising steps half the time.
    """
    rising = np.arange(8.0)
    assert mnist.upward(rising) == 1
    assert mnist.upward(-rising) == 0
    assert mnist.upward(np.stack([rising, -rising])) == 0.5
    assert mnist.upward_by_chance(rising) == pytest.approx(0.75, abs=0.04)
