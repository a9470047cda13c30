"""The compiled kernels where they divide their work: chunks of samples, blocks of neurons, whole epochs."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from dynamics_cli.kinds import Problem
from dynamics_cli.training.backends import Choice, build_stepper, choose
from dynamics_cli.training.kernels.full_batch import CHUNK
from dynamics_cli.training.kernels.layout import aligned_zeros, pack, unpack
from dynamics_cli.training.steppers.base import Stepper
from dynamics_cli.training.steppers.compiled import WideStepper
from tests.training.problems import random_problem


def make(problem: Problem, backend: str) -> Stepper:
    return WideStepper([problem]) if backend == "wide" else build_stepper([problem], Choice("cpu", backend, 0.0))


def many_samples(dtype: str = "float64") -> Problem:
    optimizer = {"kind": "gd", "lr": 0.5, "iterations": 30}
    return random_problem(n=2 * CHUNK + 7, d=9, width=20, dtype=dtype, optimizer=optimizer)


def test_chunks_of_samples_agree_with_autograd():
    problem = many_samples()
    fast, reference = make(problem, "compiled"), make(problem, "autograd")
    np.testing.assert_allclose(fast.advance(20), reference.advance(20), rtol=1e-11)
    for name, value in reference.parameters().items():
        np.testing.assert_allclose(fast.parameters()[name], value, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7])
def test_samples_taken_three_at_a_time_agree_with_autograd(n):
    settings = {"n": n, "d": 3, "width": 1500, "initialization": {"kind": "unbalanced", "scale": 0.05}}
    problem = random_problem(activation={"activation": "leaky_relu", "slope": 0.2}, **settings)
    fast, reference = make(problem, "wide"), make(problem, "autograd")
    np.testing.assert_allclose(fast.advance(20), reference.advance(20), rtol=1e-11)


@pytest.mark.parametrize("backend", ["compiled", "wide"])
def test_the_number_of_threads_does_not_change_a_bit(backend):
    wide = {"n": 4, "d": 2, "width": 5000, "initialization": {"kind": "unbalanced", "scale": 0.05}}
    problem = many_samples("float32") if backend == "compiled" else random_problem(dtype="float32", **wide)
    seen, threads = [], numba.get_num_threads()
    for count in {1, threads}:
        numba.set_num_threads(count)
        current = make(problem, backend)
        seen.append(current.advance(25).tobytes() + current.parameters()["hidden_weight"].tobytes())
    numba.set_num_threads(threads)
    assert len(set(seen)) == 1


@pytest.mark.parametrize("m", [1, 3, 7, 8, 17])
@pytest.mark.parametrize("block", [None, 32])
def test_packing_is_undone(m, block):
    rng = np.random.default_rng(m)
    networks = 1 if block else 3
    hidden, output = rng.standard_normal((networks, m, 2)), rng.standard_normal((networks, m))
    W, a = pack(hidden, output, block)
    assert W.ctypes.data % 64 == a.ctypes.data % 64 == 0
    assert W.shape[2] == (block or (m if m < 8 else -(-m // 16) * 16))
    back = unpack(W, a, m, blocks=block is not None)
    np.testing.assert_array_equal(back[0], hidden)
    np.testing.assert_array_equal(back[1], output)


def test_aligned_zeros_are_zeros():
    zeros = aligned_zeros((3, 5), np.dtype("float32"))
    assert (zeros.shape, zeros.dtype, zeros.any()) == ((3, 5), np.dtype("float32"), False)


def test_many_sparse_samples_go_to_the_compiled_kernel():
    problem = many_samples()
    problem.dataset.x[np.random.default_rng(0).random(problem.dataset.x.shape) < 0.85] = 0.0
    assert choose([problem]).backend == "compiled"
