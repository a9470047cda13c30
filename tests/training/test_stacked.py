"""Replicas by autograd: each is the network alone, chunks and resumption change no bit, one
halts by itself.
"""

import itertools
from functools import partial

import numpy as np
import pytest
import yaml
from numpy.testing import assert_allclose

from dynamics_cli.config import load_config
from dynamics_cli.config.describe import example, find_explained
from dynamics_cli.kinds.registry import general_kinds
from dynamics_cli.training.backends import Choice, choose
from dynamics_cli.training.many.replicas import batch_key, divide
from dynamics_cli.training.problem import build_problem
from dynamics_cli.training.steppers.autograd import AutogradStepper
from dynamics_cli.training.steppers.side_by_side import for_each
from tests.cases import read
from tests.training.problems import (
    assert_chunks_are_invisible,
    assert_replicas_are_the_networks_alone,
    stepper_of,
    updated_by_torch,
)

NETWORKS = read("""
gpt: {kind: gpt, tokens: 2, width: 8, heads: 2, outputs: 5}
recurrent: {kind: recurrent, cell: gru, tokens: 2, width: 6, outputs: 5}
transformer: {kind: transformer, tokens: 2, width: 8, heads: 2, outputs: 5}
gpt at positions: {kind: gpt, tokens: 8, width: 8, heads: 2, outputs: 4, predict: every}
convolutional: {kind: convolutional, image: [1, 6, 6], convolutions: [[3, 3, 1, 1], [4, 3, 2, 0]],
  widths: [5]}
fully connected: {kind: fully_connected, widths: [50, 50]}
residual: {kind: residual, width: 6, depth: 3}
two layers: {kind: two_layer, width: 60}
""")
OPTIMIZERS = read("""
gd: {kind: gd}
momentum, clipped: {kind: gd, momentum: 0.9, clip: 0.1}
adam: {kind: adam}
rmsprop: {kind: rmsprop, momentum: 0.5}
batches: {kind: sgd, batch_size: 7, lr: 0.05}
an average: {kind: adamw, average: {kind: ema, decay: 0.9}}
""")
OTHERS = read("""
momentum: {kind: gd, momentum: 0.9}
rmsprop in batches: {kind: rmsprop, batch_size: 4}
cosine: {kind: adamw, schedule: {kind: cosine}}
whole batches: {kind: sgd, batch_size: 4, drop_last: true}
a step per layer: {kind: sgd, batch_size: 4, momentum: 0.3, layer_lr: {weight_2: 0.1}}
fresh samples: {kind: sgd, samples: fresh}
""")
CONVOLUTIONAL = NETWORKS["convolutional"]
RESIDUAL = NETWORKS["residual"]
TRANSFORMER = NETWORKS["transformer"]
CASES = {
    "convolutional, momentum": (CONVOLUTIONAL, OTHERS["momentum"]),
    "convolutional, batches": (CONVOLUTIONAL, OTHERS["rmsprop in batches"]),
    "convolutional, Adam": (CONVOLUTIONAL, OPTIMIZERS["adam"]),
    "transformer": (TRANSFORMER | {"train": ["weight_in1"]}, OTHERS["cosine"]),
    "residual": (RESIDUAL, OPTIMIZERS["rmsprop"]),
    "scaled": (RESIDUAL | {"output_scale": 3.0}, OTHERS["momentum"]),
    **{name: (RESIDUAL, OTHERS[name]) for name in [*OTHERS][3:]},
}
ALONE = {
    "architecture.gpt",
    "architecture.recurrent",
    "architecture.resnet",
    "optimizer.gradient_flow",
    "optimizer.group_rmsprop",
    "optimizer.muon",
    "optimizer.torch",
}
"""Kinds whose replicas `torch.func.vmap` does not train, or whose networks have modes."""


