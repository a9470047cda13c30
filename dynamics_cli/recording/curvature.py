"""Measures of the loss around a state: gradient, Hessian, and the noise of batches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from dynamics_cli.errors import InputError
from dynamics_cli.gradients.derivatives import (
    TOLERANCE,
    Derivatives,
    derivatives_of,
    engine_of,
    trained_among,
    trained_names,
)
from dynamics_cli.kinds import (
    Architecture,
    Descent,
    Floats,
    Measure,
    Positive,
    PositiveInt,
    Problem,
    Sections,
    State,
    stream,
)
from dynamics_cli.measures.arrays import Ints
from dynamics_cli.measures.spectra import eigenvalues

if TYPE_CHECKING:
    from dynamics_cli.gradients.watch import Watch

DENSE = 4000
"""Most weights for which the whole Hessian is formed."""
NUDGE = 1e-2
"""Size of the random part of the vector where Lanczos iterations begin, beside the last vector."""


@lru_cache(8)
def _first(P: int, k: int, size: float) -> Floats:
    """Return random vectors (P, k) to start Lanczos iterations: each has a part of all others."""
    return np.random.default_rng(0).standard_normal((k, P)).T * size


class Curvature(Measure):
    """The base of measures of the gradient and the Hessian of the training loss."""

    needs = "a single network with a single loss"
    instead: ClassVar[str] = ""
    """What to take for a large network, where the whole Hessian is formed."""
    bounded: ClassVar[bool] = True
    """Whether it is a curvature: gradient descent on a quadratic diverges above `2 / η`."""

    @property
    def dense(self) -> bool:
        """Whether the whole Hessian is formed, which is refused for large networks."""
        return False

    def offered(self, problem: Problem) -> bool:
        """Return whether a single network is trained on a single loss.

        Raises:
            InputError: the network has too many weights for a whole Hessian.
        """
        if problem.config.architecture.players:
            return False
        if self.dense and (size := self.weights(problem)) > DENSE:
            raise InputError(
                f"record.measures: {self.kind} forms the Hessian of at most {DENSE} weights, not"
                f" {size}; {self.instead}"
            )
        return True

    def bound(self, sections: Sections) -> tuple[str, float] | None:
        """Return the curvature above which gradient descent diverges, `2 / η`."""
        optimizer = sections["optimizer"]
        if not self.bounded or getattr(optimizer, "preconditions", False):
            return None
        return stability_threshold(optimizer)

    def weights(self, problem: Problem) -> int:
        """Return the number of trained weights."""
        return sum(math.prod(problem.shapes[name]) for name in trained_names(problem))


class OfMode(Curvature):
    """The base of measures of the loss of all samples, or of a batch, in a mode of the network."""

    mode: Literal["train"] | None = None
    """`train`: of the network in training mode, where batch normalisation takes the statistics of
    all samples, and dropout leaves out the neurons of the update from this state; by default of the
    network in evaluation mode.
    """

    @property
    def name(self) -> str:
        """The kind, and the mode if it is the training mode."""
        return f"{self.kind}_in_training" if self.mode else self.kind

    def derivatives(self, state: State) -> Derivatives:
        """Return the derivatives at a state in the mode of the measure."""
        return derivatives_of(state, self.mode)


class OfBlocks(OfMode):
    """The base of measures of all weights, or of blocks of them."""

    blocks: Literal["layer"] | Annotated[dict[str, str], Field(min_length=1)] | None = None
    """`layer` measures each trained array of weights by itself, in the order of the network; a
    mapping, blocks of weights whose names match patterns, `{head: "weight_3*", rest: "*_[12]"}`.
    """

    @property
    def name(self) -> str:
        """The kind, and whether it is by layer or by blocks."""
        if self.blocks is None:
            return super().name
        if self.blocks == "layer":
            return f"{super().name}_by_layer"
        return f"{super().name}_by_block"

    def columns(self, sections: Sections) -> Sequence[str]:
        """Return the names of the blocks; of layers, unless inputs can have one size alone."""
        if isinstance(self.blocks, dict):
            return list(self.blocks)
        architecture = sections["architecture"]
        if not isinstance(architecture, Architecture):  # a loop outside of dyn, or not loaded
            return architecture.get("trained", ()) if self.blocks == "layer" else ()
        with suppress(InputError):
            if self.blocks == "layer":  # whose names do not depend on the columns of the inputs
                return trained_among(architecture, architecture.shapes(2))
        return ()

    def of_blocks(self, values: Floats) -> float | Floats:
        """Return the values (blocks, ...) of all blocks; of the whole Hessian its own (...)."""
        if self.blocks is not None:
            return values
        if values.ndim == 1:
            return float(values[0])
        return np.asarray(values[0])

    def places(self, derivatives: Derivatives) -> list[Ints]:
        """Return the places of the blocks among the trained weights; a single block is the whole.

        Weights that a change has frozen have none.

        Raises:
            InputError: a pattern matches the name of no trained weight.
        """
        if self.blocks is None:
            return [np.arange(derivatives.size)]
        problem = derivatives.problem
        layers: dict[str, Ints] = {}
        end = 0
        for name, shape in problem.shapes.items():
            if name in derivatives.names:
                begin = end
                end += math.prod(shape)
                layers[name] = np.arange(begin, end)
            elif name in problem.resting:
                layers[name] = np.arange(0)
        if self.blocks == "layer":
            return list(layers.values())

        places = []
        for pattern in self.blocks.values():
            matched = [layers[name] for name in layers if fnmatchcase(name, pattern)]
            if not matched:
                raise InputError(
                    f"record.measures: {self.kind}.blocks: {pattern!r} is no trained weight of:"
                    f" {', '.join(layers)}"
                )
            places.append(np.concatenate(matched))
        return places


class Sharpness(OfBlocks, kind="sharpness"):
    """Largest eigenvalues of the Hessian of the training loss (Cohen et al. 2021).

    They are drawn beside `2 / η` of the step η. By Lanczos iterations that begin at the vectors of
    the state before, to a relative residual of `tolerance`. An eigenvalue that occurs several times
    is there as often. Of `blocks`, those of the diagonal blocks of the Hessian.
    """

    sign: ClassVar[float] = 1.0
    """-1 for the eigenvalues at the other end."""
    top: PositiveInt = 1
    """How many eigenvalues, the largest first."""
    tolerance: Positive | None = None
    """Relative residual at which iterations end; by default 1e-6, where the network computes in
    `float32` 1e-5. The error of an eigenvalue is at most the residual, and by its square over the
    gap to the next one: to 1e-3 a network of 100 000 weights takes two thirds of the products.
    """

    def columns(self, sections: Sections) -> Sequence[str]:
        """Return the names of the blocks, where each has a single eigenvalue."""
        if self.top > 1:
            return ()
        return super().columns(sections)

    def measure(self, state: State) -> float | Floats:
        """Return the eigenvalue, or (top,) of them; of each block, (blocks,) or (blocks, top)."""
        return self.eigenvalues(state)

    def eigenvalues(self, state: State, scale: Floats | None = None) -> float | Floats:
        """Return the eigenvalues, as `measure` does, of S H S with a diagonal S of `scale` (P,)."""
        derivatives = self.derivatives(state)
        near = state.memory.get("vectors")
        if near is not None and len(near) != derivatives.size:  # other weights are trained now
            near = None
        places = self.places(derivatives)
        values = np.full((len(places), self.top), np.nan)
        vectors = np.zeros((self.top, derivatives.size)).T
        within = []
        for row, place in zip(values, places, strict=True):
            size = len(place)
            k = min(self.top, size)
            if not size:
                continue
            if near is None:
                start = _first(size, k, 1.0)
            else:
                start = _first(size, k, NUDGE / size**0.5) + near[place, :k]
            found = derivatives.largest(
                start, k, block=place, sign=self.sign, scale=scale, tolerance=self.tolerance
            )
            row[:k] = found.values
            vectors[place, :k] = found.near
            within.append([max(found.residual, derivatives.finest), found.size])
        values = self.sign * values
        state.memory["vectors"] = vectors
        if self.sign < 0:
            state.memory["accuracy"] = np.array(within)
        if self.top == 1:
            values = values[:, 0]
        return self.of_blocks(values)

    def watch(self, problem: Problem) -> Watch | None:
        """Return what finds the largest eigenvalue of a network of layers in a compiled call."""
        of_hessian = self.sign > 0 and not self.preconditioned
        single = self.top == 1 and self.blocks is None and of_hessian
        engine = engine_of(problem)
        if not single or engine is None or problem.config.architecture.centered:
            return None
        from dynamics_cli.gradients.watch import Watch

        size = len(engine.places)
        nudge = _first(size, 1, NUDGE / size**0.5)[:, 0]
        return Watch(problem, nudge, self.tolerance or TOLERANCE)


class SmallestEigenvalue(Sharpness, kind="smallest_eigenvalue"):
    """Smallest eigenvalues of the Hessian of the training loss, the most negative first.

    Below 0 the state is no minimum: the loss falls along the eigenvector, at a saddle as fast as
    the curvature says (Dauphin et al. 2014). By Lanczos iterations of `-H`, for networks of any
    size: to a residual of `tolerance` times the largest eigenvalue. A smallest eigenvalue below its
    residual is told to be 0 within it. A state takes some tens of products with the Hessian, each
    about two gradients, more where many eigenvalues lie close to the smallest.
    """

    bounded = False
    sign = -1.0
    top: PositiveInt = 1
    """How many eigenvalues, the smallest first."""
    tolerance: Positive | None = None
    """Residual, relative to the largest eigenvalue, at which iterations end; by default 1e-12, or
    as far as 300 products come, at least 1e-6; where the network computes in `float32` 1e-5. To
    1e-3 a network of 100 000 weights takes half of the products.
    """

    def doubt(self, numbers: Floats, state: State) -> str | None:
        """Return that the smallest eigenvalue is 0 within its accuracy."""
        smallest = np.abs(numbers.reshape(len(state.memory["accuracy"]), -1)[:, 0])
        for value, (residual, size) in zip(smallest, state.memory["accuracy"], strict=True):
            if value <= residual * size:
                return (
                    f"the smallest eigenvalue is 0 within its accuracy of {residual * size:.1e},"
                    f" {residual:.1e} of the largest eigenvalue"
                )
        return None


class PreconditionedSharpness(Sharpness, kind="preconditioned_sharpness"):
    """Largest eigenvalues of `P^-1/2 H P^-1/2`, of the Hessian H of the training loss.

    Cohen et al. 2022, Adaptive gradient methods at the edge of stability.

    P is the diagonal by which the optimizer divides: of `adam` and `adamw` after t updates `(1 -
    beta1^t) (sqrt(v / (1 - beta2^t)) + eps)`, of `rmsprop` `sqrt(v) + eps`, with the mean square v
    of the recorded state; Adam, AdamW and RMSprop of torch too. Adam trains at the edge of `38 /
    η`, which is `(2 + 2 beta1) / ((1 - beta1) η)`. NaN at state 0, where v is 0. By Lanczos
    iterations, as the sharpness; a state takes some tens of products with the Hessian, each about
    two gradients, more where P spans many orders of magnitude. `dyn.measure` and `dyn.Recorder`
    take P from the `optimizer` that they are given.
    """

    needs = "a single network with a single loss, trained by Adam, AdamW or RMSprop"
    example = """\
