"""The early alignment of directions: Eq. 10 of Boursier et al. 2022, solved piece by piece.

With h = 0 a direction follows `dw/dt = s (D - <D, w> w)`, `D = (1/n) sum_k 1{<w, x_k> > 0} y_k
x_k`. While the activation does not change, D is constant and w moves on the great circle towards `E
= s D / ||D||`:

    w(t) = tanh(tau) E + sech(tau) e,   tau = tau_0 + ||D|| t,   e the unit part of w orthogonal to
    E,

and the log of the norm grows by `ln cosh(tau) - ln cosh(tau_0)`. A sample changes at `sinh(tau) <E,
x> = -<e, x>`. Where the flow points back to the boundary `<w, x_k> = 0` from both sides, w slides
along it: D then holds a fraction of the term of sample k such that `<D, x_k> = 0` (Filippov;
gradient descent chatters around this path). For orthogonal inputs that fraction is 0, and a sample
once switched off stays at `<w, x_k> = 0` (Lemma 7 iii).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import lsq_linear

from dynamics_cli.kinds import Curve, Theory
from dynamics_cli.measures.arrays import Bools, Floats, as_floats, as_network, as_points
from dynamics_cli.measures.neurons import directions, norms
from dynamics_cli.theory.assumptions import (
    flow_violations,
    is_relu_network,
    plain_violations,
    times_of,
)

BOUNDARY = 1e-11
"""A direction with `|<w, x_k>|` below this times `||x_k||` is on the boundary of sample k."""


@dataclass(frozen=True)
class SphereFlow:
    """Directions and growth of m neurons at T times."""

    times: Floats
    """(T,)"""
    directions: Floats
    """(T, m, d) unit vectors."""
    log_growth: Floats
    """(T, m) `ln(||w_j(t)|| / ||w_j(0)||)`, to leading order in the scale of initialisation (Eq.
    9).
    """
    switches: tuple[Floats, ...]
    """For each neuron the times at which its activation, or the boundary that it is on, changed."""


def sphere_flow(
    x: ArrayLike,
    y: ArrayLike,
    W: ArrayLike,
    a: ArrayLike,
    times: ArrayLike,
    *,
    loss_factor: float = 1.0,
) -> SphereFlow:
    """Follow the directions of neurons `W (m, d)`, signs of `a (m,)`, along Eq. 10 from t = 0.

    `times (T,)` ascend from 0 on and may end with infinity (the limit; log_growth is then
    infinite). `x (n, d)`, `y (n,)`; `loss_factor` 2 makes time run twice as fast (mean squared
    error). A neuron with `a_j = 0` stays. Raises ValueError for a neuron that is 0, times that do
    not ascend from at least 0, or shapes that do not match.
    """
    points, labels = as_points(x, y)
    hidden, output = as_network(W, a)
    moments = as_floats(times, "times", axes=1)
    if (np.diff(moments) < 0).any() or not (moments >= 0).all():
        raise ValueError("times must ascend from 0 on")
    start = directions(hidden)
    if np.isnan(start).any():
        raise ValueError("a neuron that is 0 has no direction")
    pulls = loss_factor * labels / len(labels)
    heard = np.any(points != 0, axis=1)  # an input 0 pulls nowhere
    turned = np.empty((len(moments), *hidden.shape))
    growth = np.empty((len(moments), len(hidden)))
    switches = []
    for j, sign in enumerate(np.sign(output)):
        turned[:, j], growth[:, j], times_j = _follow(
            points[heard], sign * pulls[heard], start[j], moments
        )
        switches.append(times_j)
    return SphereFlow(moments, turned, growth, tuple(switches))


def _follow(x: Floats, gains: Floats, w: Floats, times: Floats) -> tuple[Floats, Floats, Floats]:
    """Return directions (T, d), log growth (T,) and switching times; `gains` are `s y_k / n`."""
    path = np.empty((len(times), len(w)))
    growth = np.empty(len(times))
    lengths = np.linalg.norm(x, axis=1)
    now = 0.0
    gained = 0.0
    switches = list[float]()
    done = 0
    limit = 50 * len(x) + 50
    while done < len(times):
        if len(switches) > limit:
            raise ValueError(
                f"the activation changed more than {limit} times: the flow does not settle"
            )
        z = x @ w
        boundary = np.abs(z) <= BOUNDARY * lengths
        force, pinned = _drift(x, gains, z > 0, boundary)
        arc = _Arc(_off(w, x[pinned]), force)
        duration = arc.next_event(x, z, boundary)
        settles = not np.isfinite(duration)
        while done < len(times) and (settles or times[done] < now + duration):
            path[done] = arc.at(times[done] - now)
            growth[done] = gained + arc.growth(times[done] - now)
            done += 1
        if not settles:
            w = arc.at(duration)
            gained = gained + arc.growth(duration)
            now = now + duration
            switches.append(now)
    return path, growth, np.array(switches)


def _off(v: Floats, x: Floats) -> Floats:
    """Return the part of `v (d,)` orthogonal to the rows of `x (k, d)`."""
    if len(x) == 0:
        return v
    result: Floats = v - x.T @ np.linalg.lstsq(x.T, v, rcond=None)[0]
    return result


def _drift(x: Floats, gains: Floats, active: Bools, boundary: Bools) -> tuple[Floats, Bools]:
    """Return `s D` and along which samples the direction slides; `gains (n,)` are `s y_k / n`.

    Off the boundary the activation decides. A sample on it with a negative gain may be switched on
    by a fraction; one with a positive gain is switched on when the others push it up already, and
    then stays on, since it pushes itself.
    """
    on = active & ~boundary
    if not boundary.any():
        return gains[on] @ x[on], np.zeros_like(boundary)
    tolerance = BOUNDARY * np.linalg.norm(np.abs(gains) @ np.abs(x)) * np.linalg.norm(x, axis=1)
    while True:
        force, sliding = _slide(x, gains, gains[on] @ x[on], boundary & (gains < 0), tolerance)
        rise = np.where(boundary & ~on & (gains > 0), x @ force - tolerance, 0.0)
        if rise.max() <= 0:
            break
        on[np.argmax(rise)] = True
    return force, sliding | (boundary & ~on & (np.abs(x @ force) <= tolerance))


def _slide(
    x: Floats, gains: Floats, force: Floats, free: Bools, tolerance: Floats
) -> tuple[Floats, Bools]:
    """Return `force` with fractions of the samples `free`, and along which of them it slides.

    The fractions solve a complementarity problem: 1 where the velocity `<s D, x_k>` points up, 0
    where it points down, between where it is 0. These are the optimality conditions of a
    least-squares problem on a box.
    """
    sliding = np.zeros_like(free)
    if not (x @ force > tolerance)[free].any():
        return force, sliding
    lengths = np.linalg.norm(x[free], axis=1)
    units = x[free] / lengths[:, None]
    bound = -gains[free] * lengths
    parts = lsq_linear(units.T, force, bounds=(0.0, bound), method="bvls", tol=1e-14).x
    inside = (parts > 1e-9 * bound) & (parts < (1.0 - 1e-9) * bound)
    sliding[np.flatnonzero(free)[inside]] = True
    return _off(force - parts @ units, x[sliding]), sliding


class _Arc:
    """A piece of the path with constant drift: part of a great circle towards `E`."""

    def __init__(self, w: Floats, force: Floats) -> None:
        self.w = w / np.linalg.norm(w)
        self.speed = float(np.linalg.norm(force))
        self.E = np.zeros_like(w)
        if self.speed > 0:
            self.E = force / self.speed
        along = float(self.w @ self.E)
        across = self.w - along * self.E
        across = across - (across @ self.E) * self.E
        width = float(np.linalg.norm(across))
        self.still = self.speed == 0 or width < 1e-15
        self.along = along
        if not self.still:
            self.e = across / width
            self.tau = float(np.arcsinh(along / width))

    def at(self, duration: float) -> Floats:
        """Return the unit direction after `duration`."""
        if self.still or duration == 0:
            return self.w
        tau = self.tau + self.speed * duration
        fading = np.exp(-abs(tau))
        w: Floats = np.tanh(tau) * self.E + 2.0 * fading / (1.0 + fading**2) * self.e
        return w / np.linalg.norm(w)

    def growth(self, duration: float) -> float:
        """Return the gain of the log norm after `duration`."""
        if duration == 0 or self.speed == 0:
            return 0.0
        if self.still:
            return float(np.sign(self.along)) * self.speed * duration
        tau = self.tau + self.speed * duration
        return _log_cosh(tau) - _log_cosh(self.tau)

    def next_event(self, x: Floats, z: Floats, boundary: Bools) -> float:
        """Return after which duration the first sample reaches the boundary; infinity for none."""
        if self.still:
            return np.inf
        towards = x @ self.E
        across = x @ self.e
        leaves = ~boundary & (z * towards < 0)  # the end of the arc lies on the other side
        if not leaves.any():
            return np.inf
        durations = (np.arcsinh(-across[leaves] / towards[leaves]) - self.tau) / self.speed
        return float(max(durations.min(), 0.0))


def _log_cosh(tau: float) -> float:
    return float(abs(tau) + np.log1p(np.exp(-2.0 * abs(tau))) - np.log(2.0))


class EarlyAlignment(Theory, kind="early_alignment"):
    """Directions of small ReLU neurons before the loss falls (Boursier et al. 2022, Eq. 10).

    Of any loss: the labels are replaced by minus its derivative at the output 0. A curve is the
    cosine of a neuron with the direction that it is predicted to end in.
    """

    example = """\
