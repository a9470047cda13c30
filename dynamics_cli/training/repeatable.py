"""Refuse third-party code that draws unseeded random numbers.

The same config would give different runs.

Runs draw from the streams of their seed. PyTorch's, NumPy's and Python's global generators go on
from wherever the process left them, so a run that draws from them cannot be trained again, resumed,
or compared with its own sweep. Code is tried as training calls it, twice: it draws where a global
generator moves on, or where the numbers differ. A network may draw from PyTorch's generator in
training mode, as dropout does: steppers set the generator from the run's stream before each update.

The same trial tells of outputs that are no row a sample, and of weights without a gradient.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import Any

import numpy as np

from dynamics_cli.errors import InputError
from dynamics_cli.formulas.tracing import facts
from dynamics_cli.kinds import (
    Descent,
    Kind,
    Problem,
    RunConfig,
    Samples,
    Streams,
    TorchOptimizer,
)
from dynamics_cli.kinds.base import bundled, kinds_in
from dynamics_cli.kinds.modules import buffers_of, put_buffers
from dynamics_cli.kinds.registry import KindError, blamed
from dynamics_cli.process import alone

TRIED = 2
"""Samples that a network is tried with."""
_TRIED_UPDATES = 6
"""Updates of an optimizer that is made anew from its memory each time."""
_KNOWN: set[str] = set()
"""Settings of networks, losses, optimizers and initialisations that were tried, and draw
nothing.
"""
UNTRIED = (KindError, RuntimeError, TypeError, ValueError, ArithmeticError, LookupError)
"""Errors of code that cannot be tried: training tells them, with the iteration."""


def refuse_random_numbers(problem: Problem) -> None:
    """Refuse a problem whose third-party parts draw unseeded random numbers.

    Raises:
        InputError: one does; the message names it.
    """
    config = problem.config
    tried = {
        "architecture": _network,
        "loss": _loss,
        "optimizer": _optimizer,
        "initialization": _initialization,
    }
    for section, problems in tried.items():
        kind = getattr(config, section)
        if bundled(kind) or config.architecture.players:
            continue
        key = (
            f"{type(kind)} {kind.model_dump_json()} {problem.dataset.x.shape}"
            f" {dict(problem.shapes)}"
        )
        if key in _KNOWN:
            continue
        found = None
        with suppress(*UNTRIED), blamed(kind):
            found = next(problems(problem), None)
        if found is not None:
            raise InputError(f"{section}.kind {kind.kind}: {found}")
        _KNOWN.add(key)


def repeatable_samples(config: RunConfig) -> Samples:
    """Return the samples of a config.

    Samples of a foreign kind are drawn again where a global generator has moved on.

    Raises:
        InputError: they differ then.
    """
    before = _generators()
    samples = config.dataset.samples(Streams(config.seed))
    if not bundled(config.dataset) and _generators() != before:
        again = config.dataset.samples(Streams(config.seed))
        if not _equal(*(vars(drawn).values() for drawn in (samples, again))):
            told = "its samples come from a global generator, so that each run has others"
            raise InputError(
                f'dataset.kind {config.dataset.kind}: {told}; draw them from streams.rng("data")'
            )
    return samples


def holding(config: RunConfig) -> Callable[[], AbstractContextManager[None]]:
    """Return the context in which a run of this config trains beside runs of other threads.

    It is `alone` where code that is not bundled, and no formula, may seed or draw from the
    generators of the process.
    """
    parts = [config.architecture, config.loss, config.optimizer, config.initialization]
    called = [kind for part in (*parts, config.record) for _, kind in kinds_in(part)]
    if getattr(config.optimizer, "samples", None) == "fresh":
        called.append(config.dataset)
    if all(bundled(kind) or _is_formula(kind) for kind in called):
        return nullcontext
    return alone


def _is_formula(kind: Kind) -> bool:
    return kind.section in ("activation", "loss", "optimizer") and facts(kind) is not None


def _generators() -> tuple[Any, ...]:
    """Return the states of the global generators; PyTorch's where it is imported."""
    states: list[Any] = [random.getstate(), str(np.random.get_state(legacy=False))]  # noqa: NPY002
    if (torch := sys.modules.get("torch")) is not None:
        states.append(torch.get_rng_state().numpy().tobytes())
    return tuple(states)


