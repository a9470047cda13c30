"""Weights that add modulo p, and what Fourier analysis sees of trained ones (Gromov 2023).

    U_kn = cos(2 pi s_k n / p + a_k),  V_km = cos(2 pi s_k m / p + b_k),  W_qk = cos(2 pi s_k q / p
    + a_k + b_k)

with frequencies s_k that cycle through 1..(p-1)/2 and uniform phases. Of the square of `U n + V m`
the wave of `n + m` meets the wave of q: the output is N/2 on average at `q = n + m`, -N / (2 (p -
1)) elsewhere, and the rest has random phases and is of order sqrt N.
"""

from __future__ import annotations

import numpy as np

from dynamics_cli.measures.arrays import Floats, Ints


def analytic_weights(p: int, N: int, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """Return `U` (N, p), `V` (N, p) and `W` (p, N). Raises ValueError for an even p."""
    if p % 2 == 0:
        raise ValueError(f"p must be odd for (p - 1) / 2 frequencies, not {p}")
    s = 2 * np.pi * (np.arange(N) % ((p - 1) // 2) + 1)[:, None] / p * np.arange(p)  # (N, p)
    a, b = rng.uniform(-np.pi, np.pi, (2, N, 1))
    return np.cos(s + a), np.cos(s + b), np.cos(s + a + b).T


def outputs(U: Floats, V: Floats, W: Floats) -> Floats:
    """Return `f(n, m)_q` (p, p, p) of all pairs."""
    z = (U.T[:, None] + V.T[None]) ** 2  # (p, p, N)
    return np.asarray(z @ W.T)


def participation(rows: Floats) -> Floats:
    """Return `sum F^4 / (sum F^2)^2` (k,) of the Fourier moduli F of rows (k, p), constants too;
    1 for a cosine.
    """
    power = np.abs(np.fft.rfft(rows, axis=-1)) ** 2
    total = power.sum(-1)
    return np.asarray((power**2).sum(-1) / np.where(total > 0, total, 1.0) ** 2)


def strongest(rows: Floats) -> tuple[Ints, Floats]:
    """Return the strongest frequencies (k,) of rows (k, p), the constant left out, and the
    phases of their waves.
    """
    F = np.fft.rfft(rows, axis=-1)
    s = 1 + np.argmax(np.abs(F[:, 1:]), axis=-1)
    return s, np.angle(F[np.arange(len(rows)), s])


def phase_sums(U: Floats, V: Floats, W: Floats) -> tuple[Floats, Floats]:
    """Return whether U, V, W of each neuron share their frequency (N,), and `phi_U + phi_V -
    phi_W` in (-pi, pi].
    """
    waves = [strongest(weights) for weights in (U, V, W.T)]
    same = (waves[0][0] == waves[1][0]) & (waves[0][0] == waves[2][0])
    total = waves[0][1] + waves[1][1] - waves[2][1]
    return same.astype(np.float64), np.asarray(np.angle(np.exp(1j * total)))
