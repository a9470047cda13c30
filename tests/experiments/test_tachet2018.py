"""The figures of Tachet des Combes et al. 2018 that come from closed forms, on networks that are really trained."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.tachet2018 import phase_grid
from dynamics_cli._bundled.experiments.tachet2018.starving import DRAWS, random_cases
from dynamics_cli._bundled.experiments.tachet2018.theory.modes import Outcome
from dynamics_cli._bundled.experiments.tachet2018.theory.starvation import corrected_bound
from dynamics_cli._bundled.experiments.tachet2018.trained import crossing, order, outputs, train_together

from dynamics_cli.errors import InputError
from dynamics_cli.plotting.style import FORMATS, style
from dynamics_cli.reproduction.catalogue import load_figure, papers
from dynamics_cli.reproduction.claims import Claim
from dynamics_cli.reproduction.figure import Figure, Wanted
from dynamics_cli.reproduction.obtain import RunSource
from dynamics_cli.reproduction.reproduce import reproduce_figure
from dynamics_cli.runs import Run

NAMES = ("fig1", "fig2", "fig3", "fig4", "fig5-time", "fig6", "fig7", "fig9", "fig10", "table1", "extra-modes")
IDS = [f"tachet2018-{name}" for name in NAMES]


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """Evidence by figure, each computed once."""
    return {}


SHORT = ("optimizer.iterations=40", "record.snapshots.interval=8")


def evidence_of(figure: Figure, known: dict[str, Any]) -> Any:
    if figure.id not in known:
        runs = RunSource().obtain(figure.wanted())
        known[figure.id] = figure.evidence({one.role: one.run for one in runs})
    return known[figure.id]


def claims_of(figure_id: str, known: dict[str, Any]) -> dict[str, Claim]:
    figure = load_figure(figure_id)
    return {one.id: one for one in figure.claims(evidence_of(figure, known))}


def picture(figure: Figure, evidence: Any) -> bytes:
    stream = io.BytesIO()
    with style():
        figure.draw(evidence).savefig(stream, format="png", dpi=60, metadata=FORMATS["png"])
    return stream.getvalue()


def one_run(config: str, *overrides: str) -> Run:
    return RunSource().obtain({"run": Wanted(config, overrides)})[0].run


@pytest.mark.parametrize("figure_id", IDS)
def test_all_claims_are_reproduced(figure_id: str, found: dict[str, Any]) -> None:
    claims = claims_of(figure_id, found)
    stated = {id_: one for id_, one in claims.items() if one.kind == "claim"}
    assert stated
    assert {id_: one.verdict for id_, one in stated.items()} == dict.fromkeys(stated, "reproduced")
    assert all(one.source and one.statement and one.measured is not None for one in claims.values())


@pytest.mark.parametrize("figure_id", IDS)
def test_drawing_is_pure(figure_id: str, found: dict[str, Any], outputs: Path) -> None:
    figure = load_figure(figure_id)
    evidence = evidence_of(figure, found)
    before = sorted(outputs.rglob("*"))
    first = picture(figure, evidence)
    assert first == picture(figure, evidence)
    assert len(first) > 2_000
    assert sorted(outputs.rglob("*")) == before


@pytest.mark.parametrize("figure_id", [f"tachet2018-{name}" for name in ("fig2", "fig4", "fig6", "extra-modes")])
def test_runs_that_are_much_too_short_give_verdicts_and_a_picture(figure_id: str) -> None:
    figure = load_figure(figure_id)
    runs = RunSource().obtain(figure.wanted(), SHORT)
    evidence = figure.evidence({one.role: one.run for one in runs})
    verdicts = [one.verdict for one in figure.claims(evidence) if one.kind == "claim"]
    assert "not reproduced" in verdicts
    assert len(picture(figure, evidence)) > 2_000


def test_the_index_has_every_figure_of_the_paper_in_its_order() -> None:
    figures = list(papers()["tachet2018"].figures)
    assert set(IDS) | {"tachet2018-fig8"} <= set(figures)
    assert figures.index("tachet2018-fig4") < figures.index("tachet2018-fig6") < figures.index("tachet2018-fig10")


def test_figure_8_at_a_coarse_step() -> None:
    """Its own runs take long; N = 4 and 8 at ten times the step show the same."""
    figure = load_figure("tachet2018-fig8")
    wanted = {role: one for role, one in figure.wanted().items() if "coarse" in role}
    coarse = {one.role: one.run for one in RunSource().obtain(wanted)}
    evidence = figure.evidence({**{role.split(",")[0]: run for role, run in coarse.items()}, **coarse})
    assert [one.depth for one in evidence.curves] == [4, 4, 8, 8]
    assert max(one.error for one in evidence.curves) < 1e-2  # ten times 1e-3, first order
    verdicts = {one.id: one.verdict for one in figure.claims(evidence)}
    for id_ in ("closed-form", "equal-weights", "larger-norm", "norm-fades", "deeper"):
        assert verdicts[id_] == "reproduced"
    assert picture(figure, evidence)


def test_table_1_is_printed_written_and_drawn(tmp_path: Path) -> None:
    result = reproduce_figure("tachet2018-table1", out=tmp_path)
    lines = (tmp_path / "tachet2018-table1.csv").read_text().splitlines()
    assert lines[0].startswith("confidence on x_1,lambda = 0.5")
    assert lines[1] == "99 %,91 % (90.9),71 % (71.5),61 % (61.3),51 % (51.1)"
    assert lines[2] == "99.99 %,99 % (99.0),86 % (86.3),72 % (71.5),52 % (52.3)"
    assert (tmp_path / "tachet2018-table1.png").stat().st_size > 2_000
    assert result.table is not None


def test_numbers_of_figure_3(found: dict[str, Any]) -> None:
    claims = claims_of("tachet2018-fig3", found)
    expected = {"green-time": 1.623, "yellow-time": 2.247, "failure-time": 2.662, "edge-beta": 1.781, "edge-z": 1.474}
    for id_, value in expected.items():  # measured with independent code
        assert claims[id_].measured == pytest.approx(value, abs=1e-3)


def test_the_counterexample_to_theorem_d_2(found: dict[str, Any]) -> None:
    claims = claims_of("tachet2018-fig6", found)
    assert claims["counter-truth"].measured == pytest.approx(0.6407, abs=5e-5)
    assert claims["counter-printed"].measured == pytest.approx(0.6129, abs=5e-5)
    assert claims["counter-corrected"].measured == pytest.approx(0.6577, abs=5e-5)


def test_random_cases_are_as_many_and_never_beyond_the_corrected_bound() -> None:
    cases = random_cases(strong=False)
    assert len(cases.rare) == DRAWS == 1000
    bound = corrected_bound(cases.delta, cases.lambda_, cases.alpha0, cases.beta0, cases.z_star)
    assert (cases.rare <= bound + 1e-12).all()


def test_the_diagram_is_trained_from_at_least_100_by_100_starts(found: dict[str, Any]) -> None:
    grid = evidence_of(load_figure("tachet2018-fig2"), found).grid
    assert min(grid.trained.shape) >= 100
    solved, dies, frozen = (grid.count(end) for end in (Outcome.SOLVED, Outcome.DIES, Outcome.FROZEN))
    assert solved + dies + frozen == grid.trained.size
    assert frozen == grid.trained.size // 2  # y0 < 0
    assert dies / grid.trained.size == pytest.approx(0.7 / 8, abs=0.005)  # the triangle below y = -0.7 z


def test_networks_trained_together_are_those_trained_alone() -> None:
    alone = one_run("tachet2018/phase.yaml")
    together = train_together(alone, np.array([[1.0], [0.3]]), np.array([-0.5, 0.2]), snapshots=[0, 500, 2000])
    index = alone.index_of(500, exact=True)
    assert together.w[1, 0, 0] == pytest.approx(float(alone.parameters["hidden_weight"][index, 0, 0]), rel=1e-13)
    assert together.z[2, 0] == pytest.approx(float(alone.parameters["output_weight"][-1, 0]), rel=1e-13)
    assert together.t.tolist() == [0.0, 5.0, 20.0]


def test_wider_networks_are_not_trained_on_a_grid() -> None:
    run = one_run("tachet2018/two_classes.yaml", "optimizer.iterations=10", "record.snapshots.interval=1")
    with pytest.raises(InputError, match="one neuron"):
        phase_grid.train_grid(run)


def test_outputs_are_those_of_the_run() -> None:
    run = one_run("tachet2018/classes.yaml", "optimizer.iterations=20", "record.snapshots.interval=10")
    x = np.random.default_rng(0).standard_normal((4, 3))
    for index in range(len(run.snapshot_iterations)):
        np.testing.assert_allclose(outputs(run, x)[index], run.network(index)(x), atol=1e-14)


def test_crossing_and_order() -> None:
    t = np.array([0.0, 1.0, 2.0])
    assert crossing(t, np.array([0.0, 0.5, 1.5]), 1.0) == pytest.approx(1.5)
    assert crossing(t, np.array([2.0, 2.5, 3.0]), 1.0) == 0.0
    assert crossing(t, np.array([0.0, 0.1, 0.2]), 1.0) == np.inf
    assert order(4e-3, 1e-3, (2e-2, 1e-2)) == pytest.approx(2.0)
