"""Kinds that do not go together, or not with the data: refused in a message that says what would do."""

from __future__ import annotations

from typing import Any

import pytest

from dynamics_cli.config import ConfigError, load_config
from dynamics_cli.errors import InputError
from dynamics_cli.training.backends import build_stepper, choose
from dynamics_cli.training.problem import build_problem

from .cases import config_of

LINEAR = {"kind": "fully_connected", "widths": [7, 6, 5], "activation": "linear", "bias": False}
DEEP = {"kind": "fully_connected", "widths": [6, 5]}
NETWORK = {"kind": "two_layer", "width": 4}
PAIRS = {"kind": "modular_arithmetic", "p": 7, "train_fraction": 0.8, "labels": "classes"}
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
        "dataset": points, "architecture": neurons, "initialization": start, "loss": {"kind": "logistic"},
    } | sections  # fmt: skip


def three(**sections: Any) -> dict[str, Any]:
    """Return independent modes of three neurons."""
    return modes([[0.2, 0.3], [0.4]], [[0.2, 0.1], [0.5]], **sections)


def points(x: Any, y: Any) -> dict[str, Any]:
    return {"dataset": {"kind": "points", "x": x, "y": y}}


def pairs(**keys: Any) -> dict[str, Any]:
    """Return a transformer on pairs modulo 7; a key that is None is left out."""
    architecture = {key: value for key, value in (TRANSFORMER | keys).items() if value is not None}
    return {"dataset": PAIRS, "architecture": architecture, "initialization": {"kind": "lecun"},
            "loss": {"kind": "cross_entropy"}}  # fmt: skip


def in_context(**keys: Any) -> dict[str, Any]:
    """Return linear attention on sequences of five pairs and a query; keys are those of either section."""
    data = {"kind": "in_context_regression", "n": 9, "context": 5, "eigenvalues": [0.6, 0.4], "features": "moments"}
    net = {"kind": "linear_attention"}
    return {"dataset": data | {key: value for key, value in keys.items() if key in ("n", "features", "exact_moments")},
            "architecture": net | {key: value for key, value in keys.items() if key == "rank"},
            "optimizer": keys.get("optimizer", {})}  # fmt: skip


def measured(measure: dict[str, Any], architecture: dict[str, Any] = NETWORK, **sections: Any) -> dict[str, Any]:
    start = {"kind": "default_scaled"}
    return {"architecture": architecture, "initialization": start, "record": {"measures": [measure]}} | sections


