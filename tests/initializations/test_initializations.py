"""Initial weights: the law of every kind, scales, streams, files."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from dynamics_cli.config import load_config
from dynamics_cli.errors import InputError
from dynamics_cli.kinds import Streams
from tests.cases import config_of

SHAPES = {"hidden_weight": (4000, 3), "output_weight": (4000,)}


def weights(initialization, *, seed=0, shapes=SHAPES, input_dim=2, architecture=None):
    network = architecture or {"kind": "two_layer", "width": 4000}
    sections = config_of(seed=seed, architecture=network, initialization=initialization)
    config = load_config(sections, check_files_exist=False)
    dataset = SimpleNamespace(input_dim=input_dim)
    problem = SimpleNamespace(config=config, shapes=shapes, dataset=dataset, loss=config.loss)
    return config.initialization.draw(problem, Streams(seed))


@pytest.mark.parametrize(
    ("divide_by", "divisor"),
    [
        ("none", 1),
        ("sqrt_width", 4000**0.5),
        ("sqrt_dim", 2**0.5),
        ("sqrt_width_times_dim", 8000**0.5),
    ],
)
@pytest.mark.parametrize("scale", [0.5, 1e-20])
def test_balanced(divide_by, divisor, scale):
    w = weights({"kind": "balanced", "scale": scale, "divide_by": divide_by})
    W = w["hidden_weight"]
    a = w["output_weight"]
    assert W.std() == pytest.approx(scale / divisor, rel=0.03)  # 12 000 draws: 5 standard errors
    assert_allclose(np.abs(a), np.hypot(np.hypot(W[:, 0], W[:, 1]), W[:, 2]), rtol=1e-14)
    assert abs((a > 0).mean() - 0.5) < 0.04


@pytest.mark.parametrize("kind", ["balanced", "unbalanced"])
def test_fixed_output_values(kind):
    halves = weights({"kind": kind, "scale": 1.0, "output_value": 0.25, "output_signs": "halves"})[
        "output_weight"
    ]
    assert_array_equal(halves, np.repeat([0.25, -0.25], 2000))
    random = weights({"kind": kind, "scale": 1.0, "output_value": 0.25})["output_weight"]
    assert set(random) == {0.25, -0.25}
    assert abs(random.mean()) < 0.02


def test_default_scaled_is_the_law_of_torch_linear():
    architecture = {"kind": "fully_connected", "widths": [50], "outputs": 1}
    shapes = {"weight_1": (50, 9), "bias_1": (50,), "weight_2": (1, 50), "bias_2": (1,)}
    w = weights({"kind": "default_scaled", "factor": 2.0}, shapes=shapes, architecture=architecture)
    for name, bound in {
        "weight_1": 2 / 3,
        "bias_1": 2 / 3,
        "weight_2": 2 / 50**0.5,
        "bias_2": 2 / 50**0.5,
    }.items():
        assert np.abs(w[name]).max() <= bound
    assert w["weight_1"].std() == pytest.approx(2 / 3 / 3**0.5, rel=0.1)
    two_layer = weights({"kind": "default_scaled"})
    assert np.abs(two_layer["output_weight"]).max() <= 4000**-0.5


def test_seeds_give_other_weights_and_the_same_seed_the_same():
    section = {"kind": "balanced", "scale": 1.0}
    first = weights(section, seed=1)
    again = weights(section, seed=1)
    other = weights(section, seed=2)
    assert_array_equal(first["hidden_weight"], again["hidden_weight"])
    assert not np.array_equal(first["hidden_weight"], other["hidden_weight"])


FILE_SHAPES = {"hidden_weight": (2, 3), "output_weight": (2,)}


def from_file(path, **section):
    return weights({"kind": "file", "path": str(path), **section}, shapes=FILE_SHAPES)


def test_file_with_bias_and_suffix(tmp_path):
    W = np.arange(4.0).reshape(2, 2)
    b = np.array([7.0, 8.0])
    a = np.array([1.0, -1.0])
    np.savez(tmp_path / "w.npz", hidden_weight_0=W, hidden_bias_0=b, output_weight_0=a)
    read = from_file(tmp_path / "w.npz", suffix="_0")
    assert_array_equal(read["hidden_weight"], np.column_stack([W, b]))
    assert_array_equal(read["output_weight"], a)


W = np.ones((2, 3))
A = np.ones(2)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"hidden_weight": W}, "no array 'output_weight'; the file holds hidden_weight"),
        (
            {"hidden_weight": np.ones((5, 3)), "output_weight": np.ones(5)},
            r"hidden_weight gives shape \(5, 3\), the network needs \(2, 3\)",
        ),
        (
            {"hidden_weight": np.nan * W, "output_weight": A},
            "hidden_weight holds values that are not finite",
        ),
        (
            {"hidden_weight": np.ones((2, 2)), "hidden_bias": np.ones(3), "output_weight": A},
            r"hidden_bias has shape \(3,\), \(2,\) is needed",
        ),
        (
            {"hidden_weight": np.array([["a"] * 3] * 2), "output_weight": A},
            "hidden_weight holds <U1, numbers are needed",
        ),
        (
            {"hidden_weight": np.array([{"a": 1}], dtype=object), "output_weight": A},
            "not a readable .npz file of plain arrays",
        ),
    ],
)
def test_bad_files(tmp_path, arrays, message):
    np.savez(tmp_path / "w.npz", **arrays)
    with pytest.raises(InputError, match=message):
        from_file(tmp_path / "w.npz")