def problem_of(
    architecture,
    optimizer,
    seed=0,
    n=9,
    loss="mse",
    **more,
):
    """Return a small problem; a data set of its own per seed, but for classes."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 36))
    y = rng.standard_normal(n)
    dataset = {
        "kind": "points",
        "x": x.tolist(),
        "y": (np.sign(y) if loss == "logistic" else y).tolist(),
    }
    if architecture.get("outputs"):
        dataset = {"kind": "modular_arithmetic", "p": 5, "train_fraction": 0.6, "labels": "classes"}
        loss = "cross_entropy"
    if "predict" in architecture:
        dataset = {"kind": "markov_chains", "n": 20, "length": 8, "symbols": 4}
    if optimizer.get("samples"):
        teacher = {"kind": "two_layer", "width": 2}
        dataset = {"kind": "teacher", "n": n, "dim": 4, "architecture": teacher}
    config = {
        "name": "stacked",
        "seed": seed,
        "dtype": "float64",
        "dataset": dataset,
        "architecture": architecture,
        "initialization": {"kind": "lecun"},
        "loss": {"kind": loss},
        "optimizer": {"lr": 0.01, "iterations": 30, **optimizer},
        **more,
    }
    return build_problem(load_config(config))


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled updates", "torch's"])
@pytest.mark.parametrize("case", CASES)
def test_replicas_are_the_networks_alone(case, compiled):
    architecture, optimizer = CASES[case]
    steps = ((0, 0.01), (1, 0.01), (2, 0.03))
    problems = [
        problem_of(architecture, optimizer | {"lr": lr}, seed, backend="torch")
        for seed, lr in steps
    ]
    assert len({batch_key(problem) for problem in problems} - {None}) == 1
    assert choose(problems) == Choice("cpu", "torch")

    def make(some=problems):
        return (
            AutogradStepper(some, "cpu") if compiled or len(some) == 1 else updated_by_torch(some)
        )

    assert_replicas_are_the_networks_alone(problems, make, 13, rtol=0.0 if compiled else 1e-9)
    assert_chunks_are_invisible(make, 13)


@pytest.mark.parametrize(
    "name",
    [
        f"{section}.{kind}"
        for section in ("architecture", "loss", "optimizer")
        for kind in general_kinds(section)
        if kind != "convolutional"  # of which there are cases above, with smaller images
    ],
)
def test_replicas_of_every_kind_are_the_networks_alone(name):
    """By torch's form of updates, as on a GPU; those that go one by one are named."""
    config = yaml.safe_load(example(find_explained(name)))
    optimizer = config["optimizer"]
    changes = {"backend": "torch", "dtype": "float64"}
    problems = []
    for seed in range(2):
        if seed == 1 and "lr" in optimizer:
            changes["optimizer"] = {**optimizer, "lr": 2 * optimizer["lr"]}
        problems.append(build_problem(load_config({**config, **changes, "seed": seed})))
    keys = {batch_key(problem) for problem in problems}
    assert (None in keys) == (name in ALONE)
    if name not in ALONE:
        assert len(keys) == 1
        assert_replicas_are_the_networks_alone(problems, updated_by_torch, 5, rtol=1e-9)
        assert_chunks_are_invisible(lambda: updated_by_torch(problems), 13)


USUAL = [
    ("gpt", "momentum, clipped"),
    ("two layers", "an average"),
    ("gpt at positions", "batches"),
]


@pytest.mark.parametrize(
    ("network", "optimizer"),
    [
        pytest.param(a, b, marks=() if (a, b) in USUAL else pytest.mark.long)
        for a in NETWORKS
        for b in OPTIMIZERS
    ],
)
def test_replicas_have_the_bits_of_each_alone(network, optimizer):
    """In both precisions, with each loss, as two and as nine replicas of other seeds and steps."""
    # classes have a loss of their own
    losses = ("mse",) if "outputs" in NETWORKS[network] else ("mse", "logistic")
    for dtype, loss in itertools.product(("float32", "float64"), losses):
        for R in (2, 9):
            given = {"dtype": dtype, "loss": loss, "backend": "torch"}
            given["initialization"] = {"kind": "default_scaled"}
            problems = [
                problem_of(NETWORKS[network], OPTIMIZERS[optimizer], seed, **given)
                for seed in range(R)
            ]
            if batch_key(problems[0]) is None:
                continue
            assert_replicas_are_the_networks_alone(
                problems, partial(AutogradStepper, device="cpu"), 23
            )


