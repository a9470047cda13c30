"""Measures of the tangent kernel `K(x, x') = <grad f(x), grad f(x')>` (Jacot et al. 2018) of training samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from dynamics_cli.errors import InputError
from dynamics_cli.kinds import Floats, Measure, PositiveInt, Problem, State
from dynamics_cli.measures.spectra import effective_rank, eigenvalues
from dynamics_cli.recording.derivatives import derivatives_of


class TangentKernel(Measure):
    """The base of measures of the tangent kernel."""

    needs = "a single network"
    count: PositiveInt = 200
    """Number of samples, from the first of the training set on."""
    chosen: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)] | None = None
    """Numbers of the training samples, from 0 on, in place of the first `count`."""

    def offered(self, problem: Problem) -> bool:
        """Return whether the network is a single function.

        Raises:
            InputError: there is no training sample of a chosen number.
        """
        if self.chosen is not None and max(self.chosen) >= problem.dataset.n:
            last = problem.dataset.n - 1
            raise InputError(f"record.measures: {self.kind}.chosen has {max(self.chosen)}, samples are 0 to {last}")
        return not problem.config.architecture.players

    def samples(self, problem: Problem) -> int:
        """Return the cost of passes over the samples, the kernel and its eigenvalues, in evaluations of a sample."""
        rows = len(self.rows(problem)) * (getattr(problem.config.architecture, "outputs", None) or 1)
        entries = rows * rows * (rows + sum(problem.layer_sizes)) // max(problem.multiply_adds, 1)
        return 3 * rows + entries

    def rows(self, problem: Problem) -> Sequence[int]:
        """Return the numbers of the samples."""
        return self.chosen or range(min(self.count, problem.dataset.n))

    def kernel(self, state: State) -> Floats:
        """Return the kernel (n C, n C), made once a state for measures of as many samples."""
        key = f"kernel of {self.rows(state.problem)}"
        if key not in state.shared:
            chosen = self.chosen or len(self.rows(state.problem))
            state.shared[key] = derivatives_of(state).kernel(chosen)
        found: Floats = state.shared[key]
        return found

    def first(self, state: State) -> Floats:
        """Return the kernel of the initial network."""
        if "kernel" not in state.memory:
            state.memory["kernel"] = self.kernel(state.first)
        found: Floats = state.memory["kernel"]
        return found


class KernelDistance(TangentKernel, kind="kernel_distance"):
    """How far the tangent kernel has turned, `1 - <K, K_0> / ||K|| ||K_0||` (Fort et al. 2020), or has moved."""

    relative: bool = False
    """Take `||K - K_0|| / ||K_0||` instead."""

    def measure(self, state: State) -> float:
        """Return the distance from the kernel of the initial network."""
        K, K_0 = self.kernel(state), self.first(state)
        if self.relative:
            return float(np.linalg.norm(K - K_0) / np.linalg.norm(K_0))
        return float(1.0 - np.vdot(K, K_0) / (np.linalg.norm(K) * np.linalg.norm(K_0)))


class KernelAlignment(TangentKernel, kind="kernel_alignment"):
    """Alignment of the tangent kernel with the labels, `y^T K y / (||K|| ||y||^2)` (Baratin et al. 2021)."""

    needs = "a label for every output, or a class for every sample"

    def offered(self, problem: Problem) -> bool:
        """Return whether the network is a single function, and labels are classes or a number for each output."""
        outputs = getattr(problem.config.architecture, "outputs", None) or 1
        alike = problem.loss.labels == "classes" or problem.dataset.y.size == outputs * problem.dataset.n
        return super().offered(problem) and alike

    def measure(self, state: State) -> float:
        """Return the alignment, at most 1."""
        problem = state.problem
        y = problem.dataset.y[list(self.rows(problem))]
        K = self.kernel(state)
        if problem.loss.labels == "classes":  # one-hot, centred: the constant carries no information
            y = np.eye(len(K) // len(y))[y.astype(np.int64)]
            y = y - y.mean(0)
        y = y.ravel()
        return float(y @ K @ y / (np.linalg.norm(K) * (y @ y)))


class KernelEigenvalues(TangentKernel, kind="kernel_eigenvalues"):
    """Largest eigenvalues of the tangent kernel: rates at which residuals along them fall (Jacot et al. 2018)."""

    top: PositiveInt = 10
    """How many, the largest first."""

    def measure(self, state: State) -> Floats:
        """Return (top,) eigenvalues; NaN beyond the size of the kernel."""
        values = eigenvalues(self.kernel(state))[: self.top]
        return np.pad(values, (0, self.top - len(values)), constant_values=np.nan)


class KernelRank(TangentKernel, kind="kernel_effective_rank"):
    """Effective rank of the tangent kernel: exponential of the entropy of its spectrum (Roy and Vetterli 2007)."""

    def measure(self, state: State) -> float:
        """Return a number between 1 and the size of the kernel."""
        return effective_rank(np.maximum(eigenvalues(self.kernel(state))[::-1], 0.0))
