"""The stepper of gradient flow: state i is the flow at time `t_i` of a grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.engine.subnormals import flushed
from dynamics_cli.kinds import Floats, Problem
from dynamics_cli.training.flow.base import Integrator
from dynamics_cli.training.steppers.base import StateDict, Stepper, first_halt


class FlowStepper(Stepper):
    """Looks at an integrator at the times of a grid; weights are float64 inside whatever the dtype of the run."""

    full_batch = True

    def __init__(self, problems: Sequence[Problem], backend: str, device: str = "cpu") -> None:
        """Choose the integrator: `flow` locates changes of activation, `autograd` takes any architecture."""
        (problem,) = problems
        optimizer: Any = problem.config.optimizer
        self.times = optimizer.times()
        self.integrator = _integrator(problem, backend, device)
        self._dtype, self.stop_below = problem.dtype, optimizer.stop_below

    def advance(self, n: int) -> Floats:
        """Go on by `n` states; see `Stepper.advance`."""
        if self.halted is not None:
            return np.empty(0)
        losses, last = [np.empty(0)], self.iteration + n
        while self.halted is None and self.iteration < last:
            self._reach(self.iteration)
            # all states that lie in the step done last; before the first step only state 0 does
            ahead = self.times[self.iteration : last]
            inside = int(np.searchsorted(ahead, self.integrator.time, side="right"))
            with flushed(everywhere=True):
                reached = self.integrator.losses(ahead[:inside])
            halt = first_halt(reached, self.stop_below)
            if halt is not None:
                reached, self.halted = reached[: halt[0] + 1], halt[1]
            losses.append(reached)
            self.iteration += len(reached)
        if self.halted is not None:
            self.iteration -= 1  # the halting state is the current one
        return np.concatenate(losses)

    def loss(self) -> float:
        """Return the loss of the current state."""
        self._reach(self.iteration)
        with flushed(everywhere=True):
            return float(self.integrator.losses(self.times[self.iteration : self.iteration + 1])[0])

    def parameters(self) -> dict[str, NDArray[np.floating]]:
        """Return the current weights, by name, in the dtype of the run."""
        self._reach(self.iteration)
        weights = self.integrator.weights(float(self.times[self.iteration]))
        return {name: value.astype(self._dtype) for name, value in weights.items()}

    def state_dict(self) -> StateDict:
        """Return the state of the integrator and the number of the current state."""
        return {"iteration": np.array(self.iteration), **self.integrator.state_dict()}

    def load_state_dict(self, state: StateDict) -> None:
        """Go on from a former `state_dict()`."""
        self.iteration = int(state["iteration"])
        self.integrator.load_state_dict(state)

    def numbers(self) -> dict[str, Any]:
        """Return the work of the integration and the error that its control achieved."""
        return {**self.integrator.numbers(), "flow": self.integrator.achieved()}

    def _reach(self, i: int) -> None:
        """Integrate until the last step ends at `t_i` or later."""
        with flushed(everywhere=True):
            while self.integrator.time < self.times[i]:
                self.integrator.step()


def _integrator(problem: Problem, backend: str, device: str) -> Integrator:
    if backend == "flow":
        from dynamics_cli.training.flow.located import LocatedFlow

        return LocatedFlow(problem)
    from dynamics_cli.training.flow.averaged import AveragedFlow

    return AveragedFlow(problem, device)