optimizer: {kind: adam, lr: 1.0e-3, iterations: 1000}
record: {measures: [preconditioned_sharpness]}
"""
    preconditioned = True

    def offered(self, problem: Problem) -> bool:
        """Return whether the optimizer of a single network tells its preconditioner."""
        optimizer = problem.config.optimizer
        return super().offered(problem) and getattr(optimizer, "preconditions", False)

    def bound(self, sections: Sections) -> tuple[str, float] | None:
        """Return the value above which the optimizer diverges on a quadratic with a constant P."""
        return stability_threshold(sections["optimizer"])

    def measure(self, state: State) -> float | Floats:
        """Return the eigenvalues, as the sharpness; NaN where P is not known or not positive."""
        derivatives = self.derivatives(state)
        if state.preconditioner:
            P = derivatives.weights(state.preconditioner)
            if (P > 0).all():
                return self.eigenvalues(state, 1 / np.sqrt(P))
        shape: tuple[int, ...] = (len(self.places(derivatives)),)
        if self.top > 1:
            shape += (self.top,)
        return self.of_blocks(np.full(shape, np.nan))

    def doubt(self, numbers: Floats, state: State) -> str | None:
        """Return that P belongs to training mode and H does not, and the tensor that dominates."""
        derivatives = self.derivatives(state)
        if self.mode or not derivatives.keeps_statistics or not np.isfinite(numbers).all():
            return None
        ends = np.cumsum([math.prod(state.problem.shapes[name]) for name in derivatives.names])
        vector = state.memory["vectors"][:, 0]
        shares = [float(part @ part) for part in np.split(vector, ends[:-1])]
        most = int(np.argmax(shares))
        return (
            f"the optimizer divides by gradients of training mode, H is of evaluation mode:"
            f" {shares[most] / sum(shares):.1%} of the eigenvector lies in"
            f" {derivatives.names[most]}; `mode: train` measures the network that is trained"
        )


def stability_threshold(optimizer: object) -> tuple[str, float] | None:
    """Return the `threshold` of an optimizer; None where steps differ by layer or change."""
    if not isinstance(optimizer, Descent) or optimizer.schedule or optimizer.layer_lr:
        return None
    return optimizer.threshold()


class HessianSpectrum(OfMode, kind="hessian_spectrum"):
    """All eigenvalues of the Hessian of the training loss of a small network, the largest first."""

    of_spectrum = True
    instead = "spectral_density estimates the spectrum of a larger network"

    @property
    def dense(self) -> bool:
        """True."""
        return True

    def measure(self, state: State) -> Floats:
        """Return the eigenvalues (P,), NaN for weights that a change has frozen."""
        problem = state.problem
        frozen = sum(math.prod(problem.shapes[name]) for name in problem.resting)
        known = eigenvalues(self.derivatives(state).hessian())
        return np.concatenate([known, np.full(frozen, np.nan)])


class SpectralDensity(OfMode, kind="spectral_density"):
    """Density of the eigenvalues of the Hessian (Ghorbani et al. 2019, Algorithm 2).

    Stochastic Lanczos quadrature takes, of `probes` random vectors `v`, the eigenvalues `theta_i`
    of the tridiagonal matrix of `steps` Lanczos iterations, and the squared first entries `w_i` of
    its eigenvectors: `tr f(H) / P ~ mean_v sum_i w_i f(theta_i)`. The panel draws each `theta_i` as
    a Gaussian. A state takes `probes x steps` Hessian-vector products: give it a schedule.
    """

    example = "{kind: spectral_density, at: {kind: list, include: [100]}}"
    panel = "spectral_density"
    of_spectrum = True
    probes: PositiveInt = 4
    """Number of random vectors, the same at every state; a function of the seed."""
    steps: PositiveInt = 50
    """Lanczos iterations for each; eigenvalues at the ends are found first."""

    def measure(self, state: State) -> Floats:
        """Return eigenvalues and weights (probes, 2, steps); NaN beyond the number of weights."""
        from dynamics_cli.gradients.lanczos import quadrature

        derivatives = self.derivatives(state)
        rng = stream(state.problem.config.seed, self.kind)
        starts = rng.standard_normal((self.probes, derivatives.size))
        return np.stack([quadrature(derivatives.hessian_product, v, self.steps) for v in starts])


class HessianTrace(OfBlocks, kind="hessian_trace"):
    """Trace of the Hessian of the training loss, exact or estimated (Hutchinson 1989).

    `tr H = E v^T H v` for vectors of independent random signs; the mean over `probes` of them is
    recorded. Of `blocks`, those of the diagonal blocks.
    """

    bounded = False
    instead = "give it `probes`, such as {kind: hessian_trace, probes: 100}, to estimate the trace"
    probes: PositiveInt | None = None
    """Number of random vectors, the same at every state; by default the trace is exact."""

    @property
    def dense(self) -> bool:
        """Whether the trace is exact."""
        return self.probes is None

    def measure(self, state: State) -> float | Floats:
        """Return `tr H`, or the mean of `v^T H v`; of each block."""
        derivatives = self.derivatives(state)
        places = self.places(derivatives)
        if self.probes is None:
            H = derivatives.hessian()
            traces = [H.diagonal()[place].sum() for place in places]
        else:
            signs = np.random.default_rng(0).choice([-1.0, 1.0], (self.probes, derivatives.size))
            turned = [derivatives.hessian_product(v) for v in signs]
            traces = [
                np.mean([v[place] @ Hv[place] for v, Hv in zip(signs, turned, strict=True)])
                for place in places
            ]
        known = [
            trace if len(place) else np.nan for trace, place in zip(traces, places, strict=True)
        ]
        return self.of_blocks(np.array(known))


class GaussNewton(OfMode, kind="gauss_newton"):
    """Largest eigenvalue of `J^T (d2L/df2) J`, the Hessian without the network's curvature.

    By Lanczos iterations, as the sharpness (Schraudolph 2002; Papyan 2019).
    """

    needs = "a single network with a single loss, of its outputs"

    def offered(self, problem: Problem) -> bool:
        """Return whether a single network is trained on a loss of its outputs."""
        return super().offered(problem) and not problem.config.architecture.gives_losses

    def measure(self, state: State) -> float:
        """Return the eigenvalue."""
        derivatives = self.derivatives(state)
        rng = stream(state.problem.config.seed, self.kind, state.iteration)
        start = rng.standard_normal(derivatives.size)
        near = state.memory.get("vector")
        if near is not None and len(near) == len(start):
            start = near + NUDGE / np.sqrt(len(start)) * start
        found = derivatives.largest(start, whole=False)
        state.memory["vector"] = found.near[:, 0]
        return float(found.values[0])


class GradientNorm(OfMode, kind="gradient_norm"):
    """Euclidean norm of the gradient of the training loss."""

    bounded = False

    def measure(self, state: State) -> float:
        """Return `||grad L||`."""
        return float(np.linalg.norm(self.derivatives(state).gradient()))


class GradientNoise(Curvature, kind="gradient_noise"):
    """Trace of the covariance of samples' gradients, `mean_k ||g_k||^2 - ||mean_k g_k||^2`.

    The gradient of a batch of B samples drawn with replacement has `1/B` of it (Mandt et al. 2017).
    """

    bounded = False

    def measure(self, state: State) -> float:
        """Return the trace."""
        derivatives = derivatives_of(state)
        n = state.problem.dataset.n
        mean = derivatives.gradient() / (state.problem.loss.sample_weight(n) * n)
        return float(np.mean(derivatives.squared_gradients()) - mean @ mean)


class BatchSharpness(OfMode, kind="batch_sharpness"):
    """Curvature of batches along their own gradients, `E_B[g_B^T H_B g_B / ||g_B||^2]`.

    Andreyev and Beneventano 2024.

    Gradient `g_B` and Hessian `H_B` are of the loss of the same batch B, whose samples are drawn
    without replacement; recorded is the mean of the ratios over `batches` batches, which are a
    function of the seed and the iteration. Of SGD it rises to `2 / η` and stays there, while the
    sharpness stays below. A batch whose gradient is 0 does not count. A state takes `batches`
    gradients and products with the Hessian of a batch, about `3 x batches x batch_size` gradients
    of a sample.
    """

    example = "{kind: batch_sharpness, batch_size: 1, batches: 20}"
    batch_size: PositiveInt | None = None
    """Samples of a batch; by default the optimizer's batch, and without one all samples, which make
    a single batch. `dyn.measure` and `dyn.Recorder` do not know the batches of a loop: give it.
    """
    batches: PositiveInt = 50
    """Number of batches."""

    def bound(self, sections: Sections) -> tuple[str, float] | None:
        """Return `2 / η`, where there is no momentum."""
        if getattr(sections["optimizer"], "momentum", None) is not None:
            return None
        return super().bound(sections)

    def measure(self, state: State) -> float:
        """Return the mean; NaN where every gradient is 0."""
        derivatives = self.derivatives(state)
        n = state.problem.dataset.n
        size = min(n, self.batch_size or state.problem.batch_size or n)
        if size == n:
            return derivatives.batch_curvature(np.arange(n))
        rng = stream(state.problem.config.seed, self.kind, state.iteration)
        ratios = np.array(
            [
                derivatives.batch_curvature(rng.choice(n, size, replace=False))
                for _ in range(self.batches)
            ]
        )
        known = ratios[~np.isnan(ratios)]
        if not known.size:
            return math.nan
        return float(known.mean())