def test_a_replica_that_halts_stays_as_it_is():
    """One reaches its level, one diverges, one goes on."""
    changes = [{"stop_below": 1.0}, {"lr": 1e9}, {}]
    problems = [
        problem_of(CONVOLUTIONAL, {"kind": "gd", "lr": 0.05, **change}) for change in changes
    ]
    together = assert_replicas_are_the_networks_alone(
        problems, partial(stepper_of, way="torch"), 25, rtol=1e-9
    )
    assert together.numbers()["replica_statuses"] == ["complete", "diverged", "complete"]
    assert together.numbers()["replica_iterations"][0] < 25
    assert_chunks_are_invisible(partial(stepper_of, problems, "torch"), 25)


@pytest.mark.parametrize(
    ("architecture", "optimizer", "more"),
    [
        (
            TRANSFORMER,
            {"kind": "group_rmsprop"},
            {},
        ),  # a norm of all weights, which would be that of all replicas
        (TRANSFORMER | {"centered": True}, {"kind": "gd"}, {}),
        (
            TRANSFORMER | {"width": 2000},
            {"kind": "gd"},
            {},
        ),  # the products themselves take the time
        (TRANSFORMER, {"kind": "gd"}, {"backend": "compiled"}),
    ],
)
def test_the_rest_is_trained_one_by_one(architecture, optimizer, more):
    config = problem_of(architecture, optimizer).config.model_copy(update=more)
    assert batch_key(build_problem(config)) is None


@pytest.mark.usefixtures("kinds_as_before")
def test_a_kind_that_cannot_be_mapped_is_trained_one_by_one(tmp_path):
    """A branch on values is no map over replicas; an optimizer of one's own is a map where it is
    a formula.
    """
    source = tmp_path / "parts.py"
    source.write_text(
        "from dynamics_cli.kinds import Architecture, Minibatch\n"
        "class Half(Minibatch, kind='half'):\n"
        "    '''A gradient descent of half the step.'''\n"
        "    def updated(self, w, g, memory, step):\n"
        "        return w - 0.5 * step.lr * g\n"
        "class Bold(Half, kind='bold'):\n"
        "    '''Its steps know the loss.'''\n"
        "    def updated(self, w, g, memory, step):\n"
        "        return w - step.loss * step.lr * g\n"
        "class Branching(Architecture, kind='branching'):\n"
        "    '''A network with a branch.'''\n"
        "    branch: bool = True\n"
        "    '''Whether it is there.'''\n"
        "    def build(self, d):\n"
        "        from torch import nn\n"
        "        class Branch(nn.Module):\n"
        "            def forward(self, h): return h if h.sum() > 0 else 2 * h\n"
        "        branch = [Branch()] if self.branch else []\n"
        "        return nn.Sequential(nn.Linear(d, 4), *branch, nn.Linear(4, 1), nn.Flatten(0))\n"
    )
    from dynamics_cli.kinds.registry import use

    use(str(source))
    for branch, side_by_side in ((True, False), (False, True)):
        architecture = {"kind": "branching", "branch": branch}
        some = [problem_of(architecture, {"kind": "gd"}, seed, n=40) for seed in range(2)]
        stepper = AutogradStepper(some, "cpu")
        assert stepper.mapped == side_by_side
        assert divide([one.config for one in some]) == ([[0, 1]] if side_by_side else [[0], [1]])
        assert_replicas_are_the_networks_alone(some, partial(AutogradStepper, device="cpu"), 5)
    assert batch_key(problem_of(CONVOLUTIONAL, {"kind": "bold"})) is None
    problems = [problem_of(CONVOLUTIONAL, {"kind": "half"}, seed) for seed in range(2)]
    assert len({batch_key(one) for one in problems} - {None}) == 1
    alone, together = (
        AutogradStepper(some, "cpu").advance(20) for some in (problems[1:], problems)
    )
    assert_allclose(together[:, 1], alone, rtol=1e-10)


def test_what_replicas_share_is_not_copied():
    shared = np.zeros((1, 2, 3))
    views = for_each(shared, 4)
    views[2, 0, 0] = 1.0
    assert views.shape == (4, 2, 3)
    assert (views[:, 0, 0] == 1.0).all()
    own = np.arange(4.0)[:, None]
    np.testing.assert_array_equal(for_each(own, 4), own)
