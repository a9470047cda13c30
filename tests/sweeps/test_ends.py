"""A replica that has ended, diverged or stopped, has the arrays and numbers that it has alone."""

import csv

import numpy as np
import pytest

import dynamics_cli as dyn
from dynamics_cli.config import load_config
from dynamics_cli.gradients.lanczos import Largest, _restarted
from dynamics_cli.runs.replica import replicas_of
from dynamics_cli.training.many.replicas import batch_key, build_problems
from dynamics_cli.training.session import obtain_run, plan_problems, plan_run
from tests.cases import read

pytestmark = pytest.mark.filterwarnings("ignore:an eigenvalue is less accurate")
"""That of a state that overflows."""
rng = np.random.default_rng(0)
BASE = {
    "name": "ends",
    "dtype": "float64",
    "dataset": {
        "kind": "points",
        "x": rng.standard_normal((6, 2)).tolist(),
        "y": rng.standard_normal(6).tolist(),
    },
    "architecture": {"kind": "two_layer", "width": 4, "activation": "linear"},
    "initialization": {"kind": "balanced", "scale": 0.5},
    "loss": {"kind": "mse"},
    "record": {"snapshots": {"kind": "every", "interval": 10}, "loss_every": 7},
}
WAYS = read("""
kernel: {optimizer: {kind: gd, iterations: 60}}
engine: {optimizer: {kind: gd, momentum: 0.5, iterations: 60}}
'engine, schedule': {optimizer: {kind: gd, iterations: 60, schedule: {kind: cosine}}}
torch: {backend: torch, optimizer: {kind: gd, iterations: 60}}
kernel of single samples: {optimizer: {kind: sgd, iterations: 60}}
'engine, batches': {optimizer: {kind: sgd, batch_size: 3, iterations: 60, momentum: 0.5}}
'torch, batches': {backend: torch, optimizer: {kind: sgd, batch_size: 3, iterations: 60}}
changes:
  optimizer: {kind: gd, momentum: 0.5, iterations: 60}
  changes: [{at: 33, optimizer.momentum: 0.2}]
stopped: {optimizer: {kind: gd, iterations: 60, stop_below: 1.5}}
'Adam, stopped': {optimizer: {kind: adam, iterations: 60, stop_below: 1.5}}
'Adam of torch, stopped':
  backend: torch
  optimizer: {kind: adam, iterations: 60, stop_below: 1.5}
""")
MEASURES = [
    "sharpness",
    "directional_sharpness",
    "gradient_norm",
    {"kind": "update", "of": "relative"},
]
"""Of the weights and of updates; ways with Adam have one of its memory too."""
OF_WEIGHTS = [
    "activation_flips",
    {"kind": "activations", "modules": ["hidden"]},
    {"kind": "activations", "modules": ["hidden"], "of": "stable_rank"},
    {"kind": "alignment", "directions": [[1, 0]]},
    "balancedness",
    "batch_sharpness",
    "dead_units",
    "distance",
    "gauss_newton",
    "gradient_noise",
    "hessian_spectrum",
    "hessian_trace",
    "kernel_alignment",
    "kernel_distance",
    "kernel_eigenvalues",
    {"kind": "llc", "draws": 4, "burn_in": 4, "chains": 2},
    {"kind": "neurons", "of": "norm"},
    "predictor",
    "smallest_eigenvalue",
    "spectral_density",
    {"kind": "sharpness", "top": 2},
    {"kind": "singular_values", "layer": "end_to_end"},
    {"kind": "singular_values", "layer": "hidden_weight"},
    "weight_norm",
]


