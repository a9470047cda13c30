"""What the fast steppers of the two-layer network share: its weights, of R replicas."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from dynamics_cli.kinds import Problem
from dynamics_cli.training.steppers.base import State
from dynamics_cli.training.steppers.side_by_side import SideBySide, Weights


class TwoLayerStepper(SideBySide):
    """Trains R two-layer networks of equal shapes side by side."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(problems)
        architectures: list[Any] = [p.config.architecture for p in problems]
        self.width = problems[0].shapes["hidden_weight"][0]
        self.train_output = architectures[0].train_output
        self.alpha = self._each([c.sigma.negative_slope or 0.0 for c in architectures])
        initial = [p.initial_parameters() for p in problems]
        self.write(np.stack([w["hidden_weight"] for w in initial]), np.stack([w["output_weight"] for w in initial]))

    @abstractmethod
    def write(self, hidden: Weights, output: Weights) -> None:
        """Set the weights: `hidden` (R, m, d), `output` (R, m)."""

    @abstractmethod
    def read(self) -> tuple[Weights, Weights]:
        """Return copies of the weights: (R, m, d) and (R, m)."""

    def parameters(self) -> dict[str, Weights]:
        """Return copies of the current weights, by name; with replicas, (R, ...)."""
        hidden, output = self.read()
        if self._single:
            hidden, output = hidden[0], output[0]
        return {"hidden_weight": hidden, "output_weight": output}

    def state_dict(self) -> State:
        """Return weights, iteration and where replicas halted."""
        hidden, output = self.read()
        return {"hidden_weight": hidden, "output_weight": output, **self._progress()}

    def load_state_dict(self, state: State) -> None:
        """Go on from a former `state_dict()`."""
        self.write(state["hidden_weight"], state["output_weight"])  # type: ignore[arg-type]
        self._go_on(state)
