"""Kunin et al. 2024: the exact solution against an integrator, and the figures on trained
neurons.
"""

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.kunin2024.theory.single_neuron import (
    kernel_distance,
    last_distance,
    single_neuron,
    start,
)
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp


@pytest.mark.parametrize("delta", [-4.0, -0.5, 0.0, 1e-6, 2.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_exact_solution_solves_the_flow(delta, sign):
    w, a = start(delta, [0.3, -0.8, 0.2])
    w = sign * w
    a = sign * a
    beta = np.array([0.5, 0.5, -1.0])
    t = np.linspace(0, 6, 13)

    def slope(_, v):
        r = beta - v[3] * v[:3]
        return np.append(v[3] * r, v[:3] @ r)

    found = solve_ivp(slope, (0, 6), [*w, a], method="DOP853", t_eval=t, rtol=1e-11, atol=1e-13).y
    exact = single_neuron(t, w, a, beta)
    assert_allclose(exact[0], found[:3].T, atol=1e-8)
    assert_allclose(exact[1], found[3], atol=1e-8)
    late = single_neuron([1e4], w, a, beta)
    assert_allclose(late[1][:, None] * late[0], [beta], atol=1e-9)
    with pytest.raises(ValueError, match="something to learn"):
        single_neuron(t, w, a, [0.0, 0.0, 0.0])


def test_the_kernel_distance_ends_at_the_values_of_an_independent_derivation():
    for delta, limit in {
        -2.0: 0.7133,
        -1.0: 0.4864,
        0.0: 0.2,
        1.0: 0.0501,
        2.0: 0.0124,
        -4.0: 0.8947,
    }.items():
        assert last_distance(delta, 1.0) == pytest.approx(limit, abs=1e-4)
        w, a = start(delta, [-1.0, 0.0])
        path = single_neuron([0.0, 500.0], w, a, [0.0, 1.0])
        assert_allclose(kernel_distance(*path, w, a), [0.0, limit], atol=1e-4)
