"""Growth of the two groups of neurons, and the saddle that lies between (Boursier et al. 2022, Section 4.2, Fact 1).

Balanced neurons aligned with `sign D` have `sum_j a_j w_j = u D / ||D||` where `u` is the sum of their squared norms.
On orthogonal inputs, therefore, `h(x_k) = u y_k ||x_k||^2 / (n ||D||)` on labels of that sign and, from Eq. 3,

    du/dt = 2 ||D|| (1 - u / U) u   with   U = n^3 ||D||^3 / sum y_k^2 ||x_k||^4,

which for orthonormal inputs is the paper's equation, `U = n ||D||`. It is exact as long as the direction stays: always,
where the inputs of that sign have equal norms; only while the loss is small otherwise, since `D(t)` then turns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import nnls

from dynamics_cli.kinds import Curve, Theory
from dynamics_cli.measures.arrays import Bools, Floats, as_floats, as_network, as_points
from dynamics_cli.measures.neurons import norms
from dynamics_cli.theory.assumptions import flow_violations, is_relu_network, loss_factor, plain_violations, times_of
from dynamics_cli.theory.sphere_flow import sphere_flow

from .alignment import D_minus, D_plus, D_sign, S_minus_1, S_plus_1, labels_differ, orthogonality, require_orthogonal
from .minimum_norm import interpolating_neuron

ALIGNMENTS = 40.0
"""Times `1 / ||D||` after which all neurons are aligned."""


def growth_limit(x: ArrayLike, y: ArrayLike, sign: int) -> float:
    """Return U, where `u` ends: `n^3 ||D||^3 / sum y_k^2 ||x_k||^4`, for orthonormal inputs `n ||D||`.

    Raises ValueError when inputs are not orthogonal or when no label has this sign.
    """
    points, labels = as_points(x, y)
    require_orthogonal(points)
    length = float(np.linalg.norm(D_sign(points, labels, sign)))
    if length == 0:
        raise ValueError(f"there is no label of sign {sign:+d}")
    weights = labels**2 * np.sum(points**2, axis=1) ** 2
    return float((len(labels) * length) ** 3 / np.sum(weights[sign * labels > 0]))


def logistic_growth(
    t: ArrayLike, u_0: float, x: ArrayLike, y: ArrayLike, sign: int = 1, *, loss_factor: float = 1.0
) -> Floats:
    """Return `u(t) = U / (1 + (U / u_0 - 1) exp(-2 ||D|| t))` for times `t` of any shape, from `u(0) = u_0 > 0`.

    Raises ValueError as `growth_limit`.
    """
    U = growth_limit(x, y, sign)
    times = as_floats(t, "t", axes=0, batched=True)
    decay = np.exp(-2.0 * loss_factor * float(np.linalg.norm(D_sign(x, y, sign))) * times)
    return np.asarray(U / (1.0 + (U / u_0 - 1.0) * decay))


def aligned_mass(x: ArrayLike, y: ArrayLike, W: ArrayLike, a: ArrayLike, sign: int) -> float:
    """Return the `u_0` from which the logistic growth of `S_{+,1}` (`S_{-,1}` for sign -1) must start at t = 0.

    Neurons lose time while they turn towards D. With t = `40 / ||D||`, late enough for all to be aligned,
    `u_0 = sum_j ||w_j(0)||^2 exp(2 (log_growth_j(t) - ||D|| t))`, so that `u(t) = u_0 exp(2 ||D|| t)` from then on. For
    balanced weights and orthogonal inputs. Raises ValueError when no neuron is in the set or no label has that sign.
    """
    hidden, output = as_network(W, a)
    chosen = (S_plus_1 if sign > 0 else S_minus_1)(x, y, hidden, output)
    length = float(np.linalg.norm(D_sign(x, y, sign)))
    if not chosen.any() or length == 0:
        raise ValueError(f"no neuron of the right set or no label of sign {sign:+d}")
    late = ALIGNMENTS / length
    growth = sphere_flow(x, y, hidden[chosen], output[chosen], [late]).log_growth[0]
    return float(np.sum(norms(hidden[chosen]) ** 2 * np.exp(2.0 * (growth - length * late))))


def growth_loss(
    u_plus: ArrayLike, u_minus: ArrayLike, x: ArrayLike, y: ArrayLike, *, loss_factor: float = 1.0
) -> Floats:
    """Return the loss when neurons along `D_+` and `-D_-` have the total squared norms `u_plus` and `u_minus`.

    `u_plus` and `u_minus` have any shape and broadcast. Raises ValueError when inputs are not orthogonal.
    """
    points, labels = as_points(x, y)
    require_orthogonal(points)
    plus, minus = np.linalg.norm(D_plus(points, labels)), np.linalg.norm(D_minus(points, labels))
    n, squares = len(labels), np.sum(points**2, axis=1)
    u = np.stack(np.broadcast_arrays(as_floats(u_plus, "u_plus", axes=0, batched=True), u_minus), axis=-1)  # (..., 2)
    norms = np.array([plus, minus])
    slopes = np.divide(u, n * norms, out=np.zeros_like(u), where=norms > 0)
    h = np.where(labels > 0, slopes[..., :1], slopes[..., 1:]) * labels * squares  # (..., n)
    return np.asarray(0.5 * loss_factor * np.mean((h - labels) ** 2, axis=-1))


def one_sign_saddle_loss(x: ArrayLike, y: ArrayLike, sign: int, *, loss_factor: float = 1.0) -> float:
    """Return the least loss of networks all of whose output weights have one sign, on a line with a constant.

    For inputs `x (n, 2)` = (input, 1) of any inner products: the level of a saddle at which no neuron of the other sign
    has grown. Such a network is `sign` times a sum of `relu(x - t)`, `relu(t - x)` and constants with coefficients
    >= 0. Between two neighbouring inputs t enters linearly, beyond them the rest is a constant, so that kinks at the
    inputs are enough (non-negative least squares). Raises ValueError for other inputs.
    """
    points, labels = as_points(x, y)
    if points.shape[1] != 2 or not (points[:, 1] == 1).all():
        raise ValueError("this saddle needs inputs on a line with a constant: x of shape (n, 2), the second column 1")
    steps = points[:, :1] - points[:, 0]  # (n, n): from every kink to every input
    features = np.column_stack([np.maximum(steps, 0), np.maximum(-steps, 0), np.ones(len(labels))])
    return float(0.5 * loss_factor * nnls(features, sign * labels)[1] ** 2 / len(labels))


@dataclass(frozen=True)
class Saddle:
    """The intermediate saddle `theta_S`: labels of one sign are fitted by parallel neurons, all others are 0."""

    sign: int
    """Sign of the labels that are fitted there (that of the larger `||D||`)."""
    w: Floats
    """(d,) the fitting neurons merged into one balanced neuron; they share its direction."""
    a: float
    """Its output weight; `a^2` is the sum of the squared norms of the fitting neurons, `n ||D||` if orthonormal."""
    fitted: Bools
    """(n,) which points are fitted; `h` is 0 on the others."""
    loss: float
    """`loss_factor / (2n)` times the sum of the squares of the other labels."""


def intermediate_saddle(x: ArrayLike, y: ArrayLike, *, loss_factor: float = 1.0) -> Saddle:
    """Return the saddle of Fact 1 for orthogonal inputs `x (n, d)` of any norm and labels `y (n,)`.

    Raises ValueError when inputs are not orthogonal, labels have one sign only, or `||D_+|| = ||D_-||` (Assumption 2).
    """
    points, labels = as_points(x, y)
    plus, minus = np.linalg.norm(D_plus(points, labels)), np.linalg.norm(D_minus(points, labels))
    if plus == minus or min(plus, minus) == 0:
        raise ValueError(f"an intermediate saddle needs ||D+|| and ||D-|| positive and different: {plus}, {minus}")
    sign = 1 if plus > minus else -1
    w, a = interpolating_neuron(points, labels, sign)
    fitted: Bools = sign * labels > 0
    loss = 0.5 * loss_factor * float(np.sum(labels[~fitted] ** 2)) / len(labels)
    return Saddle(sign=sign, w=w, a=a, fitted=fitted, loss=loss)


class OrthogonalSaddles(Theory, kind="orthogonal_saddles"):
    """From saddle to saddle on orthogonal inputs: neurons along D+ and -D- grow logistically (Boursier et al. 2022)."""

    example = """\