def _network(problem: Problem) -> Iterator[str]:
    """Yield that the forward pass draws, or that the network is another each time it is built."""
    import torch

    architecture = problem.config.architecture
    samples = problem.dataset
    with torch.random.fork_rng(devices=[]):
        built = architecture.built(samples.d)
        for name, w in built.named_parameters():
            if not w.requires_grad:
                told = f"its weight {name} has requires_grad=False: leave that out"
                yield f"{told}; optimizer.layer_lr: {{{name}: 0.0}} keeps it as it is"
                return
        weights = {name: w.detach().double().numpy() for name, w in built.named_parameters()}
        dtype = getattr(torch, problem.config.dtype)
        networks = []
        for k in range(TRIED):
            torch.manual_seed(k)  # which constants without a seed of their own depend on
            networks.append(architecture.network(samples.d, weights, dtype))
        x = torch.from_numpy(samples.x[:TRIED]).to(dtype)
        drawing = _drawing_modules(networks[0])
        for network in networks:
            network.eval()
        kept = _buffers(networks[0])
        outputs, draws = _twice(lambda: [network(x) for network in networks])
        if (wrong := _other_outputs(problem, outputs[0][0])) is not None:
            yield wrong
            return
        changed = [
            name for name, b in _buffers(networks[0]).items() if not _equal([b], [kept[name]])
        ]
        layer = "the network"
        if drawing:
            layer = f"the layer {drawing[0]}"
        trained = _training(networks[0], x)
    remedy = "leave that out, or train by a loop of your own with dyn.Recorder"
    if draws:
        yield (
            f"{layer} draws random numbers in evaluation too, so that no measure can be repeated:"
            f" draw where self.training is true, or {remedy}"
        )
    if changed:
        told = f"its evaluation changes the buffer {changed[0]}"
        yield f"{told}: change it where self.training is true"
    (first, built_again), (once_more, _) = outputs
    if not _equal([first], [once_more]):
        yield f"the same weights and inputs give other outputs each time: {remedy}"
    if not _equal([first], [built_again]):
        fixed = "draw constants of the network from a generator with a seed"
        yield f"built again, it gives other outputs with the same weights: {fixed}"
    if not trained:
        own = "take PyTorch's global generator, which is set from the run's seed"
        yield f"in training it draws from another generator than PyTorch's: {own}"


def _other_outputs(problem: Problem, h: Any) -> str | None:
    """Return what is wrong with the outputs of a network for the first samples, or None."""
    import torch

    if not isinstance(h, torch.Tensor):
        return f"its outputs are a {type(h).__name__}: return one tensor, (n,) or (n, C)"
    shape = _output_shape(problem, h.shape[-1])
    if list(h.shape) == shape:
        return None
    remedy = ""
    if list(h.shape) == [*shape, 1]:
        remedy = "; end it with .squeeze(-1) or nn.Flatten(0)"
    return f"its outputs of {len(h)} samples are {tuple(h.shape)}, not {tuple(shape)}{remedy}"


def _output_shape(problem: Problem, classes: int = 1) -> list[int]:
    """Return the shape of the outputs for the samples that a network is tried with."""
    shape = list(problem.loss.numbered(problem.dataset.y[:TRIED]).shape)
    if problem.dataset.positions and shape[-1] == 1:
        shape.pop()  # a single output has no axis
    if problem.loss.labels == "classes":
        shape.append(getattr(problem.config.architecture, "outputs", None) or classes)
    return shape


def _buffers(network: Any) -> dict[str, Any]:
    return {name: buffer.clone() for name, buffer in buffers_of(network).items()}


