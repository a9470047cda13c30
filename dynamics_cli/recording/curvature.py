"""Measures of the loss around a state: gradient, Hessian, and the noise of batches."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dynamics_cli.config.base import PositiveInt, Sections
from dynamics_cli.config.bases import Descent, Floats, Measure, Optimizer, State
from dynamics_cli.errors import InputError
from dynamics_cli.measures.lanczos import largest_eigenvalues
from dynamics_cli.recording.derivatives import derivatives_of, loss_derivatives, trained_names

if TYPE_CHECKING:
    from dynamics_cli.training.problem import Problem

DENSE = 4000
"""Most weights for which the whole Hessian is formed."""
_NUDGE = 1e-2
"""Size of the random part of the vector where Lanczos iterations begin, beside that of the last state."""


class Curvature(Measure):
    """What measures of the gradient and the Hessian of the training loss share."""

    def offered(self, problem: Problem) -> bool:
        """Return whether one network is trained on one loss."""
        return problem.config.architecture.kind != "gan"

    def small(self, problem: Problem) -> bool:
        """Return True.

        Raises:
            InputError: the network has too many weights for a whole Hessian.
        """
        size = sum(math.prod(problem.shapes[name]) for name in trained_names(problem))
        if size > DENSE:
            raise InputError(f"record.measures: {self.kind} forms the Hessian of at most {DENSE} weights, not {size}")
        return True

    def samples(self, problem: Problem) -> int:
        """Return about ten passes over the training samples."""
        return 10 * problem.dataset.n


class Sharpness(Curvature, kind="sharpness"):
    """Largest eigenvalues of the Hessian of the training loss (Cohen et al. 2021); beside it `2 / lr` is drawn.

    By Lanczos iterations that begin at the vectors of the state before, to a relative residual of 1e-6.
    """

    top: PositiveInt = 1
    """How many eigenvalues, the largest first."""
    exact: bool = False
    """Form the whole Hessian instead (small networks)."""

    def offered(self, problem: Problem) -> bool:
        """Return whether one network is trained on one loss, a small one for exact values."""
        return super().offered(problem) and (not self.exact or self.small(problem))

    def bound(self, sections: Sections) -> tuple[str, float] | None:
        """Return `2 / lr`, above which gradient descent on a quadratic diverges."""
        return stability_threshold(sections["optimizer"])

    def measure(self, state: State) -> float | Floats:
        """Return the eigenvalue, or (top,) of them."""
        derivatives = derivatives_of(state)
        k = min(self.top, derivatives.size)
        if self.exact:
            values = np.linalg.eigvalsh(derivatives.hessian())[: -k - 1 : -1]
        else:
            start = np.random.default_rng(state.iteration).standard_normal(derivatives.size)
            if "vectors" in state.memory:
                start *= _NUDGE / np.sqrt(derivatives.size)
                start += state.memory["vectors"].sum(1)
            values, state.memory["vectors"], _ = largest_eigenvalues(derivatives.hessian_product, start, k)
        return float(values[0]) if self.top == 1 else np.pad(values, (0, self.top - k), constant_values=np.nan)


def stability_threshold(optimizer: Optimizer) -> tuple[str, float] | None:
    """Return `2 / lr`, with heavy-ball momentum `(2 + 2 mu) / lr`; None where no step size is constant."""
    if not isinstance(optimizer, Descent) or optimizer.adaptive or optimizer.schedule is not None:
        return None
    mu = getattr(optimizer, "momentum", None)
    if mu is None:
        return "2 / lr", 2 / optimizer.lr
    if getattr(optimizer, "nesterov", None):  # Cohen et al. 2021, Appendix B
        return "(2 + 2 mu) / ((1 + 2 mu) lr)", (2 + 2 * mu) / ((1 + 2 * mu) * optimizer.lr)
    return "(2 + 2 mu) / lr", (2 + 2 * mu) / optimizer.lr


class HessianSpectrum(Curvature, kind="hessian_spectrum"):
    """All eigenvalues of the Hessian of the training loss of a small network, the largest first."""

    def offered(self, problem: Problem) -> bool:
        """Return whether one small network is trained on one loss."""
        return super().offered(problem) and self.small(problem)

    def measure(self, state: State) -> Floats:
        """Return the eigenvalues (P,)."""
        return np.asarray(np.linalg.eigvalsh(derivatives_of(state).hessian())[::-1], np.float64)


class HessianTrace(Curvature, kind="hessian_trace"):
    """Trace of the Hessian of the training loss, estimated with random signs (Hutchinson 1989) or exactly."""

    probes: PositiveInt | None = None
    """Number of random vectors, the same at every state; by default the trace is exact (small networks)."""

    def offered(self, problem: Problem) -> bool:
        """Return whether one network is trained on one loss, a small one for an exact trace."""
        return super().offered(problem) and (self.probes is not None or self.small(problem))

    def measure(self, state: State) -> float:
        """Return `tr H`, or the mean of `v^T H v`."""
        derivatives = derivatives_of(state)
        if self.probes is None:
            return float(np.trace(derivatives.hessian()))
        signs = np.random.default_rng(0).choice([-1.0, 1.0], (self.probes, derivatives.size))
        return float(np.mean([v @ derivatives.hessian_product(v) for v in signs]))


class GaussNewton(Curvature, kind="gauss_newton"):
    """Largest eigenvalue of the Gauss-Newton matrix `J^T (d2L/df2) J`, the Hessian without the network's curvature."""

    def measure(self, state: State) -> float:
        """Return the eigenvalue, from the tangent kernel of all training samples."""
        derivatives, samples = derivatives_of(state), state.problem.dataset
        h = np.asarray(state.network(samples.x), np.float64).reshape(samples.n, -1)
        _, bend = loss_derivatives(state.problem, h)
        values, vectors = np.linalg.eigh((bend + bend.transpose(0, 2, 1)) / 2)  # (n, C), (n, C, C)
        root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
        n, C = values.shape
        K = derivatives.kernel(n).reshape(n, C, n, C)
        small = np.einsum("iac,iajb,jbd->icjd", root, K, root).reshape(n * C, n * C)
        return float(np.linalg.eigvalsh(small)[-1])


class DirectionalSharpness(Curvature, kind="directional_sharpness"):
    """Curvature along the gradient, `g^T H g / g^T g` (Pan and Li 2023)."""

    def bound(self, sections: Sections) -> tuple[str, float] | None:
        """Return `2 / lr`, above which a step raises the loss of a quadratic."""
        return stability_threshold(sections["optimizer"])

    def measure(self, state: State) -> float:
        """Return the curvature; NaN where the gradient is 0."""
        derivatives = derivatives_of(state)
        g = derivatives.gradient()
        size = float(g @ g)
        return float(g @ derivatives.hessian_product(g)) / size if size else float("nan")


class GradientNorm(Curvature, kind="gradient_norm"):
    """Euclidean norm of the gradient of the training loss."""

    def measure(self, state: State) -> float:
        """Return `||grad L||`."""
        return float(np.linalg.norm(derivatives_of(state).gradient()))


class GradientNoise(Curvature, kind="gradient_noise"):
    """Trace of the covariance of the gradients of single samples, `mean_k ||g_k||^2 - ||mean_k g_k||^2`."""

    def measure(self, state: State) -> float:
        """Return the trace."""
        derivatives, problem = derivatives_of(state), state.problem
        mean = derivatives.gradient() / (problem.loss.sample_weight(problem.dataset.n) * problem.dataset.n)
        return float(np.mean(derivatives.squared_gradients()) - mean @ mean)
