"""Adam on the spheres of the released notebook."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from typing import TYPE_CHECKING

from dynamics_cli.kinds import Minibatch
from dynamics_cli.kinds.base import Positive

if TYPE_CHECKING:
    from torch import Tensor

DECAYS = (0.9, 0.999)


class SphereAdam(Minibatch, kind="liu2023_adam"):
    """Adam on all weights, which are scaled back to the norm of the start before each update.

    That norm counts the weights of the first layer twice, as the released notebook does: its list
    of parameters begins with them and has them again. The gradient is taken at the weights before
    the scaling.
    """

    example = "{kind: liu2023_adam, lr: 3.0e-4, iterations: 100}"
    eps: Positive = 1e-8
    """Added to the denominator."""

    def update(
        self,
        parameters: Sequence[Tensor],
        gradients: Sequence[Tensor],
        *,
        lr: float,
        names: Sequence[str],
        state: MutableMapping[str, Tensor],
        iteration: int,
        loss: Tensor,
    ) -> None:
        """Change the weights in place; see `Descent.update`."""
        import torch

        w, g = (
            torch.cat([tensor.flatten() for tensor in many]) for many in (parameters, gradients)
        )
        square = w.square().sum() + parameters[0].square().sum()
        if not state:
            state.update(norm=square.sqrt(), mean=torch.zeros_like(w), square=torch.zeros_like(w))
        mean = state["mean"].lerp_(g, 1 - DECAYS[0])
        root = state["square"].lerp_(g * g, 1 - DECAYS[1]).sqrt()
        first, second = (1 - decay ** (iteration + 1) for decay in DECAYS)
        w = w * (state["norm"] / square.sqrt()) - lr / first * mean / (
            root / second**0.5 + self.eps
        )
        for parameter, part in zip(
            parameters, w.split([tensor.numel() for tensor in parameters]), strict=True
        ):
            parameter.copy_(part.view_as(parameter))
