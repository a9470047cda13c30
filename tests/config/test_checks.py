"""What single values cannot tell: checks within and across sections."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dynamics_cli.config import RunConfig, load_config
from dynamics_cli.config.load import check_sections

Problems = Callable[..., list[str]]
DEEP = {"architecture": {"kind": "fully_connected", "widths": [4]}, "initialization": {"kind": "default_scaled"}}


def points(**keys: Any) -> dict[str, Any]:
    return {"dataset": {"kind": "points", "x": [[1.0, 0.0], [0.0, 1.0]], "y": [1.0, -1.0], **keys}}


def sgd(**keys: Any) -> dict[str, Any]:
    return {"optimizer": {"kind": "sgd", "lr": 0.1, **keys}}


def many_outputs(architecture: dict[str, Any], **keys: Any) -> dict[str, Any]:
    return DEEP | {"architecture": {**architecture, "image": [1, 1, 2], **keys}}


NEEDS_MANY = (
    "loss.kind: cross_entropy needs architecture.kind 'convolutional', 'fully_connected', "
    "'transformer', 'two_layer' or 'vgg16' with outputs >= 2"
)
MODES = {"kind": "independent_modes", "y": [[1.0], [2.0, 3.0]], "z": [[1.0], [1.0, 1.0]]}
GAN = {
    "dataset": {"kind": "mixture", "modes": 9},
    "architecture": {"kind": "gan"},
    "initialization": {"kind": "default_scaled"},
    "loss": {"kind": "logistic"},
    "optimizer": {"kind": "adam", "lr": 1e-3, "iterations": 5, "batch_size": 4},
}


def modes(**keys: Any) -> dict[str, Any]:
    return {"initialization": {**MODES, **keys}, "architecture": {"kind": "two_layer", "width": 3}}


def deep(**keys: Any) -> dict[str, Any]:
    architecture = {"kind": "fully_connected", "widths": [3, 3], "bias": False, **keys}
    return {"initialization": MODES, "architecture": architecture}


def flow(**keys: Any) -> dict[str, Any]:
    return {"optimizer": {"kind": "gradient_flow", "until": 2.0, **keys}}


def values(width: int, **architecture: Any) -> dict[str, Any]:
    weights = {"kind": "values", "hidden_weight": [[1.0, 2.0]], "output_weight": [1.0]}
    return {"initialization": weights, "architecture": {"kind": "two_layer", "width": width, **architecture}}


CASES: list[tuple[dict[str, Any], list[str]]] = [
    (points(x=[[1], [2, 3], [4, 5, 6]], y=[1, 2, 3]),
     ["dataset.x[1]: has 2 coordinates, the first 1; all need the same"]),
    (points(y=[1]), ["dataset.y: has 1 label, but x has 2 samples; there must be one label per sample"]),
    (points(x_test=[[1, 2]]), ["dataset.y_test: is missing; x_test needs labels"]),
    (points(y_test=[1]), ["dataset.x_test: is missing; y_test needs inputs"]),
    (points(x_test=[[1]], y_test=[1]), ["dataset.x_test[0]: has 1 coordinate, those of x 2; all need the same"]),
    (points(x_test=[[1, 2]], y_test=[1, 2]),
     ["dataset.y_test: has 2 labels, but x_test has 1 sample; there must be one label per sample"]),
    (points(x_test=[[1, 2]], y_test=[1]), []),
    ({"dataset": {"kind": "file", "path": "d.txt"}},
     ["dataset.path: must name a .npz or a .csv file, not 'HERE/d.txt'"]),
    ({"dataset": {"kind": "file", "path": "d.CSV"}}, []),
    ({"architecture": {"kind": "two_layer", "width": 3, "activation": "leaky_relu"}},
     ["architecture.slope: is missing; leaky_relu needs a number >= 0"]),
    ({"architecture": {"kind": "two_layer", "width": 3, "slope": 0.1}},
     ["architecture.slope: belongs to activation leaky_relu, not to relu"]),
    ({"architecture": {"kind": "two_layer", "width": 3, "activation": "leaky_relu", "slope": 0.1}}, []),
    (sgd(), ["optimizer.iterations: is missing; exactly one of iterations and epochs must be given"]),
    (sgd(iterations=3, epochs=3), ["optimizer.epochs: exactly one of iterations and epochs must be given, not both"]),
    (sgd(epochs=3, replacement=True), []),
    ({"optimizer": {"kind": "adam", "lr": 0.1, "epochs": 3, "replacement": True}},
     ["optimizer.replacement: needs a batch_size: a full batch is not drawn"]),
    ({"loss": {"kind": "cross_entropy"}} | points(y=[0, 1]), [f"{NEEDS_MANY}; two_layer has one output"]),
    (DEEP | {"architecture": {"kind": "residual", "width": 3}, "loss": {"kind": "cross_entropy"}} | points(y=[0, 1]),
     [f"{NEEDS_MANY}; residual has one output"]),
    (DEEP | {"loss": {"kind": "cross_entropy"}} | points(y=[0, 1]),
     ["architecture.outputs: must be the number of classes, >= 2, for the loss cross_entropy, not 1"]),
    (DEEP | {"architecture": {"kind": "fully_connected", "widths": [4], "outputs": 3}, "loss": {"kind": "logistic"}},
     ["architecture.outputs: must be 1 for the loss logistic, not 3"]),
    *[
        case
        for kind in ({"kind": "convolutional", "convolutions": [[2, 1, 1, 0]]}, {"kind": "vgg16"})
        for case in (
            (
                many_outputs(kind) | {"loss": {"kind": "cross_entropy"}} | points(y=[0, 1]),
                ["architecture.outputs: must be the number of classes, >= 2, for the loss cross_entropy, not 1"],
            ),
            (
                many_outputs(kind, outputs=2) | {"loss": {"kind": "logistic"}},
                ["architecture.outputs: must be 1 for the loss logistic, not 2"],
            ),
            (
                many_outputs(kind, outputs=2) | {"loss": {"kind": "cross_entropy"}} | points(y=[0, 2]),
                ["dataset.y[1]: must be a class, one of the integers 0 to 1 for the loss cross_entropy, not 2"],
            ),
            (many_outputs(kind, outputs=2) | {"loss": {"kind": "cross_entropy"}} | points(y=[0, 1]), []),
            (many_outputs(kind) | {"loss": {"kind": "logistic"}}, []),
        )
    ],
    (DEEP, []),
    ({"loss": {"kind": "logistic"}} | points(y=[1, 0]), ["dataset.y[1]: must be -1 or 1 for the loss logistic, not 0"]),
    ({"loss": {"kind": "exponential"}} | points(x_test=[[1, 2]], y_test=[0.5]),
     ["dataset.y_test[0]: must be -1 or 1 for the loss exponential, not 0.5"]),
    (
        DEEP
        | {"architecture": {"kind": "fully_connected", "widths": [4], "outputs": 2}, "loss": {"kind": "cross_entropy"}}
        | points(y=[0, 2]),
        ["dataset.y[1]: must be a class, one of the integers 0 to 1 for the loss cross_entropy, not 2"],
    ),
    (
        {
            "architecture": {"kind": "fully_connected", "widths": [], "parametrization": "mup"},
            "initialization": {"kind": "paired", "scale": 1.0},
        },
        ["architecture.parametrization: mup needs a hidden layer", "initialization.kind: paired needs a hidden layer"],
    ),
    (
        {"loss": {"kind": "cross_entropy"}, "architecture": {"kind": "fully_connected"}} | points(y=[0, 0.5]),
        [
            "architecture.widths: is missing",
            "dataset.y[1]: must be a class, an integer >= 0 for the loss cross_entropy, not 0.5",
        ],
    ),
    ({"architecture": DEEP["architecture"]}, ["initialization.kind: balanced needs architecture.kind two_layer"]),
    (DEEP | {"initialization": {"kind": "balanced", "scale": 1}},
     ["initialization.kind: balanced needs architecture.kind two_layer"]),
    (DEEP | {"initialization": {"kind": "unbalanced", "scale": 1, "output_value": 1}},
     ["initialization.output_value: needs architecture.kind two_layer"]),
    (DEEP | {"initialization": {"kind": "unbalanced", "scale": 1}}, []),
    (modes(), []),
    (deep(), []),
    (modes(z=[[1.0], [1.0]]), ["initialization.z: must have lists of the same lengths as y"]),
    (modes(y=[[1.0], [1.0], [1.0]], z=[[1.0], [1.0], [1.0]]),
     ["initialization.y: must have one list for each of 2 classes, not 3"]),
    (deep(activation="linear"), ["architecture.activation: must be relu for the initialization independent_modes"]),
    (deep(bias=True), ["architecture.bias: must be false for the initialization independent_modes"]),
    (deep(widths=[3, 4]), ["architecture.widths: must be 3, the number of neurons in initialization.y"]),
    (modes(y=[[1.0], [1.0]], z=[[1.0], [1.0]]),
     ["architecture.width: must be 2, the number of neurons in initialization.y"]),
    (GAN, []),
    (GAN | {"loss": {"kind": "exponential"}},
     ["loss.kind: must be logistic (cross-entropy of the discriminator) or hinge for architecture.kind gan"]),
    (GAN | {"dataset": {"kind": "points", "x": [[1.0, 2.0]], "y": [1.0]}},
     ["dataset.kind: must be mixture for architecture.kind gan"]),
    (GAN | {"optimizer": {"kind": "adam", "lr": 1e-3, "iterations": 5}},
     ["optimizer.kind: must be adam with a batch_size for architecture.kind gan"]),
    (flow(), []),
    (flow(spacing="geometric", first=0.1), []),
    (flow(spacing="geometric"), ["optimizer.first: is missing; geometric spacing needs the time of the first point"]),
    (flow(first=0.1), ["optimizer.first: belongs to spacing geometric, not to uniform"]),
    (flow(spacing="geometric", first=3.0), ["optimizer.first: must be below until = 2, not 3"]),
    (values(1), []),
    (
        values(2),
        [
            "initialization.hidden_weight: has 1 entries, architecture.width is 2",
            "initialization.output_weight: has 1 entries, architecture.width is 2",
        ],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "messages"), CASES)
def test_checks(
    changes: dict[str, Any], messages: list[str], base: dict[str, Any], problems: Problems, here: Path
) -> None:
    for name in ("d.CSV", "d.txt"):
        (here / name).touch()
    told = problems(base | changes)
    assert [line.replace(str(here), "HERE") for line in told] == [f"<config>: {message}" for message in messages]


def test_a_config_built_in_python_can_be_checked(base: dict[str, Any]) -> None:
    assert list(check_sections(dict(load_config(base)))) == []
    base["dataset"]["y"] = [1.0]
    (finding,) = check_sections(dict(RunConfig.model_validate(base)))
    assert finding[0] == ("dataset", "y")


def test_written_weights_need_a_two_layer_network(base: dict[str, Any], problems: Problems) -> None:
    changes = values(1) | {"architecture": {"kind": "fully_connected", "widths": [1]}}
    assert "<config>: initialization.kind: values needs architecture.kind two_layer" in problems(base | changes)


def test_a_gan_needs_weights_that_it_can_take(base: dict[str, Any], problems: Problems) -> None:
    told = problems(base | GAN | {"initialization": {"kind": "balanced", "scale": 1.0}})
    assert "<config>: initialization.kind: must be default_scaled or file for architecture.kind gan" in told
