"""Gradient flow of two-layer networks with every activation change located: collocation in the loss derivatives.

Neurons act on each other only through the weighted derivatives `r_k = weight l'(h(x_k), y_k)` of the n samples. Given
`r(t)` as a polynomial over a step, `kernels.arcs` moves every neuron exactly, through all changes of its activation and
along the boundaries on which it slides. What is left is to find the polynomial that its own outputs give back at the
three Radau nodes of the step: the Radau IIA method of order 5 (Hairer and Wanner 1996, IV.8), for r instead of the
weights. Unlike a Runge-Kutta method on the weights it is

- not ruined by kinks: they are inside the arcs, and r has none of them to speak of. (A method that does not see them
  has errors of first order in the step, and a tolerance drives its steps to nothing: neurons slide along boundaries of
  their activation for most of a run, which it can follow only by chattering.)
- not bound by stability: the stiff part, `dr/dt = -K r` with the tangent kernel K (n, n), is solved implicitly by
  Newton's method.
- exact while the outputs are small: r is constant then, whatever the scale of the weights.

An error `e(t)` in r moves every neuron by at most `||X|| int |e| dt` of its own size, since `d(w, a)/dt` is linear in
(w, a) with a matrix of norm `||D||`. This is what `rtol` bounds in each step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lu_factor, lu_solve

from dynamics_cli.kinds import Floats, Problem
from dynamics_cli.training.flow.base import SMALLEST_STEP, Integrator, too_small
from dynamics_cli.training.kernels.arcs import ORDER as TAYLOR_ORDER
from dynamics_cli.training.kernels.arcs import POLYNOMIALS, evolve
from dynamics_cli.training.kernels.boundaries import OFF, ON, SLIDING, workspace
from dynamics_cli.training.kernels.tangent import tangent_kernel
from dynamics_cli.training.steppers.base import StateDict
from dynamics_cli.training.steppers.side_by_side import one_blas_thread

_ROOT6 = np.sqrt(6.0)
NODES = np.array([(4 - _ROOT6) / 10, (4 + _ROOT6) / 10, 1.0])
RADAU = np.array(
    [
        [(88 - 7 * _ROOT6) / 360, (296 - 169 * _ROOT6) / 1800, (-2 + 3 * _ROOT6) / 225],
        [(296 + 169 * _ROOT6) / 1800, (88 + 7 * _ROOT6) / 360, (-2 - 3 * _ROOT6) / 225],
        [(16 - _ROOT6) / 36, (16 + _ROOT6) / 36, 1 / 9],
    ]
)
"""`RADAU[i, l]` is the integral of the l-th Lagrange polynomial from 0 to node i."""
TO_COEFFICIENTS = np.linalg.inv(np.vander(NODES, increasing=True))
ERROR_SHARE = 0.23515
"""Mean over the step of `|prod (t - node)| / |prod node|`: the mean error of a step whose error at its start is 1."""
CONVERGED = 0.1
"""Newton's method ends when its correction is below this times the tolerance."""
MOST_SWEEPS = 8
LARGEST_GROWTH, SMALLEST_GROWTH, SAFETY, ORDER = 4.0, 0.2, 0.9, 4
FIRST_STEP = 0.1
"""The first step lets no neuron grow by more than this."""
_DIFFERENCE = 1e-4
_WHEN = ("now", "before")


@dataclass
class NeuronStates:
    """The state of all neurons: pre-activations, output weights, coefficients on the inputs, modes."""

    Z: Floats
    a: Floats
    C: Floats
    mode: NDArray[np.int8]

    def copy(self) -> NeuronStates:
        """Return a copy."""
        return NeuronStates(self.Z.copy(), self.a.copy(), self.C.copy(), self.mode.copy())