@pytest.mark.parametrize("way", WAYS)
def test_a_replica_ends_as_alone(in_memory, way):
    base = {**BASE, **WAYS[way]}
    base["optimizer"] = {"lr": 0.05, **base["optimizer"]}
    of_memory = ["preconditioned_sharpness"] if "Adam" in way else []
    base["record"] = {**BASE["record"], "measures": [*MEASURES, *of_memory]}
    steps = [0.02, 0.1, 0.2] if "stopped" in way else [0.02, 2.0, 30.0]
    configs = [load_config(base, [f"optimizer.lr={lr}"]) for lr in steps]
    problems = build_problems(configs)
    keys = {batch_key(problem) for problem in problems}
    assert len(keys) == 1
    assert None not in keys
    together = replicas_of(obtain_run(plan_problems(problems, in_memory / "together")).run)
    rtol = 1e-7 if "torch" in way else 0.0
    ends = []
    for r, config in enumerate(configs):
        alone = obtain_run(plan_run(config, in_memory / f"{r}")).run
        found = together[r]
        ends.append((found.status, found.iterations))
        assert (found.status, found.iterations) == (alone.status, alone.iterations)
        assert found.info["stopped_early"] == alone.info["stopped_early"]
        np.testing.assert_array_equal(found.loss_iterations, alone.loss_iterations)
        np.testing.assert_array_equal(found.snapshot_iterations, alone.snapshot_iterations)
        np.testing.assert_allclose(found.losses, alone.losses, rtol=rtol)
        assert (found.times is None) == (alone.times is None)
        if alone.times is not None:
            np.testing.assert_allclose(found.times, alone.times, rtol=1e-12)
        assert [*found.parameters] == [*alone.parameters]
        for name, weights in alone.parameters.items():
            np.testing.assert_allclose(found.parameters[name], weights, rtol=rtol, err_msg=name)
        assert [*found.measures] == [*alone.measures]
        for name, numbers in alone.measures.items():
            np.testing.assert_allclose(
                found.measures[name],
                numbers,
                rtol=max(rtol, 1e-9),
                atol=1e-12,
                err_msg=f"{name} {r}",
            )
    assert len(set(ends)) > 1


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("lr", [1e120, 1e300])
def test_measures_of_a_state_that_overflows_fail_no_run(in_memory, lr):
    """A small step beside one after which products, or the weights themselves, are not finite."""
    optimizer = {"kind": "sgd", "batch_size": 3, "momentum": 0.5, "iterations": 20}
    record = {"snapshots": {"kind": "every", "interval": 5}, "measures": OF_WEIGHTS}
    base = {**BASE, "optimizer": {"lr": 0.02, **optimizer}, "record": record}
    configs = [load_config(base), load_config(base, [f"optimizer.lr={lr}"])]
    problems = build_problems(configs)
    together = replicas_of(obtain_run(plan_problems(problems, in_memory / "together")).run)
    for r, config in enumerate(configs):
        alone = obtain_run(plan_run(config, in_memory / f"{r}")).run
        for name, numbers in alone.measures.items():
            found = together[r].measures[name]
            np.testing.assert_allclose(found, numbers, rtol=1e-9, atol=1e-12, err_msg=name)
    assert alone.status == "diverged"


def test_diverged_jobs_have_no_numbers(tmp_path):
    """In the table, however they were trained; their runs have the states up to their end."""
    config = {**BASE, "optimizer": {"kind": "gd", "lr": 0.02, "iterations": 60}}
    config["record"] = {**BASE["record"], "measures": ["sharpness"]}
    sweep = dyn.sweep(config, {"optimizer.lr": [0.02, 30.0]}, out=tmp_path / "sweep")
    with (tmp_path / "sweep" / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["status"] for row in rows] == ["complete", "diverged"]
    assert float(rows[0]["sharpness"]) > 0
    assert rows[1]["sharpness"] == rows[1]["final_loss"] == ""
    run = sweep.run(1)
    assert run.snapshot_iterations[-1] == run.iterations == int(rows[1]["iterations"]) < 60
    assert len(run.measures["sharpness"]) == len(run.snapshot_iterations)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_eigenvalues_of_products_that_overflow_come_to_an_end():
    """Each residual is infinite, so that none is lower than the one before."""
    calls = []

    def iterations(start):
        calls.append(start)
        assert len(calls) < 5
        return Largest(np.array([np.inf]), start, np.inf, np.inf, start)

    assert _restarted(iterations, np.ones((2, 1)), 1e-6).residual == np.inf
    assert len(calls) == 1
