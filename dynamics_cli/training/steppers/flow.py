"""The stepper of gradient flow: state i is the flow at time `t_i` of a grid.

The integrators are SciPy's embedded Runge-Kutta pairs. Networks start at weights as small as 1e-20,
so errors are relative to the size of each neuron (the weights that enter a unit) at the start of a
step.

Kinks of the activation or the loss are not located: a step in which a neuron changes its activation
has an error of first order in its length, and a neuron that slides along a boundary changes at
every step. The pair of low order takes fewest gradients there, a number that grows as 1 / rtol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import RK23, RK45

from dynamics_cli.gradients.derivatives import trained_names
from dynamics_cli.gradients.engine.subnormals import flushed
from dynamics_cli.gradients.objective import objective_of
from dynamics_cli.kinds import Floats, Problem
from dynamics_cli.training.steppers.base import StateDict, Stepper, halt_of

_OWN_SIZE = 3e-14
"""The smallest `rtol` of SciPy's solvers; the tolerance is their `atol`, which is set before
each step.
"""
_SMALLEST = 1e-30
"""Steps at time 0 are at least this share of the run: SciPy's own limit there is subnormal, and
so taken as 0.
"""


@contextmanager
def _integrating() -> Iterator[None]:
    """Compute steps with subnormal numbers as 0.

    An overflow shows in the loss.
    """
    with flushed(everywhere=True), np.errstate(all="ignore"):
        yield


class FlowStepper(Stepper):
    """Reads the flow at the times of a grid, which the steps do not depend on.

    Computation is in float64, whatever the dtype of the run.

    A checkpoint holds the start of the last step, which is done again: it is a function of weights,
    time and length.
    """

    full_batch = True

    def __init__(self, problems: Sequence[Problem], backend: str, device: str = "cpu") -> None:
        """Start at the initial weights.

        Gradients come from the engine (`compiled`), or from `torch` on a device.
        """
        (problem,) = problems
        optimizer: Any = problem.config.optimizer
        self.times = optimizer.times()
        self.rtol = optimizer.rtol
        self._level = optimizer.level
        self._dtype = problem.dtype
        self._buffers = problem.buffers
        self._initial = {
            name: w.astype(np.float64) for name, w in problem.starting_parameters().items()
        }
        origin = self._initial
        if problem.start is not None and problem.config.architecture.centered:
            origin = {
                name: w.astype(np.float64) for name, w in problem.initial_parameters().items()
            }
        self._trained = trained_names(problem)
        start = np.concatenate([self._initial[name].ravel() for name in self._trained])  # (P,)
        self._neuron = _neurons({name: self._initial[name].shape for name in self._trained})  # (P,)
        self._order = np.argsort(self._neuron, kind="stable")  # neuron by neuron
        self._firsts = np.flatnonzero(np.diff(self._neuron[self._order], prepend=-1))
        factors = problem.step_factors()
        self._factors = np.concatenate(
            [np.full(self._initial[name].size, factors.get(name, 1.0)) for name in self._trained]
        )  # (P,)
        self._conserved = _conserved(problem, self._initial, self._factors)
        self._loss_and_gradient = objective_of(problem, origin, backend, device)
        # networks without a choice of activation have kinks
        sigma = getattr(problem.config.architecture, "sigma", None)
        smooth = sigma is not None and sigma.smooth and problem.loss.smooth
        self._pair: type = RK45 if smooth else RK23
        self._steps = 0
        self._evaluations = 0
        self._begin(0.0, start)

    def follow(self, before: Stepper) -> list[str]:
        """Go on at the time of another stepper's state; see `Stepper.follow`."""
        super().follow(before)
        assert isinstance(before, FlowStepper)
        _, start, _ = self._last_start
        self._begin(float(self.times[self.iteration]), start)
        self._steps = before._steps
        self._evaluations = before._evaluations
        return []

    def _begin(self, time: float, weights: Floats) -> None:
        """Make the solver at a state of the flow; no step is done from there yet."""
        self._path: Callable[[float], Floats] | None = None
        self._least = 0.0
        with _integrating():
            tolerance = self._tolerance(weights)
            self._solver = self._pair(
                self._slope, time, weights, self.times[-1], rtol=_OWN_SIZE, atol=tolerance
            )
        if not np.isfinite(self._solver.h_abs):
            self._solver.h_abs = self.times[-1]
        self._last_start = time, weights, float(self._solver.h_abs)
        self._least = _SMALLEST * self.times[-1]

    def _slope(self, time: float, theta: Floats) -> Floats:
        if 0.0 < time < self._least:
            raise self._too_small()
        return -self._factors * self._loss_and_gradient(self._conserved(theta))[1]

    def _too_small(self) -> FloatingPointError:
        return FloatingPointError(
            f"gradient flow needs smaller steps than {self._solver.h_abs:.1e} at time"
            f" {self._solver.t:.6g} for rtol {self.rtol:g}; a larger optimizer.rtol may pass"
        )

    def _tolerance(self, weights: Floats) -> Floats:
        """Return the error allowed in weights (P,): `rtol` times their neuron's largest weight."""
        size = np.maximum.reduceat(np.abs(self._conserved(weights))[self._order], self._firsts)
        return np.asarray(self.rtol * np.where(size > 0, size, 1.0)[self._neuron])

    def advance(self, n: int) -> Floats:
        """Go on by `n` states; see `Stepper.advance`."""
        losses: list[float] = []
        while self.halted is None and len(losses) < n:
            losses.extend(self.look())
            if self.halted is None:
                self.iteration += 1
        return np.array(losses)

    def losses(self) -> Floats:
        """Return the loss of the current state, (1,)."""
        weights = self._weights()
        with flushed(everywhere=True), np.errstate(all="ignore"):
            return np.array([self._loss_and_gradient(weights)[0]])

    def look(self) -> Floats:
        """Return the loss of the current state, (1,), at which the network may halt."""
        losses = self.losses()
        self.halted = halt_of(float(losses[0]), self._level)
        return losses

    def parameters(self) -> dict[str, NDArray[np.floating]]:
        """Return the current weights, by name, in the dtype of the run, and the buffers."""
        weights = {name: w.astype(self._dtype) for name, w in self.exact_parameters().items()}
        return {**weights, **self._buffers}

    def exact_parameters(self) -> dict[str, NDArray[np.floating]]:
        """Return the current weights, by name, in float64."""
        flat = self._weights()
        initial = self._initial
        ends = np.cumsum([initial[name].size for name in self._trained])
        trained = dict(zip(self._trained, np.split(flat, ends[:-1]), strict=True))
        return {
            name: np.array(trained.get(name, w)).reshape(w.shape) for name, w in initial.items()
        }

    def _weights(self) -> Floats:
        """Return the trained weights (P,) of the current state, after all steps that it needs."""
        solver = self._solver
        time = float(self.times[self.iteration])
        with _integrating():
            if solver.t < time:
                while solver.t < time:
                    self._step()
                self._path = solver.dense_output()
            if self._path is None:
                return self._conserved(solver.y)
            return self._conserved(self._path(time))

    def _step(self) -> None:
        """Do one step.

        Raises FloatingPointError: no step, however small, meets the tolerance.
        """
        solver = self._solver
        evaluations = self._solver.nfev
        self._last_start = solver.t, solver.y, float(solver.h_abs)
        solver.atol = self._tolerance(solver.y)
        solver.step()
        if solver.status == "failed":
            raise self._too_small()
        self._steps += 1
        self._evaluations += solver.nfev - evaluations

    def state_dict(self) -> StateDict:
        """Return the current state's number, the start of the last step, and the work so far."""
        time, weights, length = self._last_start
        numbers = {"iteration": self.iteration, "time": time, "length": length, **self.numbers()}
        return {
            "weights": weights.copy(),
            **{name: np.array(number) for name, number in numbers.items()},
        }

    def load_state_dict(self, state: StateDict) -> None:
        """Go on from a former `state_dict()`."""
        self.iteration = int(state["iteration"])
        self._begin(float(state["time"]), np.array(state["weights"], np.float64))
        self._solver.h_abs = float(state["length"])
        steps = int(state["steps"])
        if steps:
            with _integrating():
                self._step()
                self._path = self._solver.dense_output()
        self._steps = steps
        self._evaluations = int(state["gradient_evaluations"])

    def numbers(self) -> dict[str, Any]:
        """Return the work of the integration."""
        return {"steps": self._steps, "gradient_evaluations": self._evaluations}


