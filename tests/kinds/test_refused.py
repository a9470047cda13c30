"""Kinds that do not go together, or not with the data: refused in a message that says what would
do.
"""

from __future__ import annotations

from typing import Any

import pytest

from dynamics_cli.config import ConfigError, load_config
from dynamics_cli.errors import InputError
from dynamics_cli.training.backends import build_stepper, choose
from dynamics_cli.training.problem import build_problem

from .cases import POINTS, config_of

LINEAR = {"kind": "fully_connected", "widths": [7, 6, 5], "activation": "linear", "bias": False}
DEEP = {"kind": "fully_connected", "widths": [6, 5]}
NETWORK = {"kind": "two_layer", "width": 4}
FRESH = {"optimizer": {"kind": "sgd", "samples": "fresh"}}
PAIRS = {"kind": "modular_arithmetic", "p": 7, "train_fraction": 0.8, "labels": "classes"}
GAN = {
    "dataset": {"kind": "mixture", "modes": 9},
    "architecture": {"kind": "gan"},
    "loss": {"kind": "logistic"},
    "initialization": {"kind": "default_scaled"},
    "optimizer": {"kind": "adam", "batch_size": 4},
}
TRANSFORMER = {"kind": "transformer", "tokens": 2, "width": 16, "heads": 2, "outputs": 7}


def gd(**keys: Any) -> dict[str, Any]:
    return {"optimizer": {"kind": "gd", **keys}}


def scheduled(**keys: Any) -> dict[str, Any]:
    return gd(schedule=keys)


def drawn(architecture: dict[str, Any], kind: str, **keys: Any) -> dict[str, Any]:
    return {"architecture": architecture, "initialization": {"kind": kind, "scale": 1.0, **keys}}


def modes(y: Any, z: Any, **sections: Any) -> dict[str, Any]:
    """Return independent modes on two orthogonal points, one of each class."""
    start = {"kind": "independent_modes", "y": y, "z": z}
    neurons = {"kind": "two_layer", "width": 3}
    points = {"kind": "points", "x": [[1.0, 0.0], [0.0, 2.0]], "y": [1, -1]}
    return {
        "dataset": points,
        "architecture": neurons,
        "initialization": start,
        "loss": {"kind": "logistic"},
    } | sections


def three(**sections: Any) -> dict[str, Any]:
    """Return independent modes of three neurons."""
    return modes([[0.2, 0.3], [0.4]], [[0.2, 0.1], [0.5]], **sections)


def points(x: Any, y: Any) -> dict[str, Any]:
    return {"dataset": {"kind": "points", "x": x, "y": y}}


def held_out(**keys: Any) -> dict[str, Any]:
    return {"dataset": {**POINTS, **keys}}


def labelled(loss: str, *y: float, architecture: dict[str, Any] = DEEP) -> dict[str, Any]:
    """Return a network and two samples of these labels."""
    start = {"kind": "default_scaled"}
    return {
        **points([[1.0, 0.0], [0.0, 1.0]], [*y]),
        "architecture": architecture,
        "initialization": start,
        "loss": {"kind": loss},
    }


def taught(**sections: dict[str, Any]) -> dict[str, Any]:
    """Return online SGD on samples of a teacher; given keys are those of sections."""
    teacher = {"kind": "teacher", "n": 4, "dim": 2, "architecture": DEEP}
    return {
        "dataset": teacher | sections.get("dataset", {}),
        "optimizer": FRESH["optimizer"] | sections.get("optimizer", {}),
    }


def digits(**keys: Any) -> dict[str, Any]:
    return {
        "dataset": {"kind": "mnist_pair", "digits": [1, 0], **keys},
        "loss": {"kind": "logistic"},
    }


def values(architecture: dict[str, Any]) -> dict[str, Any]:
    weights = {"kind": "values", "hidden_weight": [[1.0, 2.0]], "output_weight": [1.0]}
    return {"architecture": architecture, "initialization": weights}


def pairs(**keys: Any) -> dict[str, Any]:
    """Return a transformer on pairs modulo 7; a key that is None is left out."""
    architecture = {key: value for key, value in (TRANSFORMER | keys).items() if value is not None}
    return {
        "dataset": PAIRS,
        "architecture": architecture,
        "initialization": {"kind": "lecun"},
        "loss": {"kind": "cross_entropy"},
    }


