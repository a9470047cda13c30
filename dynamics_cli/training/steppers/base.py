"""The contract of a stepper."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.kinds import Floats

StateDict = dict[str, NDArray[Any]]
Halt = Literal["stopped", "diverged"]


class Stepper(ABC):
    """Trains one network, or R of equal shape side by side; state i is the network after i updates.

    It alone decides when training halts: in `advance` where losses come with the updates, in `look`
    elsewhere.

    Chunking is invisible: `advance(a); advance(b)` leaves the same bits as `advance(a + b)`.
    Every stepper accumulates the gradient over the batch and applies one rounded update per weight.
    """

    full_batch: bool
    """Whether losses come for free with every update."""
    iteration: int = 0
    """Number of updates done."""
    watchable: bool = False
    """Whether `advance_watched` is there, in which states are measured without leaving the call."""
    halted: Halt | None = None
    """Why `advance` goes no further: a loss at or below `level`, or one that is not finite."""

    @abstractmethod
    def advance(self, n: int) -> Floats:
        """Do `n` updates and return the losses of the states left behind.

        Full batch: the losses of states `iteration .. iteration + n - 1`. When one of them halts
        the run, the update of that state is not done: its loss is the last one returned,
        `iteration` its number, and `halted` says why. Otherwise (batches): an empty array.
        """

    def advance_watched(self, n: int, due: NDArray[np.int64], watch: Any, watching: Any) -> Floats:
        """Do up to `n` updates as `advance` does, while a watch measures the states `due`.

        The call ends at a state that the watch leaves to Python.
        """
        raise NotImplementedError(f"{type(self).__name__} measures no states")

    @abstractmethod
    def losses(self) -> Floats:
        """Return the loss of the current state of each replica, (R,), on the full training set."""

    def loss(self) -> float:
        """Return the loss of the current state; of replicas, their mean."""
        return float(np.mean(self.losses()))

    @property
    def ends(self) -> list[int | None]:
        """The state at which each replica halted, or None."""
        return [self.iteration if self.halted else None]

    @abstractmethod
    def look(self) -> Floats:
        """Return the losses of the current state, (1,) or of replicas (1, R).

        Networks halt where that is their end.
        """

    @abstractmethod
    def parameters(self) -> dict[str, NDArray[np.floating]]:
        """Return copies of the current weights and buffers, by name."""

    def exact_parameters(self) -> dict[str, NDArray[np.floating]]:
        """Return the weights in the precision of the computation."""
        return self.parameters()

    def preconditioner(self) -> dict[str, NDArray[np.floating]]:
        """Return the optimizer's preconditioner by weight, in the shapes of `parameters`.

        It is empty where there is none, and before the first update; see `Descent.preconditioner`.
        """
        return {}

    def follow(self, before: Stepper) -> list[str]:
        """Go on at the state of another stepper, whose weights this one started from.

        Memory of the optimizer that has equal names is taken over. Return the names of the memory
        that begins at 0.
        """
        self.iteration = before.iteration
        return []

    def numbers(self) -> dict[str, Any]:
        """Return the entries of `run.json` about the work done and the ends of replicas."""
        return {}

    @abstractmethod
    def state_dict(self) -> StateDict:
        """Return everything that `load_state_dict` needs to go on bit for bit, as plain arrays."""

    @abstractmethod
    def load_state_dict(self, state: StateDict) -> None:
        """Go on from `state`, a former `state_dict()`."""


def halt_of(loss: float, level: float) -> Halt | None:
    """Return why a state with this loss halts a network; None where it does not."""
    if not math.isfinite(loss):
        return "diverged"
    return "stopped" if loss <= level else None
