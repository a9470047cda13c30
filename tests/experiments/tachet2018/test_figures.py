"""The figures of Tachet des Combes et al. 2018 that come from closed forms, on networks that are really trained."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.tachet2018 import phase
from dynamics_cli._bundled.experiments.tachet2018.theory.modes import Outcome
from dynamics_cli._bundled.experiments.tachet2018.trained import crossing, outputs, sigmoidal, train_together

from dynamics_cli.errors import InputError
from dynamics_cli.reproduction.reproduce import reproduce
from tests.experiments.helpers import evidence_of, one_run


def test_table_1_is_printed_written_and_drawn(tmp_path: Path) -> None:
    reproduce("tachet2018-table1", out=tmp_path)
    lines = (tmp_path / "tachet2018-table1.csv").read_text().splitlines()
    assert lines[0].startswith("confidence on x_1,lambda = 0.5")
    assert lines[1] == "99 %,91 % (90.87),71 % (71.48),61 % (61.29),51 % (51.15)"
    assert lines[2] == "99.99 %,99 % (99.01),86 % (86.32),72 % (71.53),52 % (52.30)"


def test_the_diagram_is_trained_from_at_least_100_by_100_starts() -> None:
    grid = evidence_of("tachet2018-fig2").diagram.grid
    assert min(grid.trained.shape) >= 100
    solved, dies, frozen = (np.sum(grid.trained == end) for end in (Outcome.SOLVED, Outcome.DIES, Outcome.FROZEN))
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
        phase.train_grid(run)


def test_outputs_are_those_of_the_run() -> None:
    run = one_run("tachet2018/deep.yaml", "optimizer.iterations=20", "record.snapshots.interval=10")
    x = np.random.default_rng(0).standard_normal((4, 2))
    for index in range(len(run.snapshot_iterations)):
        np.testing.assert_allclose(outputs(run, x)[index], run.network(index)(x), atol=1e-14)


def test_shapes_of_curves() -> None:
    t = np.linspace(-4.0, 4.0, 80)
    logistic = 1 / (1 + np.exp(-t))
    assert sigmoidal(t, logistic)
    assert not any(sigmoidal(t[part], logistic[part]) for part in (slice(0, 40), slice(40, 80)))  # half of one each
    assert not sigmoidal(t, -logistic)
    assert not sigmoidal(t, np.full(80, 0.5))


def test_crossing() -> None:
    t = np.array([0.0, 1.0, 2.0])
    assert crossing(t, np.array([0.0, 0.5, 1.5]), 1.0) == pytest.approx(1.5)
    assert crossing(t, np.array([2.0, 2.5, 3.0]), 1.0) == 0.0
    assert crossing(t, np.array([0.0, 0.1, 0.2]), 1.0) == np.inf
