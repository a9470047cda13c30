"""The figures of Boursier et al. 2022 on runs that are really trained, with numbers of the paper
and its theory.
"""

import pytest
from numpy.testing import assert_allclose

from dynamics_cli.reproduction.catalogue import load_figure
from tests.experiments.helpers import by_id, evidence_of


def test_figure_4_with_seed_0_stays_at_the_saddle_where_no_neuron_is_left_to_leave_it():
    figure = load_figure("boursier2022-fig4")
    evidence = evidence_of(figure, ("seed=0",))
    loss = by_id(figure.claims(evidence))["zero-loss"]
    assert (loss.verdict, loss.measured) == ("not reproduced", pytest.approx(0.0636, abs=1e-4))
    assert (evidence.negative, evidence.flipped > 0) == (0, True)


@pytest.mark.long
def test_the_flow_leaves_the_saddle_of_figure_4_with_the_seed_for_which_descent_stays():
    figure = load_figure("boursier2022-fig4").as_variant("flow")
    evidence = evidence_of(figure, ("seed=0",))
    assert evidence.flipped == 0  # Lemma 1, which the stepper imposes
    assert {one.verdict for one in figure.claims(evidence) if one.kind == "claim"} == {"reproduced"}


def test_limits_and_norms_are_those_of_an_independent_program():
    """Distances as they are printed there, to a tenth: the scale enters by its square root of
    the width.
    """
    evidence = evidence_of("boursier2022-statements")
    assert_allclose(evidence.distances[:3], [1.1e-7, 1.1e-5, 1.1e-3], rtol=0.15)
    assert evidence.ends[1e-1].norm == pytest.approx(1.0049, abs=1e-3)
    assert evidence.to_theory < 1e-3
    assert min(n.end.norm for n in evidence.narrow) > 1.1
