"""Random two-layer problems for the steppers' tests, and the contract that every stepper keeps."""

import numpy as np
import torch
from numpy.testing import assert_allclose

from dynamics_cli.config import load_config
from dynamics_cli.training.backends import Choice, build_stepper
from dynamics_cli.training.batches import Batches
from dynamics_cli.training.problem import build_problem
from dynamics_cli.training.steppers.autograd import AutogradStepper

MARGIN_LOSSES = ("logistic", "exponential", "hinge")
LOSSES = ("mse", "half_mse", *MARGIN_LOSSES)
ACTIVATIONS = (
    {"activation": "relu"},
    {"activation": "leaky_relu", "slope": 0.3},
    {"activation": "linear"},
)


def random_problem(
    *,
    n=6,
    d=3,
    width=7,
    loss="mse",
    activation=None,
    seed=0,
    optimizer=None,
    **settings,
):
    """Return a problem on random data with weights of order 1."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d))
    x[:, -1] = 1.0
    if d > 4:
        x[:, 1] = 0.0  # a column that is 0 everywhere
        x[rng.random((n, d)) < 0.3] = 0.0  # and entries that are
    y = rng.choice([-1.0, 1.0], n) if loss in MARGIN_LOSSES else rng.standard_normal(n)
    architecture = {"kind": "two_layer", "width": width, **(activation or {"activation": "relu"})}
    changed = settings.pop("architecture", {})
    sections = {
        "name": "random",
        "seed": seed,
        "dtype": "float64",
        "dataset": {"kind": "points", "x": x.tolist(), "y": y.tolist()},
        "architecture": changed if "kind" in changed else architecture | changed,
        "initialization": {"kind": "unbalanced", "scale": 0.7},
        "loss": {"kind": loss, **settings.pop("loss_settings", {})},
        "optimizer": optimizer or {"kind": "gd", "lr": 0.02, "iterations": 50},
    }
    return build_problem(load_config(sections | settings))


def stepper_of(problems, way, device="cpu"):
    """Return the stepper of a way to train: a backend, or a part of `compiled`: the `engine` or
    a `kernel`.
    """
    problems = problems if isinstance(problems, list) else [problems]
    if way == "engine":
        from dynamics_cli.training.steppers.layers import LayersStepper

        return LayersStepper(problems)
    if way == "kernel":
        from dynamics_cli.training.steppers.compiled import CompiledStepper

        return CompiledStepper(problems)
    return build_stepper(problems, Choice(device, way))


def updated_by_torch(problems):
    """Return torch's stepper as it is on a GPU: updates by torch's form of the formula, not by
    compiled units.
    """
    return _TorchForm(problems, "cpu")


class _TorchForm(AutogradStepper):
    compiles = False

    def _maps_bit_for_bit(self):
        return True  # on a GPU nobody asks


def loop_of_torch(
    problem,
    make,
    n,
    before=lambda i, made, w: None,
):
    """Yield the weights after each of `n` updates of a plain loop, by an optimizer of torch.

    Args:
        problem: gives network, samples, batches and loss.
        make: returns the optimizer of tensors.
        n: updates.
        before: is called before each update, and may return another optimizer.
    """
    data = problem.dataset
    dtype = getattr(torch, problem.config.dtype)
    model = problem.config.architecture.network(data.d, problem.initial_parameters(), dtype)
    x, y = (torch.from_numpy(array).to(dtype) for array in (data.x, data.y))
    w = dict(model.named_parameters())
    made = make([*w.values()])
    rows = Batches(problem).at if problem.batch_size else lambda i: slice(None)
    for i in range(n):
        made = before(i, made, w) or made
        made.zero_grad()
        problem.loss.total(model(x[rows(i)]), y[rows(i)]).backward()
        made.step()
        yield {name: tensor.detach().numpy().copy() for name, tensor in w.items()}


def assert_weights(found, expected, rtol=0.0, atol=0.0):
    """Assert that weights are those expected by name, by default bit for bit."""
    assert set(found) == set(expected)
    for name, value in expected.items():
        assert_allclose(found[name], value, rtol=rtol, atol=atol, err_msg=name)


def path_of(make, chunks, *, through_state=False):
    """Return the bytes of losses and weights of a run in chunks, each by a stepper of its own
    where that is asked.
    """
    current = make()
    losses = []
    for n in chunks:
        losses.append(current.advance(n).ravel())
        if through_state:
            state = current.state_dict()
            current = make()
            current.load_state_dict(state)
    weights = (value.tobytes() for value in current.parameters().values())
    return [
        np.concatenate(losses).tobytes(),
        current.look().tobytes(),
        str(current.numbers()).encode(),
        *weights,
    ]


def assert_chunks_are_invisible(make, n=60):
    """Assert that neither the lengths of calls nor going on from a state in between changes a
    bit of `n` updates.
    """
    whole = path_of(make, [n])
    assert path_of(make, [1, 2, n // 2, n - n // 2 - 3]) == whole
    torch.manual_seed(1)  # as in a process with other random numbers
    assert path_of(make, [0, 7, n // 3, n - n // 3 - 7], through_state=True) == whole


def assert_same_path(fast, reference, n, rtol):
    """Assert that two steppers agree after `n` updates, up to a tolerance relative to the
    largest weight.
    """
    assert_allclose(fast.advance(n), reference.advance(n), rtol=rtol, atol=rtol)
    assert (fast.iteration, fast.halted) == (reference.iteration, reference.halted)
    assert_allclose(fast.look(), reference.look(), rtol=rtol, atol=rtol)
    found = fast.parameters()
    expected = reference.parameters()
    assert {name: one.shape for name, one in found.items()} == {
        name: one.shape for name, one in expected.items()
    }
    for name, value in expected.items():
        scale = max(1.0, float(np.abs(value).max()))
        assert_allclose(found[name], value, rtol=0, atol=rtol * scale, err_msg=name)


def assert_replicas_are_the_networks_alone(problems, make, n, rtol=0.0):
    """Assert that networks trained together end as each by itself, where it halts too; return
    their stepper.
    """
    together = make(problems)
    losses = together.advance(n)
    ends = together.look()[0]
    numbers = together.numbers()
    for r, problem in enumerate(problems):
        alone = make([problem])
        own = alone.advance(n)
        assert_allclose(losses[: len(own), r] if len(losses) else [], own, rtol=rtol)
        assert_allclose(ends[r], alone.loss(), rtol=rtol)
        assert numbers["replica_iterations"][r] == alone.iteration
        found = {name: stack[r] for name, stack in together.parameters().items()}
        assert_weights(found, alone.parameters(), rtol, rtol)
    return together
