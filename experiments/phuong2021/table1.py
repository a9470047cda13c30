"""Table 1: the architecture of the convolutional network, with output shapes and numbers of parameters."""

from __future__ import annotations

from dataclasses import dataclass

from dynamics_cli import kit
from dynamics_cli._bundled import CONFIGS
from dynamics_cli.architectures.convolutional import Convolutional, Layer
from dynamics_cli.config import load_config

from .features import ORIGIN

HEADER = ["layer", "type", "output", "weights", "biases", "parameters"]


@dataclass(frozen=True)
class Evidence:
    """The layers, and the shapes of the network that is trained."""

    layers: list[Layer]
    shapes: dict[str, tuple[int, ...]]


def evidence(runs: kit.Runs) -> Evidence:
    """Read the architecture from the config of Figures 3 and 4."""
    section = load_config(CONFIGS / "phuong2021/mnist.yaml").architecture
    assert isinstance(section, Convolutional)
    channels, rows, columns = section.image
    return Evidence(section.layers(), section.shapes(channels * rows * columns))


def claims(e: Evidence) -> list[kit.Claim]:
    """Compare with what Appendix D says of the architecture."""
    kinds = [len(layer.weight) for layer in e.layers]
    rows, columns = next((layer.weight for layer in e.layers if len(layer.weight) == 2), (0, 0))
    total = sum(layer.parameters for layer in e.layers)
    return [
        kit.theory("convolutions", "Six convolutional layers", "Appendix D", kit.exactly(6), kinds.count(4)),
        kit.theory("connected", "followed by two fully connected ones", "Appendix D", kit.exactly(2),
                  kinds[kinds.index(2) :].count(2)),
        kit.theory("w7-rows", "W7 has 128 rows", "Appendix D", kit.exactly(128), rows),
        kit.theory("w7-columns", "and 3136 columns", "Appendix D", kit.exactly(3136), columns),
        kit.theory("biases", "Layers have biases (layers with one)", "Appendix D", kit.exactly(8),
                  sum(f"bias_{layer.number}" in e.shapes for layer in e.layers)),
        kit.finding("parameters", "Number of parameters", "not in the paper", total),
    ]  # fmt: skip


def table(e: Evidence) -> tuple[list[str], list[list[str]]]:
    """Return the architecture, a layer a row."""
    rows = []
    for layer in e.layers:
        output, weights = (" x ".join(map(str, shape)) for shape in (layer.output, layer.weight))
        rows.append([str(layer.number), layer.name, output, weights, str(layer.weight[0]), str(layer.parameters)])
    return HEADER, rows


def draw(e: Evidence) -> kit.Drawing:
    """Draw the table."""
    figure, (axes,) = kit.new_figure(width=5.5, aspect=0.4)
    kit.draw_table(axes, *table(e))
    return figure


FIGURE = kit.Figure(
    id="phuong2021-table1",
    caption=(
        "conv(n, k, s, p): n kernels of size k x k with stride s, the input padded by p on each margin; fc(n, o): n "
        "inputs, o outputs. A ReLU follows every layer but the last. The cells are assumed so that W7 is 128 x 3136."
    ),
    origin={"number and kinds of layers": "stated", "shape of W7": "stated", "cells": "assumed", **ORIGIN},
    evidence=evidence, claims=claims, draw=draw, table=table,
)  # fmt: skip
