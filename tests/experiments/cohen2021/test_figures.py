"""The figures on runs that are really trained."""

from __future__ import annotations

from pathlib import Path

import pytest

from dynamics_cli.reproduction.catalogue import figures, load_figure
from tests.experiments.helpers import check_pure, claims_of, drawing, evidence_of, labels, legend, verdicts

ALL = [listed.id.split("-")[1] for listed in figures("cohen2021")]
NOT_REPRODUCED = {
    "fig1": {"classes-after", "deep_linear-after"},
}
"""Statements that do not come out (see NOTES.md)."""


@pytest.mark.long
@pytest.mark.parametrize("figure", ALL)
def test_all_claims_but_the_known_are_reproduced(figure: str, outputs: Path) -> None:
    stated = verdicts(claims_of(f"cohen2021-{figure}"))
    failed = {id for id, verdict in stated.items() if verdict != "reproduced"}
    assert failed == NOT_REPRODUCED.get(figure, set())
    one = load_figure(f"cohen2021-{figure}")
    check_pure(one, evidence_of(one), outputs)


def test_a_run_that_is_much_too_short_gives_verdicts_and_a_picture() -> None:
    figure = load_figure("cohen2021-taylor")
    evidence = evidence_of(figure, ("optimizer.iterations=40",))
    assert set(verdicts(figure.claims(evidence)).values()) == {"not reproduced"}
    drawn = drawing(figure, evidence)
    assert [label[1] for label in labels(drawn)] == ["training loss", "", "sharpness"]
    assert legend(drawn) == ["gradient descent", "on its quadratic model"]
