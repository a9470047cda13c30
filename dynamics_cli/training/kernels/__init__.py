"""Which configs the engine and the kernels of two-layer networks know, without numba.

The kernels (`two_layers.py`) are for homogeneous activations under plain gradient descent and SGD:
full batches of few input columns, and single samples. `training/backends.py` and the steppers ask
this module; begin to read at `known` and `known_layers`. The gradient is accumulated, and one
rounded update per weight applied.

`two_layers.py` writes the losses of `LOSS_NUMBERS` and their derivatives again, so that LLVM
inlines them: the exception to contract 2 of CONTRIBUTING.md. tests/training/test_steppers.py
compares its paths with those of the formulas.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from dynamics_cli.formulas.tracing import facts
from dynamics_cli.kinds import Descent, Kind, Loss, Problem, RunConfig
from dynamics_cli.losses.margin import Exponential, Hinge, Logistic
from dynamics_cli.losses.squared import HalfMse, Mse

MSE, HALF_MSE, LOGISTIC, EXPONENTIAL, HINGE = range(5)
LOSS_NUMBERS: dict[type[Loss], int] = {
    Mse: MSE,
    HalfMse: HALF_MSE,
    Logistic: LOGISTIC,
    Exponential: EXPONENTIAL,
    Hinge: HINGE,
}
"""Loss -> its number inside the kernels."""
_LOSS_KEYS = {"kind", "reduction"}
_CHUNK_WORK = 2**22
"""Multiply-adds of a chunk of samples in the engine, at least; its gradients are summed apart."""
_MOST_CHUNKS = 8
UNROLLED = 4
"""Up to this many input columns the loops over columns are unrolled."""


def chunks_of(samples: int, multiply_adds: int) -> int:
    """Return the number of chunks of samples in the engine, given the multiply-adds of a sample."""
    return max(1, min(_MOST_CHUNKS, samples, samples * multiply_adds // _CHUNK_WORK))


def known(config: RunConfig) -> bool:
    """Return whether the kernels know the network and exactly the loss of a config."""
    architecture: Any = config.architecture
    return bool(
        architecture.engine
        and architecture.two_layer
        and architecture.plain
        and architecture.sigma.negative_slope is not None
        and type(config.loss) in LOSS_NUMBERS
        and has_only(config.loss, _LOSS_KEYS)
    )


def has_only(kind: Kind, keys: Set[str]) -> bool:
    """Return whether a kind has no settings but these keys."""
    return all(getattr(kind, key) is None for key in type(kind).model_fields.keys() - keys)


def known_layers(config: RunConfig) -> bool:
    """Return whether the engine trains a config: layers whose kinds are formulas."""
    architecture: Any = config.architecture
    optimizer = config.optimizer
    if not architecture.engine or (
        architecture.factors and architecture.between_samples
    ):  # measurements of a matrix
        return False
    fresh = getattr(optimizer, "samples", None) is not None
    return (
        isinstance(optimizer, Descent)
        and not (fresh and architecture.centered)
        and all(map(facts, (architecture.sigma, config.loss, optimizer)))
    )


def spanned(problem: Problem) -> int:
    """Return in how many coordinates the engine takes the inputs of a problem.

    It is 0 where the engine takes them as they are.
    """
    architecture = problem.config.architecture
    optimizer = problem.config.optimizer
    x = problem.dataset.x
    layers = architecture.engine and bool(architecture.matrices) and not problem.fresh
    first = next(iter(problem.shapes.values()))
    # of a single neuron the terms of a product are summed in the order of vector lanes, which zeros
    # would change
    if not layers or len(first) != 2 or first[0] == 1 or not optimizer.spans_gradients:
        return 0
    n, d = x.shape
    r = n
    if n >= d:
        r = min(n, int(x.any(axis=0).sum()))
    return r if r < d else 0
