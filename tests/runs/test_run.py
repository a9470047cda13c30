import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from dynamics_cli.errors import RunError, UsageError
from dynamics_cli.runs.find import summarize
from dynamics_cli.runs.room import make_room
from dynamics_cli.runs.run import Run
from dynamics_cli.runs.store.locks import run_lock
from dynamics_cli.runs.verify import verify_run
from dynamics_cli.runs.writer import RunWriter


def test_a_finished_run(finished, config, toy):
    run = Run(str(finished))
    assert run.path == finished
    assert run.config == config
    assert (run.status, run.iterations, run.hash) == ("complete", toy.last, "abc")
    assert run.final_loss == toy.loss(toy.last)
    assert repr(run) == "<Run toy-run: complete, 12 iterations>"
    assert_array_equal(run.losses, [toy.loss(i) for i in range(toy.last + 1)])
    assert run.loss_iterations.tolist() == list(range(toy.last + 1))
    assert run.times is None
    assert run.snapshot_iterations.tolist() == list(toy.snapshots)
    assert list(run.parameters) == ["hidden_weight", "output_weight"]
    assert list(run.measures) == ["norm"]
    assert isinstance(run.parameters["hidden_weight"], np.memmap)
    assert not run.parameters["hidden_weight"].flags.writeable
    assert_array_equal(run.measures["norm"], [toy.loss(i) for i in toy.snapshots])
    with pytest.raises(KeyError):
        run.parameters["bias"]


def test_states(finished, toy):
    run = Run(finished)
    for i, iteration in enumerate(toy.snapshots):
        state = run.state(i)
        assert_array_equal(state["hidden_weight"], toy.weights(iteration))
        assert_array_equal(
            run.state(i - len(toy.snapshots))["output_weight"], toy.weights(iteration)[:, 0]
        )
        assert state["hidden_weight"].flags.writeable
    for i in (6, -7):
        with pytest.raises(RunError, match=f"has 6 snapshots, none with index {i}"):
            run.state(i)


def test_the_snapshot_nearest_to_an_iteration(finished):
    run = Run(finished)  # snapshots at 0 1 2 4 7 12
    expected = {0: 0, 3: 2, 4: 3, 5: 3, 6: 4, 9: 4, 10: 5, 1000: 5, -5: 0}
    assert {iteration: run.index_of(iteration) for iteration in expected} == expected


def test_network_and_dataset(finished, toy):
    run = Run(finished)
    data = run.dataset()
    assert_array_equal(data.x, [[-0.5, 1.0], [2.0, 1.0]])
    weights = toy.weights(12).astype(np.float64)
    expected = np.maximum(data.x @ weights.T, 0) @ weights[:, 0]
    assert_allclose(run.network(-1)(data.x), expected, rtol=1e-12)
    with pytest.raises(UsageError, match=r"inputs have 1 columns.* adds the constant 1 of"):
        run.network(-1)(data.x[:, :1])
    with pytest.raises(
        UsageError, match=r"inputs have 3 columns, this network takes another number of them"
    ):
        run.network(-1)(np.zeros((2, 3)))
    with pytest.raises(UsageError, match=r"the shape \(2,\), a network takes \(samples, columns\)"):
        run.network(-1)(np.zeros(2))


def test_an_unfinished_run_reads_as_its_checkpoint_counts(unfinished, toy):
    run = Run(unfinished)
    assert (run.status, run.finished, run.iterations) == ("interrupted", False, 6)
    assert math.isnan(run.final_loss)
    assert_array_equal(run.losses, [toy.loss(i) for i in range(6)])
    assert run.snapshot_iterations.tolist() == [0, 3, 6]
    assert_array_equal(run.parameters["hidden_weight"], [toy.weights(i) for i in (0, 3, 6)])
    with run_lock(unfinished):
        assert Run(unfinished).status == "running"


def test_a_reader_sees_one_moment(tmp_path, config, toy):
    writer = RunWriter.create(tmp_path / "run", config)
    empty = Run(tmp_path / "run")
    assert (
        empty.iterations,
        len(empty.losses),
        len(empty.loss_iterations),
        len(empty.parameters),
    ) == (0, 0, 0, 0)
    assert empty.losses.dtype == np.float64
    with pytest.raises(RunError, match="no snapshots yet"):
        empty.index_of(0)
    toy.snapshot(writer, 0)
    writer.append_losses([0], [1.0], [0.0])
    writer.checkpoint({}, {"iteration": 0})
    run = Run(tmp_path / "run")
    assert run.snapshot_iterations.tolist() == [0]
    toy.snapshot(writer, 1)
    writer.append_losses([1], [1.0], [0.5])
    writer.checkpoint({}, {"iteration": 1})
    assert len(run.parameters["hidden_weight"]) == len(run.measures["norm"]) == len(run.losses) == 1
    assert run.times.tolist() == [0.0]
    assert Run(tmp_path / "run").snapshot_iterations.tolist() == [0, 1]


def test_a_reader_who_meets_a_run_that_is_started_over_says_so(finished, config, toy):
    told = f"another process is writing {finished}"
    before = Run(finished)
    with run_lock(finished):
        make_room(finished, force=True)
        with pytest.raises(RunError, match=told):
            Run(finished)
        assert [found.problem for found in verify_run(finished)] == [
            "another process is writing it, so that it could not be checked"
        ]
        assert summarize(finished)["status"] == "running"
    toy.train(finished, config, stop=3)
    with pytest.raises(RunError, match=told):
        _ = before.losses
    assert verify_run(finished) == []
