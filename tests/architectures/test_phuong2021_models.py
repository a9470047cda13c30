"""The residual and the convolutional network: by hand, against PyTorch's own layers, trained and resumed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from dynamics_cli import memory as blocks
from dynamics_cli.architectures.convolutional import Convolutional
from dynamics_cli.architectures.fully_connected import Residual
from dynamics_cli.config import load_config
from dynamics_cli.training.backends import build_stepper, choose
from dynamics_cli.training.problem import build_problem

SMALL = {"kind": "convolutional", "image": [1, 6, 6], "convolutions": [[3, 3, 1, 1], [2, 4, 2, 1]], "widths": [5]}


def random_model(config, d, seed=0):
    model = config.build(d).double()
    rng = np.random.default_rng(seed)
    for parameter in model.parameters():
        parameter.data = torch.from_numpy(rng.standard_normal(tuple(parameter.shape)))
    return model, {name: p.detach().numpy() for name, p in model.named_parameters()}


def test_residual_by_hand_and_in_numpy():
    config = Residual(width=3, depth=4)
    model, weights = random_model(config, 2)
    assert config.shapes(2) == {
        "weight_1": (3, 2), "weight_2": (3, 3), "weight_3": (3, 3), "weight_4": (1, 3),
    }  # fmt: skip
    x = np.array([[1.0, -2.0], [0.5, 0.3]])
    f = x @ weights["weight_1"].T
    f = f + np.maximum(f, 0) @ weights["weight_2"].T
    f = f + np.maximum(f, 0) @ weights["weight_3"].T
    expected = (np.maximum(f, 0) @ weights["weight_4"].T)[:, 0]
    np.testing.assert_allclose(config.function(weights)(x), expected)
    np.testing.assert_allclose(model(torch.from_numpy(x)).detach(), expected)


def test_residual_of_depth_2_is_the_two_layer_network():
    config = Residual(width=4, depth=2)
    _, weights = random_model(config, 3)
    x = np.random.default_rng(1).standard_normal((5, 3))
    expected = np.maximum(x @ weights["weight_1"].T, 0) @ weights["weight_2"][0]
    np.testing.assert_allclose(config.function(weights)(x), expected)


@pytest.mark.parametrize(("outputs", "shape"), [(1, (700,)), (3, (700, 3))])
def test_convolutional_is_that_of_pytorch_in_parts_and_as_a_whole(outputs, shape, monkeypatch):
    config = Convolutional(**SMALL, outputs=outputs)
    model, weights = random_model(config, 36)
    reference = nn.Sequential(
        nn.Unflatten(1, (1, 6, 6)), nn.Conv2d(1, 3, 3, 1, 1), nn.ReLU(), nn.Conv2d(3, 2, 4, 2, 1), nn.ReLU(),
        nn.Flatten(), nn.Linear(18, 5), nn.ReLU(), nn.Linear(5, outputs),
    ).double()  # fmt: skip
    reference.load_state_dict(
        dict(zip(reference.state_dict(), [torch.from_numpy(w) for w in weights.values()], strict=True))
    )
    x = np.random.default_rng(1).standard_normal((700, 36))
    monkeypatch.setattr(blocks, "NUMBERS", 50_000)
    with torch.no_grad():
        expected = reference(torch.from_numpy(x)).numpy().reshape(shape)
    np.testing.assert_allclose(config.function(weights)(x), expected, rtol=1e-9)
    np.testing.assert_allclose(model(torch.from_numpy(x)).detach(), expected, rtol=1e-9)


def test_named_layers_and_their_outputs():
    config = Convolutional(**SMALL)
    found = config.layers()
    assert [layer.name for layer in found] == ["conv(3,3,1,1)", "conv(2,4,2,1)", "fc(18,5)", "fc(5,1)"]
    assert [layer.output for layer in found] == [(3, 6, 6), (2, 3, 3), (5,), (1,)]
    assert sum(layer.parameters for layer in found) == sum(int(np.prod(shape)) for shape in config.shapes(36).values())
    _, weights = random_model(config, 36)
    x = np.random.default_rng(1).standard_normal((4, 36))
    third = config.layer_outputs(weights, x, 3)
    assert third.shape == (4, 5)
    last = np.maximum(third, 0) @ weights["weight_4"][0] + weights["bias_4"]
    np.testing.assert_allclose(last, config.function(weights)(x), rtol=1e-10)
    assert config.layer_outputs(weights, x, 1).shape == (4, 108)
    with pytest.raises(ValueError, match="no layer 5"):
        config.layer_outputs(weights, x, 5)


CONFIG = {
    "name": "images",
    "dataset": {"kind": "mnist_pair", "digits": [1, 0], "source": "subset", "per_class": 8, "test": False},
    "architecture": {"kind": "convolutional", "convolutions": [[2, 4, 4, 0]], "widths": [6]},
    "initialization": {"kind": "default_scaled", "factor": 0.05, "only": ["weight_2", "weight_3"]},
    "loss": {"kind": "logistic"},
    "optimizer": {"kind": "adam", "lr": 0.01, "batch_size": 4, "epochs": 20},
}


def test_the_factor_multiplies_the_named_parameters_only():
    scaled = build_problem(load_config(CONFIG)).initial_parameters()
    plain = {**CONFIG, "initialization": {"kind": "default_scaled"}}
    drawn = build_problem(load_config(plain)).initial_parameters()
    for name, value in drawn.items():
        factor = 0.05 if name in ("weight_2", "weight_3") else 1.0
        np.testing.assert_allclose(scaled[name], factor * value, rtol=1e-6)
    assert np.abs(drawn["weight_1"]).max() <= 1 / 4  # fan-in 16


def test_flat_images_are_learnt_and_a_resumed_run_is_the_same():
    problem = build_problem(load_config(CONFIG))
    steppers = [build_stepper([problem], choose([problem])) for _ in range(3)]
    first = steppers[0].loss()
    steppers[0].advance(80)
    steppers[1].advance(33)
    steppers[2].load_state_dict(steppers[1].state_dict())
    steppers[2].advance(47)
    assert steppers[0].loss() < 0.5 * first
    for name, value in steppers[0].parameters().items():
        np.testing.assert_array_equal(value, steppers[2].parameters()[name])
