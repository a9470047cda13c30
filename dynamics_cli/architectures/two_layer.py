"""The two-layer network `h(x) = sum_j a_j sigma(<w_j, x>)` (Boursier et al. 2022, Eq. 1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from pydantic import AfterValidator

from dynamics_cli.architectures.activations import Activated
from dynamics_cli.kinds import Evaluation, Parameters, PositiveInt

if TYPE_CHECKING:
    from dynamics_cli.architectures._networks import TwoLayerNetwork


class TwoLayer(Activated, kind="two_layer"):
    """`h(x) = sum_j a_j sigma(<w_j, x>)`; a bias is a constant 1 appended to `x`."""

    example = "{kind: two_layer, width: 60}"
    engine = True
    titles: ClassVar[Mapping[str, str]] = {"width": "width m"}
    width: PositiveInt
    """Number m of hidden neurons."""
    outputs: Annotated[PositiveInt | None, AfterValidator(lambda C: None if C == 1 else C)] = None
    """Number C of outputs where labels are vectors or classes: `a_j` is a column of C numbers;
    by default 1.
    """
    train_output: bool = True
    """Whether the output weights a_j are trained or stay as initialised."""

    @property
    def matrices(self) -> tuple[str, ...]:
        """The names of both weights."""
        return ("hidden_weight", "output_weight")

    def build(self, d: int) -> TwoLayerNetwork:
        """Return the network for inputs of `d` columns."""
        from dynamics_cli.architectures._networks import TwoLayerNetwork

        return TwoLayerNetwork(self.sigma, self.shapes(d), train_output=self.train_output)

    def shapes(self, d: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of both weights."""
        # not those of `build`: to import torch would take longer than many a run
        output: tuple[int, ...] = (self.width,)
        if self.outputs is not None:
            output = (self.outputs, self.width)
        return {"hidden_weight": (self.width, d), "output_weight": output}

    def evaluation(self, parameters: Parameters, d: int) -> Evaluation:
        """Return `x (n, d) -> h(x)`, (n,) or (n, C), without torch, light enough for plotting."""
        W = np.asarray(parameters["hidden_weight"], dtype=np.float64)
        a = np.asarray(parameters["output_weight"], dtype=np.float64)
        sigma = self.sigma
        # (n, m) @ (m,) or (m, C)
        return lambda x: sigma.value(np.asarray(x, dtype=np.float64) @ W.T) @ a.T
