"""Compiled CPU kernels of the two-layer network: many iterations a call, gradients derived by hand.

Weights are stored with neurons last, `W` (d, m) and `a` (m,), so that the inner loops run over neurons and vectorise.
Every kernel accumulates the gradient and applies one rounded update per weight.
"""

from __future__ import annotations

from dynamics_cli.architectures.activations import Erf, LeakyRelu, Linear, Relu
from dynamics_cli.architectures.two_layer import TwoLayer
from dynamics_cli.config.bases import Activation, Loss
from dynamics_cli.config.run import RunConfig
from dynamics_cli.losses.margin import Exponential, Hinge, Logistic
from dynamics_cli.losses.squared import HalfMse, Mse

LOSS_NUMBERS: dict[type[Loss], int] = {Mse: 0, HalfMse: 1, Logistic: 2, Exponential: 3, Hinge: 4}
"""Loss -> its number inside the kernels."""
_LOSS_KEYS = {"kind", "reduction"}
UNROLLED = 4
"""Up to this many input columns the loops over columns are unrolled; kept here, where the cost model reads it too."""


def known(config: RunConfig) -> bool:
    """Return whether the kernels know the network and the loss of a config: exactly these types, not relatives."""
    return _two_layers(config, (Relu, LeakyRelu, Linear))


def known_online(config: RunConfig) -> bool:
    """Return whether the kernel of fresh samples knows the network and the loss of a config."""
    return _two_layers(config, (Relu, LeakyRelu, Linear, Erf))


def _two_layers(config: RunConfig, activations: tuple[type[Activation], ...]) -> bool:
    architecture = config.architecture
    return (
        type(architecture) is TwoLayer
        and architecture.plain
        and architecture.outputs is None
        and type(architecture.activation) in activations
        and type(config.loss) in LOSS_NUMBERS
        and all(getattr(config.loss, key) is None for key in type(config.loss).model_fields.keys() - _LOSS_KEYS)
    )
