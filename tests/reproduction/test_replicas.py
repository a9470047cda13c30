"""Runs of figures that are many networks trained together."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from dynamics_cli.reproduction.figure import Wanted
from dynamics_cli.reproduction.obtain import RunSource

CONFIG = """\
name: small
seed: 5
dtype: float64
dataset: {kind: points, x: [[-0.5], [2.0]], y: [-1.0, 1.0], append_bias: true}
architecture: {kind: two_layer, width: 8}
initialization: {kind: balanced, scale: 0.5}
loss: {kind: mse}
optimizer: {kind: gd, lr: 0.01, iterations: 50}
"""


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(CONFIG)
    return str(path)


def test_replicas_are_one_run_whose_networks_are_those_of_the_seeds(config):
    source = RunSource()
    (one,) = source.obtain({"many": Wanted(config, (), 3)})
    assert (one.role, one.seed, one.reused, one.as_dict()["replicas"]) == ("many", 5, False, 3)
    assert one.run.parameters["hidden_weight"].shape[1:] == (3, 8, 2)
    alone = source.obtain({f"seed {k}": Wanted(config, (f"seed={5 + k}",)) for k in range(3)})
    for name, values in one.run.parameters.items():
        assert np.isfinite(values[-1]).all()
        for k, single in enumerate(alone):
            assert_allclose(values[-1][k], single.run.parameters[name][-1], rtol=1e-12, atol=1e-14)
    assert RunSource().obtain({"many": Wanted(config, (), 3)})[0].reused
    forced = RunSource(force=True)
    assert not forced.obtain({"many": Wanted(config, (), 3)})[0].reused
    assert forced.obtain({"many": Wanted(config, (), 3)})[0].reused  # trained once for all figures


def test_replicas_of_other_seeds_are_other_networks(config):
    wanted = {"many": Wanted(config, (), 3), "one": Wanted(config)}
    source = RunSource()
    first = source.obtain(wanted)
    (second, third) = source.obtain_seeds(wanted, (), (1, 2))
    runs = {one.role: [] for one in first}
    for one in (*first, *second, *third):
        runs[one.role].append(one)
    assert [one.seed for one in runs["many"]] == [5, 8, 11]
    assert [one.seed for one in runs["one"]] == [5, 8, 11]  # sets of seeds share none
    starts = np.concatenate(
        [one.run.parameters["hidden_weight"][0] for one in runs["many"]]
    )  # (9, m, d)
    assert len(np.unique(starts[:, 0, 0])) == 9
