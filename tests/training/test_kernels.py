"""The kernels of two-layer networks where they divide neurons into blocks; their layout."""

from __future__ import annotations

from functools import partial

import numba

from dynamics_cli.kinds import Problem
from dynamics_cli.training.kernels.two_layers import WIDE
from tests.training.problems import (
    assert_chunks_are_invisible,
    assert_replicas_are_the_networks_alone,
    assert_same_path,
    path_of,
    random_problem,
    stepper_of,
)


def many_neurons(dtype: str = "float64", seed: int = 0) -> Problem:
    weights = {"kind": "unbalanced", "scale": 0.01}
    problem = random_problem(n=60, d=2, width=9000, dtype=dtype, initialization=weights, seed=seed)
    assert problem.parameter_count + 60 * 9000 >= WIDE
    return problem


def test_blocks_agree_with_autograd():
    problem = many_neurons()
    assert_same_path(stepper_of(problem, "kernel"), stepper_of(problem, "torch"), 20, 1e-10)


def test_the_number_of_threads_does_not_change_a_bit():
    seen, threads = [], numba.get_num_threads()
    for count in {1, threads}:
        numba.set_num_threads(count)
        seen.append(path_of(partial(stepper_of, many_neurons("float32"), "kernel"), [25]))
    numba.set_num_threads(threads)
    assert seen[0] == seen[-1]


def test_a_wide_network_has_the_same_bits_in_pieces_and_among_replicas():
    problems = [many_neurons("float32", seed) for seed in (0, 1)]
    together = assert_replicas_are_the_networks_alone(problems, partial(stepper_of, way="kernel"), 9)
    assert together.loss() < stepper_of(problems, "kernel").loss()
    assert_chunks_are_invisible(partial(stepper_of, problems[1], "kernel"), 15)
