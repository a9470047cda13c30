"""Initialisations by what defines them: orthogonality, balance, modes, pairs, variances,
spheres, delta.
"""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from dynamics_cli.training.backends import build_stepper, choose
from tests.initializations.test_initializations import weights
from tests.training.problems import random_problem

LINEAR = {"kind": "fully_connected", "widths": [7, 6, 5], "activation": "linear", "bias": False}
DEEP = {"kind": "fully_connected", "widths": [60, 40], "outputs": 1}


def start(initialization, **settings):
    one = random_problem(initialization=initialization, **settings)
    return one.initial_parameters(), one


@pytest.mark.parametrize(
    ("architecture", "d"), [(LINEAR, 3), (LINEAR, 9), ({"kind": "two_layer", "width": 8}, 3)]
)
def test_orthogonal(architecture, d):
    drawn, _ = start({"kind": "orthogonal", "scale": 0.3}, architecture=architecture, d=d)
    for value in drawn.values():
        W = value.reshape(-1, value.shape[-1])
        gram = W @ W.T if W.shape[0] <= W.shape[1] else W.T @ W
        assert_allclose(gram, 0.09 * np.eye(len(gram)), atol=1e-15)


@pytest.mark.parametrize(
    "architecture", [LINEAR, {"kind": "two_layer", "width": 8, "activation": "linear"}]
)
def test_balanced_layers_of_any_depth_stay_balanced(architecture):
    flow = {"kind": "gradient_flow", "until": 0.5, "points": 1, "rtol": 1e-10}
    drawn, one = start(
        {"kind": "balanced_product", "scale": 0.8},
        architecture=architecture,
        optimizer=flow,
        backend="torch",
    )
    stepper = build_stepper([one], choose([one]))
    stepper.advance(1)
    for now, digits in ((drawn, 1e-15), (stepper.parameters(), 1e-8)):
        for before, after in pairwise(value.reshape(-1, value.shape[-1]) for value in now.values()):
            assert_allclose(after.T @ after, before @ before.T, atol=digits)


def test_the_product_of_balanced_layers_is_gaussian():
    shapes = {"weight_1": (30, 20), "weight_2": (25, 30), "weight_3": (22, 25)}
    architecture = {"kind": "fully_connected", "widths": [30, 25], "outputs": 1, "bias": False}
    one = random_problem(
        initialization={"kind": "balanced_product", "scale": 0.1}, architecture=architecture, d=20
    )
    drawn = one.config.initialization.draw(
        one.__class__(one.config, one.dataset, one.loss, shapes), streams(0)
    )
    product = drawn["weight_3"] @ drawn["weight_2"] @ drawn["weight_1"]
    assert product.std() == pytest.approx(0.1, rel=0.15)  # 440 entries: 4 standard errors
    assert_allclose(
        np.linalg.svd(drawn["weight_2"])[1][:20] ** 3, np.linalg.svd(product)[1][:20], rtol=1e-10
    )


def streams(seed):
    from dynamics_cli.kinds import Streams

    return Streams(seed)


def test_decoupled_modes_follow_the_equation_of_saxe():
    """Two layers, one output, whitened inputs: `u' = 2 u (s - u)` for the half square, Saxe et
    al. 2014, Eq. 12.
    """
    x = np.sqrt(3) * np.eye(3)
    y = [0.9, -1.2, 2.0]
    drawn, one = start(
        {"kind": "decoupled", "scale": 0.01},
        architecture={"kind": "two_layer", "width": 4, "activation": "linear"},
        dataset={"kind": "points", "x": x.tolist(), "y": y},
        loss="half_mse",
        d=3,
        backend="torch",
        optimizer={"kind": "gradient_flow", "until": 3.0, "points": 30, "rtol": 1e-10},
    )
    correlation = np.array(y) @ x / 3
    s = np.linalg.norm(correlation)
    assert_allclose(
        drawn["output_weight"] @ drawn["hidden_weight"], 0.01 * correlation / s, atol=1e-16
    )
    stepper = build_stepper([one], choose([one]))
    for t in np.arange(1, 31) * 0.1:
        stepper.advance(1)
        now = stepper.parameters()
        e = np.exp(2 * s * t)
        u = s * e / (e - 1 + s / 0.01)
        assert_allclose(now["output_weight"] @ now["hidden_weight"], u * correlation / s, atol=1e-7)


