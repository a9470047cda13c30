"""The stepper in pre-activation space: the Gram matrix of the data instead of the data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.kinds import Problem
from dynamics_cli.training.kernels import LOSS_NUMBERS
from dynamics_cli.training.kernels.gram import run_gram
from dynamics_cli.training.steppers.base import State, only
from dynamics_cli.training.steppers.side_by_side import OneBlasThread, Weights
from dynamics_cli.training.steppers.two_layer import TwoLayerStepper


class GramStepper(TwoLayerStepper):
    """Full-batch gradient descent with `W_t = W_0 + C_t X`; hidden weights are formed where they are read."""

    backend = "gram"

    def __init__(self, problems: Sequence[Problem]) -> None:
        self._one_thread = OneBlasThread()
        super().__init__([only(problems, self.backend)])
        self._loss_number = LOSS_NUMBERS[type(problems[0].loss)]
        x = self.x[0].astype(np.float64)  # (n, d)
        with self._one_thread:
            self._G = (x @ x.T).astype(self.dtype)  # (n, n)

    def write(self, hidden: Weights, output: Weights) -> None:
        """Start from weights `hidden` (1, m, d), `output` (1, m), with coefficients 0."""
        self._start(hidden[0], np.zeros((hidden.shape[1], self.x.shape[1]), self.dtype), output[0])

    def _start(self, base: Weights, coefficients: Weights, output: Weights) -> None:
        self._W0 = np.array(base)  # (m, d)
        self._C, self._a = np.array(coefficients), np.array(output)  # (m, n), (m,)
        with self._one_thread:
            self._Z0 = (self._W0.astype(np.float64) @ self.x[0].T.astype(np.float64)).astype(self.dtype)  # (m, n)

    def read(self) -> tuple[Weights, Weights]:
        """Return the weights: (1, m, d) and (1, m)."""
        with self._one_thread:
            moved = self._C.astype(np.float64) @ self.x[0].astype(np.float64)
        return (self._W0 + moved).astype(self.dtype)[None], self._a.copy()[None]

    def run(self, n: int) -> tuple[Weights, NDArray[np.int64]]:
        """Do up to `n` full-batch updates; see `TwoLayerStepper.run`."""
        losses = np.empty((1, n), self.dtype)
        with self._one_thread:
            done = run_gram(
                self._C, self._a, self._Z0, self._G, self.y[0], losses[0], n, self.lr[0],
                self.dtype.type(self.sample_weight), self.alpha[0], self._loss_number, self.train_output,
                self.loss_scaled, self.levels[0],
            )  # fmt: skip
        return losses, np.array([done])

    def state_dict(self) -> State:
        """Return initial hidden weights, coefficients and what all two-layer steppers keep."""
        return {**super().state_dict(), "base": self._W0.copy(), "coefficients": self._C.copy()}

    def load_state_dict(self, state: State) -> None:
        """Go on from a former `state_dict()`."""
        super().load_state_dict(state)
        self._start(state["base"], state["coefficients"], state["output_weight"][0])  # type: ignore[arg-type]
