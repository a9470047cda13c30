"""What Figures 3 and 4 and Table 1 share: the convolutional network of Appendix D on two digits."""

from __future__ import annotations

from dynamics_cli import kit
from dynamics_cli.architectures.convolutional import Convolutional

CONFIGS: dict[str, str | kit.Wanted] = {"mnist": "phuong2021/mnist.yaml"}
PRESETS = {"full": {"mnist": "phuong2021/mnist_full.yaml"}}
ORIGIN: dict[str, kit.Origin] = {
    "digits 0 and 1": "stated", "six convolutional, two fully connected layers, biases": "stated",
    "W7 of 128 x 3136": "stated", "cells of Table 1": "assumed", "Adam, batch 128, 50 epochs (preset full)": "stated",
    "batch 32, 500 images, 20 epochs (default preset)": "assumed", "step 1e-3": "assumed",
    "weights of the fully connected layers times 0.05": "stated", "law of the initial weights": "inferred",
    "seed": "assumed",
}  # fmt: skip


def architecture_of(run: kit.Run) -> Convolutional:
    """Return the architecture of a run.

    Raises InputError when it is not a convolutional one with at least two fully connected layers.
    """
    section = run.config.architecture
    if not isinstance(section, Convolutional) or not section.widths:
        raise kit.InputError(f"{run.path}: this figure needs architecture.kind convolutional with hidden widths")
    return section