def _training(network: Any, x: Any) -> bool:
    """Return whether a network in training mode draws from PyTorch's generator alone.

    A network that cannot be tried with these inputs, too few for the statistics of a batch, is
    taken to do so.
    """
    import torch

    network.train()
    kept = {name: buffer.numpy() for name, buffer in _buffers(network).items()}

    def forward() -> list[Any]:
        torch.manual_seed(0)
        put_buffers(network, kept)
        return [network(x)]

    with suppress(*UNTRIED):
        return not _differs(forward)
    return True


def _drawing_modules(network: Any) -> list[str]:
    """Return a list that fills with layers that move a global generator, inner ones first."""
    drawing: list[str] = []

    def watch(name: str, module: Any) -> None:
        states: list[Any] = []

        def before(*_: Any) -> None:
            states.append(_generators())

        def after(*_: Any) -> None:
            if states.pop() != _generators():
                drawing.append(f"{name} ({type(module).__name__})")

        module.register_forward_pre_hook(before)
        module.register_forward_hook(after)

    for name, module in network.named_modules():
        if name:
            watch(name, module)
    return drawing


def _loss(problem: Problem) -> Iterator[str]:
    """Yield that the loss draws, unless it is a formula."""
    import torch

    if facts(problem.loss) is not None:
        return
    y = torch.from_numpy(problem.loss.numbered(problem.dataset.y[:TRIED]))
    shape = _output_shape(problem)
    h = torch.linspace(-1.0, 1.0, max(1, math.prod(shape))).reshape(shape).double()
    with torch.random.fork_rng(devices=[]):
        if _differs(lambda: [problem.loss.total(h, y)]):
            yield "it draws random numbers, so that no run with it can be trained again"


def _optimizer(problem: Problem) -> Iterator[str]:
    """Yield that an update draws, unless it is a formula, or uses more than its memory."""
    import torch

    optimizer = problem.config.optimizer
    if not isinstance(optimizer, Descent) or facts(optimizer) is not None:
        return

    def trained(*, anew: bool) -> list[Any]:
        tensors = list(map(torch.ones, problem.shapes.values()))
        given: dict[str, Any] = {"lr": optimizer.lr, "names": list(problem.shapes), "state": {}}
        update = optimizer.update
        if isinstance(optimizer, TorchOptimizer) and not anew:
            update = optimizer.updater(given["names"], tensors).update
        for i in range(_TRIED_UPDATES):
            gradients = [torch.full_like(w, 0.1 * i - 0.25) for w in tensors]
            update(tensors, gradients, **given, iteration=i, loss=torch.ones(()))
        return tensors

    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        if _differs(partial(trained, anew=True)):
            yield "its updates draw random numbers, so that no run with it can be trained again"
        elif not _equal(trained(anew=True), trained(anew=False)):
            told = "its updates depend on more than `state` and `param_groups`"
            yield f"{told}; name the attributes of the object that change in `keeps`"


def _initialization(problem: Problem) -> Iterator[str]:
    """Yield that weights are others each time."""
    first, again = (problem.initial_parameters().values() for _ in range(2))
    if not _equal(first, again):
        told = "its weights come from a global generator, so that each run has others"
        yield f'{told}; draw them from streams.rng("initialization")'


def _twice(call: Callable[[], Any]) -> tuple[tuple[Any, Any], bool]:
    """Return what two calls return, and whether they leave a global generator at different places.

    Code that seeds a generator itself leaves it where the call before left it.
    """
    first = call()
    between = _generators()
    again = call()
    return (first, again), _generators() != between


def _differs(call: Callable[[], Iterable[Any]]) -> bool:
    """Return whether two calls give other arrays, or move a global generator."""
    (first, again), draws = _twice(call)
    return draws or not _equal(first, again)


def _equal(first: Iterable[Any], again: Iterable[Any]) -> bool:
    """Return whether the arrays and tensors among two lists are equal, NaN to NaN."""
    pairs = zip(map(_array, first), map(_array, again), strict=True)
    return all(np.array_equal(a, b, equal_nan=True) for a, b in pairs if hasattr(a, "shape"))


def _array(value: Any) -> Any:
    """Return a tensor as an array, and others as they are."""
    return value.detach().numpy() if hasattr(value, "detach") else value
