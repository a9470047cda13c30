"""Stability under the update itself: preconditioned curvature, and the largest step that lowers the loss."""

from __future__ import annotations

import numpy as np

from dynamics_cli.kinds import Descent, Floats, Positive, Problem, Sections, State, stream
from dynamics_cli.measures.lanczos import largest_eigenvalues
from dynamics_cli.recording.curvature import NUDGE, Curvature, one_step, stability_threshold
from dynamics_cli.recording.derivatives import Derivatives, derivatives_of

SMALL = 1e-3
"""Share, where the search begins, of the step at which the loss would be 0 if it fell as it does at the state."""
DOUBLINGS = 60
"""Times that a step is doubled or halved in search of the loss of the state, at most."""


class EffectiveSharpness(Curvature, kind="effective_sharpness"):
    """Largest eigenvalue of the preconditioned Hessian `P^-1 H`, for Adam and RMSprop (Cohen et al. 2022).

    P is the divisor of the update that leaves the state, `(1 - beta1^t) (sqrt(v / (1 - beta2^t)) + eps)` of Adam,
    `sqrt(v) + eps` of RMSprop, t the number of that update. v is made of the optimizer's own memory and of the gradient
    of the training loss, which drives the update for full batches. Beside it the threshold is drawn above which a
    quadratic diverges, `(2 + 2 beta1) / ((1 - beta1) lr)` and `2 / lr`; a coupled weight decay adds lambda to H.
    """

    example = """\
optimizer: {kind: adam, lr: 1.0e-3, iterations: 1000}
record: {measures: [effective_sharpness]}
"""
    of_optimizer = True
    needs = "the optimizer of a run that divides gradients, such as adam"

    def offered(self, problem: Problem) -> bool:
        """Return whether the optimizer has a preconditioner."""
        optimizer = problem.config.optimizer
        able = isinstance(optimizer, Descent) and type(optimizer).divisor is not Descent.divisor
        return able and super().offered(problem)

    def bound(self, sections: Sections) -> tuple[str, float] | None:
        """Return the threshold, unless steps change or differ by weight."""
        optimizer = sections["optimizer"]
        if not isinstance(optimizer, Descent) or not one_step(sections):
            return None
        value = optimizer.effective_threshold()
        return None if value is None else (f"{value * optimizer.lr:.3g} / lr", value)

    def measure(self, state: State) -> float:
        """Return the eigenvalue; NaN after the first update where the memory of the optimizer is not known."""
        if state.iteration and "square" not in state.moments:
            return float("nan")
        derivatives, optimizer = derivatives_of(state), state.problem.config.optimizer
        assert isinstance(optimizer, Descent)
        root, decay = 1 / np.sqrt(preconditioner(state, derivatives)), self._decay(optimizer)
        start = stream(state.problem.config.seed, self.kind).standard_normal(derivatives.size) / derivatives.size**0.5
        if "vector" in state.memory:
            start = state.memory["vector"] + NUDGE * start

        def product(v: Floats) -> Floats:
            return np.asarray(root * (derivatives.hessian_product(root * v) + decay * root * v))

        with np.errstate(all="ignore"):
            values, vectors, _ = largest_eigenvalues(product, start)
        if np.isfinite(vectors).all():
            state.memory["vector"] = vectors[:, 0]
        return float(values[0])

    @staticmethod
    def _decay(optimizer: Descent) -> float:
        """Return lambda of a coupled weight decay."""
        return 0.0 if getattr(optimizer, "decoupled", False) else float(getattr(optimizer, "weight_decay", None) or 0.0)


def preconditioner(state: State, derivatives: Derivatives) -> Floats:
    """Return P (P,) of the update that leaves a state, of the trained weights."""
    optimizer, w, g = state.problem.config.optimizer, derivatives.weights(state.parameters), derivatives.gradient()
    assert isinstance(optimizer, Descent)
    moments = {
        label: derivatives.weights(own) for label, own in state.moments.items() if own.keys() >= {*derivatives.names}
    }
    return np.asarray(optimizer.divisor(w, g, moments, state.iteration), np.float64)


class CriticalSharpness(Curvature, kind="critical_sharpness"):
    """`2 / eta`, eta the step along the gradient from which on the loss rises (Kalra et al. 2026).

    On a quadratic it is the curvature along the gradient, `g^T H g / g^T g`. Forward passes find eta: from half of that
    of the last recorded state, at first from `L / 1000 |g|^2`, steps are doubled (halved where the first raises the
    loss) until the loss of the state lies between two of them, and the interval is halved to a relative `tolerance`. It
    is 0 where no step that was tried raises the loss, NaN where the gradient is 0.
    """

    tolerance: Positive = 1e-3
    """Relative width of the interval of steps where the search ends."""

    def bound(self, sections: Sections) -> tuple[str, float] | None:
        """Return `2 / lr` of plain gradient descent: a step raises the loss above it."""
        optimizer = sections["optimizer"]
        return stability_threshold(sections) if optimizer.plain and not getattr(optimizer, "momentum", None) else None

    def measure(self, state: State) -> float:
        """Return `2 / eta`."""
        problem, derivatives = state.problem, derivatives_of(state)
        x, y, g = problem.dataset.x, problem.dataset.y, derivatives.gradient()
        if not (np.isfinite(g).all() and g.any()):
            return float("nan")
        labels = problem.loss.numbered(y)

        def loss(step: float) -> float:
            moved, parts, at = dict(state.parameters), g, 0
            for name in derivatives.names:
                own = np.asarray(state.parameters[name], np.float64)
                moved[name] = own - step * parts[at : at + own.size].reshape(own.shape)
                at += own.size
            network = State(problem, moved, lambda: state.start, state.iteration).network
            return float(problem.loss.total(np.asarray(network(x), np.float64), labels))

        with np.errstate(all="ignore"):
            here = loss(0.0)
            step = float(state.memory["step"] / 2 if "step" in state.memory else SMALL * here / (g @ g))
            rises = not loss(step) <= here
            for _ in range(DOUBLINGS):
                step = step / 2 if rises else 2 * step
                if (not loss(step) <= here) != rises:
                    break
            else:
                return float("inf") if rises else 0.0
            low, high = (step, 2 * step) if rises else (step / 2, step)
            while high - low > self.tolerance * low:
                middle = (low + high) / 2
                low, high = (middle, high) if loss(middle) <= here else (low, middle)
        state.memory["step"] = np.array(high)
        return 4 / (low + high)
