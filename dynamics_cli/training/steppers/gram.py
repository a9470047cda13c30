"""The stepper in pre-activation space: the Gram matrix of the data instead of the data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from dynamics_cli.training.kernels.common import LOSS_NUMBERS
from dynamics_cli.training.kernels.gram import run_gram
from dynamics_cli.training.kernels.gram_relu import run_gram_relu
from dynamics_cli.training.kernels.layout import LANES, aligned_zeros, round_up
from dynamics_cli.training.problem import Problem
from dynamics_cli.training.steppers.base import State
from dynamics_cli.training.steppers.two_layer import TwoLayerStepper, Weights

_MOST_SAMPLES = 320
"""Up to this many samples a row sum over the active ones is faster than a blocked product with the Gram matrix."""


class GramStepper(TwoLayerStepper):
    """Full-batch gradient descent with `W_t = W_0 + C_t X`; hidden weights are formed where they are read.

    Samples are padded for `run_gram_relu`, which is used wherever it can be: N instead of n below.
    """

    backend = "gram"

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(problems)
        self._loss_number = LOSS_NUMBERS[problems[0].config.loss.kind]
        self._threads = ThreadpoolController()
        n, N = self.x.shape[1], self._Z0.shape[1]
        x = self.x[0].astype(np.float64)  # (n, d)
        self._G = _padded(x @ x.T, (N, N), self.dtype)

    def write(self, hidden: Weights, output: Weights) -> None:
        """Start from weights `hidden` (1, m, d), `output` (1, m), with coefficients 0."""
        self._start(hidden[0], np.zeros((hidden.shape[1], self.x.shape[1]), self.dtype), output[0])

    def _start(self, base: Weights, coefficients: Weights, output: Weights) -> None:
        m, n = coefficients.shape
        self._relu = bool(self.alpha[0] == 0) and n <= _MOST_SAMPLES
        shape = (m, round_up(n, LANES) if self._relu else n)
        self._W0 = np.array(base)  # (m, d)
        self._C, self._a = _padded(coefficients, shape, self.dtype), np.array(output)  # (m, N), (m,)
        self._Z0 = _padded(self._W0.astype(np.float64) @ self.x[0].T.astype(np.float64), shape, self.dtype)
        self._Z = _padded(self._Z0, shape, self.dtype)

    def read(self) -> tuple[Weights, Weights]:
        """Return the weights: (1, m, d) and (1, m)."""
        moved = self._coefficients().astype(np.float64) @ self.x[0].astype(np.float64)
        return (self._W0 + moved).astype(self.dtype)[None], self._a.copy()[None]

    def _coefficients(self) -> Weights:
        return self._C[:, : self.x.shape[1]]

    def run(self, n: int) -> tuple[Weights, NDArray[np.int64]]:
        """Do up to `n` full-batch updates; see `TwoLayerStepper.run`."""
        losses = np.empty((1, n), self.dtype)
        step = (self.lr[0], self.dtype.type(self.sample_weight))
        settings = (self._loss_number, self.train_output, self.loss_scaled, self.stop_below[0])
        with self._threads.limit(limits=1, user_api="blas"):  # products this small only lose by a second thread
            if self._relu:
                done = run_gram_relu(
                    self._C, self._Z, self._a, self._Z0, self._G, self.y[0], self.iteration, losses[0], n,
                    *step, *settings,
                )  # fmt: skip
            else:
                done = run_gram(
                    self._C, self._a, self._Z0, self._G, self.y[0], losses[0], n, *step, self.alpha[0], *settings
                )
        return losses, np.array([done])

    def state_dict(self) -> State:
        """Return initial hidden weights, coefficients, pre-activations and what all two-layer steppers keep."""
        own = {"base": self._W0, "coefficients": self._coefficients(), "preactivations": self._Z}
        return {**super().state_dict(), **{name: value.copy() for name, value in own.items()}}

    def load_state_dict(self, state: State) -> None:
        """Go on from a former `state_dict()`."""
        super().load_state_dict(state)
        self._start(state["base"], state["coefficients"], state["output_weight"][0])  # type: ignore[arg-type]
        self._Z[:] = state["preactivations"]  # type: ignore[assignment]


def _padded(values: NDArray[np.floating], shape: tuple[int, int], dtype: np.dtype[np.floating]) -> Weights:
    padded = aligned_zeros(shape, dtype)
    padded[: values.shape[0], : values.shape[1]] = values
    return padded
