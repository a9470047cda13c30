"""Cross entropy of a softmax over C classes."""

from __future__ import annotations

from dynamics_cli.losses.base import Array, Labels, Loss, namespace


class CrossEntropy(Loss):
    """`l(h, y) = -log softmax(h)_y` for outputs `h` (..., n, C) and class numbers `y` (n,)."""

    labels: Labels = "classes"

    def _log_softmax(self, h: Array) -> Array:
        xp = namespace(h)
        shifted = h - xp.amax(h, -1)[..., None]  # (..., n, C)
        return shifted - xp.log(xp.exp(shifted).sum(-1))[..., None]

    def _one_hot(self, h: Array, y: Array) -> Array:
        xp = namespace(h)
        classes = xp.arange(h.shape[-1]) if xp.__name__ == "numpy" else xp.arange(h.shape[-1], device=h.device)
        return y[:, None] == classes  # (n, C)

    def values(self, h: Array, y: Array) -> Array:
        """Return `-log softmax(h)_y`, shape (..., n)."""
        return -(self._log_softmax(h) * self._one_hot(h, y)).sum(-1)

    def derivatives(self, h: Array, y: Array) -> Array:
        """Return `softmax(h) - onehot(y)`, shape (..., n, C)."""
        p = namespace(h).exp(self._log_softmax(h))
        return p - self._one_hot(h, y) * namespace(h).ones_like(p)

    def predictions(self, h: Array) -> Array:
        """Return the number of the largest output."""
        return h.argmax(-1)
