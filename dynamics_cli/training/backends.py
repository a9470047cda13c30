"""Which stepper trains a problem, and where: a static cost model, never a timing.

The constants were fitted once, on two cores of a server CPU, to what `benchmarks/compare.py` prints; they decide
between backends that differ by factors, so their absolute size matters little.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dynamics_cli.architectures.gan import Gan
from dynamics_cli.architectures.linear_models import MatrixProduct
from dynamics_cli.config.bases import Descent, Optimizer
from dynamics_cli.errors import InputError, UsageError
from dynamics_cli.kinds.tracing import operations, sums
from dynamics_cli.optimizers.descent import (
    GradientDescent,
    StochasticGradientDescent,
)
from dynamics_cli.optimizers.gradient_flow import GradientFlow
from dynamics_cli.training.kernels import (
    UNROLLED,
    chunks_of,
    known,
    known_layers,
)
from dynamics_cli.training.problem import Problem
from dynamics_cli.training.steppers.base import Stepper

US = 1e-6
_WIDE_FROM = 16384
_FLOW_SAMPLES = 512
_FLOW_WORK = 2e8
"""Activation changes are located up to this many samples, and neurons times samples squared."""
_GPU_ADVANTAGE = 0.7
"""`auto` leaves the CPU only for a clear gain."""
_PLAIN_KEYS = {*["kind", "lr", "iterations", "epochs", "batch_size", "replacement", "loss_scaled", "stop_below"]}
"""Keys of gradient descent and SGD that fast steppers know; where another is given, autograd trains."""


@dataclass(frozen=True)
class Choice:
    """A resolved device and backend with the predicted time of one iteration."""

    device: str
    backend: str
    seconds_per_iteration: float


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
    choices = [c for c in possible(problem) if device in ("auto", c.device) and backend in ("auto", c.backend)]
    if backend == "auto" and known(problem.config) and plain(problem.config.optimizer):
        choices = [c for c in choices if c.backend != "layers"]  # there are kernels of two-layer networks alone
    if not choices and not possible(problem):
        kind = problem.config.optimizer.kind
        raise UsageError(f"optimizer.kind {kind}: nothing here can train by it; a new optimizer derives from Descent")
    if not choices:
        able = sorted({c.backend for c in possible(problem) if device in ("auto", c.device)})
        raise UsageError(
            f"backend: {backend} cannot train this problem; {', '.join(able)} can, and auto picks the fastest"
        )
    best = min(choices, key=lambda c: c.seconds_per_iteration / (_GPU_ADVANTAGE if c.device == "cuda" else 1.0))
    if len(problems) == 1:
        return best
    if best.backend in ("layers", "autograd"):
        there = {c.backend for c in possible(problem) if backend in ("auto", c.backend)}
        return Choice("cpu", "layers" if "layers" in there else "autograd", best.seconds_per_iteration)
    # of replicas each has a core of its own, unless one is so large that batched products are faster
    return Choice("cpu", "matrix" if best.backend == "matrix" else "compiled", best.seconds_per_iteration)


def possible(problem: Problem) -> list[Choice]:
    """Return every device and backend that can train a problem, with the predicted time of one iteration."""
    drawn = 20e-9 * _samples(problem) * problem.dataset.d if problem.fresh else 0.0
    able = [(backend, cost(problem)) for backend, cost in _CPU_COSTS.items() if _able(backend, problem)]
    choices = [Choice("cpu", backend, drawn + seconds) for backend, seconds in able]
    # without the work of a network to speak of, a GPU is not even looked for: that would import torch's CUDA part
    worth_looking = problem.config.device == "cuda" or _work(problem) > 1e8
    if worth_looking and cuda_available():
        gpu = [b for b in ("autograd", "matrix") if _able(b, problem)]
        choices += [Choice("cuda", b, _gpu_seconds(problem, b)) for b in gpu]
    return choices


def cuda_available() -> bool:
    """Return whether PyTorch can use a CUDA device."""
    import torch

    return torch.cuda.is_available()


def build_stepper(problems: Sequence[Problem], choice: Choice) -> Stepper:  # noqa: PLR0911
    """Return the stepper that was chosen, for one network or for replicas with one `replicas.batch_key`.

    Raises:
        ValueError: this stepper trains no replicas.

    """
    config = problems[0].config
    if config.optimizer.kind == "gradient_flow":
        from dynamics_cli.training.steppers.flow import FlowStepper

        return FlowStepper(problems, choice.backend, choice.device)
    if config.architecture.kind == "gan":
        from dynamics_cli.training.steppers.adversarial import AdversarialStepper

        return AdversarialStepper(problems, choice.device)
    if choice.backend == "autograd" and len(problems) > 1:
        from dynamics_cli.training.steppers.stacked import StackedStepper

        return StackedStepper(problems)
    if choice.backend == "autograd":
        from dynamics_cli.training.steppers.autograd import AutogradStepper

        return AutogradStepper(problems, choice.device)
    if choice.backend == "matrix":
        from dynamics_cli.training.steppers.matrix import MatrixStepper

        return MatrixStepper(problems, device=choice.device)
    if choice.backend == "gram":
        from dynamics_cli.training.steppers.gram import GramStepper

        return GramStepper(problems)
    if choice.backend == "layers":
        from dynamics_cli.training.steppers.layers import LayersStepper

        return LayersStepper(problems)
    from dynamics_cli.training.steppers.compiled import CompiledStepper, WideStepper

    return WideStepper(problems) if choice.backend == "wide" else CompiledStepper(problems)


def _able(backend: str, problem: Problem) -> bool:  # noqa: PLR0911
    config, optimizer = problem.config, problem.config.optimizer
    if backend == "autograd":
        return isinstance(optimizer, Descent) or type(optimizer) is GradientFlow
    if backend == "flow":
        n, is_flow = problem.dataset.n, type(optimizer) is GradientFlow
        return known(config) and is_flow and n <= _FLOW_SAMPLES and _width(problem) * n**2 <= _FLOW_WORK
    if backend == "layers":
        # a sum over the network is that of weights of one step
        knows = known_layers(config) and _whole_matrix(problem)
        groups = knows and len({problem.step_factors().get(name, 1.0) for name in problem.shapes})
        return groups == 1 or (groups > 1 and not sums(optimizer))
    if not known(config) or not plain(optimizer):
        return False
    full_batch, d = problem.batch_size is None, problem.dataset.d
    if backend == "gram":
        return full_batch and problem.dataset.n < d
    if backend == "wide":
        return full_batch and d <= UNROLLED and _width(problem) >= _WIDE_FROM
    return True


def _whole_matrix(problem: Problem) -> bool:
    """Return whether entries of a product of matrices are all seen at once, each at most once; True of other models."""
    x, product = problem.dataset.x, isinstance(problem.config.architecture, MatrixProduct)
    return not product or (problem.batch_size is None and len(np.unique(x, axis=0)) == len(x))


def plain(optimizer: Optimizer) -> bool:
    """Return whether fast steppers know an optimizer: gradient descent or SGD of one step size, and nothing else."""
    known_type = type(optimizer) is GradientDescent or type(optimizer) is StochasticGradientDescent
    added = type(optimizer).model_fields.keys() - _PLAIN_KEYS
    return known_type and all(getattr(optimizer, key) is None for key in added)


def _width(problem: Problem) -> int:
    return problem.shapes["hidden_weight"][0]


def _samples(problem: Problem) -> int:
    return problem.batch_size or problem.dataset.n


def _work(problem: Problem) -> float:
    """Multiply-adds of the forward and backward pass of one iteration."""
    if isinstance(architecture := problem.config.architecture, MatrixProduct):
        columns, *rows = architecture.sides()
        return 2.0 * columns * sum(a * b for a, b in pairwise([columns, *rows]))
    return 2.0 * _samples(problem) * problem.multiply_adds


def _flops(problem: Problem) -> float:
    """Return those of the products of one iteration: forward, and backward but to the inputs."""
    first = next(iter(problem.shapes.values()))
    of_inputs = len(first) == 2 and not isinstance(problem.config.architecture, MatrixProduct)
    return 3 * _work(problem) - of_inputs * 2.0 * _samples(problem) * math.prod(first)


def _preactivations(problem: Problem) -> float:
    return float(_samples(problem) * max(shape[0] for shape in problem.shapes.values()))


def _autograd(problem: Problem) -> float:
    """Return the time of a gradient; of a flow, that of the thousands that kinks make it take, per state."""
    return _gradients(problem) * _gradient(problem)


def _gradients(problem: Problem) -> float:
    return 2e4 / problem.iterations if problem.config.optimizer.kind == "gradient_flow" else 1.0


def _gradient(problem: Problem) -> float:
    matrices = sum(len(shape) > 1 for shape in problem.shapes.values())
    architecture = problem.config.architecture
    # an update of either player of a GAN goes through both, the discriminator's on twice the batch
    trips = 1.5 * (1 + architecture.discriminator_updates) if isinstance(architecture, Gan) else 1.0
    numbers = _samples(problem) * sum(problem.layer_sizes)
    return trips * ((50 + 110 * matrices) * US + 4e-9 * numbers + _flops(problem) / 1.4e11)


def _matrix(problem: Problem) -> float:
    moving = float(problem.dataset.x.any(axis=0).mean())
    return 45 * US + 1.2e-9 * _preactivations(problem) + _work(problem) * moving / 7e10


def _compiled(problem: Problem) -> float:
    # few columns are unrolled; of more columns, zero entries are skipped; weights beyond the cache come slowly
    few = problem.dataset.d <= UNROLLED and problem.batch_size is None
    work = _work(problem) * (1.0 if few else float((problem.dataset.x != 0).mean()))
    rate = 1.5e10 if problem.parameter_count > 5e5 else 2.6e10 if few else 1.8e10
    passes = problem.parameter_count / 8e9 if problem.batch_size != 1 else 0.0
    return 0.01 * US + passes + work / rate


def _layers(problem: Problem) -> float:
    n, P = _samples(problem), problem.parameter_count
    hidden = sum([shape[0] for name, shape in problem.shapes.items() if "weight" in name][:-1])
    each: float = 5e-10 * (1 + (operations(problem.config.architecture.sigma) or 0))  # type: ignore[attr-defined]
    chunks = chunks_of(n, problem.multiply_adds)  # each has a gradient of its own
    shared = n * hidden * each + _flops(problem) / 7e10 + (chunks - 1) * P * 1.7e-9
    return (1 + 0.5 * len(problem.shapes)) * US + P * 5e-10 + shared / min(chunks, 2)


def _gram(problem: Problem) -> float:
    n, m = problem.dataset.n, _width(problem)
    return 1 * US + m * n * n / 4.5e10 + m * n / 2e9


def _wide(problem: Problem) -> float:
    return 15 * US + _work(problem) / 3.5e10


def _flow(problem: Problem) -> float:
    n, m = problem.dataset.n, _width(problem)
    sweep = 200 * US + m * (5 * US + 4e-9 * n * n)
    return 5 * US + sweep * (300 / problem.iterations + 0.002 * min(1.0, n / 50))


_CPU_COSTS: dict[str, Callable[[Problem], float]] = {
    "autograd": _autograd,
    "matrix": _matrix,
    "compiled": _compiled,
    "gram": _gram,
    "wide": _wide,
    "layers": _layers,
    "flow": _flow,
}


def _gpu_seconds(problem: Problem, backend: str) -> float:
    return _gradients(problem) * ((250 if backend == "autograd" else 120) * US + _work(problem) / 1e13)
