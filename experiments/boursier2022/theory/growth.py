"""Growth of the two groups of neurons, the saddle that lies between, and interpolators of least
norm.

Boursier et al. 2022, Section 4.2, Fact 1 and Proposition 1. `x (n, d)` and `y (n,)` are inputs and
labels; inputs are orthogonal where nothing else is said.

Balanced neurons aligned with `sign D` have `sum_j a_j w_j = u D / ||D||` where `u` is the sum of
their squared norms. On orthogonal inputs, therefore, `h(x_k) = u y_k ||x_k||^2 / (n ||D||)` on
labels of that sign and, from Eq. 3,

    du/dt = 2 ||D|| (1 - u / U) u   with   U = n^3 ||D||^3 / sum y_k^2 ||x_k||^4,

which for orthonormal inputs is the paper's equation, `U = n ||D||`. It is exact as long as the
direction stays: always, where the inputs of that sign have equal norms; only while the loss is
small otherwise, since `D(t)` then turns.

For inputs of any norm the argument of the paper's Appendix C still holds: a minimiser of the norm
is balanced, a neuron with a positive (negative) output weight is active on positive (negative)
labels only and is orthogonal to the other inputs, and merging the neurons of one sign never adds to
the norm. There remains the shortest w with `a <w, x_k> = y_k`, which points along `v = sum y_k x_k
/ ||x_k||^2`; balance then gives `a^2 = ||w||^2 = ||v||`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq, nnls

from dynamics_cli.kinds import Curve, Theory
from dynamics_cli.measures.arrays import Floats
from dynamics_cli.measures.neurons import norms
from dynamics_cli.theory.assumptions import (
    flow_violations,
    is_relu_network,
    loss_factor,
    plain_violations,
    times_of,
)
from dynamics_cli.theory.sphere_flow import sphere_flow

from .alignment import D_norms, D_sign, S_sign, labels_differ, orthogonality

ALIGNMENTS = 40.0
"""Times `1 / ||D||` after which all neurons are aligned."""


def logistic_growth(
    t: Floats, u_0: float, x: Floats, y: Floats, sign: int, *, loss_factor: float = 1.0
) -> Floats:
    """Return `u = U / (1 + (U / u_0 - 1) exp(-2 ||D|| t))` at times `t` of any shape, from `u(0)
    = u_0 > 0`.
    """
    length = float(np.linalg.norm(D_sign(x, y, sign)))
    weights = y**2 * np.sum(x**2, axis=1) ** 2
    U = (len(y) * length) ** 3 / np.sum(weights[sign * y > 0])
    return np.asarray(U / (1.0 + (U / u_0 - 1.0) * np.exp(-2.0 * loss_factor * length * t)))


def limit_of_flow(x: Floats, y: Floats, W: Floats, a: Floats) -> Floats | None:
    """Return the limit `theta*` of the flow for a scale that goes to 0, hidden and output weights
    (m, d + 1).

    Each sign has the interpolating neuron, split among the neurons of `S_{+,1}` (`S_{-,1}`) as they
    grow during alignment, while the network is still 0: the norms that Lemma 12 leaves as limits.
    None where a set is empty.
    """
    theta = np.zeros((len(a), x.shape[1] + 1))
    for sign in (1, -1):
        chosen = S_sign(x, y, W, a, sign)
        length = float(np.linalg.norm(D_sign(x, y, sign)))
        if not chosen.any() or length == 0:
            return None
        growth = sphere_flow(x, y, W[chosen], a[chosen], [ALIGNMENTS / length]).log_growth[0]
        sizes = norms(W[chosen]) * np.exp(growth - growth.max())
        w, out = interpolating_neuron(x, y, sign)
        theta[chosen] = np.outer(sizes / np.linalg.norm(sizes), np.append(w, out))
    return theta


def aligned_mass(x: Floats, y: Floats, W: Floats, a: Floats, sign: int) -> float:
    """Return the `u_0` from which the logistic growth of `S_{+,1}` (`S_{-,1}` for sign -1) must
    start at t = 0.

    Neurons lose time while they turn towards D. With t = `40 / ||D||`, late enough for all to be
    aligned, `u_0 = sum_j ||w_j(0)||^2 exp(2 (log_growth_j(t) - ||D|| t))`, so that `u(t) = u_0
    exp(2 ||D|| t)` from then on. For balanced weights. Raises ValueError when no neuron is in the
    set or no label has that sign.
    """
    chosen = S_sign(x, y, W, a, sign)
    length = float(np.linalg.norm(D_sign(x, y, sign)))
    if not chosen.any() or length == 0:
        raise ValueError(f"no neuron of the right set or no label of sign {sign:+d}")
    late = ALIGNMENTS / length
    growth = sphere_flow(x, y, W[chosen], a[chosen], [late]).log_growth[0]
    return float(np.sum(norms(W[chosen]) ** 2 * np.exp(2.0 * (growth - length * late))))


def growth_loss(
    u_plus: Floats, u_minus: Floats, x: Floats, y: Floats, *, loss_factor: float = 1.0
) -> Floats:
    """Return the loss (T,) when neurons along `D_+`, `-D_-` have the total squared norms
    `u_plus`, `u_minus` (T,).
    """
    plus, minus = (
        u[:, None] / (len(y) * D) for u, D in zip((u_plus, u_minus), D_norms(x, y), strict=True)
    )
    h = np.where(y > 0, plus, minus) * y * np.sum(x**2, axis=1)  # (T, n)
    return np.asarray(0.5 * loss_factor * np.mean((h - y) ** 2, axis=-1))


def one_sign_saddle_loss(x: Floats, y: Floats, sign: int, *, loss_factor: float = 1.0) -> float:
    """Return the least loss of networks all of whose output weights have one sign, on a line with a
    constant.

    For inputs `x (n, 2)` = (input, 1) of any inner products: the level of a saddle at which no
    neuron of the other sign has grown. Such a network is `sign` times a sum of `relu(x - t)`,
    `relu(t - x)` and constants with coefficients >= 0. Between two neighbouring inputs t enters
    linearly, beyond them the rest is a constant, so that kinks at the inputs are enough
    (non-negative least squares).
    """
    steps = x[:, :1] - x[:, 0]  # (n, n): from every kink to every input
    features = np.column_stack([np.maximum(steps, 0), np.maximum(-steps, 0), np.ones(len(y))])
    return float(0.5 * loss_factor * nnls(features, sign * y)[1] ** 2 / len(y))


def interpolating_neuron(x: Floats, y: Floats, sign: int) -> tuple[Floats, float]:
    """Return the shortest balanced neuron `w (d,)`, `a` that fits all labels of one sign and is 0
    on the other points.

    `w = sign v / sqrt(||v||)`, `a = sign sqrt(||v||)` with `v = sum y_k x_k / ||x_k||^2` over the
    labels of that sign.
    """
    chosen = sign * y > 0
    v = (y[chosen] / np.sum(x[chosen] ** 2, axis=1)) @ x[chosen]  # (d,)
    root = float(np.sqrt(np.linalg.norm(v)))
    return sign * v / root, sign * root


def minimum_norm_value(x: Floats, y: Floats) -> float:
    """Return `min ||theta||^2` over interpolators, the sum over both signs of `2 sqrt(sum y_k^2 /
    ||x_k||^2)`.

    All minimisers are the two neurons of `interpolating_neuron`, split into parallel ones
    (Proposition 1).
    """
    shares = y**2 / np.sum(x**2, axis=1)
    return float(2.0 * sum(np.sqrt(shares[sign * y > 0].sum()) for sign in (1, -1)))


def linear_norm(x: Floats, y: Floats) -> float:
    """Return the variation norm (F1, Section 3.2) of the shortest linear function `<v, .>` through
    all labels.

    It is `2 ||v||`: half the total mass goes to `v`, half to `-v`, since `z = relu(z) - relu(-z)`,
    and no measure with less has the first moment of `v` and an even part that vanishes. NaN when no
    linear function fits.
    """
    v = np.linalg.lstsq(x, y, rcond=None)[0]  # (d,)
    return 2.0 * float(np.linalg.norm(v)) if np.allclose(x @ v, y) else np.nan


def fact_1_lambda(
    x: Floats, y: Floats, W: Floats, a: Floats, lambda_: float, epsilon: float
) -> float:
    """Return the `lambda*` of Fact 1 for initial weights `W (m, d)`, `a (m,)` of scale `lambda_`,
    times any scale.

    The paper leaves it open. At the end of the stretch, `t = -(1 - eps) ln(lambda) / ||D||`, the
    labels fitted last have `u = X / (1 + X / U)`, `X = c lambda^(2 eps)`, with `c lambda^2` the
    aligned mass: the network is `sqrt(2 u)` away from the saddle, which is `lambda^(eps/5)` at
    lambda*. Balanced weights.
    """
    sign, top = _fitted_last(x, y)
    mass = np.log(aligned_mass(x, y, W, a, sign)) - 2.0 * np.log(lambda_)

    def excess(log: float) -> float:
        grown = np.exp(mass + 2.0 * epsilon * log)
        return float(np.log(2.0 * grown / (1.0 + grown / top)) / 2.0 - epsilon / 5.0 * log)

    lowest = -10.0 * (1.0 + abs(mass)) / epsilon
    return float(np.exp(brentq(excess, lowest, 0.0))) if excess(0.0) > 0 else 1.0


def lemma_5_log_lambda(x: Floats, y: Floats, width: int, epsilon: float) -> float:
    """Return `log10(lambda*)` of Lemma 5; lambda* itself is below the smallest float.

    The proof of Lemma 15, from which it follows, asks for `p^8 + 2 p sqrt(m / n) (sqrt(||D||) +
    p^4) <= ||D|| / 2` of both signs, with `p = lambda^(eps/240)`, for orthonormal inputs.
    """

    def excess(p: float, length: float) -> float:
        grown = 2 * p * math.sqrt(width / len(y)) * (math.sqrt(length) + p**4)
        return p**8 + grown - length / 2

    largest = [
        brentq(excess, 0.0, 1.0, args=(length,)) if excess(1.0, length) > 0 else 1.0
        for length in D_norms(x, y)
    ]
    return 240.0 / epsilon * float(np.log10(min(largest)))


def _fitted_last(x: Floats, y: Floats) -> tuple[int, float]:
    """Return the sign of the labels with the smaller `||D||`, and the sum U of squared norms
    that fits them.
    """
    plus, minus = D_norms(x, y)
    sign = -1 if plus > minus else 1
    return sign, interpolating_neuron(x, y, sign)[1] ** 2


@dataclass(frozen=True)
class Saddle:
    """The intermediate saddle `theta_S`: labels of one sign are fitted by parallel neurons, all
    others are 0.
    """

    w: Floats
    """(d,) the fitting neurons merged into one balanced neuron; they share its direction."""
    a: float
    """Its output weight; `a^2` is the sum of the squared norms of the fitting neurons, `n ||D||`
    if orthonormal.
    """
    loss: float
    """`loss_factor / (2n)` times the sum of the squares of the other labels."""


def intermediate_saddle(x: Floats, y: Floats, loss_factor: float = 1.0) -> Saddle:
    """Return the saddle of Fact 1, where labels of the sign of the larger `||D||` are fitted."""
    plus, minus = D_norms(x, y)
    sign = 1 if plus > minus else -1
    loss = 0.5 * loss_factor * float(np.sum(y[sign * y <= 0] ** 2)) / len(y)
    return Saddle(*interpolating_neuron(x, y, sign), loss)


def predicted_loss(
    x: Floats, y: Floats, W: Floats, a: Floats, times: Floats, loss_factor: float
) -> Floats:
    """Return the loss (T,) of Section 4.2 at `times` (T,), with norms that grow from the aligned
    mass of both sets.
    """
    u_plus, u_minus = (
        logistic_growth(times, aligned_mass(x, y, W, a, sign), x, y, sign, loss_factor=loss_factor)
        for sign in (1, -1)
    )
    return growth_loss(u_plus, u_minus, x, y, loss_factor=loss_factor)


class OrthogonalSaddles(Theory, kind="orthogonal_saddles"):
    """From saddle to saddle on orthogonal inputs: neurons along D+ and -D- grow logistically
    (Boursier et al. 2022).
    """

    example = """\
