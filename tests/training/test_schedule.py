"""The recording schedule: the released code's geometric one, regular and listed ones; batches."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from torch.utils.data import DataLoader

from dynamics_cli.errors import InputError
from dynamics_cli.kinds.snapshots import next_after, snapshot_iterations
from dynamics_cli.recording.snapshots import Every, Geometric, Listed
from dynamics_cli.training.batches import Batches
from tests.training.problems import random_problem


def test_geometric_is_that_of_the_released_code():
    expected = []
    last = 0
    while last <= 20000:
        expected.append(last)
        last = int(1.05 * last) + 1
    assert snapshot_iterations(Geometric(ratio=1.05), 20000).tolist() == [*expected, 20000]


def test_included_iterations_and_the_ends():
    assert snapshot_iterations(Listed(include=[7, 3]), 10).tolist() == [0, 3, 7, 10]
    regular = Every(interval=4, include=[5])
    assert snapshot_iterations(regular, 10).tolist() == [0, 4, 5, 8, 10]


@given(st.integers(1, 10**6), st.floats(1.001, 3), st.integers(0, 10**6))
def test_next_after(total, ratio, at):
    schedule = snapshot_iterations(Geometric(ratio=ratio), total)
    assert (np.diff(schedule) > 0).all()
    assert (schedule[0], schedule[-1]) == (0, total)
    assert next_after(schedule, at) == min((i for i in schedule if i > at), default=total)


def test_batches_are_a_function_of_seed_epoch_and_step():
    sgd = {"kind": "sgd", "lr": 0.1, "epochs": 3, "batch_size": 4}
    problem = random_problem(n=10, optimizer=sgd)
    batches = Batches(problem)
    forward = [batches.at(i) for i in range(9)]
    batches = Batches(problem)
    backward = [batches.at(i) for i in reversed(range(9))][::-1]
    for a, b in zip(forward, backward, strict=True):
        assert_array_equal(a, b)
    assert [len(b) for b in forward[:3]] == [4, 4, 2]
    assert sorted(np.concatenate(forward[:3])) == list(range(10))
    assert not np.array_equal(np.concatenate(forward[:3]), np.concatenate(forward[3:6]))
    drawn = Batches(random_problem(n=10, optimizer={**sgd, "replacement": True}))
    assert [len(drawn.at(i)) for i in range(3)] == [4, 4, 4]


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize(("n", "size"), [(10, 4), (9, 3), (7, 1), (7, 6), (5, 5)])
def test_epochs_have_the_batches_of_a_data_loader(n, size, drop_last):
    optimizer = {"kind": "sgd", "lr": 0.1, "epochs": 3, "batch_size": size, "drop_last": drop_last}
    problem = random_problem(n=n, optimizer=optimizer)
    loader = DataLoader(range(n), batch_size=size, shuffle=True, drop_last=drop_last)
    assert problem.iterations == 3 * len(loader)
    batches = Batches(problem)
    sizes = [len(batch) for _ in range(3) for batch in loader]
    assert [len(batches.at(i)) for i in range(problem.iterations)] == sizes
    assert problem.smallest_batch == min(sizes)

    # the same permutations as without it
    kept = Batches(random_problem(n=n, optimizer={**optimizer, "drop_last": False}))
    for epoch in range(3):
        order = batches.order(epoch)
        assert_array_equal(order, kept.order(epoch)[: len(order)])


@pytest.mark.parametrize("snapshots", [Every(interval=3), Geometric(ratio=1.0000001)])
def test_schedules_that_are_too_long_to_list(snapshots, monkeypatch):
    monkeypatch.setattr("dynamics_cli.kinds.snapshots.MAX_SNAPSHOTS", 1000)
    with pytest.raises(InputError) as caught:
        snapshot_iterations(snapshots, 18 * 10**17)
    told = (
        "more than 1e+03 states would be recorded, too many to list; take a larger ratio or"
        " interval"
    )
    assert str(caught.value) == f"record.snapshots: {told}"
    assert len(snapshot_iterations(Every(interval=2), 2000)) == 1001
