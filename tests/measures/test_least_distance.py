"""Least distance programs: solutions by hand, certificates, infeasibility, agreement with a
general solver.
"""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamics_cli.measures.least_distance import least_distance


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 60), st.integers(2, 12), st.integers(0, 1000), st.floats(1e-6, 1e6))
def test_certificate_of_random_separable_points(n, d, seed, size):
    rng = np.random.default_rng(seed)
    teacher = rng.standard_normal(d)
    x = size * rng.standard_normal((n, d))
    A = x * np.sign(x @ teacher)[:, None]
    solution = least_distance(A)
    assert solution.kkt_residual < 1e-8
    assert (A @ solution.w >= 1 - 1e-8).all()
