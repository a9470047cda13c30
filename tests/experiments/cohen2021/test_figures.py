"""The figures on runs that are really trained."""

from __future__ import annotations

from dynamics_cli.reproduction.catalogue import load_figure
from tests.experiments.helpers import drawing, evidence_of, labels, legend, verdicts


def test_a_run_that_is_much_too_short_gives_verdicts_and_a_picture() -> None:
    figure = load_figure("cohen2021-taylor")
    evidence = evidence_of(figure, ("optimizer.iterations=40",))
    assert set(verdicts(figure.claims(evidence)).values()) == {"not reproduced"}
    drawn = drawing(figure, evidence)
    assert [label[1] for label in labels(drawn)] == ["training loss", "", "sharpness"]
    assert legend(drawn) == ["gradient descent", "on its quadratic model"]
