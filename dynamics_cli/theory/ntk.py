"""Neural tangent kernel of a two-layer network, and where kernel regression with it goes.

In the lazy regime (Boursier et al. 2022, Appendix A, Figure 5) training follows `f_t(x) = f_0(x) +
K(x, X) K(X, X)^+ (1 - exp(-loss_factor K(X, X) t / n)) (y - f_0(X))` (Jacot et al. 2018).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.kinds import Curve, Theory
from dynamics_cli.measures.arrays import Floats, as_floats, as_network, as_points
from dynamics_cli.measures.two_layer import activate, activation_derivative, outputs, preactivations
from dynamics_cli.theory.assumptions import flow_violations, loss_factor, times_of

Elementwise = Callable[[Floats], Floats]


def ntk(
    x: ArrayLike,
    x_2: ArrayLike,
    W: ArrayLike,
    a: ArrayLike,
    *,
    value: Elementwise = activate,
    derivative: Elementwise = activation_derivative,
    train_output: bool = True,
) -> Floats:
    """Return `K (n, n_2)`, `K(x, x') = <grad h(x), grad h(x')>`, at `W (m, d)`, `a (m,)`.

    `sum_j a_j^2 sigma'(<w_j, x>) sigma'(<w_j, x'>) <x, x'>`, plus `sum_j sigma(<w_j, x>)
    sigma(<w_j, x'>)` when the output weights are trained. `value` and `derivative` belong to the
    activation, by default ReLU.
    """
    hidden, output = as_network(W, a)
    # (n, m), (n_2, m)
    z = preactivations(x, hidden)
    z_2 = preactivations(x_2, hidden)
    gates = (derivative(z) * output**2) @ derivative(z_2).T
    K: Floats = gates * (as_floats(x, "x", axes=2) @ as_floats(x_2, "x_2", axes=2).T)
    if train_output:
        K = K + value(z) @ value(z_2).T
    return K


def ntk_interpolator(
    x: ArrayLike, y: ArrayLike, W: ArrayLike, a: ArrayLike
) -> Callable[[ArrayLike], Floats]:
    """Return `f_0(x) + K(x, X) K(X, X)^+ (y - f_0(X))`, the end of kernel regression at `W`, `a`.

    Eigenvalues of K(X, X) below 1e-12 times the largest count as 0 (pseudo-inverse): where K is
    singular the labels are fitted in the least-squares sense. Raises ValueError for shapes that do
    not match.
    """
    points, labels = as_points(x, y)
    hidden, output = as_network(W, a)
    values, vectors = np.linalg.eigh(ntk(points, points, hidden, output))
    kept = values > 1e-12 * max(float(values[-1]), 0.0)
    parts = vectors[:, kept].T @ (labels - outputs(points, hidden, output))
    coefficients = vectors[:, kept] @ (parts / values[kept])  # (n,)
    return lambda new: (
        outputs(new, hidden, output) + ntk(new, points, hidden, output) @ coefficients
    )


class Linearised(Theory, kind="linearised"):
    """The network linearised in its weights at the start (Chizat et al. 2019, Section 1).

    It is kernel regression in time. Its outputs move by `K` at the initial weights: after t steps
    the residual is the product of `1 - c lr_i K / n` over them times the first, for steps lr_i of
    any schedule.
    """

    example = """\
dataset:
  {kind: teacher, n: 20, dim: 5, n_test: 50, output_value: 0.3,
   architecture: {kind: two_layer, width: 3}}