class LocatedFlow(Integrator):
    """Adaptive Radau IIA steps in the loss derivatives, exact arcs of the neurons between."""

    kept = ("began", "length", "next", "nodes", "r", "sweeps", "jacobians", "changes", "restarts")

    def __init__(self, problem: Problem) -> None:
        optimizer: Any = problem.config.optimizer
        architecture: Any = problem.config.architecture
        self.rtol, self.criterion = optimizer.rtol, problem.loss
        self.sigma = architecture.sigma.value
        assert architecture.sigma.negative_slope is not None
        self.alpha = architecture.sigma.negative_slope
        self.train_output = architecture.train_output
        initial = {name: value.astype(np.float64) for name, value in problem.initial_parameters().items()}
        self.x, self.y = problem.dataset.x, problem.dataset.y  # (n, d), (n,)
        self.weight = problem.loss.sample_weight(len(self.y))
        self.W_0 = initial["hidden_weight"]  # (m, d)
        with one_blas_thread():
            self.G, self.Z_0 = self.x @ self.x.T, self.W_0 @ self.x.T  # (n, n), (m, n)
            self.spectral_norm = float(np.linalg.norm(self.x, 2))
        self.lengths, self.w_0_squared = np.linalg.norm(self.x, axis=1), np.sum(self.W_0**2, axis=1)
        self.work, self.series = workspace(len(self.y)), np.empty((POLYNOMIALS, TAYLOR_ORDER + 2))
        modes = np.where(self.Z_0 > 0, ON, OFF).astype(np.int8)
        self.now = NeuronStates(self.Z_0.copy(), initial["output_weight"], np.zeros_like(self.Z_0), modes)
        self.before = self.now
        self.began, self.length = 0.0, 0.0  # of the last step
        self.nodes = np.zeros((3, len(self.y)))  # r at the nodes of the last step
        self.r = self._derivatives(self._outputs(self.now)[None])[0]
        speed = self.spectral_norm * float(np.linalg.norm(self.r))
        self.next = self.first = FIRST_STEP / speed if 0 < speed < np.inf else optimizer.until
        self.sweeps = self.jacobians = self.changes = self.restarts = 0
        self._sweep(self.now, self.nodes, 0.0, np.empty(0), 0.0)  # so that kernels are compiled before the clock starts
        self._kernel()

    def step(self) -> None:
        """Do one step; see `Integrator.step`."""
        with one_blas_thread():  # products this small only lose by a second thread
            while not self._try(self.next):
                self.rejected += 1
                if not self.next > SMALLEST_STEP * max(self.time, self.first):
                    raise too_small(self.next, self.time, self.rtol)

    def losses(self, times: Floats) -> Floats:
        """Return the losses at times in the last step; see `Integrator.losses`."""
        if self.length == 0.0:
            outputs = np.repeat(self._outputs(self.now)[None], len(times), axis=0)
        else:
            outputs = self._sweep(self.before, self.nodes, self.length, self._share(times), 1.0)[0]
        # singly, so that a loss does not depend on how many are asked for
        return np.array([float(self.criterion.total(h, self.y)) for h in outputs])

    def weights(self, time: float) -> dict[str, Floats]:
        """Return the weights at a time in the last step."""
        neurons = self.now
        if self.length > 0.0:
            share = float(self._share(np.array([time]))[0])
            neurons = self._sweep(self.before, self.nodes, self.length, np.empty(0), share)[1]
        with one_blas_thread():
            return {"hidden_weight": self.W_0 + neurons.C @ self.x, "output_weight": neurons.a.copy()}

    def state_dict(self) -> StateDict:
        """Return the last step and all counters."""
        neurons = {f"{when}/{name}": value for when in _WHEN for name, value in vars(getattr(self, when)).items()}
        return super().state_dict() | {name: np.array(value) for name, value in neurons.items()}

    def load_state_dict(self, state: StateDict) -> None:
        """Go on from a former `state_dict()`."""
        super().load_state_dict(state)
        for when in _WHEN:
            neurons: dict[str, Any] = {name: np.array(state[f"{when}/{name}"]) for name in vars(getattr(self, when))}
            setattr(self, when, NeuronStates(**neurons))

    def numbers(self) -> dict[str, float]:
        """Return the work done; a sweep counts as three gradients, a tangent kernel or m activation changes as one."""
        evaluations = 3 * self.sweeps + self.jacobians + -(-self.restarts // len(self.now.a))
        return {"steps": self.steps, "gradient_evaluations": evaluations, "activation_changes": self.changes}

    def _share(self, times: Floats) -> Floats:
        return np.clip((times - self.began) / self.length, 0.0, 1.0)

    def _outputs(self, neurons: NeuronStates) -> Floats:
        with one_blas_thread():
            h: Floats = neurons.a @ self.sigma(neurons.Z)
            return h

    def _derivatives(self, outputs: Floats) -> Floats:
        """Return r for outputs (k, n)."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.stack([self.weight * np.asarray(self.criterion.derivatives(h, self.y)) for h in outputs])

    def _sweep(
        self, start: NeuronStates, nodes: Floats, length: float, shares: Floats, end: float
    ) -> tuple[Floats, NeuronStates, int]:
        """Return the outputs (k, n) at `shares` (k,) of a step, the neurons at its `end`, and activation changes."""
        neurons = start.copy()
        outputs = np.zeros((len(shares), len(self.y)))
        F = np.ascontiguousarray(length * (TO_COEFFICIENTS @ nodes))  # (3, n)
        changes = evolve(
            self.G, self.lengths, self.Z_0, self.w_0_squared, neurons.Z, neurons.a, neurons.C, neurons.mode, F,
            self.alpha, self.train_output, end, shares, outputs, self.work, self.series,
        )  # fmt: skip
        return outputs, neurons, int(changes)

    def _predicted(self, length: float) -> Floats:
        """Return r at the nodes of the next step from the polynomial of the last one."""
        if self.length == 0.0:
            return np.repeat(self.r[None], 3, axis=0)
        ahead = np.vander(1.0 + NODES * (length / self.length), 3, increasing=True)
        return ahead @ (TO_COEFFICIENTS @ self.nodes)

    def _measure(self, error: Floats, length: float) -> float:
        """Return how far an error (.., n) of r over a step of this length can move any neuron, relative to `rtol`."""
        root_mean_square: float = float(np.linalg.norm(error)) * (len(self.y) / error.size) ** 0.5
        return length * self.spectral_norm * root_mean_square / self.rtol

    def _try(self, length: float) -> bool:
        """Do a step of this length if it meets the tolerance; set the length of the next one."""
        found = self._solve(length)
        if found is None:
            self.next = length / 3.0
            return False
        nodes, neurons, ends, changes = found
        error = ERROR_SHARE * self._measure(self.r - TO_COEFFICIENTS[0] @ nodes, length)
        growth = SAFETY * max(error, 1e-10) ** (-1.0 / ORDER)
        self.next = length * min(LARGEST_GROWTH, max(SMALLEST_GROWTH, growth))
        if not error <= 1.0:
            return False
        # formed from C again, so that rounding errors of the arcs do not add up
        neurons.Z = np.where(neurons.mode == SLIDING, 0.0, self.Z_0 + neurons.C @ self.G)
        self.before, self.now = self.now, neurons
        self.began, self.length, self.nodes, self.r = self.time, length, nodes, ends
        self.time += length
        self.error += error * self.rtol
        self.steps += 1
        self.changes += changes
        return True

    def _solve(self, length: float) -> tuple[Floats, NeuronStates, Floats, int] | None:
        """Return r at the nodes (3, n), neurons and r (n,) at the end, and activation changes; None if not found."""
        nodes, factors, last = self._predicted(length), None, np.inf
        for sweep in range(MOST_SWEEPS):
            if not np.isfinite(nodes).all():
                return None
            outputs, neurons, changes = self._sweep(self.now, nodes, length, NODES, 1.0)
            self.sweeps += 1
            self.restarts += changes
            given = self._derivatives(outputs)
            miss = given - nodes
            size = self._measure(miss, length)
            if not size * self.rtol <= 1.0 or (sweep > 2 and size > 0.9 * last):
                return None
            if size <= CONVERGED:
                return nodes, neurons, given[-1], changes
            if factors is None:
                factors = self._newton(length)
            nodes, last = nodes + lu_solve(factors, miss.ravel()).reshape(3, -1), size
        return None

    def _kernel(self) -> Floats:
        K = np.empty_like(self.G)
        now = self.now
        tangent_kernel(self.G, now.Z, now.a, now.mode, self.alpha, self.train_output, K, self.work)
        return K

    def _newton(self, length: float) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
        """Return the factors of `I + length RADAU (x) l'' K` (3n, 3n), with the tangent kernel K at the start."""
        self.jacobians += 1
        K = self._kernel()
        h = self._outputs(self.now)
        around = _DIFFERENCE * np.maximum(1.0, np.abs(h))
        plus, minus = self._derivatives(np.stack([h + around, h - around]))
        curvature = (plus - minus) / (2.0 * around)  # (n,) weight l''
        factors: tuple[NDArray[np.float64], NDArray[np.int32]] = lu_factor(
            np.eye(RADAU.shape[0] * len(h)) + length * np.kron(RADAU, curvature[:, None] * K), check_finite=False
        )
        return factors
