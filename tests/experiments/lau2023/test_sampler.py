"""The expectation of the released sampler."""

from itertools import pairwise

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.lau2023.training import of_sampler, regular

from dynamics_cli.kinds import State
from tests import cases
from tests.recording.test_instruments import instrument


def test_the_expectation_of_the_sampler_is_that_of_chains_at_balanced_layers():
    values = np.array([2.0, 1.5])
    rng = np.random.default_rng(0)
    problem = cases.problem_of(
        dataset={"kind": "linear_map", "inputs": 5, "outputs": 5, "singular_values": [1.0]},
        architecture={
            "kind": "fully_connected",
            "widths": [6] * 4,
            "outputs": 5,
            "activation": "linear",
            "bias": False,
        },
        initialization={"kind": "lecun"},
        loss={"kind": "mse"},
    )
    frames = [np.linalg.qr(rng.standard_normal((size, 2)))[0] for size in (5, 6, 6, 6, 6, 5)]
    layers = [after * values**0.2 @ before.T for before, after in pairwise(frames)]
    state = State(
        problem, dict(zip(problem.shapes, layers, strict=True)), problem.initial_parameters, 0
    )
    keys = {
        "nbeta": 3e4,
        "step": 1e-6,
        "gamma": 0.0,
        "burn_in": 0,
        "draws": 40,
        "labels": "own",
    }
    mean, spread, _ = instrument("llc", chains=40, **keys).measure(state)
    expected = of_sampler(values, 1e-6, 40, 3e4)
    assert abs(mean - expected) < 4 * spread / 40**0.5 + 0.02 * expected
    assert of_sampler(values, 1e-7, 20_000, 3e4) == pytest.approx(
        regular(2), rel=0.03
    )  # long chains of small steps
