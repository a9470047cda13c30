"""Goldt et al. 2019: integrals and ODE against sampling and closed forms, and the figures on
trained students.
"""

import numpy as np
from dynamics_cli._bundled.experiments.goldt2019.theory.order_parameters import (
    Order,
    i2,
    i3,
    i4,
    slopes,
)
from numpy.testing import assert_allclose
from scipy.special import erf


def test_the_integrals_are_averages_over_gaussians():
    rng = np.random.default_rng(0)
    root = rng.standard_normal((3, 3)) / 1.5
    C = root @ root.T
    K = 2
    u = rng.standard_normal((400_000, 3)) @ root.T
    g = erf(u / np.sqrt(2))
    slope = np.sqrt(2 / np.pi) * np.exp(-(u**2) / 2)
    assert_allclose(i2(C), g.T @ g / len(u), atol=4e-3)
    third = np.einsum("na,nb,nc->abc", slope[:, :K], u, g, optimize=True) / len(u)
    assert_allclose(i3(C, K), third, atol=4e-3)
    fourth = np.einsum("na,nb,nc,nd->abcd", slope[:, :K], slope[:, :K], g, g, optimize=True) / len(
        u
    )
    assert_allclose(i4(C, K), fourth, atol=4e-3)


def test_one_step_of_descent_moves_the_overlaps_as_the_ode_says():
    rng = np.random.default_rng(1)
    N = 40
    eta = 0.3
    w = rng.standard_normal((2, N))
    B = rng.standard_normal((2, N))
    v = np.array([1.0, -0.5])
    A = np.array([1.0, 0.7])
    now = Order(w @ w.T / N, w @ B.T / N, B @ B.T / N, v, A)
    x = rng.standard_normal((100_000, N))
    lam = x @ w.T / np.sqrt(N)
    rho = x @ B.T / np.sqrt(N)
    d = erf(lam / np.sqrt(2)) @ v - erf(rho / np.sqrt(2)) @ A + 0.2 * rng.standard_normal(len(x))
    push = (
        -eta * d[:, None] * v * np.sqrt(2 / np.pi) * np.exp(-(lam**2) / 2)
    )  # w' = w + push x / sqrt(N)
    size = (x**2).sum(1) / N
    dQ = (
        np.einsum("ni,nk->ik", push, lam)
        + np.einsum("ni,nk->ik", lam, push)
        + (push * size[:, None]).T @ push
    )
    exact = slopes(now, eta, eta, 0.2)
    assert_allclose(dQ / len(x), exact[0], atol=0.01)
    assert_allclose(push.T @ rho / len(x), exact[1], atol=0.01)
    assert_allclose(-eta * (erf(lam / np.sqrt(2)) * d[:, None]).mean(0), exact[2], atol=0.01)
