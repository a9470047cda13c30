"""A ReLU neuron that is really trained, by code of its own."""

from __future__ import annotations

import numpy as np
from scipy.special import expit


def descend(w, z, X, labels, shares, *, lr, steps, hinge=False):
    """Return `X w (T, n)` and `z (T,)` after every update of `z relu(X w)` by the loss of points of these shares."""
    labels, path = np.asarray(labels), []
    for _ in range(steps):
        y = X @ w
        f = labels * z * y < 1 if hinge else expit(-labels * z * y)
        f = lr * shares * labels * f * (y > 0)
        w, z = w + z * f @ X, z + f @ y
        path.append((X @ w, z))
    return tuple(map(np.array, zip(*path, strict=True)))
