"""K updates of torch's stepper, recorded once as a CUDA graph and replayed (`backend: captured`).

All that changes between two updates lives on the device: weights, the optimizer's memory, the
number of the iteration, step sizes, the samples of batches, losses. So the same operations are the
next update, and the device starts them without Python. A remainder of fewer than K updates, and
replicas of which some rest, are called plainly.

No device was at hand when this was written: `auto` does not choose it (`docs/how-to/gpus.md`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dynamics_cli.kinds import Descent, Problem
from dynamics_cli.kinds.torch_optimizers import TorchOptimizer
from dynamics_cli.training.steppers.autograd import AutogradStepper, Tensors
from dynamics_cli.training.steppers.base import StateDict
from dynamics_cli.training.steppers.side_by_side import Weights

UPDATES = 8
"""K, the updates of a graph."""
ROOM = 1024
"""Updates between two copies to the host."""
WARM = 3
"""Plain updates before a recording, as PyTorch's documentation asks for."""


def obstacle(problem: Problem) -> str | None:
    """Return why updates of a problem are not the same operations again and again, or None."""
    optimizer = problem.config.optimizer
    if not isinstance(optimizer, Descent) or problem.config.architecture.players:
        return "its stepper is another one"
    if isinstance(optimizer, TorchOptimizer):
        return "a class of torch.optim counts its iterations on the host"
    if problem.has_modes or problem.averages:
        return "its updates draw random numbers, or keep statistics or averages"
    if problem.fresh:
        return "its samples are drawn on the host"
    if problem.smallest_batch != (problem.batch_size or problem.dataset.n):
        return "its batches are of several sizes"
    return None


class CapturedStepper(AutogradStepper):
    """Trains by a graph of `updates` updates, or by plain calls of the same operations."""

    def __init__(self, problems: Sequence[Problem], device: str, updates: int = UPDATES) -> None:
        """Put weights, data and step sizes of problems without an `obstacle` on a device."""
        super().__init__(problems, device)
        self._updates = updates
        self._graph: torch.cuda.CUDAGraph | None = None
        self._slot = torch.zeros(1, dtype=torch.int64, device=device)
        """Updates since the last copy to the host."""
        self._number = torch.zeros(1, dtype=torch.int64, device=device)
        """Iteration of the next update."""
        room = (ROOM, len(problems))
        self._losses = torch.zeros(room, dtype=self._samples[0].dtype, device=device)
        if not self.full_batch:
            shape: tuple[int, ...] = (ROOM, self._batches[0].batch_size)
            if not self._single:
                shape = (ROOM, len(problems), self._batches[0].batch_size)
            self._choices = torch.zeros(shape, dtype=torch.int64, device=device)

        N = problems[0].iterations
        self._rates: list[Tensor] = []
        for group in self._groups["all"]:
            rates = [group.factor * group.optimizer.step_size(i, N) for i in range(N)]
            rates += rates[-1:] * WARM  # that no update before a recording asks for one too many
            self._rates.append(torch.tensor(rates, dtype=torch.float64, device=device))
            group.update = group.optimizer.update
            group.labels = None  # which are those of compiled updates

    def _descend(self, n: int, most: NDArray[np.int64]) -> Weights:
        if (most < n).any():  # some replicas rest, or all
            return super()._descend(n, most)
        return np.concatenate([losses.numpy() for losses in self._blocks(n)]).T

    def run_batches(self, n: int) -> None:
        """Do `n` updates on batches."""
        self._blocks(n)

    def _blocks(self, n: int) -> list[Tensor]:
        """Do `n` updates; return losses (k, R) of blocks of updates, on the host."""
        losses = []
        for first in range(0, n, ROOM):
            count = min(ROOM, n - first)
            self._number.fill_(self.iteration + first)
            self._slot.zero_()
            if not self.full_batch:
                self._choose(self.iteration + first, count)
            self._do(count)
            losses.append(self._losses[:count].cpu())
        return losses

    def _choose(self, first: int, count: int) -> None:
        """Put the samples of `count` updates on the device."""
        chosen = np.stack(
            [[batches.at(i) for batches in self._batches] for i in range(first, first + count)]
        )  # (count, R, b)
        chosen += self._firsts
        choices = torch.from_numpy(chosen)
        self._choices[:count].copy_(choices[:, 0] if self._single else choices)

    def _do(self, count: int) -> None:
        rest = count
        if self.device == "cuda" and count >= self._updates:
            if self._graph is None:
                self._graph = self._recorded()
            for _ in range(count // self._updates):
                self._graph.replay()
            rest = count % self._updates
        for _ in range(rest):
            self._once()

    def _recorded(self) -> torch.cuda.CUDAGraph:
        """Record the updates; the state stays as it is."""
        before = self.kept()
        counters = (self._number.clone(), self._slot.clone())
        aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(WARM):
                self._once()
        torch.cuda.current_stream().wait_stream(aside)

        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):  # which does nothing but note what is called
            for _ in range(self._updates):
                self._once()
        self.put(before)
        self._number.copy_(counters[0])
        self._slot.copy_(counters[1])
        return graph

    def _once(self) -> None:
        """Do the next update: no number of it comes from the host."""
        x, y = self._data
        axis = self._axis
        if not self.full_batch:
            chosen = self._choices.index_select(0, self._slot)[0]
            axis = 0
            x, y = (samples[chosen] for samples in self._samples)
        loss = self._step(-1, x, y, axis)
        self._losses.index_copy_(0, self._slot, loss.reshape(1, -1))
        self._slot += 1
        self._number += 1

    def _update(self, part: str, i: int, gradients: Mapping[str, Tensor], loss: Tensor) -> None:
        """Do the update of `_once`, or from the state `i` where the host counts."""
        if i >= 0:
            self._number.fill_(i)
        # powers of an integer would be integers
        iteration = self._number[0].double()
        with torch.no_grad():
            gradients = self._clipped(gradients)
            for group, rates in zip(self._groups[part], self._rates, strict=True):
                kept = dict(group.memory)
                lr = rates.index_select(0, self._number)[0]
                group.step(
                    gradients, loss, lr=lr, iteration=iteration, counted_from=self._counted_from
                )
                group.memory.update(_in_place(kept, group.memory))

    def put(self, state: StateDict) -> None:
        """Set weights and memories in place, for a graph knows their addresses."""
        kept = [dict(group.memory) for _, group in self._places()]
        super().put(state)
        for former, (_, group) in zip(kept, self._places(), strict=True):
            restored = dict(group.memory)
            for key, tensor in former.items():
                tensor.copy_(restored.get(key, torch.zeros_like(tensor)))
                group.memory[key] = tensor


def _in_place(kept: Tensors, updated: Tensors) -> Tensors:
    """Return the tensors that were `kept`, with the numbers of those of the same names."""
    for key, tensor in kept.items():
        tensor.copy_(updated[key])
    return kept
