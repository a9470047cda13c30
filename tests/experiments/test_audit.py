"""The rule for claims: each fails for untrained networks, and under a further null, or says why it must hold."""

from __future__ import annotations

import pytest

from dynamics_cli.reproduction.audit import audit
from dynamics_cli.reproduction.catalogue import CatalogueEntry, figures

QUICK = 3.0
"""Most seconds of figures that are audited by default."""
SLOW = {"gromov2023-ipr", "sarussi2021-fig8", "saxe2014-fig3", "saxe2014-fig4", "woodworth2020-fig3"}
"""Such figures whose nulls take ten seconds and more."""


def _marked(one: CatalogueEntry) -> object:
    return pytest.param(
        one.id, id=one.id, marks=() if one.seconds <= QUICK and one.id not in SLOW else pytest.mark.long
    )


@pytest.mark.parametrize("figure", [_marked(one) for one in figures() if one.id != "tachet2018-table2"])
def test_claims_fail_untrained_and_under_a_further_null(figure: str) -> None:
    found = audit(figure, enough=True)
    assert found.unfalsified() == {}
    sentences = [one.always for one in found.claims if one.always]
    assert all(len(text.split()) > 3 for text in sentences)
