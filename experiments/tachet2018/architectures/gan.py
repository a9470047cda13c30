"""A generator and a discriminator (Tachet des Combes et al. 2018, Appendix E.1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from dynamics_cli.initializations.given import FromFile
from dynamics_cli.initializations.scaled import DefaultScaled
from dynamics_cli.kinds import Architecture, Finding, Floats, Parameters, PositiveInt, Sections
from dynamics_cli.losses.margin import Hinge, Logistic
from dynamics_cli.optimizers.descent import Adam

from ..datasets.mixture import Mixture

if TYPE_CHECKING:
    from ._network import GanNetwork


class Gan(Architecture, kind="gan"):
    """A generator and a discriminator, trained against each other; fully connected, ReLU after all
    layers but the last.

    The discriminator's loss is `ell(D(x)) + ell(-D(G(z)))`; the generator's is `ell(D(G(z)))`, or
    `-D(G(z))` for the hinge. As a function the network is the discriminator.
    """

    example = """\
dataset: {kind: mixture}
architecture: {kind: gan}
initialization: {kind: default_scaled}
loss: {kind: logistic}
optimizer: {kind: adam, lr: 1.0e-3, iterations: 100, batch_size: 128}
"""
    players = ("generator", "discriminator")
    noise_dim: PositiveInt = 128
    """Length of the Gaussian noise z."""
    generator_widths: list[PositiveInt] = Field(
        default_factory=lambda: [256, 256, 256, 256], min_length=1
    )
    """Widths of the generator's hidden layers."""
    discriminator_widths: list[PositiveInt] = Field(
        default_factory=lambda: [256, 256, 256, 256], min_length=1
    )
    """Widths of the discriminator's hidden layers."""
    discriminator_updates: PositiveInt = 1
    """Updates of the discriminator before each update of the generator; an iteration is all of
    them.
    """

    def build(self, d: int) -> GanNetwork:
        """Return both networks for points of `d` coordinates."""
        from ._network import GanNetwork

        discriminator = [d, *self.discriminator_widths, 1]
        return GanNetwork(
            {
                "generator": [self.noise_dim, *self.generator_widths, d],
                "discriminator": discriminator,
            }
        )

    def generate(self, parameters: Parameters, z: Floats) -> Floats:
        """Return the generator's samples (n, d) for noise `z` (n, noise_dim), in float64.

        Weights of the discriminator need not be given.
        """
        import torch

        last = parameters[f"generator_weight_{len(self.generator_widths) + 1}"]
        model, dtype = self.loaded(parameters, last.shape[0], strict=False)
        with torch.no_grad():
            samples: Floats = model.generate(torch.from_numpy(np.asarray(z)).to(dtype)).numpy()
        return samples

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield a mistake for each that is missing: points of a mixture, a loss of classifiers,
        Adam.
        """
        needs: tuple[tuple[str, Any, str], ...] = (
            ("dataset", Mixture, "mixture"),
            ("loss", Logistic | Hinge, "logistic (cross-entropy of the discriminator) or hinge"),
            ("initialization", DefaultScaled | FromFile, "default_scaled or file"),
            ("optimizer", Adam, "adam with a batch_size"),
        )
        for name, kinds, words in needs:
            section = sections.get(name)
            batched = name != "optimizer" or getattr(section, "batch_size", None) is not None
            if section is not None and not (isinstance(section, kinds) and batched):
                yield (name, "kind"), f"must be {words} for architecture.kind gan"
        if not self.plain:
            yield ("architecture", "kind"), "gan knows neither output_scale nor centered nor train"
