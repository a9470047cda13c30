"""Torch's form of updates, which CUDA takes: against the compiled one, and never waiting for a
device.
"""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from dynamics_cli.config import load_config
from dynamics_cli.kinds import Descent, all_kinds, registry
from dynamics_cli.training.backends import build_stepper, choose
from dynamics_cli.training.problem import build_problem
from dynamics_cli.training.steppers.autograd import AutogradStepper
from tests.cases import read
from tests.training.problems import (
    assert_same_path,
    random_problem,
    updated_by_torch,
)
from tests.training.test_stacked import CASES, problem_of

NESTEROV = {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}
BY_STEPS = {name: cls for name, cls in all_kinds("optimizer").items() if issubclass(cls, Descent)}
PLAIN = [name for name, cls in BY_STEPS.items() if cls.update is Descent.update]
OPTIMIZERS = [{"kind": name} for name in PLAIN] + [
    {"kind": "gd", "loss_scaled": True},
    {"kind": "gd", **NESTEROV},
    {"kind": "sgd", "momentum": 0.5},
    {"kind": "adam", "weight_decay": 0.1},
    {"kind": "rmsprop", "momentum": 0.5, "weight_decay": 0.1},
    {"kind": "group_rmsprop"},
]
TWO_ARRAYS = read("""
name: two
dataset: {kind: points, x: [[1.0, -0.5], [0.3, 2.0]], y: [1.0, -1.0]}
architecture: {kind: two_layer, width: 3, activation: tanh}
loss: {kind: mse}
initialization: {kind: balanced, scale: 0.5}
""")
names = pytest.mark.parametrize(
    "settings", OPTIMIZERS, ids=lambda one: "-".join(map(str, one.values()))
)


SUMS = """
from dynamics_cli.kinds import Minibatch, formulas
"""
for _name, _sum in {
    "OverTensor": "formulas.total(g)",
    "OverAll": "formulas.total_of_all(g)",
    "OverBoth": "formulas.total(g) - formulas.total_of_all(g)",
    "NoFormula": "formulas.total_of_all(g.clip(0))",
}.items():
    SUMS += f"""
class {_name}(Minibatch, kind="{_name}"):
    def updated(self, w, g, memory, step):
        return w - step.lr * ({_sum})
"""


@pytest.fixture
def sums(kinds_as_before, tmp_path):
    """Know optimizers of these sums."""
    (tmp_path / "sums.py").write_text(SUMS)
    registry.use(tmp_path / "sums.py")


def after_a_step(kind, way):
    """Return the weights of a network of two arrays before and after an update with a step of 1."""
    changes = {
        "optimizer": {"kind": kind, "lr": 1.0, "iterations": 1},
        "dtype": "float64",
        "backend": way,
    }
    problem = build_problem(load_config(TWO_ARRAYS, **changes))
    stepper = build_stepper([problem], choose([problem]))
    before = {name: np.array(value) for name, value in stepper.parameters().items()}
    stepper.advance(1)
    return [before, stepper.parameters()]


@pytest.mark.usefixtures("sums")
@pytest.mark.parametrize("way", ["torch", "compiled"])
def test_sums_of_an_update_are_over_a_tensor_or_over_all_weights(way):
    before, after = after_a_step("gd", "torch")
    slopes = {name: before[name] - after[name] for name in before}
    assert len(slopes) == 2
    expected = {
        "OverTensor": {name: np.sum(g) for name, g in slopes.items()},
        "OverAll": dict.fromkeys(slopes, sum(np.sum(g) for g in slopes.values())),
    }
    for kind, moved in expected.items():
        before, after = after_a_step(kind, way)
        for name, w in after.items():
            assert_allclose(w, before[name] - moved[name], rtol=1e-12)


@pytest.mark.parametrize(("dtype", "rtol"), [("float32", 1e-4), ("float64", 1e-9)])
@names
def test_networks_train_by_torch_s_form_as_by_compiled_units(settings, dtype, rtol):
    """What CUDA runs, on the CPU; weights of two step sizes move."""
    more = {"batch_size": 4} if settings["kind"] in ("sgd", "rmsprop") else {}
    optimizer = {
        "lr": 0.01,
        "iterations": 60,
        "layer_lr": {"output_weight": 0.5},
        **settings,
        **more,
    }
    asked = random_problem(optimizer=optimizer, loss="logistic", dtype=dtype)
    assert_same_path(updated_by_torch([asked]), AutogradStepper([asked], "cpu"), 40, rtol)


@names
@pytest.mark.parametrize("loss", ["mse", "logistic", "hinge"])
def test_an_update_never_waits_for_the_device(settings, loss):
    """Tensors on the device `meta` have shapes and no numbers: whatever needs one fails."""
    step_without_numbers(
        [random_problem(loss=loss, optimizer={"lr": 0.1, "iterations": 3, **settings})]
    )


@pytest.mark.parametrize("case", CASES)
def test_an_update_of_replicas_never_waits_for_the_device(case):
    step_without_numbers([problem_of(*CASES[case], seed=seed) for seed in range(3)])


def step_without_numbers(problems):
    stepper = AutogradStepper(problems, "meta")
    given = (*stepper._data, stepper._axis) if stepper.full_batch else (*stepper._batch(0), 0)
    gradients, losses = stepper._gradients(0, *given)
    stepper._update("all", 0, gradients, losses)
    assert losses.numel() == len(problems)


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_device_is_asked_for_convolutions_of_full_precision(device):
    """By default cuDNN may round inputs to 10 bits, and give other bits from call to call."""
    cudnn = torch.backends.cudnn
    before = (cudnn.allow_tf32, cudnn.deterministic)
    assert before == (True, False)
    stepper = AutogradStepper([random_problem()], device)
    with stepper._computing(stepper._threads):
        inside = (cudnn.allow_tf32, cudnn.deterministic)
    assert inside == (before if device == "cpu" else (False, True))
    assert (cudnn.allow_tf32, cudnn.deterministic) == before