initialization: {kind: balanced, scale: 1.0e-6}
optimizer: {kind: gd, lr: 1.0e-3, iterations: 20000}
"""

    def applies(self, run: Any) -> list[str] | None:
        """Return which assumptions fail; None unless the network has one hidden layer of ReLUs and one output."""
        net = run.config.architecture
        if not is_relu_network(net):
            return None
        samples, start = run.dataset(), run.state(0)
        W, a = start["hidden_weight"], start["output_weight"]
        violations = [*plain_violations(net), *flow_violations(run)]
        if (worst := orthogonality(samples.x)) > 1e-6:
            violations.append(f"Assumption 1: inputs are orthogonal, two have the cosine {worst:.3g}")
        if not labels_differ(samples.x, samples.y):
            violations.append("Assumption 2: no label is 0, and ||D+|| and ||D-|| differ")
        if not all(members(samples.x, samples.y, W, a).any() for members in (S_plus_1, S_minus_1)):
            violations.append("Assumption 3: both S+,1 and S-,1 hold neurons")
        if (size := float(norms(W).max() * np.sqrt(len(a)))) > 0.01:
            violations.append(f"neurons start small: the largest norm times sqrt(m) is {size:.2g}")
        return violations

    def predict(self, run: Any) -> Mapping[str, Floats | Curve]:
        """Return the loss."""
        samples, start, c = run.dataset(), run.state(0), loss_factor(run)
        x, y, times = samples.x, samples.y, times_of(run, run.loss_iterations)
        u = {}
        for sign in (1, -1):
            mass = aligned_mass(x, y, start["hidden_weight"], start["output_weight"], sign)
            u[sign] = logistic_growth(times, mass, x, y, sign, loss_factor=c)
        return {"loss": growth_loss(u[1], u[-1], x, y, loss_factor=c)}
