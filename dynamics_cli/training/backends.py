"""Which stepper trains a problem, and where: a static cost model, never a timing.

The constants are fitted to measured times; they decide between ways that differ by factors, so their absolute size
matters little.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from dynamics_cli.errors import InputError, UsageError
from dynamics_cli.kinds import Descent, Problem
from dynamics_cli.kinds.tracing import facts, operations
from dynamics_cli.training.kernels import UNROLLED, chunks_of, has_only, known, known_layers, spanned
from dynamics_cli.training.steppers.base import Stepper

US = 1e-6
_FLOW_SAMPLES = 512
_FLOW_WORK = 2e8
"""Activation changes are located up to this many samples, and neurons times samples squared."""
_HELD = 2**24
"""Activations that the kernel of few columns holds, at most."""
_GPU_ADVANTAGE = 0.7
"""`auto` leaves the CPU only for a clear gain."""
_PLAIN_KEYS = {*["kind", "lr", "iterations", "epochs", "batch_size", "replacement", "loss_scaled", "stop_below"]}
"""Settings of gradient descent and SGD that kernels of two-layer networks know; with others the engine trains."""


@dataclass(frozen=True)
class Choice:
    """A resolved device and backend with the predicted time of one iteration."""

    device: str
    backend: str
    seconds_per_iteration: float
    variant: str = ""
    """Of `compiled`: `engine`, or the kernel of `few_columns` or of `sparse` rows; without it the fastest that can."""


def choose(problems: Sequence[Problem]) -> Choice:
    """Resolve `device` and `backend` of the config of one network, or of replicas with one `replicas.batch_key`.

    Raises:
        InputError: CUDA is asked for and absent.
        UsageError: the backend asked for cannot train this problem on this device.

    """
    problem = problems[0]
    device, backend = problem.config.device, problem.config.backend
    if device == "cuda" and not cuda_available():
        raise InputError("device: cuda is asked for, but PyTorch finds no CUDA device; use --device cpu or auto")
    able = [c for c in possible(problem) if device in ("auto", c.device)]
    choices = [c for c in able if backend in ("auto", c.backend)]
    if not choices and not possible(problem):
        kind = problem.config.optimizer.kind
        raise UsageError(f"optimizer.kind {kind}: nothing here can train by it; a new optimizer derives from Descent")
    if not choices:
        names = ", ".join(sorted({c.backend for c in able}))
        raise UsageError(f"backend: {backend} cannot train this problem; {names} can, and auto picks the fastest")
    if len(problems) > 1 and device != "cuda":  # side by side on the cores of a CPU, by kernels where there are some
        choices = [c for c in choices if c.device == "cpu"]
        choices = [c for c in choices if c.backend == "compiled"] or choices
    return min(choices, key=lambda c: c.seconds_per_iteration / (_GPU_ADVANTAGE if c.device == "cuda" else 1.0))


def possible(problem: Problem) -> list[Choice]:
    """Return every way that can train a problem, with the predicted time of one iteration."""
    drawn = 20e-9 * _samples(problem) * problem.dataset.d if problem.fresh else 0.0
    if problem.batch_size is not None and not problem.fresh:
        drawn = 15 * US / problem.steps_per_epoch  # each epoch has a stream of its own
    choices = []
    for way, cost in _CPU_COSTS.items():
        if _able(way, problem):
            compiled = way not in ("torch", "flow")
            backend, variant = ("compiled", way) if compiled else (way, "")
            choices.append(Choice("cpu", backend, drawn + cost(problem), variant))
    # without the work of a network to speak of, a GPU is not even looked for: that would import torch's CUDA part
    worth_looking = problem.config.device == "cuda" or _work(problem) > 1e8
    if worth_looking and _able("torch", problem) and cuda_available():
        choices.append(Choice("cuda", "torch", _gradients(problem) * (250 * US + _work(problem) / 1e13)))
    return choices


def variant(choices: Iterable[Choice]) -> str:
    """Return the fastest variant of `compiled` among the ways that can train a problem."""
    return min((c for c in choices if c.backend == "compiled"), key=lambda c: c.seconds_per_iteration).variant


def cuda_available() -> bool:
    """Return whether PyTorch can use a CUDA device."""
    import torch

    return torch.cuda.is_available()


def build_stepper(problems: Sequence[Problem], choice: Choice) -> Stepper:
    """Return the stepper that was chosen, for one network or for replicas with one `replicas.batch_key`.

    Raises:
        ValueError: this stepper trains no replicas.

    """
    from dynamics_cli import compiling  # noqa: F401 - before any other import of numba, which it makes shorter

    config = problems[0].config
    if config.optimizer.is_flow:
        from dynamics_cli.training.steppers.flow import FlowStepper

        return FlowStepper(problems, choice.backend, choice.device)
    if config.architecture.players:
        from dynamics_cli.training.steppers.adversarial import AdversarialStepper

        return AdversarialStepper(problems, choice.device)
    if choice.backend == "torch":
        from dynamics_cli.training.steppers.autograd import AutogradStepper

        return AutogradStepper(problems, choice.device)
    if (choice.variant or variant(possible(problems[0]))) == "engine":
        from dynamics_cli.training.steppers.layers import LayersStepper

        return LayersStepper(problems)
    from dynamics_cli.training.steppers.compiled import CompiledStepper

    return CompiledStepper(problems)


def _able(way: str, problem: Problem) -> bool:
    config, optimizer, full_batch = problem.config, problem.config.optimizer, problem.batch_size is None
    if way == "torch":
        return isinstance(optimizer, Descent) or optimizer.is_flow
    if way == "flow":
        n, is_flow = problem.dataset.n, optimizer.is_flow
        return known(config) and is_flow and n <= _FLOW_SAMPLES and _width(problem) * n**2 <= _FLOW_WORK
    if way == "engine":
        # a sum over the network is that of weights of one step
        knows = known_layers(config) and _whole_matrix(problem)
        groups = knows and len({problem.step_factors().get(name, 1.0) for name in problem.shapes})
        return groups == 1 or (groups > 1 and (update := facts(optimizer)) is not None and not update.sums)
    if not (known(config) and optimizer.plain and has_only(optimizer, _PLAIN_KEYS)):
        return False
    few = full_batch and problem.dataset.d <= UNROLLED
    return not few if way == "sparse" else few and problem.dataset.n * _width(problem) <= _HELD


def _whole_matrix(problem: Problem) -> bool:
    """Return whether entries of a product of matrices are all seen at once, each at most once; True of other models."""
    x, product = problem.dataset.x, problem.config.architecture.factors
    return not product or (problem.batch_size is None and len(np.unique(x, axis=0)) == len(x))


def _width(problem: Problem) -> int:
    return problem.shapes["hidden_weight"][0]


def _samples(problem: Problem) -> int:
    return problem.batch_size or problem.dataset.n


def _work(problem: Problem) -> float:
    """Multiply-adds of the forward and backward pass of one iteration."""
    if problem.config.architecture.factors:
        return 2.0 * next(iter(problem.shapes.values()))[1] * problem.parameter_count
    return 2.0 * _samples(problem) * problem.multiply_adds


def _flops(problem: Problem) -> float:
    """Multiply-adds of the products of one iteration: forward, and backward but to the inputs."""
    first = next(iter(problem.shapes.values()))
    of_inputs = len(first) == 2 and not problem.config.architecture.factors
    return 3 * _work(problem) - of_inputs * 2.0 * _samples(problem) * math.prod(first)


def _gradients(problem: Problem) -> float:
    """Return the gradients of an iteration; of a flow, a state's share in the thousands that kinks make it take."""
    return 2e4 / problem.iterations if problem.config.optimizer.is_flow else 1.0


