"""The figures of Tachet des Combes et al. 2018 that come from closed forms, on networks that are
really trained.
"""

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.tachet2018.trained import train_together

from dynamics_cli.reproduction.reproduce import reproduce
from tests.experiments.helpers import one_run


def test_table_1_is_printed_written_and_drawn(tmp_path):
    reproduce("tachet2018-table1", out=tmp_path)
    lines = (tmp_path / "tachet2018-table1.csv").read_text().splitlines()
    assert lines[0].startswith("confidence on x_1,lambda = 0.5")
    assert lines[1] == "99 %,91 % (90.87),71 % (71.48),61 % (61.29),51 % (51.15)"
    assert lines[2] == "99.99 %,99 % (99.01),86 % (86.32),72 % (71.53),52 % (52.30)"


def test_networks_trained_together_are_those_trained_alone():
    alone = one_run("tachet2018/phase.yaml")
    together = train_together(
        alone, np.array([[1.0], [0.3]]), np.array([-0.5, 0.2]), snapshots=[0, 500, 2000]
    )
    index = alone.index_of(500)
    assert alone.snapshot_iterations[index] == 500
    assert together.w[1, 0, 0] == pytest.approx(
        float(alone.parameters["hidden_weight"][index, 0, 0]), rel=1e-13
    )
    assert together.z[2, 0] == pytest.approx(
        float(alone.parameters["output_weight"][-1, 0]), rel=1e-13
    )
    assert together.t.tolist() == [0.0, 5.0, 20.0]
