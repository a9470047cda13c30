"""The sharpness preconditioned by Adam, AdamW and RMSprop, beside dense matrices whose diagonals
follow from the gradients of all states before.
"""

import copy
from itertools import pairwise

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn
from torch.nn.functional import cross_entropy

import dynamics_cli as dyn
from dynamics_cli.config import load_config
from dynamics_cli.errors import InputError
from dynamics_cli.kinds import State
from dynamics_cli.runs.run import columns_of
from dynamics_cli.training.problem import build_problem
from dynamics_cli.training.session import obtain_run, plan_problems
from tests.cases import config_of, read
from tests.dense import Dense, dense_of, largest

SECTIONS = read("""
dataset: {kind: linear_map, inputs: 3, outputs: 2, singular_values: [2.0, 1.0], n: 9, noise: 0.5}
architecture: {kind: fully_connected, widths: [4], activation: tanh, outputs: 2}
initialization: {kind: default_scaled}
dtype: float64
record:
  snapshots: {kind: every, interval: 1}
  measures:
    - preconditioned_sharpness
    - {kind: preconditioned_sharpness, top: 2, blocks: layer}
""")


def diagonals(gradients, optimizer):
    """Return P after 0, 1, ... updates, by the formulas of the papers and of torch."""
    v = np.zeros(len(gradients[0]))
    most = v
    mean = v
    yield np.full(len(v), np.nan)
    for t, g in enumerate(gradients, start=1):
        if "rmsprop" in optimizer:
            v = 0.99 * v + 0.01 * g**2
            mean = 0.99 * mean + 0.01 * g
            yield np.sqrt(v - mean**2 * ("centered" in optimizer)) + 1e-8
            continue
        v = 0.999 * v + 0.001 * g**2
        most = np.maximum(most, v)
        used = most if "amsgrad" in optimizer else v
        yield (1 - 0.9**t) * (np.sqrt(used / (1 - 0.999**t)) + 1e-8)


def expected(dense, P, block=slice(None)):
    if np.isnan(P).any():
        return np.nan
    scale = 1 / np.sqrt(P[block])
    return largest(scale[:, None] * dense.H[block, block] * scale)


OPTIMIZERS = read("""
adam: {kind: adam}
adam, clipped: {kind: adam, clip: 1.0e+6}
adamw: {kind: adamw, weight_decay: 0.5}
rmsprop with momentum: {kind: rmsprop, momentum: 0.5}
adam of torch: {kind: torch, name: Adam}
adamw of torch, amsgrad: {kind: torch, name: AdamW, amsgrad: true}
rmsprop of torch, centered: {kind: torch, name: RMSprop, centered: true}
""")


@pytest.mark.parametrize(
    ("optimizer", "backend"),
    [
        *((name, "torch") for name in OPTIMIZERS),
        *((name, "compiled") for name in OPTIMIZERS if "torch" not in name),
    ],
)
def test_runs_measure_it_with_the_memory_of_the_state(tmp_path, optimizer, backend):
    config = config_of(**SECTIONS, optimizer={**OPTIMIZERS[optimizer], "lr": 0.05, "iterations": 4})
    run = dyn.train(load_config({**config, "backend": backend}), out=tmp_path / "run")
    assert run.config.backend == backend
    kind = OPTIMIZERS[optimizer]["kind"]
    bound = {"adam": 2 / 0.05 * 19, "adamw": (2 / 0.05 - 0.5) * 19, "rmsprop": 3 / 0.05}
    (column,) = columns_of(run, "preconditioned_sharpness")
    assert (column.bound or (None, None))[1] == pytest.approx(bound.get(kind))
    problem = build_problem(run.config)
    states = [{name: array[k].copy() for name, array in run.parameters.items()} for k in range(5)]
    dense = [dense_of(State(problem, state, lambda: states[0], 0)) for state in states]
    P = list(diagonals([one.g for one in dense[:-1]], optimizer))
    found = run.measures["preconditioned_sharpness"]
    assert_allclose(found, [expected(*pair) for pair in zip(dense, P, strict=True)], rtol=1e-6)

    by_layer = run.measures["preconditioned_sharpness_by_layer"]
    ends = np.cumsum([0, *dense[0].sizes])
    for k, (first, end) in enumerate(pairwise(ends)):
        block = slice(first, end)
        assert_allclose(by_layer[4, k, 0], expected(dense[4], P[4], block), rtol=1e-6)


@pytest.mark.parametrize("backend", ["compiled", "torch"])
def test_replicas_have_the_numbers_of_single_networks(tmp_path, backend):
    adam = {"kind": "adam", "lr": 0.05, "iterations": 3}
    problems = []
    for seed in (0, 1):
        config = {**config_of(**SECTIONS, optimizer=adam), "seed": seed, "backend": backend}
        problems.append(build_problem(load_config(config)))
    together = obtain_run(plan_problems(problems, tmp_path / "together")).run
    for r, problem in enumerate(problems):
        alone = obtain_run(plan_problems([problem], tmp_path / f"{r}")).run
        for name, values in alone.measures.items():
            assert_allclose(together.measures[name][:, r], values, rtol=1e-5, err_msg=name)