initialization: {kind: balanced, scale: 1.0e-6}
optimizer: {kind: gd, lr: 1.0e-3, iterations: 20000}
"""

    def applies(self, run: Any) -> list[str] | None:
        """Return which assumptions fail; None unless the network has one hidden layer of ReLUs
        and one output.
        """
        net = run.config.architecture
        if not is_relu_network(net):
            return None
        samples = run.dataset()
        start = run.state(0)
        W = start["hidden_weight"]
        a = start["output_weight"]
        violations = [*plain_violations(net), *flow_violations(run)]
        if (worst := orthogonality(samples.x)) > 1e-6:
            violations.append(
                f"Assumption 1: inputs are orthogonal, two have the cosine {worst:.3g}"
            )
        if not labels_differ(samples.x, samples.y):
            violations.append("Assumption 2: no label is 0, and ||D+|| and ||D-|| differ")
        if not all(S_sign(samples.x, samples.y, W, a, sign).any() for sign in (1, -1)):
            violations.append("Assumption 3: both S+,1 and S-,1 hold neurons")
        if (size := float(norms(W).max() * np.sqrt(len(a)))) > 0.01:
            violations.append(f"neurons start small: the largest norm times sqrt(m) is {size:.2g}")
        return violations

    def predict(self, run: Any) -> Mapping[str, Floats | Curve]:
        """Return the loss."""
        samples = run.dataset()
        start = run.state(0)
        W = start["hidden_weight"]
        a = start["output_weight"]
        return {
            "loss": predicted_loss(
                samples.x, samples.y, W, a, times_of(run, run.loss_iterations), loss_factor(run)
            )
        }
