"""The local learning coefficient: the complexity of the weights around a state, by sampling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from dynamics_cli.errors import InputError
from dynamics_cli.kinds import Floats, NonNegative, Positive, PositiveInt, Problem, Sections, State, stream
from dynamics_cli.recording.curvature import Curvature
from dynamics_cli.recording.derivatives import Derivatives, Potential, derivatives_of

STIFFEST = 0.1
"""The default step times the largest curvature of the sampled density: its bias is a quarter of it, 2.5 %."""
MOST_HALVINGS = 60
"""Halvings of the default step that are tried at most, where chains diverge."""


class LocalLearningCoefficient(Curvature, kind="llc"):
    """Local learning coefficient, `n beta (E[L_n(w)] - L_n(w*))` around the state w* (Lau et al. 2023).

    `L_n` is the mean loss of the training samples. The expectation is over the density proportional to
    `exp(-n beta L_n(w) - gamma/2 |w - w*|^2)` of the trained weights, by stochastic gradient Langevin dynamics from w*
    (Welling and Teh 2011), `w <- w - step/2 (n beta grad L_B(w) + gamma (w - w*)) + sqrt(step) xi`, for batches B and
    standard Gaussians xi. Recorded are the mean over the chains, and the standard deviation from chain to chain, NaN
    for a single chain. Both are NaN where a chain diverges with the `step` that is given. The default step is halved
    until no chain does, and all of them start over with the same draws: where curvature is 0, as at a saddle, it says
    nothing of the curvature nearby. The draws are a function of the seed and the iteration. A state takes
    `chains x (burn_in + draws)` gradients: give it a schedule.
    """

    example = "{kind: llc, at: {kind: list, include: [100]}}"
    bounded = False
    nbeta: Positive | None = None
    """Inverse temperature times the number of samples, `n beta`; by default `n / log n`."""
    gamma: NonNegative = 1.0
    """Strength of the restoring force towards the state."""
    step: Positive | None = None
    """Step of the dynamics; by default 0.1 over `n beta lambda + gamma`, lambda the sharpness at the state, or half of
    it, a quarter, ... where a chain diverges."""
    chains: PositiveInt = 4
    """Independent chains, side by side."""
    burn_in: Annotated[int, Field(ge=0)] = 300
    """First steps of a chain, which do not count."""
    draws: PositiveInt = 300
    """Steps that count, those of a chain in a row."""
    batch_size: PositiveInt | None = None
    """Samples for a step, drawn with replacement; all of them when absent."""
    labels: Literal["data", "own"] = "data"
    """`own` takes the outputs at w* for labels, so that w* is a minimum at any state (real labels alone)."""
    tag: Annotated[str, Field(pattern=r"^[A-Za-z0-9_]{1,40}$")] | None = None
    """Goes after the name, `llc_TAG`, where a run records several with other settings."""

    @property
    def name(self) -> str:
        """The kind, with the tag."""
        return self.kind if self.tag is None else f"{self.kind}_{self.tag}"

    def offered(self, problem: Problem) -> bool:
        """Return whether a single network is trained.

        Raises:
            InputError: the labels cannot be the outputs, or there is a single sample and no `nbeta`.
        """
        if self.labels == "own" and (
            problem.loss.labels != "real" or getattr(problem.loss, "missing", None) is not None
        ):
            raise InputError(f"record.measures: llc cannot take outputs for labels of the loss {problem.loss.kind}")
        if self.nbeta is None and problem.dataset.n < 2:
            raise InputError("record.measures: llc needs nbeta for a single sample, whose n / log n is infinite")
        return super().offered(problem)

    def columns(self, sections: Sections) -> Sequence[str]:
        """Return the names of the two numbers."""
        return "mean", "standard deviation over chains"

    def samples(self, problem: Problem) -> int:
        """Return the cost of the gradients: three evaluations of a batch each."""
        return 3 * (self.batch_size or problem.dataset.n) * self.chains * (self.burn_in + self.draws)

    def measure(self, state: State) -> Floats:
        """Return the mean over chains, and their standard deviation."""
        derivatives, problem, loss = derivatives_of(state), state.problem, state.problem.loss
        n, outputs = problem.dataset.n, np.asarray(state.network(problem.dataset.x), np.float64)
        labels = outputs if self.labels == "own" else problem.dataset.y
        classes = loss.numbered(labels)
        nbeta = self.nbeta or n / math.log(n)
        step = self.step or STIFFEST / (nbeta * self._curvature(derivatives, state) + self.gamma or STIFFEST)
        potential, w_star = derivatives.potential(self.batch_size or n, labels), derivatives.weights(state.parameters)
        with np.errstate(all="ignore"):
            at_star = float(np.mean(np.asarray(loss.values(outputs, classes))))
            for _ in range(1 if self.step else 1 + MOST_HALVINGS):
                rng = stream(problem.config.seed, self.kind, state.iteration)
                found = nbeta * (self._mean_losses(potential, w_star, nbeta, step, rng, n) - at_star)
                if np.isfinite(found).all():
                    break
                step /= 2
            return np.array([found.mean(), found.std(ddof=1) if self.chains > 1 else np.nan])

    def _mean_losses(
        self, potential: Potential, w_star: Floats, nbeta: float, step: float, rng: np.random.Generator, n: int
    ) -> Floats:
        """Return the mean loss along each chain (chains,); NaN where any chain diverges."""
        w, summed = np.tile(w_star, (self.chains, 1)), np.zeros(self.chains)
        for t in range(self.burn_in + self.draws):
            rows = rng.integers(n, size=(self.chains, self.batch_size)) if self.batch_size else None
            losses, gradients = potential(w, rows)
            summed += losses if t >= self.burn_in else 0.0
            drift = nbeta * gradients + self.gamma * (w - w_star)
            w = w - step / 2 * drift + math.sqrt(step) * rng.standard_normal(w.shape)
            if not np.isfinite(w).all():
                return np.full(self.chains, np.nan)
        return summed / self.draws

    def _curvature(self, derivatives: Derivatives, state: State) -> float:
        """Return the largest eigenvalue of the Hessian of `L_n` at the state, at least 0."""
        start = stream(state.problem.config.seed, self.kind, state.iteration, 1).standard_normal(derivatives.size)
        n, own = state.problem.dataset.n, self.labels == "own"  # whose residuals are 0: the Gauss-Newton part is all
        value = derivatives.largest(start, whole=not own)[0][0] / (state.problem.loss.sample_weight(n) * n)
        return max(float(value), 0.0)