# fmt: off
CONFIGS: list[tuple[dict[str, Any], str]] = [
    (gd(nesterov=True), "optimizer.nesterov: needs optimizer.momentum"),
    (gd(loss_scaled=True, momentum=0.9), "momentum: does not go with loss_scaled"),
    ({**gd(label_noise=0.1), "loss": {"kind": "logistic"}}, "label_noise: noise is added to real labels, .* mse"),
    (gd(momentum=1.0), "optimizer.momentum: must be < 1"),
    ({"optimizer": {"kind": "sgd", "batch_size": 1, "epochs": 2, "iterations": 2}}, "not both"),
    (gd(schedule="cosin"), "optimizer.schedule: unknown kind 'cosin'.*did you mean 'cosine'"),
    (scheduled(kind="step", every=0), "optimizer.schedule.every: must be >= 1"),
    (scheduled(kind="power", exponent=-1), "optimizer.schedule.exponent: must be >= 0"),
    (scheduled(kind="cosine", warmup=3), "optimizer.schedule.warmup: unknown key .*did you mean 'warm_up'"),
    ({"loss": {"kind": "mse", "divide_by": "output_scale_squared"}}, "loss.divide_by: needs architecture.output_scale"),
    ({**gd(label_noise=0.1), "loss": {"kind": "mse", "missing": 0.0}},
     "optimizer.label_noise: would hide which labels are missing"),
    (drawn({"kind": "two_layer", "width": 2}, "decoupled"), "activation: must be linear"),
    (drawn({**LINEAR, "bias": True}, "decoupled"), "bias: must be false"),
    (drawn({"kind": "residual", "width": 2}, "balanced_product"), "balanced_product needs architecture.kind two_layer"),
    (drawn({"kind": "two_layer", "width": 3}, "paired"), "architecture.width: must be even"),
    (drawn({"kind": "fully_connected", "widths": [2, 3]}, "paired"), r"architecture.widths\[1\]: must be even"),
    (drawn({"kind": "residual", "width": 2}, "paired"), "paired needs architecture.kind"),
    (drawn(LINEAR, "unbalanced", scales=[-1.0]), r"scales\[0\]: must be >= 0, not -1.0$"),
    (drawn(LINEAR, "unbalanced", scales={"weight_1": -1.0}), "scales.weight_1: must be >= 0, not -1.0$"),
    (drawn(LINEAR, "unbalanced", scales="small"),
     "scales: must be a list or a mapping, not the text 'small'"),
    (three(architecture={"kind": "two_layer", "width": 4}), "architecture.width: must be 3"),
    (three(architecture={"kind": "two_layer", "width": 3, "activation": "linear"}), "activation: must be relu"),
    (three(architecture={"kind": "fully_connected", "widths": [3]}), "architecture.bias: must be false"),
    (modes([[0.2], [0.1]], [[0.2], [0.1, 0.1]]), "initialization.z: must have lists of the same lengths as y"),
    (modes([[1.0]] * 3, [[1.0]] * 3), "one list for each of 2 classes, not 3"),
    (modes([[-0.2, 1], [1]], [[1, 1], [1]]), "initialization.y"),
    (in_context(rank=1), "architecture.rank: is that of separate keys and queries"),
    (in_context(n=2, exact_moments=True), "exact_moments: needs more sequences than the 2 columns"),
    (in_context(exact_moments=True, optimizer={"kind": "sgd", "samples": "fresh", "batch_size": 2}),
     "exact_moments: does not go with fresh samples"),
    (pairs(heads=3), "architecture.width: 16 is not a multiple of heads = 3"),
]
PROBLEMS: list[tuple[dict[str, Any], str]] = [
    (three(**points([[1.0, 0.0], [-1.0, 0.1], [0.0, -2.0]], [1, 1, -1])), "class 1 have a negative inner product"),
    (three(**points([[1.0, 0.5], [0.0, 2.0]], [1, -1])), "classes 1 and 2 have a positive inner product"),
    (three(**points([[1.0, 0.0]], [1])), "class 2 has no points"),
    (modes([[0.2, 0.3, 0.1], []], [[0.2, 0.1, 0.3], []]), "class 2 has points and needs a neuron"),
    *(({"dataset": {**labels, "replaced_labels": 0.5}}, "replaced_labels: labels must be classes")
      for labels in (points([[1.0], [2.0]], [0.5, 1.0])["dataset"], {"kind": "linear_map", "inputs": 2, "outputs": 2,
                     "singular_values": [1.0]})),
    ({"architecture": {**NETWORK, "train": ["w"]}}, "no weight 'w'; it has hidden_weight"),
    (gd(layer_lr={"b": 1.0}), "no weight 'b'"),
    (in_context(features="tokens"), "samples of 18 columns are no moments of D [+] 1 columns"),
    (pairs(tokens=3), "samples of 14 columns are not 3 tokens of equal length; divisors of 14 will do: 1, 2, 7, 14"),
    (pairs(outputs=3), r"y\[\d+\] is \d, the cross_entropy loss needs a class number 0..2"),
    ({"architecture": {"kind": "diagonal_linear"}, "initialization": {"kind": "kaiming"}},
     r"u \(2,\) is no matrix; unbalanced and default_scaled"),
    ({**drawn(LINEAR, "decoupled"), **points([[1.0], [1.0]], [1.0, -1.0])}, "no input is correlated with any label"),
    ({**drawn({**NETWORK, "outputs": 4}, "balanced", output_signs="halves"), **points([[1.0], [2.0]], [0, 3]),
      "loss": {"kind": "cross_entropy"}}, "output_signs: halves are of one output, there are 4"),
    *(({"architecture": DEEP, "initialization": {"kind": kind, **own, "scales": scales}}, told)
      for kind, own in {"unbalanced": {"scale": 0.5}, "default_scaled": {}, "kaiming": {}, "orthogonal": {}}.items()
      for scales, told in (({"weight_9": 1.0}, "scales: no parameter 'weight_9'; this network has weight_1, bias_1"),
                           ([1.0, 1.0], "scales has 2 entries, the network has 3 layers"))),
    ({"architecture": DEEP, "initialization": {"kind": "default_scaled", "only": ["weight_9"]}},
     "no parameter 'weight_9'"),
    ({"architecture": {"kind": "matrix_product", "rows": 3, "columns": 2}, **points([[0.0] * 5], [1.0])},
     "samples of 5 columns; architecture.kind matrix_product needs pairs"),
    ({"architecture": {"kind": "convolutional", "image": [1, 6, 6], "convolutions": [[3, 3, 1, 1]], "widths": [5]},
      **points([[0.0] * 35], [1.0])}, "has 36 numbers, the inputs have 35"),
    ({"architecture": {"kind": "convolutional", "image": [1, 6, 6], "convolutions": [[1, 9, 1, 0]]},
      **points([[0.0] * 36], [1.0])}, r"convolutions\[0\]: conv\(1,9,1,0\) does not fit 6 x 6"),
    ({"architecture": {"kind": "vgg16", "image": [3, 32, 32]}, **points([[0.0] * 7], [1.0])},
     "has 3072 numbers, the inputs have 7"),
    *(({"architecture": {"kind": "vgg16", "image": [1, 1, 2], "width_multiplier": times}}, "the network is too large")
      for times in (1e308, 1e30)),
    ({"architecture": {"kind": "convolutional", "image": [1, 1, 2],
                       "convolutions": [[2**62, 3, 1, 1], [2**62, 3, 1, 1]]}}, "the network is too large"),
    (measured({"kind": "distance", "layer": "w"}), "distance.layer 'w' is no weight of the network: hidden_weight"),
    (measured({"kind": "singular_values", "layer": "end_to_end"}), "layer end_to_end needs a linear network"),
]
# fmt: on


@pytest.mark.parametrize(("changes", "told"), CONFIGS, ids=[told[:40] for _, told in CONFIGS])
def test_configs_that_make_no_sense(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        load_config(config_of(**changes))


@pytest.mark.parametrize(("changes", "told"), PROBLEMS, ids=[told[:40] for _, told in PROBLEMS])
def test_networks_and_measures_that_do_not_suit_the_data(changes: dict[str, Any], told: str) -> None:
    config = load_config(config_of(**changes))
    with pytest.raises(InputError, match=told):  # noqa: PT012
        problem = build_problem(config)
        problem.initial_parameters()
        for measure in problem.config.record.measures or ():
            measure.offered(problem)
        build_stepper([problem], choose([problem]))
