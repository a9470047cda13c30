"""The matrix of least nuclear norm with given entries, `min ||X||_*` under `X_ij = b_ij`, and the
proof that it is.

Alternating directions (Boyd et al. 2011, Section 3): X by soft thresholding of singular values, Z
by putting the entries in, and the scaled dual U. `Y = -U / tau` lives on the entries that are seen;
with `||Y||_2 <= 1` every matrix with these entries has `||X||_* >= <Y, X> = <Y, b>`: Z and Y
bracket the minimum whatever was done to find them.
"""

from __future__ import annotations

import numpy as np

from dynamics_cli.measures.arrays import Bools, Floats

TOLERANCE = 1e-6
"""Relative gap between both sides of the bracket at which the search ends."""
ROUNDS = 4000
EVERY = 20
RELAXED = 1.6
"""Over-relaxation of X."""
STRENGTH = 0.2
"""tau over the spectral norm of what is seen."""


def minimum_nuclear_norm(b: Floats, seen: Bools) -> tuple[Floats, Floats]:
    """Return the matrix of least nuclear norm that agrees with `b` (n, n') where `seen` (n, n') is
    true, and Y (n, n').

    Both are feasible to the last bit: Y is 0 but where entries are seen, of spectral norm 1 at
    most. Where the matrix is hardly unique the search is slow: the gap may be larger than
    `TOLERANCE` then.
    """
    b = np.where(seen, b, 0.0)
    tau = STRENGTH * float(np.linalg.norm(b, 2))
    Z = b
    U = np.zeros_like(b)
    for k in range(1, ROUNDS + 1):
        A, s, Bt = np.linalg.svd(Z - U, full_matrices=False)
        X = RELAXED * (A * np.maximum(s - tau, 0.0)) @ Bt + (1 - RELAXED) * Z
        Z = np.where(seen, b, X + U)
        U = U + X - Z
        if k % EVERY == 0:
            Y = np.where(seen, -U / tau, 0.0)
            Y = Y / max(1.0, float(np.linalg.norm(Y, 2)))
            if 1.0 - np.sum(Y * b) / np.linalg.norm(Z, "nuc") < TOLERANCE:
                break
    return Z, Y
