"""Order parameters of online learning: the ODE of Saad and Solla 1995 with output weights (Goldt et
al. 2019).

Teacher `sum_m A_m g(rho_m) + sigma zeta`, student `sum_k v_k g(lambda_k)`, `g(u) = erf(u / sqrt
2)`, every sample seen once. With `C = [[Q, R], [R^T, T]]` the covariance of the preactivations and
signed output weights `s = (v, -A)`,

    R_im' = -eta v_i sum_a s_a I3(i, m, a)
    Q_ik' = -eta sum_a s_a [v_i I3(i, k, a) + v_k I3(k, i, a)]
            + eta^2 v_i v_k [sum_ab s_a s_b I4(i, k, a, b) + sigma^2 J2(i, k)]
    v_i'  = -eta_v sum_a s_a I2(i, a)

in time steps / N, and the test error is `sum_ab s_a s_b I2(a, b) / 2`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp
from scipy.special import erf

from dynamics_cli.kinds import Curve, Streams, Theory
from dynamics_cli.measures.arrays import Floats
from dynamics_cli.theory.assumptions import descent_violations, plain_violations

BETA = 1 / math.sqrt(2)
FEW = 50
"""Fewer inputs than this are not many: fluctuations are of the size 1 / sqrt(N)."""


@dataclass(frozen=True)
class Order:
    """Order parameters at one time."""

    Q: Floats
    """(K, K) overlaps of the student's neurons."""
    R: Floats
    """(K, M) with those of the teacher."""
    T: Floats
    """(M, M) of the teacher."""
    v: Floats
    """(K,) output weights."""
    A: Floats
    """(M,) of the teacher."""

    @property
    def C(self) -> Floats:
        """Covariance (K + M, K + M) of all preactivations."""
        return np.block([[self.Q, self.R], [self.R.T, self.T]])

    @property
    def s(self) -> Floats:
        """Signed output weights (K + M,)."""
        return np.concatenate([self.v, -self.A])

    @property
    def error(self) -> float:
        """Mean square of student less noiseless teacher on new samples, halved."""
        return float(0.5 * self.s @ i2(self.C) @ self.s)


def i2(C: Floats) -> Floats:
    """Return `<g(u_a) g(u_b)>` (n, n)."""
    deviation = np.sqrt(1 + np.diag(C))
    return np.asarray(2 / np.pi * np.arcsin(np.clip(C / np.outer(deviation, deviation), -1, 1)))


def i3(C: Floats, K: int) -> Floats:
    """Return `<g'(u_a) u_b g(u_c)>` (K, n, n) for a among the first K."""
    c = np.diag(C)
    variance = 1 + np.diag(C)[:K, None, None]
    # c_ab, c_ac
    a = C[:K, :, None]
    b = C[:K, None, :]
    root = np.sqrt(variance * (1 + c) - b**2)
    return np.asarray(2 / np.pi * (C * variance - a * b) / (variance * root))


def determinants(C: Floats, K: int) -> Floats:
    """Return `D = (1 + c_aa)(1 + c_bb) - c_ab^2` (K, K)."""
    variance = 1 + np.diag(C)[:K]
    return np.asarray(np.outer(variance, variance) - C[:K, :K] ** 2)


def i4(C: Floats, K: int) -> Floats:
    """Return `<g'(u_a) g'(u_b) g(u_c) g(u_d)>` (K, K, n, n) for a, b among the first K."""
    variance = 1 + np.diag(C)
    D = determinants(C, K)[:, :, None, None]
    a = variance[:K, None, None, None]
    b = variance[None, :K, None, None]
    ab = C[:K, :K, None, None]
    ac = C[:K, None, :, None]
    ad = C[:K, None, None, :]
    bc = C[None, :K, :, None]
    bd = C[None, :K, None, :]
    L0 = D * C - bc * bd * a - ac * ad * b + ab * (ac * bd + ad * bc)
    ab = ab[..., 0]
    ac = ac[..., 0]
    bc = bc[..., 0]
    D3 = D[..., 0]
    per = (
        D3 * variance - bc**2 * a[..., 0] - ac**2 * b[..., 0] + 2 * ab * ac * bc
    )  # L1 (K, K, n), L2 with d for c
    ratio = L0 / np.sqrt(per[:, :, :, None] * per[:, :, None, :])
    return np.asarray(4 / np.pi**2 * np.arcsin(np.clip(ratio, -1, 1)) / np.sqrt(D))


def slopes(order: Order, eta: float, eta_v: float, sigma: float) -> tuple[Floats, Floats, Floats]:
    """Return `Q'`, `R'` and `v'`."""
    C = order.C
    s = order.s
    v = order.v
    K = len(order.v)
    third = i3(C, K) @ s  # (K, n)
    inner = v[:, None] * third[:, :K]
    noise = np.einsum("ikab,a,b->ik", i4(C, K), s, s) + sigma**2 * 2 / np.pi / np.sqrt(
        determinants(C, K)
    )
    dQ = -eta * (inner + inner.T) + eta**2 * np.outer(v, v) * noise
    return dQ, -eta * v[:, None] * third[:, K:], -eta_v * (i2(C)[:K] @ s)


