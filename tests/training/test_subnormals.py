"""Subnormal numbers are 0 in every kernel and thread that trains, and numbers again between two
calls.
"""

from threading import get_ident

import numpy as np
import pytest
import torch

from dynamics_cli.gradients.engine.subnormals import FLUSHES, WORD, environment, flushed
from dynamics_cli.training.steppers.side_by_side import Threads
from tests.training.problems import random_problem, stepper_of

pytestmark = pytest.mark.skipif(not FLUSHES, reason="this processor has no flag that is known here")
TINY = 1e-39
SGD = {"kind": "sgd", "lr": 0.02, "epochs": 50}


def flushing():
    """Return whether the calling thread takes subnormal numbers as 0."""
    return environment()[WORD] & FLUSHES == FLUSHES


def halves():
    """Return whether each of torch's threads takes subnormal numbers as 0."""
    count = torch.get_num_threads()
    numbers = torch.from_numpy(np.full(2**18 * count, TINY, np.float32)) * 0.5
    return [bool((one == 0).all()) for one in np.array_split(numbers.numpy().view(np.int32), count)]


def problem_of(n=20, d=3, scale=TINY, **settings):
    """Return a problem without zeros in its data, which begins at weights of a scale."""
    rng = np.random.default_rng(0)
    data = {
        "kind": "points",
        "x": rng.uniform(0.5, 1.5, (n, d)).tolist(),
        "y": rng.standard_normal(n).tolist(),
    }
    start = {"kind": "unbalanced", "scale": scale}
    return random_problem(dataset=data, initialization=start, **{"dtype": "float32", **settings})


@pytest.mark.parametrize(
    ("way", "replicas", "settings"),
    [
        ("kernel", 1, {}),
        ("kernel", 3, {}),
        ("kernel", 1, {"d": 30, "n": 40, "optimizer": {**SGD, "batch_size": 1}}),
        ("engine", 1, {}),
        ("engine", 3, {}),
        ("engine", 1, {"optimizer": {**SGD, "batch_size": 8}}),
        ("torch", 1, {}),
        ("torch", 3, {}),
        ("torch", 1, {"optimizer": {**SGD, "batch_size": 8}}),
    ],
)
def test_training_takes_subnormal_weights_as_zero(way, replicas, settings):
    """Weights that begin subnormal are 0 after some updates, whichever thread moves them; flags
    are as before.
    """
    problem = problem_of(**settings)
    begun = list(problem.initial_parameters().values())
    assert all(0 < abs(one).max() < np.finfo(np.float32).tiny for one in begun)
    former = flushing()
    stepper = stepper_of([problem] * replicas, way)
    stepper.advance(2 if problem.batch_size is None else 100)
    stepper.loss()
    assert former == flushing()
    assert not any(halves())
    assert not any(one.any() for one in stepper.parameters().values())


def test_torch_flushes_in_all_its_threads():
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert not any(halves())
        with flushed(everywhere=True):
            assert all(halves())
        assert not any(halves())
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_flags_are_put_back_where_training_breaks_off(error, monkeypatch):
    stepper = stepper_of(problem_of(), "torch")
    seen = []

    def fail(*arguments):
        seen.append((flushing(), all(halves())))
        raise error

    monkeypatch.setattr(stepper, "_gradients", fail)
    with pytest.raises(error):
        stepper.advance(3)
    assert seen == [(True, True)]
    assert not flushing()
    assert not any(halves())


def test_flags_of_the_caller_stay():
    """Who flushes subnormal numbers in all of a program finds them flushed afterwards."""
    with flushed():
        stepper_of(problem_of(), "engine").advance(3)
        stepper_of(problem_of(), "torch").advance(3)
        assert flushing()
    assert not flushing()


def test_shares_of_work_flush_on_the_calling_thread_and_on_others(monkeypatch):
    monkeypatch.setattr("numba.config.NUMBA_NUM_THREADS", 3)
    monkeypatch.setattr("dynamics_cli.training.steppers.side_by_side.cores", lambda: 3)
    works = [lambda k=k: (k, get_ident(), flushing()) for k in range(3)]
    numbers, threads, flushed_there = zip(*Threads(3).run(works), strict=True)
    assert numbers == (0, 1, 2)
    assert threads[0] == get_ident()
    assert threads[0] not in threads[1:]
    assert all(flushed_there)
    assert not flushing()
