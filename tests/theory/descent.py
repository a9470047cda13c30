"""Networks that are really trained, by code of its own."""

import numpy as np


def descend(x, y, W, a, *, lr, steps, factor=1.0):
    """Return W and a after plain gradient descent in float64 on `factor / (2n) sum (h - y)^2`."""
    W = W.copy()
    a = a.copy()
    for _ in range(steps):
        z = x @ W.T
        r = np.maximum(z, 0.0) @ a - y
        g = factor / len(y) * r[:, None] * (z > 0)
        W = W - lr * (g * a).T @ x
        a = a - lr * np.sum(g * z, axis=0)
    return W, a