def in_context(**keys: Any) -> dict[str, Any]:
    """Return linear attention on sequences of five pairs and a query; keys are those of either
    section.
    """
    data = {
        "kind": "in_context_regression",
        "n": 9,
        "context": 5,
        "eigenvalues": [0.6, 0.4],
        "features": "moments",
    }
    net = {"kind": "linear_attention"}
    return {
        "dataset": (
            data
            | {
                key: value
                for key, value in keys.items()
                if key in ("n", "features", "exact_moments")
            }
        ),
        "architecture": net | {key: value for key, value in keys.items() if key == "rank"},
        "optimizer": keys.get("optimizer", {}),
    }


def measured(
    measure: dict[str, Any], architecture: dict[str, Any] = NETWORK, **sections: Any
) -> dict[str, Any]:
    start = {"kind": "default_scaled"}
    return {
        "architecture": architecture,
        "initialization": start,
        "record": {"measures": [measure]},
    } | sections


CONFIGS: list[tuple[dict[str, Any], str]] = [
    (gd(nesterov=True), "optimizer.nesterov: needs optimizer.momentum"),
    (gd(loss_scaled=True, momentum=0.9), "momentum: does not go with loss_scaled"),
    (gd(momentum=1.0), "optimizer.momentum: must be < 1"),
    ({"optimizer": {"kind": "sgd", "batch_size": 1, "epochs": 2, "iterations": 2}}, "not both"),
    (gd(schedule="cosin"), "optimizer.schedule: unknown kind 'cosin'.*did you mean 'cosine'"),
    (scheduled(kind="step", every=0), "optimizer.schedule.every: must be >= 1"),
    (scheduled(kind="power", exponent=-1), "optimizer.schedule.exponent: must be >= 0"),
    (
        scheduled(kind="cosine", warmup=3),
        "optimizer.schedule.warmup: unknown key .*did you mean 'warm_up'",
    ),
    (drawn({"kind": "two_layer", "width": 2}, "decoupled"), "activation: must be linear"),
    (drawn({**LINEAR, "bias": True}, "decoupled"), "bias: must be false"),
    (
        drawn({"kind": "residual", "width": 2}, "balanced_product"),
        "balanced_product needs architecture.kind two_layer",
    ),
    (drawn({"kind": "two_layer", "width": 3}, "paired"), "architecture.width: must be even"),
    (
        drawn({"kind": "fully_connected", "widths": [2, 3]}, "paired"),
        r"architecture.widths\[1\]: must be even",
    ),
    (drawn({"kind": "residual", "width": 2}, "paired"), "paired needs the hidden layer"),
    (drawn(LINEAR, "unbalanced", scales=[-1.0]), r"scales\[0\]: must be >= 0, not -1.0$"),
    (
        drawn(LINEAR, "unbalanced", scales={"weight_1": -1.0}),
        "scales.weight_1: must be >= 0, not -1.0$",
    ),
    (
        drawn(LINEAR, "unbalanced", scales="small"),
        "scales: must be a list or a mapping, not the text 'small'",
    ),
    (
        three(architecture={"kind": "two_layer", "width": 4}),
        "architecture.width: must be 3, the number of neurons",
    ),
    (
        three(architecture={"kind": "fully_connected", "widths": [3, 4], "bias": False}),
        "widths: must be 3",
    ),
    (
        three(architecture={"kind": "two_layer", "width": 3, "activation": "linear"}),
        "activation: must be relu",
    ),
    (
        three(architecture={"kind": "fully_connected", "widths": [3]}),
        "architecture.bias: must be false",
    ),
    (
        modes([[0.2], [0.1]], [[0.2], [0.1, 0.1]]),
        "initialization.z: must have lists of the same lengths as y",
    ),
    (
        three(architecture={"kind": "two_layer", "width": 3, "outputs": 3}),
        "architecture.outputs: must be 1",
    ),
    (modes([[-0.2, 1], [1]], [[1, 1], [1]]), "initialization.y"),
    (
        points([[1], [2, 3]], [1, 2]),
        r"dataset.x\[1\]: has 2 coordinates, the first 1; all need the same",
    ),
    (
        points([[1], [2]], [1]),
        "dataset.y: has 1 label, but x has 2 samples; there must be one label per sample",
    ),
    (held_out(x_test=[[1, 2]]), "dataset.y_test: is missing; x_test needs labels"),
    (held_out(y_test=[1]), "dataset.x_test: is missing; y_test needs inputs"),
    (
        held_out(x_test=[[1]], y_test=[1]),
        r"dataset.x_test\[0\]: has 1 coordinate, those of x 2; all need the same",
    ),
    (
        held_out(x_test=[[1, 2]], y_test=[1, 2]),
        "dataset.y_test: has 2 labels, but x_test has 1 sample",
    ),
    (
        {"dataset": {"kind": "file", "path": __file__}},
        "dataset.path: must name a .npz or a .csv file, not ",
    ),
    (
        {"architecture": {**NETWORK, "activation": "leaky_relu"}},
        "slope: is missing; leaky_relu needs a number >= 0",
    ),
    (
        {"architecture": {**NETWORK, "slope": 0.1}},
        "slope: belongs to activation leaky_relu, not to relu",
    ),
    (
        {"optimizer": {"kind": "adam", "epochs": 3, "replacement": True}},
        "replacement: needs a batch_size",
    ),
    (
        labelled("cross_entropy", 0, 1, architecture={"kind": "residual", "width": 3}),
        (
            "loss.kind: cross_entropy needs architecture.kind .*'two_layer' or 'vgg16' with outputs"
            " >= 2; residual has one"
        ),
    ),
    *(
        (labelled(loss, *labels, architecture={**network, "outputs": outputs}), told)
        for network in (
            DEEP,
            {"kind": "convolutional", "image": [1, 1, 2], "convolutions": [[2, 1, 1, 0]]},
            {"kind": "vgg16", "image": [1, 1, 2]},
        )
        for loss, labels, outputs, told in (
            (
                "cross_entropy",
                (0, 1),
                1,
                "outputs: must be the number of classes, >= 2, for the loss cross_entropy",
            ),
            ("logistic", (1, -1), 3, "outputs: must be 1 for the loss logistic, not 3"),
        )
    ),
    (
        drawn({"kind": "fully_connected", "widths": []}, "paired"),
        "initialization.kind: paired needs the hidden layer",
    ),
    *(
        (drawn(DEEP, kind, **keys), told)
        for kind, keys, told in (
            ("balanced", {}, "initialization.kind: balanced needs architecture.kind two_layer"),
            (
                "unbalanced",
                {"output_value": 1},
                "initialization.output_value: needs architecture.kind two_layer",
            ),
        )
    ),
    (values(DEEP), "initialization.kind: values needs architecture.kind two_layer"),
    (
        values({"kind": "two_layer", "width": 2}),
        "hidden_weight: has 1 entries, architecture.width is 2",
    ),
    *(
        (GAN | {section: value}, told)
        for section, value, told in (
            (
                "loss",
                {"kind": "exponential"},
                "loss.kind: must be logistic .* or hinge for architecture.kind gan",
            ),
            ("dataset", POINTS, "dataset.kind: must be mixture for architecture.kind gan"),
            (
                "optimizer",
                {"kind": "adam"},
                "optimizer.kind: must be adam with a batch_size for architecture.kind gan",
            ),
            (
                "initialization",
                {"kind": "balanced", "scale": 1.0},
                "must be default_scaled or file for .*kind gan",
            ),
        )
    ),
    *(
        ({"optimizer": {"kind": "gradient_flow", "until": 2.0, **keys}}, f"optimizer.{told}")
        for keys, told in (
            (
                {"spacing": "geometric"},
                "first: is missing; geometric spacing needs the time of the first point",
            ),
            ({"first": 0.1}, "first: belongs to spacing geometric, not to uniform"),
            ({"spacing": "geometric", "first": 3.0}, "first: must be below until = 2, not 3"),
            ({"lr": 0.1}, "lr: unknown key of kind 'gradient_flow'"),
            ({"rtol": 0.0}, "rtol: must be"),
        )
    ),
    (in_context(rank=1), "architecture.rank: is that of separate keys and queries"),
    (in_context(n=2, exact_moments=True), "exact_moments: needs more sequences than the 2 columns"),
    (
        in_context(
            exact_moments=True, optimizer={"kind": "sgd", "samples": "fresh", "batch_size": 2}
        ),
        "exact_moments: does not go with fresh samples",
    ),
    *(
        (taught(**{section: value}), f"<config>: {told}")
        for section, value, told in (
            (
                "dataset",
                {"scale": 2.0, "initialization": {"kind": "unbalanced", "scale": 1.0}},
                "dataset.scale: ",
            ),
            (
                "dataset",
                {"initialization": {"kind": "balanced", "scale": 0.1}},
                "dataset.initialization.kind: ",
            ),
            ("dataset", {"architecture": {**DEEP, "slope": 0.1}}, "dataset.architecture.slope: "),
            *(
                ("dataset", {key: value}, f"dataset.{key}: is of the samples as a whole")
                for key, value in (
                    ("whiten", True),
                    ("random_labels", 0.1),
                    ("replaced_labels", 0.1),
                )
            ),
            (
                "optimizer",
                {"samples": "fersh"},
                "optimizer.samples: must be 'fresh', not the text 'fersh'",
            ),
            (
                "optimizer",
                {"epochs": 3},
                "optimizer.epochs: there are none of fresh samples; give iterations",
            ),
            (
                "optimizer",
                {"kind": "adam"},
                "optimizer.batch_size: is missing; fresh samples need their number",
            ),
        )
    ),
    (
        points([[1.0]], [1.0]) | FRESH,
        "fresh needs dataset.kind 'clusters', .* or 'teacher'; points has only its own",
    ),
    (
        {
            "dataset": {"kind": "linear_map", "inputs": 2, "outputs": 1, "singular_values": [1.0]},
            **FRESH,
        },
        "dataset.n: is missing; fresh samples are Gaussian",
    ),
    *(
        (digits(**keys), told)
        for keys, told in (
            ({"digits": [1, 1]}, "dataset.digits: must be two different digits, not 1 twice"),
            ({"digits": [1, 10]}, r"dataset.digits\[1\]: must be <= 9, not 10"),
            (
                {"labels": "classes"},
                "dataset.labels: must be signs for the loss logistic, not classes",
            ),
            (
                {"test": False, "test_per_class": 3},
                "dataset.test_per_class: makes no sense with test: false",
            ),
            ({"source": "ful"}, "did you mean 'full'"),
        )
    ),
    (
        labelled("logistic") | {"dataset": {"kind": "mnist"}},
        "the loss logistic tells two apart: .*mnist_pair",
    ),
    *(
        (
            labelled("cross_entropy", architecture={**DEEP, "outputs": outputs})
            | {"dataset": data},
            told,
        )
        for data, outputs, told in (
            (
                {"kind": "mnist_pair", "digits": [1, 0]},
                2,
                "must be classes for the loss cross_entropy, not signs",
            ),
            ({"kind": "mnist"}, 2, "architecture.outputs: must be at least 10"),
            ({"kind": "cifar10"}, 9, "architecture.outputs: must be at least 10"),
        )
    ),
    *(
        (
            {
                "dataset": {
                    "kind": "gaussians",
                    "per_class": 3,
                    "mean": [0.0, 3.0],
                    "deviation": 0.5,
                    **keys,
                }
            },
            told,
        )
        for keys, told in (
            ({"dim": 1}, "at least 2"),
            ({"mean": [0.0, 0.0]}, "must not be 0"),
            ({"outliers": [[1.0]]}, "has 1 coordinate"),
        )
    ),
    (pairs(heads=3), "architecture.width: 16 is not a multiple of heads = 3"),
]
MAP = {"kind": "linear_map", "inputs": 4, "outputs": 3, "singular_values": [1.0]}
PROBLEMS: list[tuple[dict[str, Any], str]] = [
    (
        three(**points([[1.0, 0.0], [-1.0, 0.1], [0.0, -2.0]], [1, 1, -1])),
        "class 1 have a negative inner product",
    ),
    (
        three(**points([[1.0, 0.5], [0.0, 2.0]], [1, -1])),
        "classes 1 and 2 have a positive inner product",
    ),
    (three(**points([[1.0, 0.0]], [1])), "class 2 has no points"),
    (modes([[0.2, 0.3, 0.1], []], [[0.2, 0.1, 0.3], []]), "class 2 has points and needs a neuron"),
    *(
        ({"dataset": {**labels, "replaced_labels": 0.5}}, "replaced_labels: labels must be classes")
        for labels in (
            points([[1.0], [2.0]], [0.5, 1.0])["dataset"],
            {"kind": "linear_map", "inputs": 2, "outputs": 2, "singular_values": [1.0]},
        )
    ),
    ({"architecture": {**NETWORK, "train": ["w"]}}, "no weight 'w'; it has hidden_weight"),
    (gd(layer_lr={"b": 1.0}), "no weight 'b'"),
    (in_context(features="tokens"), "expected moments of D [+] 1 columns, "),
    (
        pairs(tokens=3),
        (
            "samples of 14 columns are not 3 tokens of equal length; divisors of 14 will do: 1, 2,"
            " 7, 14"
        ),
    ),
    *(
        (labelled(loss, architecture={**NETWORK, "outputs": outputs}) | {"dataset": MAP}, told)
        for loss, outputs, told in (
            ("mse", 2, "labels of 3 numbers beside 2 outputs.*architecture.outputs: 3"),
            ("cross_entropy", 3, "labels are vectors of 3 numbers"),
        )
    ),
    (
        labelled("cross_entropy", 0, 0.5, architecture={**DEEP, "outputs": 2}),
        r"y\[1\] is 0.5, the cross_entropy loss needs a class number 0..1",
    ),
    (labelled("logistic", 1, 0), r"dataset: y\[1\] is 0, the logistic loss needs -1 or 1"),
    (
        held_out(x_test=[[1, 2]], y_test=[0.5]) | {"loss": {"kind": "exponential"}},
        r"y_test\[0\] is 0.5",
    ),
    (pairs(outputs=3), r"y\[\d+\] is \d, the cross_entropy loss needs a class number 0..2"),
    (
        {"architecture": {"kind": "diagonal_linear"}, "initialization": {"kind": "kaiming"}},
        r"u \(2,\) is no matrix; unbalanced and default_scaled",
    ),
    (
        {**drawn(LINEAR, "decoupled"), **points([[1.0], [1.0]], [1.0, -1.0])},
        "no input is correlated with any label",
    ),
    (
        {
            **drawn({**NETWORK, "outputs": 4}, "balanced", output_signs="halves"),
            **points([[1.0], [2.0]], [0, 3]),
            "loss": {"kind": "cross_entropy"},
        },
        "output_signs: halves needs a network with one output, not 4",
    ),
    *(
        ({"architecture": DEEP, "initialization": {"kind": kind, **own, "scales": scales}}, told)
        for kind, own in {
            "unbalanced": {"scale": 0.5},
            "default_scaled": {},
            "kaiming": {},
            "orthogonal": {},
        }.items()
        for scales, told in (
            (
                {"weight_9": 1.0},
                "scales: no parameter 'weight_9'; this network has weight_1, bias_1",
            ),
            ([1.0, 1.0], "scales has 2 entries, the network has 3 layers"),
        )
    ),
    (
        {"architecture": DEEP, "initialization": {"kind": "default_scaled", "only": ["weight_9"]}},
        "no parameter 'weight_9'",
    ),
    (
        {
            "architecture": {"kind": "matrix_product", "rows": 3, "columns": 2},
            **points([[0.0] * 5], [1.0]),
        },
        "samples of 5 columns; architecture.kind matrix_product needs pairs",
    ),
    (
        {
            "architecture": {
                "kind": "convolutional",
                "image": [1, 6, 6],
                "convolutions": [[3, 3, 1, 1]],
                "widths": [5],
            },
            **points([[0.0] * 35], [1.0]),
        },
        "has 36 numbers, the inputs have 35",
    ),
    (
        {
            "architecture": {
                "kind": "convolutional",
                "image": [1, 6, 6],
                "convolutions": [[1, 9, 1, 0]],
            },
            **points([[0.0] * 36], [1.0]),
        },
        r"convolutions\[0\]: conv\(1,9,1,0\) does not fit 6 x 6",
    ),
    (
        {"architecture": {"kind": "vgg16", "image": [3, 32, 32]}, **points([[0.0] * 7], [1.0])},
        "has 3072 numbers, the inputs have 7",
    ),
    *(
        (
            {"architecture": {"kind": "vgg16", "image": [1, 1, 2], "width_multiplier": times}},
            "the network is too large",
        )
        for times in (1e308, 1e30)
    ),
    (
        {
            "architecture": {
                "kind": "convolutional",
                "image": [1, 1, 2],
                "convolutions": [[2**62, 3, 1, 1], [2**62, 3, 1, 1]],
            }
        },
        "the network is too large",
    ),
    (
        measured({"kind": "distance", "layer": "w"}),
        "distance.layer 'w' is no weight of the network: hidden_weight",
    ),
    (
        measured({"kind": "singular_values", "layer": "end_to_end"}),
        "layer end_to_end needs a linear network",
    ),
]


@pytest.mark.parametrize(("changes", "told"), CONFIGS, ids=[told[:40] for _, told in CONFIGS])
def test_configs_that_make_no_sense(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        load_config(config_of(**changes))


@pytest.mark.parametrize(("changes", "told"), PROBLEMS, ids=[told[:40] for _, told in PROBLEMS])
def test_networks_and_measures_that_do_not_suit_the_data(
    changes: dict[str, Any], told: str
) -> None:
    config = load_config(config_of(**changes))
    with pytest.raises(InputError, match=told):  # noqa: PT012
        problem = build_problem(config)
        problem.initial_parameters()
        for measure in problem.config.record.measures or ():
            measure.offered(problem)
        build_stepper([problem], choose([problem]))
