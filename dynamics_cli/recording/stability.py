"""The largest step along the gradient that lowers the loss."""

from __future__ import annotations

import numpy as np

from dynamics_cli.kinds import Positive, Sections, State
from dynamics_cli.recording.curvature import Curvature, stability_threshold
from dynamics_cli.recording.derivatives import derivatives_of

SMALL = 1e-3
"""Share, where the search begins, of the step at which the loss would be 0 if it fell as it does at the state."""
DOUBLINGS = 60
"""Times that a step is doubled or halved in search of the loss of the state, at most."""


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
