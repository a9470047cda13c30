"""Gradient flow of any architecture: an embedded Runge-Kutta pair on autograd's gradients.

The coefficients and the dense output are SciPy's (`RK45`, Dormand and Prince; `RK23`, Bogacki and Shampine). Its error
norm, which knows no neurons, and its solver objects, whose state cannot be saved, are not what is needed here. The
error is relative to the size of each neuron (the weights that enter a unit), whatever its scale, and averaged over
neurons.

Activation changes inside a step are not located. They leave an error of the order of the step in the neuron that
changes, and neurons that slide along a boundary change at every step, so that a tolerance far below the effect of one
change would drive the steps to nothing. Where the activation or the loss has a kink, the pair of low order is taken and
the tolerance is at least `KINK_TOLERANCE`, which deviates from the flow by some 1e-3 of the loss, as gradient descent
with as many gradients does; two-layer networks are better off with `located`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.integrate import RK23, RK45

from dynamics_cli.kinds import Floats, Problem
from dynamics_cli.training.flow.base import SMALLEST_STEP, Integrator, too_small
from dynamics_cli.training.totals import total, total_and_gradients

KINK_TOLERANCE = 1e-4
"""Smallest tolerance where there are kinks."""
LARGEST_GROWTH, SMALLEST_GROWTH, SAFETY = 5.0, 0.2, 0.9
FIRST_STEP = 0.01


class AveragedFlow(Integrator):
    """Adaptive steps on all trained weights together, float64."""

    kept = ("now", "before", "stages", "began", "length", "next", "evaluations")

    def __init__(self, problem: Problem, device: str) -> None:
        optimizer: Any = problem.config.optimizer
        sigma = getattr(problem.config.architecture, "sigma", None)
        # networks without a choice of activation have kinks
        smooth = sigma is not None and sigma.smooth and problem.loss.smooth
        self.pair = RK45 if smooth else RK23
        self.rtol = optimizer.rtol if smooth else max(optimizer.rtol, KINK_TOLERANCE)
        self.criterion, self.device = problem.loss, device
        architecture, initial = problem.config.architecture, problem.initial_parameters()
        self._model = architecture.network(problem.dataset.d, initial, torch.float64, device)
        labels = torch.long if problem.loss.labels == "classes" else torch.float64
        self._x = torch.from_numpy(problem.dataset.x).to(device=device)  # (n, d)
        self._y = torch.from_numpy(problem.dataset.y).to(device=device, dtype=labels)  # (n,)
        self._block = problem.block_samples(device)
        self._trained = {name: p for name, p in self._model.named_parameters() if p.requires_grad}
        self._order, self._starts = _neurons({name: tuple(p.shape) for name, p in self._trained.items()})
        self.now = torch.cat([p.detach().flatten() for p in self._trained.values()]).cpu().numpy()  # (P,)
        self.before, self.began, self.length = self.now, 0.0, 0.0
        self.stages = np.zeros((self.pair.n_stages + 1, len(self.now)))
        self.evaluations = 0
        self.stages[-1] = self._slope(self.now)
        speed = float(np.max(self._ratios(self.stages[-1], self.now)))
        self.next = self.first = FIRST_STEP / speed if 0 < speed < np.inf else optimizer.until

    def step(self) -> None:
        """Do one step; see `Integrator.step`."""
        start, order = self.stages[-1].copy(), self.pair.error_estimator_order + 1
        while True:
            h = self.next
            K, end = self._attempt(start, h)
            ratios = self._ratios(h * (self.pair.E @ K), np.maximum(np.abs(self.now), np.abs(end)))
            error = float(np.sqrt(np.mean(np.square(ratios)))) / self.rtol
            if not np.isfinite(error):
                error = np.inf
            growth = min(LARGEST_GROWTH, max(SMALLEST_GROWTH, SAFETY * max(error, 1e-10) ** (-1.0 / order)))
            self.next = h * growth
            if error <= 1.0:
                break
            self.rejected += 1
            if not self.next > SMALLEST_STEP * max(self.time, self.first):
                raise too_small(self.next, self.time, self.rtol)
        self.before, self.now, self.stages = self.now, end, K
        self.began, self.length = self.time, h
        self.time += h
        self.error += error * self.rtol
        self.steps += 1

    def losses(self, times: Floats) -> Floats:
        """Return the losses at times in the last step; see `Integrator.losses`."""
        values = []
        with torch.no_grad():
            for time in times:
                self._write(self._at(float(time)))
                values.append(float(total(self._model, self.criterion, self._x, self._y, self._block)))
        return np.array(values)

    def weights(self, time: float) -> dict[str, Floats]:
        """Return the weights at a time in the last step."""
        self._write(self._at(time))
        return {name: p.detach().cpu().numpy().copy() for name, p in self._model.named_parameters()}

    def numbers(self) -> dict[str, float]:
        """Return the work done, and the tolerance that was kept."""
        return {"steps": self.steps, "gradient_evaluations": self.evaluations, "rtol": self.rtol}

    def _attempt(self, start: Floats, h: float) -> tuple[Floats, Floats]:
        """Return the slopes (stages + 1, P) of a step of length `h` and where it ends (P,)."""
        K, stages = np.empty_like(self.stages), self.pair.n_stages
        K[0] = start
        with np.errstate(over="ignore", invalid="ignore"):
            for s in range(1, stages):
                K[s] = self._slope(self.now + h * (self.pair.A[s, :s] @ K[:s]))
            end = self.now + h * (self.pair.B @ K[:stages])
            K[stages] = self._slope(end)
        return K, end

    def _at(self, time: float) -> Floats:
        if self.length == 0.0:
            return self.now
        s = min(max((time - self.began) / self.length, 0.0), 1.0)
        powers = s ** np.arange(1, self.pair.P.shape[1] + 1)
        result: Floats = self.before + self.length * ((self.pair.P @ powers) @ self.stages)
        return result

    def _write(self, values: Floats) -> None:
        flat, first = torch.from_numpy(values).to(self.device), 0
        with torch.no_grad():
            for parameter in self._trained.values():
                parameter.copy_(flat[first : first + parameter.numel()].view_as(parameter))
                first += parameter.numel()

    def _slope(self, values: Floats) -> Floats:
        """Return minus the gradient (P,)."""
        self._write(values)
        self.evaluations += 1
        trained: list[torch.Tensor] = list(self._trained.values())
        _, gradients = total_and_gradients(self._model, self.criterion, self._x, self._y, trained, self._block)
        return -torch.cat([g.flatten() for g in gradients]).cpu().numpy()

    def _ratios(self, error: Floats, weights: Floats) -> Floats:
        """Return the error of every neuron relative to its size."""
        size = np.maximum.reduceat(np.abs(weights[self._order]), self._starts)
        # relative to the largest weight, so that tiny scales do not underflow in the squares
        scale = np.repeat(np.where(size > 0, size, 1.0), np.diff(self._starts, append=len(error)))
        with np.errstate(over="ignore", invalid="ignore"):
            squares = np.add.reduceat(np.square(error[self._order] / scale), self._starts)
            norms = np.add.reduceat(np.square(weights[self._order] / scale), self._starts)
        return np.sqrt(squares / np.where(size > 0, norms, 1.0))


def _neurons(shapes: dict[str, tuple[int, ...]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return an order (P,) of all weights, neuron by neuron, and where each neuron starts in it.

    The neurons of the two-layer network have their output weight with them; elsewhere a neuron is a row of a weight
    matrix and its bias, which share the end of their names.
    """
    keys: list[tuple[str, int]] = []
    for name, shape in shapes.items():
        layer = "two_layer" if name in ("hidden_weight", "output_weight") else name.rpartition("_")[2]
        columns = int(np.prod(shape[1:]))
        keys += [(layer, row) for row in range(shape[0]) for _ in range(columns)]
    numbers = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    neurons = np.array([numbers[key] for key in keys])
    order = np.argsort(neurons, kind="stable")
    return order, np.flatnonzero(np.diff(neurons[order], prepend=-1))