@pytest.mark.parametrize(
    "architecture",
    [
        {"kind": "two_layer", "width": 10, "activation": "tanh"},
        {"kind": "fully_connected", "widths": [5, 8], "activation": "gelu"},
        {"kind": "fully_connected", "widths": [6]},
    ],
)
@pytest.mark.parametrize("scales", [None, [2.0, 0.5]])
@pytest.mark.parametrize("sphere", [None, True])
def test_paired_networks_are_0_and_their_neurons_are_not(architecture, scales, sphere):
    scales = scales if scales is None or architecture.get("widths") != [5, 8] else [*scales, 3.0]
    drawn, one = start(
        {"kind": "paired", "scale": 1.0, "scales": scales, "sphere": sphere},
        architecture=architecture,
    )
    x = np.random.default_rng(1).standard_normal((50, 3))
    assert np.abs(one.config.architecture.function(drawn)(x)).max() < 1e-14
    last = next(name for name in ("output_weight", "weight_3", "weight_2") if name in drawn)
    half = drawn[last].shape[-1] // 2
    assert_array_equal(drawn[last][..., :half], -drawn[last][..., half:])
    assert np.abs(drawn[last]).min() > 0
    assert "bias_1" not in drawn or drawn["bias_1"].any() != bool(sphere)
    if sphere and "hidden_weight" in drawn:
        sizes = [np.linalg.norm(drawn["hidden_weight"], axis=1), np.abs(drawn["output_weight"])]
        assert_allclose(sizes, np.outer(scales or [1.0, 1.0], np.ones(10)))


@pytest.mark.parametrize("law", ["normal", "uniform", "truncated_normal"])
@pytest.mark.parametrize(
    ("section", "variances"),
    [  # of 60 x 50, 40 x 60 and 1 x 40 weights under ReLU
        ({"kind": "lecun"}, (1 / 50, 1 / 60)),
        ({"kind": "xavier"}, (2 / 110, 2 / 100)),
        ({"kind": "kaiming"}, (2 / 50, 2 / 60)),
        ({"kind": "kaiming", "scale": 3.0}, (9 * 2 / 50, 9 * 2 / 60)),
    ],
)
def test_variances_by_fans(section, variances, law):
    shapes = {
        "weight_1": (60, 50),
        "bias_1": (60,),
        "weight_2": (40, 60),
        "bias_2": (40,),
        "weight_3": (1, 40),
    }
    drawn = weights({**section, "law": law}, shapes=shapes, architecture=DEEP)
    for layer, variance in enumerate(variances, 1):
        W = drawn[f"weight_{layer}"]
        assert W.var() == pytest.approx(variance, rel=0.13)  # 2 400 entries: 4 standard errors
        largest = {"normal": 6.0, "uniform": 3**0.5, "truncated_normal": 2 / 0.8796256610342398}[
            law
        ]
        assert 0.9 * min(largest, 3.3) < np.abs(W).max() / variance**0.5 <= largest
    assert not drawn["bias_1"].any()


def test_neurons_are_uniform_on_the_sphere():
    section = {"kind": "paired", "sphere": True, "scale": 0.5}
    W = start(section, architecture={"kind": "two_layer", "width": 8000})[0]["hidden_weight"][:4000]
    assert_allclose(
        W.T @ W / 4000, np.eye(3) * 0.25 / 3, atol=0.006
    )  # isotropic: 4 standard errors
    assert_allclose(
        np.sort(W[:, 0]), np.linspace(-0.5, 0.5, 4000), atol=0.03
    )  # Archimedes: uniform


@pytest.mark.parametrize("kind", ["unbalanced", "default_scaled", "kaiming", "orthogonal"])
def test_a_scale_per_layer(kind):
    section = {"kind": kind, **({"scale": 0.5} if kind == "unbalanced" else {})}
    plain, _ = start(section, architecture={**DEEP, "widths": [6, 5]})
    drawn, _ = start(
        {**section, "scales": [2.0, 0.0, 0.25]}, architecture={**DEEP, "widths": [6, 5]}
    )
    for name, value in plain.items():
        assert_array_equal(drawn[name], value * [2.0, 0.0, 0.25][int(name[-1]) - 1])
    by_name, _ = start(
        {**section, "scales": {"weight_2": 0.0}}, architecture={**DEEP, "widths": [6, 5]}
    )
    for name, value in plain.items():
        assert_array_equal(by_name[name], 0.0 * value if name == "weight_2" else value)
