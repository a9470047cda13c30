"""Which stepper trains a problem, and where: a rule on its kinds and sizes, never a timing.

`auto` is `compiled` on a CPU for networks of layers, `torch` otherwise, and where a layer has more
than `LARGE` inputs and more than `LARGE` outputs. `device: auto` takes a CUDA device for iterations
of more than `GPU_WORK` multiply-adds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dynamics_cli.errors import InputError, UsageError
from dynamics_cli.formulas.tracing import facts
from dynamics_cli.kinds import Descent, Problem
from dynamics_cli.training.kernels import UNROLLED, has_only, known, known_layers, spanned
from dynamics_cli.training.steppers.base import Stepper

GPU_WORK = 10**8
"""Multiply-adds of the forward and backward pass of an iteration up to which `device: auto`
stays on the CPU; a guess, since no GPU was measured.
"""
LARGE = 512
"""Inputs and outputs of a layer up to which the engine's products are as fast as those of a library
of linear algebra.
"""
_HELD = 2**24
"""Activations that the kernel of few columns holds, at most."""
_PLAIN_KEYS = {
    *("kind", "lr", "iterations", "epochs", "batch_size"),
    *("replacement", "drop_last", "loss_scaled", "stop_below"),
}
"""Settings of gradient descent and SGD that kernels of two-layer networks know; with others the
engine trains.
"""


@dataclass(frozen=True)
class Choice:
    """A device and a backend."""

    device: str
    backend: str


def choose(problems: Sequence[Problem], later: Sequence[Problem] = ()) -> Choice:
    """Resolve `device` and `backend` of a network, or of replicas with one `replicas.batch_key`.

    It suits the problems after changes on the way, `later`, too.

    Raises:
        InputError: CUDA is asked for and absent.
        UsageError: the backend asked for cannot train this problem on this device.
    """
    problem = problems[0]
    device = problem.config.device
    backend = problem.config.backend
    kind = problem.config.optimizer.kind
    able = [name for name, can in BACKENDS.items() if all(map(can, (problem, *later)))]
    if not able:
        raise UsageError(
            f"optimizer.kind {kind}: no stepper supports this optimizer; derive it from `Descent`"
        )
    if device == "cuda" and not cuda_available():
        raise InputError(
            "device: cuda is asked for, but PyTorch finds no CUDA device; use --device cpu or auto"
        )
    if device == "auto":
        # replicas go to the cores of a CPU; torch's CUDA part, which takes long to import, is not
        # asked without need
        large = (
            len(problems) == 1
            and backend != "compiled"
            and "torch" in able
            and multiply_adds(problem) > GPU_WORK
        )
        device = "cuda" if large and cuda_available() else "cpu"
    if device == "cuda":
        able = [name for name in able if name != "compiled"]
    if not able or backend not in ("auto", *able):
        can = f"{', '.join(able) or 'none'} can"
        raise UsageError(f"backend: {backend} cannot train this problem on device {device}; {can}")
    if backend != "auto":
        return Choice(device, backend)
    return Choice(device, "torch" if "torch" in able and has_large_layers(problem) else able[0])


def has_large_layers(problem: Problem) -> bool:
    """Return whether `auto` leaves a network of the engine to torch.

    It does for a layer with more than `LARGE` inputs and outputs.
    """
    if problem.config.optimizer.is_flow or by_kernel(problem) or not by_engine(problem):
        return False
    sides = [shape for shape in problem.shapes.values() if len(shape) == 2]
    if coordinates := spanned(problem):
        sides[0] = (sides[0][0], coordinates)
    return any(min(shape) > LARGE for shape in sides)


def by_torch(problem: Problem) -> bool:
    """Return whether the stepper of PyTorch trains a problem."""
    return isinstance(problem.config.optimizer, Descent) or problem.config.optimizer.is_flow


def by_torch_compile(problem: Problem) -> bool:
    """Return whether the stepper of PyTorch trains a problem by a network that is compiled.

    Layers that draw in training take their own generator in Python, and gain nothing.
    """
    config = problem.config
    by_steps = isinstance(config.optimizer, Descent) and not config.architecture.players
    return by_steps and not problem.has_modes


def by_compiled(problem: Problem) -> bool:
    """Return whether a compiled stepper trains a problem: layers whose kinds are formulas."""
    config = problem.config
    if config.optimizer.is_flow:
        c = config.architecture
        return bool(c.engine and c.matrices and facts(c.sigma) and facts(problem.loss))  # type: ignore[attr-defined]
    return by_kernel(problem) or by_engine(problem)


def by_kernel(problem: Problem) -> bool:
    """Return whether a kernel of two-layer networks trains a problem.

    It takes full batches of few columns, or single samples.
    """
    config = problem.config
    dataset = problem.dataset
    plain = config.optimizer.spans_gradients and has_only(config.optimizer, _PLAIN_KEYS)
    if not (plain and known(config)):
        return False
    if problem.batch_size is None and dataset.d <= UNROLLED:
        return dataset.n * problem.shapes["hidden_weight"][0] <= _HELD
    return problem.batch_size == 1


def by_engine(problem: Problem) -> bool:
    """Return whether the engine trains a problem by steps."""
    if problem.averages or not known_layers(problem.config):
        return False
    x = problem.dataset.x
    update = facts(problem.config.optimizer)
    # entries of a product of matrices have to be seen all at once, each at most once
    if problem.config.architecture.factors and (
        problem.batch_size or len(np.unique(x, axis=0)) < len(x)
    ):
        return False
    # a sum over the network is that of weights of one step
    one_step = len({problem.step_factors().get(name, 1.0) for name in problem.shapes}) == 1
    return one_step or (update is not None and not update.sums)


BACKENDS: dict[str, Callable[[Problem], bool]] = {
    "compiled": by_compiled,
    "torch": by_torch,
    "torch_compile": by_torch_compile,
}
"""What each trains; `auto` takes the first that can, `torch_compile` only where it is named."""


def multiply_adds(problem: Problem) -> int:
    """Return the multiply-adds of the forward and backward pass of one iteration."""
    if problem.config.architecture.factors:
        return 2 * next(iter(problem.shapes.values()))[1] * problem.parameter_count
    return 2 * (problem.batch_size or problem.dataset.n) * problem.multiply_adds


def cuda_available() -> bool:
    """Return whether PyTorch can use a CUDA device."""
    import torch

    return torch.cuda.is_available()


def build_stepper(problems: Sequence[Problem], choice: Choice) -> Stepper:
    """Return the chosen stepper, for one network or for replicas with one `replicas.batch_key`.

    Raises:
        ValueError: this stepper trains no replicas.
    """
    # before any other import of numba, which it makes shorter
    from dynamics_cli.formulas import compiling  # noqa: F401

    config = problems[0].config
    if config.optimizer.is_flow:
        from dynamics_cli.training.steppers.flow import FlowStepper

        return FlowStepper(problems, choice.backend, choice.device)
    if config.architecture.players:
        from dynamics_cli.training.steppers.adversarial import AdversarialStepper

        return AdversarialStepper(problems, choice.device)
    if choice.backend != "compiled":
        from dynamics_cli.training.steppers.autograd import AutogradStepper

        compiled = choice.backend == "torch_compile"
        return AutogradStepper(problems, choice.device, compiled=compiled)
    if by_kernel(problems[0]):
        from dynamics_cli.training.steppers.compiled import CompiledStepper

        return CompiledStepper(problems)
    from dynamics_cli.training.steppers.layers import LayersStepper

    return LayersStepper(problems)