def _torch(problem: Problem) -> float:
    matrices = sum(len(shape) > 1 for shape in problem.shapes.values())
    # an update of either player of a GAN goes through both, the discriminator's on twice the batch
    updates = getattr(problem.config.architecture, "discriminator_updates", None)
    trips = 1.0 if updates is None else 1.5 * (1 + updates)
    asked, numbers = (100 + 40 * matrices) * US, _samples(problem) * sum(problem.layer_sizes)
    gradient = asked + 4e-9 * numbers + _flops(problem) * problem.dtype.itemsize / 5.6e11
    return _gradients(problem) * (trips * gradient)


def _few_columns(problem: Problem) -> float:
    return 0.05 * US + _work(problem) / 2.6e10 * problem.dtype.itemsize / 4


def _sparse(problem: Problem) -> float:
    # zero entries are skipped; of one sample only the rows of the others change
    work = _work(problem) * float((problem.dataset.x != 0).mean())
    passes = problem.parameter_count / 8e9 if problem.batch_size != 1 else 0.0
    if problem.batch_size is None:  # chunks go to the cores
        return 5 * US + passes + work / (3.6e10 if problem.dataset.n > 1024 else 1.8e10)
    return 0.2 * US + passes + work / 1.8e10


def _engine(problem: Problem) -> float:
    n, P = _samples(problem), problem.parameter_count
    hidden = sum([shape[0] for name, shape in problem.shapes.items() if "weight" in name][:-1])
    each: float = 5e-10 * (1 + (operations(problem.config.architecture.sigma) or 0))  # type: ignore[attr-defined]
    chunks = chunks_of(n, problem.multiply_adds)  # each has a gradient of its own
    r = spanned(problem)
    flops = _flops(problem) * (r / problem.dataset.d if r else 1.0)
    shared = n * hidden * each + flops * problem.dtype.itemsize / 5.6e11 + (chunks - 1) * P * 1.7e-9
    return (0.1 + 0.15 * len(problem.shapes)) * US + P * 3.5e-11 * problem.dtype.itemsize + shared / min(chunks, 2)


def _flow(problem: Problem) -> float:
    n, m = problem.dataset.n, _width(problem)
    sweep = 200 * US + m * (5 * US + 4e-9 * n * n)
    return 5 * US + sweep * (300 / problem.iterations + 0.002 * min(1.0, n / 50))


_CPU_COSTS: dict[str, Callable[[Problem], float]] = {
    "torch": _torch,
    "engine": _engine,
    "few_columns": _few_columns,
    "sparse": _sparse,
    "flow": _flow,
}
