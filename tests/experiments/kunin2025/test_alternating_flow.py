"""Alternating flow against printed times and an independent maximiser."""

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.kunin2025.addition import largest_utility
from dynamics_cli._bundled.experiments.kunin2025.diagonal import LEAST, ORDER, PRINTED
from dynamics_cli._bundled.experiments.kunin2025.theory.alternating_flow import saddles
from numpy.testing import assert_allclose

from dynamics_cli._bundled import CONFIGS
from dynamics_cli.config import load_config
from dynamics_cli.kinds import Streams


def data_of(name):
    """Return the data of a config of the paper."""
    samples = load_config(CONFIGS / "kunin2025" / f"{name}.yaml").dataset.samples(Streams(0))
    return samples.x, samples.y


@pytest.mark.parametrize("constrained", [False, True])
@pytest.mark.parametrize("name", PRINTED)
def test_both_recursions_give_the_printed_times_and_order(name, constrained):
    found = saddles(*data_of(name), constrained=constrained)
    assert_allclose(found.times[1:] * -np.log(LEAST[name]), PRINTED[name], atol=5e-4)
    assert tuple(found.activated) == ORDER[name]
    asleep = np.argwhere((found.betas[1:-1] != 0) & (found.betas[2:] == 0))  # saddle, coordinate
    assert asleep.tolist() == ([[0, 0]] if name == "dormant" else [])
    assert found.losses[-1] < 1e-20 * found.losses[0]  # both data sets are fitted


@pytest.mark.parametrize(("p", "mode", "size"), [(20, 3, 5.0), (11, 2, 1.5)])
def test_no_neuron_has_more_utility_than_the_formula_says(p, mode, size):
    template = 2 * size / p * np.cos(2 * np.pi * mode * np.arange(p) / p)
    rolled = np.array([np.roll(template, a) for a in range(p)])
    X = np.concatenate([np.repeat(rolled, p, axis=0), np.tile(rolled, (p, 1))], axis=1)
    Y = np.array([np.roll(template, a + b) for a in range(p) for b in range(p)])
    theta = np.random.default_rng(0).standard_normal(3 * p)
    for _ in range(2000):  # ascent on the sphere
        z = X @ theta[: 2 * p]
        pull = Y @ theta[2 * p :]
        gradient = np.concatenate([2 * X.T @ (pull * z), Y.T @ z**2]) / len(X)
        theta = theta / np.linalg.norm(theta) + 0.3 * gradient / np.linalg.norm(gradient)
        theta /= np.linalg.norm(theta)
    best = float(np.mean((X @ theta[: 2 * p]) ** 2 * (Y @ theta[2 * p :])))
    assert best == pytest.approx(float(largest_utility(np.array([size]), p)[0]), rel=1e-6)
