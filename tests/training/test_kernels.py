"""The kernels of two-layer networks where they divide samples into chunks or neurons into blocks; their layout."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from dynamics_cli.kinds import Problem
from dynamics_cli.training.backends import Choice, build_stepper, choose
from dynamics_cli.training.kernels.batches import CHUNK
from dynamics_cli.training.kernels.full_batch import WIDE
from dynamics_cli.training.kernels.layout import aligned_zeros, pack, unpack
from dynamics_cli.training.steppers.base import Stepper
from tests.training.problems import random_problem


def many_samples(dtype: str = "float64") -> Problem:
    optimizer = {"kind": "gd", "lr": 0.5, "iterations": 30}
    problem = random_problem(n=2 * CHUNK + 7, d=9, width=20, dtype=dtype, optimizer=optimizer)
    problem.dataset.x[np.random.default_rng(0).random(problem.dataset.x.shape) < 0.9] = 0.0
    return problem


def many_neurons(dtype: str = "float64", seed: int = 0) -> Problem:
    weights = {"kind": "unbalanced", "scale": 0.01}
    problem = random_problem(n=60, d=2, width=9000, dtype=dtype, initialization=weights, seed=seed)
    assert problem.parameter_count + 60 * 9000 >= WIDE
    return problem


CASES = [("sparse", many_samples), ("few_columns", many_neurons)]


def stepper(way: str, *problems: Problem) -> Stepper:
    return build_stepper(problems, Choice("cpu", "compiled", 0.0, way))


@pytest.mark.parametrize(("way", "make"), CASES)
def test_chunks_and_blocks_agree_with_autograd(way, make):
    problem = make()
    assert choose([problem]).variant == way
    fast, reference = stepper(way, problem), build_stepper([problem], Choice("cpu", "torch", 0.0))
    np.testing.assert_allclose(fast.advance(20), reference.advance(20), rtol=1e-11)
    for name, value in reference.parameters().items():
        np.testing.assert_allclose(fast.parameters()[name], value, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("way", "make"), CASES)
def test_the_number_of_threads_does_not_change_a_bit(way, make):
    seen, threads = [], numba.get_num_threads()
    for count in {1, threads}:
        numba.set_num_threads(count)
        current = stepper(way, make("float32"))
        seen.append(current.advance(25).tobytes() + current.parameters()["hidden_weight"].tobytes())
    numba.set_num_threads(threads)
    assert len(set(seen)) == 1


def test_a_wide_network_has_the_same_bits_in_pieces_and_among_replicas():
    problems = [many_neurons("float32", seed) for seed in (0, 1)]
    together, alone = stepper("few_columns", *problems), stepper("few_columns", problems[1])
    whole = together.advance(9)[:, 1]
    np.testing.assert_array_equal(np.concatenate([alone.advance(k) for k in (1, 3, 5)]), whole)
    assert whole[8] < whole[0]
    for name, value in alone.parameters().items():
        np.testing.assert_array_equal(together.parameters()[name][1], value)


@pytest.mark.parametrize("m", [1, 3, 7, 8, 17])
def test_packing_is_undone(m):
    rng = np.random.default_rng(m)
    hidden, output = rng.standard_normal((3, m, 2)), rng.standard_normal((3, m))
    W, a = pack(hidden, output)
    assert W.ctypes.data % 64 == a.ctypes.data % 64 == 0
    assert W.shape[2] == (m if m < 8 else -(-m // 16) * 16)
    for packed in ((W, a), pack(hidden, output, 8)):
        back = unpack(*packed, m)
        np.testing.assert_array_equal(back[0], hidden)
        np.testing.assert_array_equal(back[1], output)


def test_aligned_zeros_are_zeros():
    zeros = aligned_zeros((3, 5), np.dtype("float32"))
    assert (zeros.shape, zeros.dtype, zeros.any()) == ((3, 5), np.dtype("float32"), False)