def integrate(
    start: Order, times: ArrayLike, eta: float, *, eta_v: float = 0.0, sigma: float = 0.0
) -> list[Order]:
    """Return the order parameters at `times` (T,), ascending from 0 on, in units of N steps.

    Raises ArithmeticError where the integrator gives up: the step is too large, and Q grows without
    limit.
    """
    K, M = start.R.shape
    t = np.asarray(times, np.float64)

    def unpack(y: Floats) -> Order:
        Q = y[: K * K].reshape(K, K)
        return replace(
            start, Q=(Q + Q.T) / 2, R=y[K * K : K * K + K * M].reshape(K, M), v=y[K * K + K * M :]
        )

    solution = solve_ivp(
        lambda _, y: np.concatenate(
            [slope.ravel() for slope in slopes(unpack(y), eta, eta_v, sigma)]
        ),
        (0.0, float(t[-1])),
        np.concatenate([start.Q.ravel(), start.R.ravel(), start.v]),
        t_eval=t,
        method="LSODA",
        rtol=1e-7,
        atol=1e-12,
    )
    if solution.y.shape[1] != len(t):
        raise ArithmeticError(f"order parameters: {solution.message}")
    return [unpack(y) for y in solution.y.T]


def measured(run: Any) -> list[Order]:
    """Return the order parameters of all recorded states of a student of a teacher whose inputs
    are divided.
    """
    dataset = run.config.dataset
    teacher = dataset.weights(dataset.streams_of(Streams(run.config.seed)))
    B, A = (np.asarray(teacher[name], np.float64) for name in ("hidden_weight", "output_weight"))
    W, v = (
        np.asarray(run.parameters[name], np.float64) for name in ("hidden_weight", "output_weight")
    )
    return [Order(w @ w.T, w @ B.T, B @ B.T, v_k, A) for w, v_k in zip(W, v, strict=True)]


def predicted(run: Any, start: Order) -> list[Order]:
    """Return what the ODE makes of the order parameters `start` of a run at all its recorded
    states.
    """
    N = run.config.dataset.dim
    lr = run.config.optimizer.lr
    trained = run.config.architecture.train_output
    times = np.asarray(run.snapshot_iterations, np.float64) / N
    sigma = run.config.dataset.noise
    return integrate(start, times, lr * N, eta_v=lr * N if trained else 0.0, sigma=sigma)


class OrderParameters(Theory, kind="order_parameters"):
    """Overlaps and test error of online learning, teacher and student of erf units (Goldt et al.
    2019; Saad, Solla).
    """

    example = """\
dataset:
  {kind: teacher, n: 2000, dim: 400, output_value: 1.0, divide_inputs: true,
   architecture: {kind: two_layer, width: 2, activation: {kind: erf, beta: 0.7071067811865476}}}
architecture:
  {kind: two_layer, width: 2, activation: {kind: erf, beta: 0.7071067811865476},
   train_output: false}
initialization: {kind: unbalanced, scale: 1.0, divide_by: sqrt_dim, output_value: 1.0}
loss: {kind: half_mse}
optimizer: {kind: sgd, lr: 1.25e-3, batch_size: 1, epochs: 1}
"""

    def applies(self, run: Any) -> list[str] | None:
        """Return which assumptions fail; None unless teacher and student have two layers."""
        data = run.config.dataset
        net = run.config.architecture
        optimizer = run.config.optimizer
        teacher: Any = getattr(data, "architecture", None)
        if teacher is None or not (teacher.two_layer and net.two_layer):
            return None
        violations = [
            *plain_violations(net),
            *(f"the teacher: {text}" for text in plain_violations(teacher)),
        ]
        u = np.linspace(-3, 3, 13)
        for name, sigma in (("teacher", teacher.sigma), ("student", net.sigma)):
            if not np.allclose(sigma.value(u), erf(BETA * u), atol=1e-6):
                violations.append(f"units are erf(u / sqrt 2): the {name}'s are {sigma.kind}")
        violations += descent_violations(
            run.config, "updates are plain steps along single samples", batch=1
        )
        if (schedule := getattr(optimizer, "schedule", None)) is not None:
            violations.append(f"all steps have one size: optimizer.schedule is {schedule.kind}")
        again = getattr(optimizer, "replacement", False)
        updates = optimizer.count(data.n)
        if (again or updates > data.n) and getattr(optimizer, "samples", None) != "fresh":
            violations.append(
                f"every sample is seen once: {updates} are drawn {'again and again ' * again}from"
                f" {data.n}"
            )
        for key in ("sign", "append_bias", "whiten", "random_labels", "replaced_labels"):
            if value := getattr(data, key):
                violations.append(
                    f"inputs are Gaussian, labels those of the teacher: dataset.{key} is {value}"
                )
        if run.config.loss.square != 1:
            violations.append(f"the loss is half a square: loss.kind is {run.config.loss.kind}")
        if data.dim < FEW:
            violations.append(f"there are many inputs: {data.dim}")
        return violations

    def predict(self, run: Any) -> Mapping[str, Floats | Curve]:
        """Return the test error and the overlaps with the teacher, from the initial overlaps."""
        if getattr(run.config.optimizer, "batch_size", None) != 1:
            raise ValueError("time is counted in samples; set optimizer.batch_size=1")
        seen = measured(run)
        theory = predicted(run, seen[0])
        steps = np.asarray(run.snapshot_iterations, np.float64)
        errors = [np.array([order.error for order in orders]) for orders in (seen, theory)]
        overlaps = [
            np.array([(order.v[:, None] * order.R).ravel() for order in orders])
            for orders in (seen, theory)
        ]
        return {
            "error": Curve("test error", steps, errors[0], errors[1]),
            "overlaps": Curve("$v_k R_{km}$", steps, overlaps[0], overlaps[1]),
        }
