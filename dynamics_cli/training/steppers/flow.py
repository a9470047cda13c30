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

from dynamics_cli.gradients.derivatives import derivatives_of, trained_names
from dynamics_cli.gradients.engine.subnormals import flushed
from dynamics_cli.kinds import Floats, Problem, State
from dynamics_cli.training.steppers.base import StateDict, Stepper, first_halt
from dynamics_cli.training.steppers.side_by_side import one_blas_thread

LossAndGradient = Callable[[Floats], tuple[float, Floats]]
"""Trained weights (P,) -> training loss and its gradient (P,)."""
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
    """Compute steps on one thread of BLAS, with subnormal numbers as 0; an overflow shows in the
    loss.
    """
    with one_blas_thread(), flushed(everywhere=True), np.errstate(all="ignore"):
        yield


class FlowStepper(Stepper):
    """Reads the flow at the times of a grid, which the steps do not depend on; float64 inside,
    whatever the dtype.

    A checkpoint holds the start of the last step, which is done again: it is a function of weights,
    time and length.
    """

    full_batch = True

    def __init__(self, problems: Sequence[Problem], backend: str, device: str = "cpu") -> None:
        """Start at the initial weights; gradients come from the engine (`compiled`), or from
        `torch` on a device.
        """
        (problem,) = problems
        optimizer: Any = problem.config.optimizer
        self.times, self.rtol = optimizer.times(), optimizer.rtol
        self._dtype, self.stop_below = problem.dtype, optimizer.stop_below
        self._initial = {
            name: w.astype(np.float64) for name, w in problem.initial_parameters().items()
        }
        self._trained = trained_names(problem)
        start = np.concatenate([self._initial[name].ravel() for name in self._trained])  # (P,)
        self._neuron = _neurons({name: self._initial[name].shape for name in self._trained})  # (P,)
        self._order = np.argsort(self._neuron, kind="stable")  # neuron by neuron
        self._firsts = np.flatnonzero(np.diff(self._neuron[self._order], prepend=-1))
        self._conserved = _conserved(problem, self._initial)
        if backend == "compiled":
            self._loss_and_gradient = _by_engine(problem, self._initial)
        else:
            self._loss_and_gradient = _by_torch(problem, self._initial, self._trained, device)
        architecture: Any = problem.config.architecture
        # networks without a choice of activation have kinks
        smooth = (
            getattr(architecture, "sigma", None) is not None
            and architecture.sigma.smooth
            and problem.loss.smooth
        )
        self._pair: type = RK45 if smooth else RK23
        self._steps = self._evaluations = 0
        self._begin(0.0, start)

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
        self._last_start, self._least = (
            (time, weights, float(self._solver.h_abs)),
            _SMALLEST * self.times[-1],
        )

    def _slope(self, time: float, theta: Floats) -> Floats:
        if 0.0 < time < self._least:
            raise self._too_small()
        return -self._loss_and_gradient(self._conserved(theta))[1]

    def _too_small(self) -> FloatingPointError:
        return FloatingPointError(
            f"gradient flow needs smaller steps than {self._solver.h_abs:.1e} at time"
            f" {self._solver.t:.6g} for rtol {self.rtol:g}; a larger optimizer.rtol may pass"
        )

    def _tolerance(self, weights: Floats) -> Floats:
        """Return the error allowed in each weight (P,): `rtol` times the largest weight of its
        neuron.
        """
        size = np.maximum.reduceat(np.abs(self._conserved(weights))[self._order], self._firsts)
        return np.asarray(self.rtol * np.where(size > 0, size, 1.0)[self._neuron])

    def advance(self, n: int) -> Floats:
        """Go on by `n` states; see `Stepper.advance`."""
        losses: list[float] = []
        for _ in range(n if self.halted is None else 0):
            losses.append(self.loss())
            halt = first_halt(np.array(losses[-1:]), self.stop_below)
            if halt is not None:
                self.halted = halt[1]
                break
            self.iteration += 1
        return np.array(losses)

    def loss(self) -> float:
        """Return the loss of the current state."""
        weights = self._weights()
        with flushed(everywhere=True), np.errstate(all="ignore"):
            return self._loss_and_gradient(weights)[0]

    def parameters(self) -> dict[str, NDArray[np.floating]]:
        """Return the current weights, by name, in the dtype of the run."""
        flat = self._weights()
        initial = self._initial
        ends = np.cumsum([initial[name].size for name in self._trained])
        trained = dict(zip(self._trained, np.split(flat, ends[:-1]), strict=True))
        return {
            name: trained.get(name, w).reshape(w.shape).astype(self._dtype)
            for name, w in initial.items()
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
            return self._conserved(solver.y if self._path is None else self._path(time))

    def _step(self) -> None:
        """Do one step; raise FloatingPointError where no step, however small, meets the
        tolerance.
        """
        solver = self._solver
        evaluations = self._solver.nfev
        self._last_start = solver.t, solver.y, float(solver.h_abs)
        solver.atol = self._tolerance(solver.y)
        solver.step()
        if solver.status == "failed":
            raise self._too_small()
        self._steps, self._evaluations = (
            self._steps + 1,
            self._evaluations + solver.nfev - evaluations,
        )

    def state_dict(self) -> StateDict:
        """Return the number of the current state, the start of the last step, and the work so
        far.
        """
        time, weights, length = self._last_start
        numbers = {"iteration": self.iteration, "time": time, "length": length, **self.numbers()}
        return {
            "weights": weights.copy(),
            **{name: np.array(number) for name, number in numbers.items()},
        }

    def load_state_dict(self, state: StateDict) -> None:
        """Go on from a former `state_dict()`."""
        self.iteration, steps = int(state["iteration"]), int(state["steps"])
        self._begin(float(state["time"]), np.array(state["weights"], np.float64))
        self._solver.h_abs = float(state["length"])
        if steps:
            with _integrating():
                self._step()
                self._path = self._solver.dense_output()
        self._steps, self._evaluations = steps, int(state["gradient_evaluations"])

    def numbers(self) -> dict[str, Any]:
        """Return the work of the integration."""
        return {"steps": self._steps, "gradient_evaluations": self._evaluations}


def _by_engine(problem: Problem, initial: dict[str, Floats]) -> LossAndGradient:
    samples = problem.dataset
    potential = derivatives_of(State(problem, initial, lambda: initial, 0)).potential(
        samples.n, samples.y
    )
    count = samples.n * problem.loss.sample_weight(samples.n)  # 1 unless losses are summed

    def both(theta: Floats) -> tuple[float, Floats]:
        losses, gradients = potential(theta[None], None)
        return count * float(losses[0]), count * gradients[0]

    return both


def _by_torch(
    problem: Problem, initial: dict[str, Floats], trained: list[str], device: str
) -> LossAndGradient:
    import torch

    from dynamics_cli.gradients.totals import total_and_gradients

    model = problem.config.architecture.network(problem.dataset.d, initial, torch.float64, device)
    labels = torch.long if problem.loss.labels == "classes" else torch.float64
    x = torch.from_numpy(problem.dataset.x).to(device=device)  # (n, d)
    y = torch.from_numpy(problem.dataset.y).to(device=device, dtype=labels)  # (n,)
    named = dict(model.named_parameters())
    block = problem.block_samples(device)
    weights: list[torch.Tensor] = [named[name] for name in trained]
    sizes = [w.numel() for w in weights]

    def both(theta: Floats) -> tuple[float, Floats]:
        with torch.no_grad():
            for w, part in zip(
                weights, torch.split(torch.from_numpy(theta).to(device), sizes), strict=True
            ):
                w.copy_(part.view_as(w))
        loss, gradients = total_and_gradients(model, problem.loss, x, y, weights, block)
        return float(loss), torch.cat([g.flatten() for g in gradients]).cpu().numpy()

    return both


def _neurons(shapes: dict[str, tuple[int, ...]]) -> NDArray[np.int64]:
    """Return the number of the neuron of each weight (P,).

    The neurons of the two-layer network have their output weight with them; elsewhere a neuron is a
    row of a weight matrix and its bias, which share the end of their names.
    """
    numbers: dict[tuple[str, int], int] = {}
    neurons = []
    for name, shape in shapes.items():
        layer = (
            "two_layer" if name in ("hidden_weight", "output_weight") else name.rpartition("_")[2]
        )
        rows = [numbers.setdefault((layer, row), len(numbers)) for row in range(shape[0])]
        neurons.append(np.repeat(rows, int(np.prod(shape[1:]))))
    return np.concatenate(neurons)


def _conserved(problem: Problem, initial: dict[str, Floats]) -> Callable[[Floats], Floats]:
    """Return a function that gives trained weights (P,) the output weights that follow from the
    hidden ones.

    Where both layers of a two-layer network with a homogeneous activation are trained, `a_j^2 -
    ||w_j||^2` is conserved (Boursier et al. 2022, Lemma 1). Where it is not negative, `a_j` keeps
    its sign: without this, errors would let neurons pass zero that only come close to it. Weights
    of other networks stay as they are.
    """
    c: Any = problem.config.architecture
    if not (
        c.two_layer
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
        grown = np.hypot(np.linalg.norm(theta[:split].reshape(hidden.shape), axis=1), excess)
        return np.concatenate(
            [theta[:split], np.where(kept, np.copysign(grown, output), theta[split:])]
        )

    return conserved
