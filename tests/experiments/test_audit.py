"""The rule for claims: each fails for untrained networks, and under a further null, or says why
it must hold.
"""

import pytest

from dynamics_cli.reproduction.audit import audit
from dynamics_cli.reproduction.catalogue import figures
from tests.experiments.helpers import unfalsified

QUICK = ("min2024-fig6", "saxe2014-fig2")
"""Figures that are audited by default: of neurons that classify, of deep linear networks."""


@pytest.mark.parametrize(
    "figure",
    [
        pytest.param(one.id, marks=() if one.id in QUICK else pytest.mark.long)
        for one in figures()
        if one.id != "tachet2018-table2"
    ],
)
def test_claims_fail_untrained_and_under_a_further_null(figure):
    audited = audit(figure, nulls=["untrained", "early", "shuffled"] if figure in QUICK else ())
    assert unfalsified(audited) == set()
    sentences = [claim.always for claim in audited.claims if claim.always]
    assert all(len(text.split()) > 3 for text in sentences)
