"""The premise of Theorem 1 of Min et al. 2024 as a number, and the verdicts that follow it."""

from dataclasses import replace

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.min2024.shared import Premise
from dynamics_cli._bundled.experiments.min2024.theory import early_alignment

from dynamics_cli import kit
from dynamics_cli.reproduction.catalogue import load_figure
from tests.experiments.helpers import by_id, evidence_of


def test_the_scale_that_theorem_1_asks_for_by_hand():
    """Two points of mu = sin 1 in the plane: t1 = 17.1, so that T >= t1 up to 1e-60."""
    x = np.array([[1.0, 0.0], [np.sin(1.0), np.cos(1.0)]])
    W = np.array([[1.0, 0.0]])
    alignment = early_alignment.alignment_constants(x, np.ones(2), W, np.ones(1))
    constants = early_alignment.data_constants(x, np.ones(2), W, scale=1.0)
    t1 = 16 * np.log(2) * np.sin(1.0) ** -2.5
    assert constants.largest == pytest.approx(1 / 4)
    assert constants.asked(alignment) == pytest.approx(-8 * t1 / np.log(10))
    assert early_alignment.log_scale(t1, 2, 1.0, 100) == pytest.approx(-8 * t1 / np.log(10) - 1)


OF_THEOREM_1 = [
    ("min2024-statements", "lemma-13 t2 loss-bound"),
    ("min2024-fig6", "flow-ends flow-rate"),
    ("min2024-fig4", "active-live"),
]


@pytest.mark.parametrize(("figure_id", "ids"), OF_THEOREM_1)
def test_claims_of_theorem_1_do_not_meet_its_premise_though_they_hold(figure_id, ids):
    """An independent derivation gives 10^-176543 for the points of Figure 6."""
    figure = load_figure(figure_id)
    claims = by_id(figure.claims(evidence_of(figure)))
    for key in ids.split():
        claim = claims[key]
        assert claim.verdict == "premise not met"
        assert "<= -176543 is asked for, -6 is given" in claim.note
        assert kit.Interval(claim.low, claim.high).holds(claim.measured)


def test_the_premise_decides_and_not_the_number():
    constants = early_alignment.data_constants(np.eye(2), np.ones(2), np.eye(2), scale=1.0)
    constants = replace(constants, scale=1e-6)
    held, failed = (kit.claim("a", "", "", kit.at_most(1), number) for number in (0, 2))
    assert Premise(constants, asked=-7.0).of_theorem(held).verdict == "premise not met"
    assert Premise(constants, asked=-7.0).of_theorem(failed).verdict == "premise not met"
    assert Premise(constants, asked=-5.0).of_theorem(held).verdict == "reproduced"
    assert Premise(constants, asked=-5.0).of_theorem(failed).verdict == "not reproduced"


def test_the_log_scale_of_the_measured_time_of_alignment():
    """Independently 10^-14.4: T of Lemma 1 ends at 0.165, before t1 = 0.433."""
    e = evidence_of("min2024-statements")
    c = e.constants
    assert early_alignment.log_scale(e.t1, c.n, c.x_max, c.width) == pytest.approx(-14.4, abs=0.05)
    assert (c.validity, e.t1) == (pytest.approx(0.165, abs=1e-3), pytest.approx(0.433, abs=1e-3))
