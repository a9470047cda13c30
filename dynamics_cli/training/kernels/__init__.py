"""Compiled CPU kernels: many iterations a call, gradients derived by hand; which configs they know, without numba.

`layers` is for fully connected networks of any depth, with all bundled activations, losses and optimizers. The others
are for two-layer networks of homogeneous activations under plain gradient descent and SGD: weights are stored with
neurons last, `W` (d, m) and `a` (m,), so that the inner loops run over neurons and vectorise.

Every kernel accumulates the gradient and applies one rounded update per weight.
"""

from __future__ import annotations

from typing import Any

from dynamics_cli.architectures.activations import Erf
from dynamics_cli.kinds import Descent, Loss, RunConfig
from dynamics_cli.kinds.tracing import operations
from dynamics_cli.losses.margin import Exponential, Hinge, Logistic
from dynamics_cli.losses.squared import HalfMse, Mse

MSE, HALF_MSE, LOGISTIC, EXPONENTIAL, HINGE = range(5)
LOSS_NUMBERS: dict[type[Loss], int] = {
    Mse: MSE, HalfMse: HALF_MSE, Logistic: LOGISTIC, Exponential: EXPONENTIAL, Hinge: HINGE,
}  # fmt: skip
"""Loss -> its number inside the kernels."""
_LOSS_KEYS = {"kind", "reduction"}
_CHUNK_WORK = 2**22
"""Multiply-adds of a chunk of samples of `layers`, at least; its gradients are summed apart."""
_MOST_CHUNKS = 8
UNROLLED = 4
"""Up to this many input columns the loops over columns are unrolled; kept here, where the cost model reads it too."""


def chunks_of(samples: int, multiply_adds: int) -> int:
    """Return into how many chunks `layers` cuts samples that take so many multiply-adds each."""
    return max(1, min(_MOST_CHUNKS, samples * multiply_adds // _CHUNK_WORK))


def known(config: RunConfig) -> bool:
    """Return whether the kernels know the network and the loss of a config: exactly this loss, not relatives."""
    return _two_layers(config) and config.architecture.sigma.negative_slope is not None  # type: ignore[attr-defined]


def known_online(config: RunConfig) -> bool:
    """Return whether the kernel of fresh samples knows the network and the loss of a config."""
    return known(config) or (_two_layers(config) and type(config.architecture.sigma) is Erf)  # type: ignore[attr-defined]


def _two_layers(config: RunConfig) -> bool:
    architecture = config.architecture
    return (
        architecture.engine
        and architecture.two_layer
        and architecture.plain
        and type(config.loss) in LOSS_NUMBERS
        and _plain(config.loss)
    )


def _plain(loss: Loss) -> bool:
    """Return whether a loss has no further keys that change it."""
    return all(getattr(loss, key) is None for key in type(loss).model_fields.keys() - _LOSS_KEYS)


def known_layers(config: RunConfig) -> bool:
    """Return whether the engine trains a config: a network of layers whose activation, loss and update are formulas."""
    architecture: Any = config.architecture
    optimizer = config.optimizer
    if not architecture.engine or (architecture.factors and architecture.between_samples):  # measurements of a matrix
        return False
    return (
        isinstance(optimizer, Descent)
        and all(getattr(optimizer, key, None) is None for key in ("label_noise", "samples"))
        and all(operations(kind) is not None for kind in (architecture.sigma, config.loss, optimizer))
    )
