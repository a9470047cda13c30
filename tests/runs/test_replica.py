"""Replicas read from the directory of runs that were trained together."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from dynamics_cli.errors import RunError
from dynamics_cli.runs.replica import replicas_of
from dynamics_cli.runs.run import Run
from dynamics_cli.runs.writer import RunWriter
from tests.runs.conftest import append_snapshot

STEPS = [0, 1, 2, 3]
LOSSES = np.array(
    [[4.0, 8.0], [2.0, 4.0], [1.0, 2.0], [1.0, 1.0]]
)  # (L, R); replica 0 halts at iteration 2
WEIGHTS = np.arange(32, dtype=np.float32).reshape(2, 2, 4, 2)  # (K, R, m, d)


@pytest.fixture
def together(tmp_path, config):
    """Two replicas, seeds 0 and 7, of three iterations; the first halts at iteration 2."""
    directory = tmp_path / "together"
    info = {"hash": "abc", "replicas": [{}, {"seed": 7, "name": "second"}]}
    writer = RunWriter.create(directory, config, info)
    writer.append_losses(STEPS, LOSSES)
    for k, step in enumerate((0, 3)):
        append_snapshot(writer, step, {"hidden_weight": WEIGHTS[k]}, {"norm": [k, 10.0 * k]})
    writer.finish(
        "complete",
        iterations=3,
        final_loss=1.0,
        seconds=0.1,
        replica_losses=[1.0, None],
        replica_iterations=[2, 3],
        replica_statuses=["complete", "diverged"],
    )
    return directory


def test_each_replica_reads_as_a_run(together, config):
    first, second = replicas_of(Run(together))
    assert (first.status, first.iterations, first.final_loss) == ("complete", 2, 1.0)
    assert (second.status, second.iterations) == ("diverged", 3)
    assert np.isnan(second.final_loss)
    assert first.finished
    assert first.times is None
    assert_array_equal(first.losses, LOSSES[:3, 0])  # not what follows its halt
    assert_array_equal(first.loss_iterations, STEPS[:3])
    assert_array_equal(second.losses, LOSSES[:, 1])
    assert_array_equal(second.loss_iterations, STEPS)
    assert_array_equal(second.snapshot_iterations, [0, 3])
    assert_array_equal(second.parameters["hidden_weight"], WEIGHTS[:, 1])
    assert_array_equal(second.state(-1)["hidden_weight"], WEIGHTS[1, 1])
    assert_array_equal(second.measures["norm"], [0.0, 10.0])
    assert second.config == config.model_copy(update={"seed": 7, "name": "second"})
    assert first.config == config
    assert repr(second) == "<Run together[1]: diverged, 3 iterations>"


def test_a_single_run_holds_no_replicas(together, finished):
    replicas = replicas_of(Run(together))
    assert [run.replica for run in replicas] == [0, 1]
    for single in (replicas[0], Run(finished)):
        with pytest.raises(RunError, match="holds a single run, not replicas"):
            replicas_of(single)


def test_an_unfinished_run_of_replicas(tmp_path, config):
    writer = RunWriter.create(
        tmp_path / "run", config, {"hash": "abc", "replicas": [{}, {"seed": 7}]}
    )
    nothing, _ = replicas_of(Run(tmp_path / "run"))
    assert (len(nothing.losses), len(nothing.loss_iterations), nothing.iterations) == (0, 0, 0)
    writer.append_losses(STEPS, LOSSES)
    writer.checkpoint({}, {"iteration": 3})
    second = replicas_of(Run(tmp_path / "run"))[1]
    assert (second.status, second.finished, second.iterations) == ("interrupted", False, 3)
    assert_array_equal(second.losses, LOSSES[:, 1])