X = torch.randn(12, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
Y = torch.arange(12) % 3
MEASURES = ["preconditioned_sharpness", {"kind": "sharpness", "blocks": "layer"}]


@pytest.mark.parametrize(
    ("optimizer", "cls", "settings"),
    [
        ("adam", torch.optim.Adam, {}),
        ("adamw", torch.optim.AdamW, {"amsgrad": False, "weight_decay": 0.3}),
        ("rmsprop", torch.optim.RMSprop, {"momentum": 0.5}),
    ],
)
def test_loops_and_checkpoints_of_torch_give_it(tmp_path, optimizer, cls, settings):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3)).double()
    groups = [{"params": model[2].parameters()}, {"params": model[0].parameters()}]
    adaptive = cls(groups, lr=0.05, **settings)
    dense = [Dense(model, X, Y, cross_entropy)]
    checkpoints = []
    with dyn.Recorder(
        tmp_path / "run", model, X, Y, optimizer=adaptive, measures=MEASURES, every=2
    ) as recorder:
        for k in range(1, 5):
            adaptive.zero_grad()
            cross_entropy(model(X), Y).backward()
            adaptive.step()
            recorder.step()
            dense.append(Dense(model, X, Y, cross_entropy))
            saved = {"model": model.state_dict(), "optimizer": adaptive.state_dict()}
            checkpoints.append((k, copy.deepcopy(saved)))
    P = list(diagonals([one.g for one in dense[:-1]], optimizer))
    numbers = [expected(*pair) for pair in zip(dense, P, strict=True)]
    run = dyn.load_run(tmp_path / "run")
    assert_allclose(run.measures["preconditioned_sharpness"], numbers[::2], rtol=1e-6)
    labels = [column.label for column in columns_of(run, "sharpness_by_layer")]
    assert labels == [name for name, _ in model.named_parameters()]

    kept = {"optimizer": adaptive, "measures": MEASURES[:1]}
    table = dyn.measure(model, X, Y, checkpoints=checkpoints, **kept)
    assert_allclose(table.column("preconditioned_sharpness"), numbers[1:], rtol=1e-6)
    (now,) = dyn.measure(model, X, Y, **kept)
    assert now["preconditioned_sharpness"] == pytest.approx(numbers[-1], rel=1e-6)


@pytest.mark.parametrize("own_names", [True, False])
def test_a_saved_optimizer_that_lists_its_weights_in_another_order(own_names):
    """By the names that stand in it: the same number as from the optimizer itself."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3)).double()
    trained = torch.optim.Adam([*model.named_parameters()][::-1], lr=0.05)
    for _ in range(3):
        trained.zero_grad()
        cross_entropy(model(X), Y).backward()
        trained.step()
    measures = ["preconditioned_sharpness"]
    (row,) = dyn.measure(model, X, Y, optimizer=trained, measures=measures)
    parameters = model.named_parameters() if own_names else model.parameters()
    other = torch.optim.Adam(parameters, lr=0.05)
    saved = {"model": model.state_dict(), "optimizer": trained.state_dict()}
    table = dyn.measure(model, X, Y, optimizer=other, measures=measures, checkpoints=[(3, saved)])
    right = row["preconditioned_sharpness"]
    assert table.column("preconditioned_sharpness")[0] == pytest.approx(right, rel=1e-6)
    names = saved["optimizer"]["param_groups"][0]["param_names"]
    names[:] = [name.replace("2.", "head.") for name in names]
    with pytest.raises(InputError, match=r"its saved state is of other weights, without 2\.weight"):
        dyn.measure(model, X, Y, optimizer=other, measures=measures, checkpoints=[(3, saved)])


def test_weights_that_the_loss_does_not_depend_on_do_not_count():
    class Unused(nn.Module):
        def __init__(self):
            super().__init__()
            self.used = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3))
            self.other = nn.Parameter(torch.ones(2))

        def forward(self, x):
            return self.used(x)

    torch.manual_seed(0)
    model = Unused().double()
    found = []
    for measured in (model, model.used):
        adam = torch.optim.Adam(measured.parameters(), lr=0.0)
        adam.zero_grad()
        cross_entropy(measured(X), Y).backward()
        adam.step()
        (row,) = dyn.measure(measured, X, Y, optimizer=adam, measures=MEASURES[:1])
        found.append(row["preconditioned_sharpness"])
    assert found[0] == pytest.approx(found[1], rel=1e-6)


def test_an_optimizer_that_does_not_fit_is_refused():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3)).double()
    cases = [
        (None, None, "no measure 'preconditioned_sharpness' here, it needs .* Adam, AdamW"),
        (torch.optim.SGD(model.parameters(), lr=1.0), None, "it needs .* Adam, AdamW or RMSprop"),
        (torch.optim.Adam(model[0].parameters()), None, "it does not update 2.weight"),
        (torch.optim.Adam(nn.Linear(3, 4).parameters()), None, "AveragedModel, leave optimizer"),
        (
            torch.optim.Adam(model.parameters()),
            model.state_dict(),
            "it has no state of the optimizer",
        ),
    ]
    for optimizer, checkpoint, told in cases:
        with pytest.raises(InputError, match=told):
            dyn.measure(
                model, X, Y, optimizer=optimizer, checkpoints=checkpoint, measures=MEASURES[:1]
            )


def test_the_tensor_that_dominates_is_told_where_batch_norm_makes_modes_differ(recwarn):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 3))
    adam = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(20):
        adam.zero_grad()
        cross_entropy(model(X.float()), Y).backward()
        adam.step()
    in_training = {"kind": "preconditioned_sharpness", "mode": "train"}
    (row,) = dyn.measure(model, X, Y, optimizer=adam, measures=[in_training])
    assert not recwarn
    # batch norm takes the biases before it away, so that their v is rounding alone
    told = r"100.0% of the eigenvector lies in 0.bias; `mode: train` measures"
    with pytest.warns(UserWarning, match=told):
        (other,) = dyn.measure(model, X, Y, optimizer=adam, measures=["preconditioned_sharpness"])
    assert other["preconditioned_sharpness"] > 10 * row["preconditioned_sharpness_in_training"]