def _neurons(shapes: dict[str, tuple[int, ...]]) -> NDArray[np.int64]:
    """Return the number of the neuron of each weight (P,).

    The neurons of the two-layer network have their output weight with them; elsewhere a neuron is a
    row of a weight matrix and its bias, which share the end of their names.
    """
    numbers: dict[tuple[str, int], int] = {}
    neurons = []
    for name, shape in shapes.items():
        layer = name.rpartition("_")[2]
        if name in ("hidden_weight", "output_weight"):
            layer = "two_layer"
        rows = [numbers.setdefault((layer, row), len(numbers)) for row in range(shape[0])]
        neurons.append(np.repeat(rows, int(np.prod(shape[1:]))))
    return np.concatenate(neurons)


def _conserved(
    problem: Problem, initial: dict[str, Floats], factors: Floats
) -> Callable[[Floats], Floats]:
    """Return a function that gives trained weights (P,) the output weights of their hidden ones.

    Where both layers of a two-layer network with a homogeneous activation are trained, `a_j^2 -
    ||w_j||^2` is conserved (Boursier et al. 2022, Lemma 1). Where it is not negative, `a_j` keeps
    its sign: without this, errors would let neurons pass zero that only come close to it. Weights
    of other networks stay as they are, and so do those whose gradients have different `factors`
    (P,). A negative factor does not lift what is imposed: claims that only measure it hold under
    the null `wrong_gradient`, and so are found.
    """
    c: Any = problem.config.architecture
    lawful = np.ptp(factors) == 0 or factors.min() < 0
    if not (
        lawful
        and c.two_layer
        and c.engine
        and c.plain
        and c.train_output
        and c.sigma.negative_slope is not None
    ):
        return lambda theta: theta
    hidden = initial["hidden_weight"]
    output = initial["output_weight"]
    with np.errstate(all="ignore"):
        norms = np.linalg.norm(hidden, axis=1)
        sizes = np.abs(output)
        split = hidden.size
        kept = sizes >= norms * (1.0 - 1e-12)
        excess = np.sqrt(np.maximum(sizes - norms, 0.0)) * np.sqrt(sizes + norms)  # (m,)

    def conserved(theta: Floats) -> Floats:
        W = theta[:split]
        grown = np.hypot(np.linalg.norm(W.reshape(hidden.shape), axis=1), excess)
        a = np.where(kept, np.copysign(grown, output), theta[split:])
        return np.concatenate([W, a])

    return conserved