initialization: {kind: balanced, scale: 1.0e-6}
optimizer: {kind: gd, lr: 1.0e-3, iterations: 4000}
"""

    def applies(self, run: Any) -> list[str] | None:
        """Return which assumptions fail; None unless the network is of two layers, of ReLUs."""
        net = run.config.architecture
        if not is_relu_network(net):
            return None
        violations = [*plain_violations(net), *flow_violations(run, squared=False, states=1)]
        samples = run.dataset()
        loss = run.config.loss
        start = run.state(0)
        pulls = loss.derivatives(np.zeros(samples.n), samples.y)
        now = loss.derivatives(run.network(0)(samples.x), samples.y)
        if (part := float(np.abs(now - pulls).max() / np.abs(pulls).max())) > QUIET:
            violations.append(
                f"the network starts near 0: it changes the forces on its neurons by {part:.2g}"
            )
        sizes = norms(start["hidden_weight"])
        largest = np.maximum(sizes, np.finfo(float).tiny)  # a neuron may have no weights at all
        if (
            part := float((np.abs(np.abs(start["output_weight"]) - sizes) / largest).max())
        ) > QUIET:
            violations.append(
                f"neurons start balanced: |a_j| and ||w_j|| differ by up to {part:.2g} of ||w_j||"
            )
        return violations

    def predict(self, run: Any) -> Mapping[str, Floats | Curve]:
        """Return the cosines of the first neurons, until the loss has fallen by 1 %."""
        samples = run.dataset()
        start = run.state(0)
        pulls = -run.config.loss.derivatives(np.zeros(samples.n), samples.y)
        pulls *= run.config.loss.sample_weight(samples.n) * samples.n
        W = np.asarray(start["hidden_weight"], np.float64)[:SHOWN]
        a = np.asarray(start["output_weight"], np.float64)[:SHOWN]
        early = np.asarray(run.snapshot_iterations)
        fallen = np.flatnonzero(np.asarray(run.losses) < (1 - QUIET) * float(run.losses[0]))
        if len(fallen):
            early = early[early <= run.loss_iterations[fallen[0]]]
        times = np.append(times_of(run, early), np.inf)
        flow = sphere_flow(samples.x, pulls, W, a, times)
        ends = flow.directions[-1]
        turned = directions(
            np.asarray(run.parameters["hidden_weight"][: len(early), :SHOWN], np.float64)
        )
        cosines = [np.einsum("kjd,jd->kj", path, ends) for path in (turned, flow.directions[:-1])]
        return {"cosines": Curve("cosine with its limit", early.astype(float), *cosines)}


QUIET = 0.01
"""Most difference at the start, and fall of the loss, while directions move as at output 0."""
SHOWN = 8
"""Neurons whose direction is followed."""
