"""What is measured at the recorded states during training."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.architectures import network_function
from dynamics_cli.errors import InputError, did_you_mean
from dynamics_cli.losses import Loss
from dynamics_cli.training.problem import Problem

Parameters = Mapping[str, NDArray[np.floating]]
Observer = Callable[[Parameters], float | NDArray[np.float64]]
"""Weights -> a number; weights of R replicas -> (R,)."""


def available_observers(problem: Problem) -> dict[str, Observer]:
    """Return every measure that this problem offers, by name."""
    dataset, loss, architecture = problem.dataset, problem.loss, problem.config.architecture

    def accuracy(x: NDArray[np.float64], y: NDArray[np.float64]) -> Observer:
        return lambda parameters: float(np.mean(loss.predictions(network_function(architecture, parameters)(x)) == y))

    def total(x: NDArray[np.float64], y: NDArray[np.float64]) -> Observer:
        labels = y.astype(np.int64) if loss.labels == "classes" else y
        return lambda parameters: float(loss.total(network_function(architecture, parameters)(x), labels))

    observers: dict[str, Observer] = {"weight_norm": _weight_norm}
    if classifies(loss):
        observers["train_accuracy"] = accuracy(dataset.x, dataset.y)
    if dataset.x_test is not None and dataset.y_test is not None:
        observers["test_loss"] = total(dataset.x_test, dataset.y_test)
        if classifies(loss):
            observers["test_accuracy"] = accuracy(dataset.x_test, dataset.y_test)
    return observers


def chosen_observers(problem: Problem) -> dict[str, Observer]:
    """Return the measures that the config asks for, or all that speak of accuracy and held-out data.

    Raises:
        InputError: the config asks for a measure that this problem does not offer.

    """
    available = available_observers(problem)
    wanted = problem.config.record.measures
    if wanted is None:
        return {name: observer for name, observer in available.items() if name != "weight_norm"}
    for name in wanted:
        if name not in available:
            known = ", ".join(available)
            raise InputError(
                f"record.measures: no measure {name!r} here; there are {known}{did_you_mean(name, available)}"
            )
    return {name: available[name] for name in wanted}


def classifies(loss: Loss) -> bool:
    """Return whether the labels of the loss are classes."""
    return loss.labels != "real"


def _weight_norm(parameters: Parameters) -> float:
    """Euclidean norm of all weights together."""
    return float(np.sqrt(sum(float(np.sum(np.square(value, dtype=np.float64))) for value in parameters.values())))
