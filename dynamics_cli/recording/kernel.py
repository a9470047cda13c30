"""Measures of the tangent kernel of training samples (Jacot et al. 2018).

`K(x, x') = <grad f(x), grad f(x')>`.
"""

from __future__ import annotations

import numpy as np

from dynamics_cli.gradients.derivatives import KERNEL, derivatives_of
from dynamics_cli.kinds import Floats, Measure, PositiveInt, Problem, State, stream
from dynamics_cli.measures.spectra import eigenvalues
from dynamics_cli.recording.measures import of_first, once


class TangentKernel(Measure):
    """The base of measures of the tangent kernel."""

    needs = "a single network, and a loss of its outputs"
    count: PositiveInt = 200
    """Number of samples, from the first of the training set on."""

    def offered(self, problem: Problem) -> bool:
        """Return whether the network is a single function with known outputs."""
        network = problem.config.architecture
        return not network.players and not network.gives_losses

    def kernel(self, state: State) -> Floats:
        """Return the kernel (n C, n C), computed once a state for measures of the same samples."""
        n = min(self.count, state.problem.dataset.n)
        return once(state.shared, f"kernel of {n}", lambda: derivatives_of(state).kernel(n))

    def first(self, state: State) -> Floats:
        """Return the kernel of the initial network."""
        return of_first(state, "kernel", self.kernel)


class KernelDistance(TangentKernel, kind="kernel_distance"):
    """How far the tangent kernel has turned, `1 - <K, K_0> / ||K|| ||K_0||` (Fort et al. 2020)."""

    def measure(self, state: State) -> float:
        """Return the distance from the kernel of the initial network."""
        K = self.kernel(state)
        K_0 = self.first(state)
        return float(1.0 - np.vdot(K, K_0) / (np.linalg.norm(K) * np.linalg.norm(K_0)))


class KernelAlignment(TangentKernel, kind="kernel_alignment"):
    """Alignment of tangent kernel and labels, `y^T K y / (||K|| ||y||^2)` (Baratin et al. 2021)."""

    needs = "a label for every output, or a class for every sample, and none at positions"

    def offered(self, problem: Problem) -> bool:
        """Return whether the network is one function whose outputs have labels, or classes."""
        outputs = problem.outputs
        alike = (
            problem.loss.labels == "classes"
            or problem.dataset.y.size == outputs * problem.dataset.n
        )
        return super().offered(problem) and alike and not problem.dataset.positions

    def measure(self, state: State) -> float:
        """Return the alignment, at most 1."""
        problem = state.problem
        y = problem.dataset.y[: self.count]
        K = self.kernel(state)
        if problem.loss.labels == "classes":
            y = np.eye(len(K) // len(y))[y.astype(np.int64)]
            y = y - y.mean(0)  # the constant carries no information
        y = y.ravel()
        return float(y @ K @ y / (np.linalg.norm(K) * (y @ y)))


class KernelEigenvalues(TangentKernel, kind="kernel_eigenvalues"):
    """Largest eigenvalues of the tangent kernel, or NTK (Jacot et al. 2018).

    Residuals of n samples fall at the rates `lambda / n` by gradient flow of the loss `half_mse`:
    `d(h - y)/dt = -K (h - y) / n`. By Lanczos iterations, without the kernel itself, where there
    are more than 2 000 outputs of samples.
    """

    top: PositiveInt = 10
    """How many, the largest first."""

    def measure(self, state: State) -> Floats:
        """Return (top,) eigenvalues; NaN beyond the size of the kernel."""
        problem = state.problem
        n = min(self.count, state.problem.dataset.n)
        rows = n * problem.outputs
        if rows > KERNEL:
            from dynamics_cli.gradients.lanczos import largest_eigenvalues

            start = stream(problem.config.seed, self.kind).standard_normal(rows)
            k = min(self.top, rows)
            values = largest_eigenvalues(derivatives_of(state).kernel_product(n), start, k)[0]
        else:
            values = eigenvalues(self.kernel(state))[: self.top]
        return np.pad(values, (0, self.top - len(values)), constant_values=np.nan)