architecture: {kind: two_layer, width: 200, output_scale: 10.0}
initialization: {kind: paired, scale: 0.3}
loss: {kind: half_mse}
optimizer: {kind: gd, lr: 5.0e-5, iterations: 500}
"""

    def applies(self, run: Any) -> list[str] | None:
        """Return which assumptions fail; None unless the network has two layers and one output."""
        if not _two_layers(run):
            return None
        violations = flow_violations(run, states=0)  # steps of any size are predicted
        if getattr(run.config.optimizer, "loss_scaled", False):
            violations.append("steps are known beforehand: optimizer.loss_scaled is true")
        if (n := run.dataset().n) > LARGE:
            violations.append(
                f"the kernel is solved within a minute: {n} samples are more than {LARGE}"
            )
        elif run.config.loss.square is not None:
            values, moved, _, _ = _linearisation(run)
            lr = float(_steps(run).max(initial=0.0))
            step = lr * loss_factor(run) * float(values[-1]) / n
            if step >= 2:
                violations.append(
                    f"the linearised model converges: lr x its largest curvature is {step:.3g}, at"
                    " least 2"
                )
            if moved > LAZY:
                violations.append(
                    f"weights hardly move: the linearised model moves them by {moved:.2g} of their"
                    " norm"
                )
        return violations

    def predict(self, run: Any) -> Mapping[str, Floats | Curve]:
        """Return the loss, and the held-out loss where the run has measured it."""
        samples = run.dataset()
        values, _, parts, project = _linearisation(run)
        curves: dict[str, Floats | Curve] = {}
        places = {"loss": (run.loss_iterations, samples.x, samples.y)}
        if "test_loss" in run.measures:
            places["test_loss"] = (run.snapshot_iterations, samples.x_test, samples.y_test)
        for name, (iterations, x, y) in places.items():
            rate = loss_factor(run) * values / samples.n
            steps = _steps(run)
            if not len(steps):
                left = np.exp(-np.outer(times_of(run, iterations), rate))
            elif run.config.optimizer.schedule is None:
                left = (1.0 - steps[0] * rate) ** np.asarray(iterations, np.float64)[:, None]
            else:
                left = _contraction(steps, np.asarray(iterations), rate)
            grown = np.divide(1.0 - left, values, out=np.zeros_like(left), where=values > 0)
            h = _first_output(run, x) + (grown * parts) @ project(x).T  # (T, n')
            curves[name] = np.asarray(run.config.loss.total(h, y))
        return curves


LAZY = 0.1
"""Largest relative distance travelled by the linearised model that counts as lazy."""
AT_ONCE = 256
"""Steps whose products are taken at once."""
LARGE = 4000
"""Most samples whose kernel is decomposed unasked."""


def _steps(run: Any) -> Floats:
    """Return the steps (N,) of the updates of a run; none of gradient flow."""
    optimizer = run.config.optimizer
    if optimizer.is_flow:
        return np.empty(0)
    N = int(run.loss_iterations[-1]) if len(run.loss_iterations) else 0
    whole = optimizer.count(1)
    return np.array([optimizer.step_size(i, whole) for i in range(max(N, 1))])


def _contraction(steps: Floats, iterations: Floats, rate: Floats) -> Floats:
    """Return products (T, n) of `1 - lr_i rate` over the steps before `iterations` (T,).

    The iterations ascend.
    """
    left = np.ones((len(iterations), len(rate)))
    now = np.ones(len(rate))
    done = 0
    for k, iteration in enumerate(iterations.tolist()):
        for first in range(done, iteration, AT_ONCE):
            now = now * np.prod(
                1.0 - np.outer(steps[first : min(first + AT_ONCE, iteration)], rate), 0
            )
        done = iteration
        left[k] = now
    return left


def _two_layers(run: Any) -> bool:
    net = run.config.architecture
    return bool(net.two_layer and net.train is None)


def _first_output(run: Any, x: Floats) -> Floats:
    return np.asarray(run.network(0)(x))


def _kernel(run: Any, x: Floats, x_2: Floats) -> Floats:
    """Return the tangent kernel (n, n_2) of a run's two-layer network at its initial weights."""
    net = run.config.architecture
    start = run.state(0)
    kernel = ntk(
        x,
        x_2,
        np.asarray(start["hidden_weight"], np.float64),
        np.asarray(start["output_weight"], np.float64),
        value=net.sigma.value,
        derivative=net.sigma.derivative,
        train_output=net.train_output,
    )
    return (net.output_scale or 1.0) ** 2 * kernel


def _linearisation(run: Any) -> tuple[Floats, float, Floats, Callable[[Floats], Floats]]:
    """Return the spectrum of the kernel of a run, and what the linearised model makes of it.

    Eigenvalues (n,), how far the fit moves the weights, the first residual in the eigenvectors, and
    the images of the eigenvectors under `K(x, X)`, (n', n).
    """
    samples = run.dataset()
    values, vectors = np.linalg.eigh(_kernel(run, samples.x, samples.x))
    values = np.where(values > 1e-12 * values[-1], values, 0.0)
    parts = vectors.T @ (samples.y - _first_output(run, samples.x))
    step = np.divide(parts**2, values, out=np.zeros_like(values), where=values > 0)
    weights = run.state(0).values()
    size = np.sqrt(sum(np.sum(np.square(weight, dtype=np.float64)) for weight in weights))
    moved = float(np.sqrt(step.sum()) / size)
    return values, moved, parts, lambda x: _kernel(run, x, samples.x) @ vectors
