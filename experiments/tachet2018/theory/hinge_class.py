"""A class of any points under the hinge loss in full batches (Tachet des Combes et al. 2018,
Appendix C.2).

One neuron w with output weight z, active on all m points of the class, follows `w' = z X`, `z' = w
X` with X the sum of the points whose margin is below 1: a hyperbola for `y = w X` (see `modes`);
the part of w orthogonal to X stays. The paper treats the time until the first point reaches margin
1; that point then drops out of X and the same holds again with the rest, since by H1 (`x_i x_j >
0`) its margin goes on rising. Time counts the *sum* over the m points: with the mean everything
takes m times as long.
"""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp

from dynamics_cli.measures.arrays import Floats


def hinge_class(t: Floats, x: Floats, w0: Floats, z0: float) -> Floats:
    """Return the outputs (T, m) of a neuron `w0 (d,)`, `z0` on points `x (m, d)` of D_1 at
    ascending times `t (T,)`.

    It must be active on all points (H2), with `z0 > 0` (H3). Integrated with the relative tolerance
    1e-10.
    """

    def field(_: float, state: Floats) -> Floats:
        w = state[:-1]
        z = state[-1]
        total = x[z * (x @ w) < 1.0].sum(axis=0)
        return np.append(z * total, w @ total)

    path = solve_ivp(
        field, (0.0, t[-1]), [*w0, z0], t_eval=t, method="DOP853", rtol=1e-10, atol=1e-12
    ).y
    return np.asarray(path[-1][:, None] * (path[:-1].T @ x.T))
