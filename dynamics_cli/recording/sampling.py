"""The local learning coefficient: the complexity of the weights around a state, by sampling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from dynamics_cli.errors import InputError
from dynamics_cli.gradients.derivatives import Derivatives, Potential, derivatives_of
from dynamics_cli.kinds import (
    Floats,
    NonNegative,
    Positive,
    PositiveInt,
    Problem,
    Sections,
    State,
    stream,
)
from dynamics_cli.recording.curvature import Curvature
from dynamics_cli.waiting import Wait

STIFFEST = 0.1
"""The default step times the largest curvature of the density; the bias is a quarter, 2.5 %."""
MOST_HALVINGS = 60
"""Halvings of the default step that are tried at most, where chains diverge."""
LEAST = 300
LONGEST = 10_000
"""Steps of a burn-in, and steps that count, at least and at most, where the config does not give
them.
"""
MINUTES = 60.0
"""Most minutes for a state, where the config gives no limit."""
AGREE = 1.05
"""Split R-hat above which chains disagree.

Gelman et al. 2013, Section 11.4, ask for 1.1; Vehtari et al. 2021 for 1.01.
"""


class LocalLearningCoefficient(Curvature, kind="llc"):
    """Local learning coefficient, `n beta (E[L_n(w)] - L_n(w*))` at a state w* (Lau et al. 2023).

    `L_n` is the mean loss of the training samples. The expectation is over the density proportional
    to `exp(-n beta L_n(w) - gamma/2 |w - w*|^2)` of the trained weights, by stochastic gradient
    Langevin dynamics from w* (Welling and Teh 2011), `w <- w - step/2 (n beta grad L_B(w) + gamma
    (w - w*)) + sqrt(step) xi`, for batches B and standard Gaussians xi. Recorded are the mean over
    the chains, the standard deviation from chain to chain (NaN for a single chain), and split R-hat
    of the losses: above 1.05 chains disagree, are too short, or have not left w*. All are NaN where
    the loss or a chain becomes infinite with the `step` that is given. A negative mean says that w*
    is no minimum: chains find lower losses nearby. The default step is halved until no chain
    becomes infinite, and all of them start over with the same draws: where curvature is 0, as at a
    saddle, it says nothing of the curvature nearby. The draws are a function of the seed and the
    iteration. A state takes `chains x (burn_in + draws)` gradients, by default up to 80 000 that
    count and 80 000 before: give it a schedule. What takes longer than some seconds is estimated on
    stderr, from its first steps, before it goes on.
    """

    example = "{kind: llc, at: {kind: list, include: [100]}}"
    bounded = False
    nbeta: Positive | None = None
    """Inverse temperature times the number of samples, `n beta`; by default `n / log n`."""
    gamma: NonNegative = 1.0
    """Strength of the restoring force towards the state."""
    step: Positive | None = None
    """Step of the dynamics; by default 0.1 over `n beta lambda + gamma`, lambda the sharpness at
    the state, or half of it, a quarter, ... where a chain diverges.
    """
    chains: PositiveInt = 4
    """Independent chains, side by side."""
    burn_in: Annotated[int, Field(ge=0)] | None = None
    """First steps of a chain, which do not count; by default `3 / (step gamma)`, 300 to 10 000: in
    directions without curvature, the slowest, chains are then as far from w* as they get, up to 5
    %.
    """
    draws: PositiveInt | None = None
    """Steps that count, all of a chain in a row; by default as many as the burn-in, twice as many
    anew while R-hat is above 1.05, up to 10 000.
    """
    batch_size: PositiveInt | None = None
    """Samples for a step, drawn with replacement; all of them when absent."""
    labels: Literal["data", "own"] = "data"
    """`own` takes the outputs at w* for labels, so that w* is a minimum at any state (real
    labels alone).
    """
    trace: bool | None = None
    """Record `n beta (L_n(w) - L_n(w*))` of all steps that count and all chains instead (draws,
    chains).
    """
    limit_minutes: Positive | None = None
    """Refuse a state that would take longer, estimated by its first steps; by default 60."""
    tag: Annotated[str, Field(pattern=r"^[A-Za-z0-9_]{1,40}$")] | None = None
    """Goes after the name, `llc_TAG`, where a run records several with other settings."""

    @property
    def name(self) -> str:
        """The kind, with the tag, and whether it is a trace."""
        parts = [self.kind, self.tag]
        if self.trace:
            parts.append("trace")
        return "_".join(filter(None, parts))

    def offered(self, problem: Problem) -> bool:
        """Return whether a single network is trained.

        Raises:
            InputError: the labels cannot be the outputs, a trace has no `draws`, or there is a
                single sample and no `nbeta`.
        """
        if self.trace and self.draws is None:
            raise InputError("record.measures: llc.trace needs llc.draws, the length of the trace")
        if self.labels == "own" and problem.loss.labels != "real":
            raise InputError(
                "record.measures: llc cannot take outputs for labels of the loss"
                f" {problem.loss.kind}"
            )
        if self.nbeta is None and problem.dataset.n < 2:
            raise InputError(
                "record.measures: llc needs nbeta for a single sample, whose n / log n is infinite"
            )
        return super().offered(problem)

    def columns(self, sections: Sections) -> Sequence[str]:
        """Return the names of the three numbers."""
        if self.trace:
            return ()
        return ("mean", "standard deviation over chains", "R-hat")

    def measure(self, state: State) -> Floats:
        """Return the mean over chains, their standard deviation, and split R-hat; or the trace."""
        trace = self._coefficients(state)
        if self.trace:
            return trace
        return self._summary(trace)

    def _summary(self, trace: Floats) -> Floats:
        """Return the three numbers of a trace (draws, chains)."""
        estimates = trace.mean(0)
        spread = np.nan
        if self.chains > 1:
            spread = estimates.std(ddof=1)
        return np.array([estimates.mean(), spread, split_r_hat(trace)])

    def doubt(self, measured: Floats, state: State) -> str | None:
        """Return that chains disagree, or that the state is no minimum."""
        if self.trace:
            measured = self._summary(measured)
        mean, _, r_hat = measured.tolist()
        doubts = []
        if r_hat > AGREE:
            doubts.append(
                f"chains disagree (split R-hat {r_hat:.3g}, above {AGREE:g}): take more draws, or a"
                " larger gamma"
            )
        if mean < 0:
            doubts.append(
                f"the estimate {mean:.3g} is negative: the weights are no minimum of the loss,"
                " chains find lower losses nearby; train longer, or take a larger gamma or"
                " labels: own"
            )
        return "; ".join(doubts) or None

    def _coefficients(self, state: State) -> Floats:
        """Return `n beta (L_n(w) - L_n(w*))` of the steps that count (draws, chains), or NaN.

        Raises:
            InputError: the chains would take longer than the limit.
        """
        derivatives = derivatives_of(state)
        problem = state.problem
        loss = state.problem.loss
        n = problem.dataset.n
        outputs = np.asarray(state.network(problem.dataset.x), np.float64)
        labels = problem.dataset.y
        if self.labels == "own":
            labels = outputs
            if problem.dataset.positions:
                labels = outputs.reshape(problem.dataset.y.shape)
                labels = np.where(np.isnan(problem.dataset.y), np.nan, labels)
        classes = loss.numbered(labels)
        nbeta = self.nbeta or n / math.log(n)
        step = self.step
        halvings = 0
        if step is None:
            stiffness = nbeta * self._curvature(derivatives, state) + self.gamma
            if not math.isfinite(stiffness):
                return np.full((self.draws or 1, self.chains), np.nan)
            step = STIFFEST / (stiffness or STIFFEST)
            halvings = MOST_HALVINGS
        potential = derivatives.potential(self.batch_size or n, labels)
        w_star = derivatives.weights(state.parameters)
        with np.errstate(all="ignore"):
            summed = np.asarray(loss.of_samples(outputs, classes)).sum()
            at_star = float(summed / loss.count(classes))
            for _ in range(1 + halvings):
                rng = stream(problem.config.seed, self.kind, state.iteration)
                losses = self._losses(potential, w_star, nbeta, step, rng, state)
                if np.isfinite(losses).all():
                    break
                step /= 2
            coefficients = nbeta * (losses - at_star)
            if not np.isfinite(coefficients).all():
                coefficients[:] = np.nan
            return coefficients

    def _losses(
        self,
        potential: Potential,
        w_star: Floats,
        nbeta: float,
        step: float,
        rng: np.random.Generator,
        state: State,
    ) -> Floats:
        """Return the losses of steps that count (draws, chains); NaN once any chain diverges.

        Raises:
            InputError: they would take longer than the limit.
        """
        w = np.tile(w_star, (self.chains, 1))
        n = state.problem.dataset.n
        burn_in = self.burn_in
        if burn_in is None:
            burn_in = LONGEST
            if self.gamma:
                burn_in = int(np.clip(3 / (step * self.gamma), LEAST, LONGEST))
        draws = self.draws or int(np.clip(burn_in, LEAST, LONGEST))
        wait = Wait(
            f"{self.name} at iteration {state.iteration}",
            burn_in + draws,
            remedy="lower llc.burn_in, draws, chains or batch_size",
            limit=60 * (self.limit_minutes or MINUTES),
        )

        def walk(steps: int) -> Floats:
            nonlocal w
            trace = np.full((steps, self.chains), np.nan)
            for t in wait.over(range(steps)):
                rows = None
                if self.batch_size:
                    rows = rng.integers(n, size=(self.chains, self.batch_size))
                losses, gradients = potential(w, rows)
                drift = nbeta * gradients + self.gamma * (w - w_star)
                w = w - step / 2 * drift + math.sqrt(step) * rng.standard_normal(w.shape)
                if not (np.isfinite(w).all() and np.isfinite(losses).all()):
                    break
                trace[t] = losses
            return trace

        if burn_in and not np.isfinite(walk(burn_in)).all():
            return np.full((self.draws or 1, self.chains), np.nan)
        losses = walk(draws)
        while not self.draws and split_r_hat(losses) > AGREE and 2 * draws <= LONGEST:
            draws *= 2  # what was drawn becomes a part of the burn-in
            wait.total += draws
            losses = walk(draws)
        return losses

    def _curvature(self, derivatives: Derivatives, state: State) -> float:
        """Return the largest eigenvalue of the Hessian of `L_n` at the state, at least 0."""
        problem = state.problem
        rng = stream(problem.config.seed, self.kind, state.iteration, 1)
        start = rng.standard_normal(derivatives.size)
        # of own labels the Gauss-Newton part is all
        values = derivatives.largest(start, whole=self.labels == "data").values
        n = problem.dataset.n
        return max(float(values[0] / (problem.loss.sample_weight(n) * n)), 0.0)


def split_r_hat(trace: Floats) -> float:
    """Return the split R-hat of numbers (draws, chains): near 1 where halves of chains agree.

    `sqrt(V / W)`, W the mean variance within halves of chains, `V = (1 - 1/h) W + B / h`, B / h the
    variance of the means of halves of length h (Gelman et al. 2013, Bayesian Data Analysis, Section
    11.4).
    """
    h = len(trace) // 2
    if h < 2:
        return float("nan")
    halves = np.concatenate([trace[:h], trace[h : 2 * h]], axis=1)  # (h, 2 chains)
    with np.errstate(divide="ignore", invalid="ignore"):  # chains that stand still
        within = halves.var(0, ddof=1).mean()
        return float(np.sqrt(1 - 1 / h + halves.mean(0).var(ddof=1) / within))
