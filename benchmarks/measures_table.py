"""Measures x ways x situations, each number beside an oracle that is written from nothing: `python
benchmarks/measures_table.py`.

The ways are `dyn train` (compiled and torch), `dyn.measure` and `dyn.Recorder`; the situations are
those in which copies, blocks and batches have gone wrong before. The oracle takes gradients by
backward passes of a copy in float64, Hessians by differences of these gradients, batches and chains
by plain loops. A cell is the worst relative error over all states, `refused` in one line, or `-`
where the measure has no meaning; what was refused or told stands below. Exits with 1 where a number
is wrong.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import math
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, scaled_dot_product_attention

import dynamics_cli as dyn
from dynamics_cli.errors import DynError
from dynamics_cli.kinds import Architecture, stream

STEPS = 4
SEED = 3
RIGHT = 2e-5
"""Largest relative error: differences of gradients and multiples of updates are inexact."""
STEP = 1e-5
"""Step of differences, for weights of about 1."""
LLC = {"nbeta": 3.0, "gamma": 2.0, "step": 0.01, "burn_in": 0, "draws": 3, "chains": 1}
MEASURES: dict[str, Any] = {
    "train_loss": "train_loss",
    "gradient_norm": "gradient_norm",
    "sharpness": "sharpness",
    "smallest_eigenvalue": "smallest_eigenvalue",
    "hessian_spectrum": "hessian_spectrum",
    "hessian_trace": "hessian_trace",
    "hessian_trace_by_block": {"kind": "hessian_trace", "blocks": {"all": "*"}},
    "gauss_newton": "gauss_newton",
    "gradient_noise": "gradient_noise",
    "batch_sharpness": {"kind": "batch_sharpness", "batch_size": 3, "batches": 4},
    "llc": {"kind": "llc", "batch_size": 4, **LLC},
    "kernel_eigenvalues": {"kind": "kernel_eigenvalues", "top": 2},
    "kernel_distance": "kernel_distance",
    "weight_norm": "weight_norm",
    "distance": "distance",
    "update_norm": "update",
    "update_cosine_last": {"kind": "update", "of": "cosine_last"},
    "update_cosine_gradient": {"kind": "update", "of": "cosine_gradient"},
    "directional_sharpness": "directional_sharpness",
    "critical_lr": "critical_lr",
    "preconditioned_sharpness": "preconditioned_sharpness",
    "dead_units": "dead_units",
    "attention": "attention",
}
"""Column -> what is asked for."""


def flat(tensors: Any) -> Tensor:
    """Return tensors as one vector, complex ones as pairs of numbers."""
    real = [torch.view_as_real(t) if t.is_complex() else t for t in tensors]
    return torch.cat([t.detach().flatten() for t in real])


def doubled(module: nn.Module) -> nn.Module:
    """Return a module with all its numbers in double precision."""
    for one in itertools.chain(module.parameters(), module.buffers()):
        if one.is_complex():
            one.data = one.data.to(torch.complex128)
        elif one.is_floating_point():
            one.data = one.data.double()
    return module


class Oracle:
    """A network, its data and its loss at a state."""

    def __init__(self, case: Case, model: nn.Module, loss: Any, root: Any = None) -> None:
        self.case = case
        self.model = doubled(copy.deepcopy(model)).eval()
        self.loss = loss
        if isinstance(loss, nn.Module):
            self.loss = copy.deepcopy(loss).double()
        self.weights = [w for w in self.model.parameters() if w.requires_grad]
        self.all = flat(self.model.parameters()).numpy()
        self.theta = flat(self.weights).numpy()
        self.root = root  # of the preconditioner
        self.x = case.x.double() if case.x.is_floating_point() else case.x
        self.y = case.y.double() if case.y.is_floating_point() else case.y

    def thawed(self, other: Oracle) -> Oracle:
        """Return this state with the trained weights of another."""
        model = copy.deepcopy(self.model)
        for w, like in zip(model.parameters(), other.model.parameters(), strict=True):
            w.requires_grad_(like.requires_grad)
        return Oracle(self.case, model, self.loss, self.root)

    def put(self, theta: np.ndarray) -> None:
        left = torch.from_numpy(np.array(theta))
        for w in self.weights:
            pairs = torch.view_as_real(w.data) if w.is_complex() else w.data
            pairs.copy_(left[: pairs.numel()].view_as(pairs))
            left = left[pairs.numel() :]

    def at(self, theta: np.ndarray, rows: Any = slice(None)) -> tuple[float, np.ndarray]:
        """Return loss and gradient of some samples at other weights."""
        self.put(theta)
        value = self.case.total(self.model, self.loss, self.x[rows], self.y[rows])
        slopes = torch.autograd.grad(value, self.weights, materialize_grads=True)
        self.put(self.theta)
        return float(value.detach()), flat(slopes).numpy()

    @cached_property
    def H(self) -> np.ndarray:
        """The Hessian, by differences."""
        columns = []
        for e in STEP * np.eye(len(self.theta)):
            up, down = (self.at(self.theta + sign * e)[1] for sign in (1, -1))
            columns.append((up - down) / (2 * STEP))
        H = np.stack(columns)
        return (H + H.T) / 2

    def bend(self, v: np.ndarray, rows: Any = slice(None)) -> float:
        """Return the curvature of some samples along v, by a difference."""
        v = v / np.linalg.norm(v)
        up, down = (self.at(self.theta + sign * STEP * v, rows)[1] for sign in (1, -1))
        return float((up - down) @ v / (2 * STEP))

    def rise(self, step: np.ndarray) -> float:
        """Return by how much the loss rises along a step."""
        self.put(self.theta + step)
        with torch.no_grad():
            value = self.case.total(self.model, self.loss, self.x, self.y)
        self.put(self.theta)
        return float(value) - self.L

    @cached_property
    def L(self) -> float:
        return self.at(self.theta)[0]

    @cached_property
    def g(self) -> np.ndarray:
        return self.at(self.theta)[1]

    @cached_property
    def J(self) -> np.ndarray:
        """The derivatives of all outputs by the weights."""
        h = self.model(self.x).flatten()
        rows = [
            flat(torch.autograd.grad(one, self.weights, retain_graph=True, materialize_grads=True))
            for one in h
        ]
        return torch.stack(rows).numpy()

    @property
    def K(self) -> np.ndarray:
        return self.J @ self.J.T

    def gauss_newton(self) -> float:
        with torch.no_grad():
            h = self.model(self.x)

        def slope(k: int, step: float) -> Tensor:
            at = h.flatten().clone()
            at[k] += step
            at = at.view_as(h).requires_grad_()
            value = self.case.of_outputs(self.loss, at, self.y)
            return torch.autograd.grad(value, at)[0].flatten()

        places = range(h.numel())
        bends = [(slope(k, STEP) - slope(k, -STEP)) / (2 * STEP) for k in places]
        G = self.J.T @ torch.stack(bends).numpy() @ self.J
        return float(np.linalg.eigvalsh((G + G.T) / 2)[-1])

    def noise(self) -> float:
        """Return the trace of the covariance of n c_k / C g_k, whose mean is the gradient."""
        n = len(self.y)
        counts = [self.case.count(self.loss, self.y[k : k + 1]) for k in range(n)]
        each = np.zeros((n, len(self.theta)))
        for k, count in enumerate(counts):
            if count:
                each[k] = n * count / sum(counts) * self.at(self.theta, slice(k, k + 1))[1]
        return float((each**2).sum(1).mean() - each.mean(0) @ each.mean(0))

    def batches(self, iteration: int) -> float:
        rng = stream(SEED, "batch_sharpness", iteration)
        ratios = []
        for _ in range(4):
            rows = rng.choice(len(self.y), 3, replace=False)
            if any(self.case.count(self.loss, self.y[k : k + 1]) for k in rows):
                ratios.append(self.bend(self.at(self.theta, rows)[1], rows))
        return float(np.mean(ratios))

    def llc(self, iteration: int) -> float:
        rng = stream(SEED, "llc", iteration)
        w = self.theta
        losses = []
        for _ in range(3):
            rows = rng.integers(len(self.y), size=(1, 4))[0]
            value, g = self.at(w, rows)
            losses.append(value)
            drift = 3.0 * g + 2.0 * (w - self.theta)
            w = w - 0.005 * drift + 0.1 * rng.standard_normal((1, len(w)))[0]
        return 3.0 * (float(np.mean(losses)) - self.L)

    def critical(self, u: np.ndarray) -> float:
        if self.g @ u >= 0:
            return 0.0
        high = 1.0
        while self.rise(high * u) < 0:
            high *= 2
            if high > 2.0**30:
                return math.inf
        low = high / 2
        while self.rise(low * u) >= 0:
            high, low = low, low / 2
        for _ in range(30):
            middle = (low + high) / 2
            low, high = (middle, high) if self.rise(middle * u) < 0 else (low, middle)
        return low


def expected(states: list[Oracle], k: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield each measure of state k with what it should be."""
    now = states[k]
    case = now.case
    values = cached(lambda: np.linalg.eigvalsh(now.H))
    yield "train_loss", lambda: now.L
    yield "gradient_norm", lambda: np.linalg.norm(now.g)
    yield "sharpness", lambda: values()[-1]
    yield "smallest_eigenvalue", lambda: values()[0]
    yield "hessian_spectrum", lambda: values()[::-1]
    yield "hessian_trace", lambda: np.trace(now.H)
    yield "hessian_trace_by_block", lambda: np.trace(now.H)
    yield "gradient_noise", now.noise
    yield "batch_sharpness", lambda: now.batches(k)
    yield "llc", lambda: now.llc(k)
    yield "weight_norm", lambda: np.linalg.norm(now.all)
    yield "distance", lambda: np.linalg.norm(now.all - states[0].all)
    if case.of_outputs is not None:
        yield "gauss_newton", now.gauss_newton
        yield "kernel_eigenvalues", lambda: np.linalg.eigvalsh(now.K)[::-1][:2]

        def turned() -> float:
            K, K_0 = now.K, states[0].thawed(now).K
            return 1 - (K * K_0).sum() / np.linalg.norm(K) / np.linalg.norm(K_0)

        yield "kernel_distance", turned
    if case.dead is not None:
        yield "dead_units", lambda: case.dead(now.model, now.x)
    if now.root is not None:
        yield (
            "preconditioned_sharpness",
            lambda: np.linalg.eigvalsh(now.H / np.outer(now.root, now.root))[-1],
        )
    if k < 1:
        return
    before = states[k - 1].thawed(now)
    u = now.theta - before.theta
    size = np.linalg.norm(u)
    yield "update_norm", lambda: size
    yield "update_cosine_gradient", lambda: -u @ before.g / size / np.linalg.norm(before.g)
    yield "directional_sharpness", lambda: before.bend(u)
    yield "critical_lr", lambda: before.critical(u)
    if k > 1:
        v = before.theta - states[k - 2].thawed(now).theta
        yield "update_cosine_last", lambda: u @ v / size / np.linalg.norm(v)


def cached(function: Callable[[], Any]) -> Callable[[], Any]:
    kept: list[Any] = []

    def once() -> Any:
        if not kept:
            kept.append(function())
        return kept[0]

    return once


# --- situations -------------------------------------------------------------------------------


def by_samples(loss: Any, y: Tensor) -> float:
    return float(len(y))


@dataclass
class Case:
    """A network, its data and its loss, and what happens to them during training."""

    make: Callable[[], nn.Module]
    loss: Callable[[], Any] = nn.CrossEntropyLoss
    x: Tensor = field(default_factory=lambda: torch.randn(12, 3, generator=generator()))
    y: Tensor = field(default_factory=lambda: torch.arange(12) % 3)
    change: Callable[[int, nn.Module, Any], None] = lambda k, model, loss: None
    """Called before update k."""
    count: Callable[[Any, Tensor], float] = by_samples
    """By what the mean of a batch divides."""
    of_outputs: Callable[[Any, Tensor, Tensor], Tensor] | None = lambda loss, h, y: loss(h, y)
    """The loss of outputs; None where they are hidden behind a loss of model and batch."""
    batch_loss: Callable[[Any], Any] | None = None
    """The loss of model and batch that `dyn` gets."""
    dead: Callable[[nn.Module, Tensor], Any] | None = None
    """The shares of dead units, call by call."""
    threads: int = 1

    def total(self, model: nn.Module, loss: Any, x: Tensor, y: Tensor) -> Tensor:
        """Return the loss that the loop descends."""
        if self.batch_loss is not None:
            return self.batch_loss(loss)(model, {"x": x, "y": y})
        assert self.of_outputs is not None
        return self.of_outputs(loss, model(x), y)


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def small(*between: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(3, 4), *between, nn.Tanh(), nn.Linear(4, 3))


def rectified() -> nn.Module:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 3))
    model[0].bias.data[1] = -20.0
    return model


def dead_in_rectified(model: nn.Module, x: Tensor) -> float:
    return float((model[0](x) <= 0).all(0).double().mean())


def frozen() -> nn.Module:
    model = small()
    model[0].requires_grad_(False)
    return model


def unfreeze(k: int, model: nn.Module, loss: Any) -> None:
    if k == 3:
        model.requires_grad_(True)


class Mean(nn.Module):
    """(sum, count) of labels at positions, without padding."""

    def forward(self, h: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        summed = cross_entropy(h.transpose(1, 2), y, ignore_index=-100, reduction="sum")
        return summed, (y >= 0).sum()


class Tokens(nn.Module):
    def __init__(self, head: float = 1.0) -> None:
        super().__init__()
        self.embedding, self.head = nn.Embedding(5, 3), nn.Linear(3, 3, bias=False)
        self.head.weight.data *= head

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.tanh(self.embedding(x)))  # type: ignore[no-any-return]


TOKENS = torch.randint(0, 5, (12, 4), generator=generator())
PADDED = torch.where(torch.arange(4) < 1 + torch.arange(12)[:, None] % 4, TOKENS % 3, -100)


def ratio(value: Any) -> Tensor:
    summed, count = value
    return summed / count  # type: ignore[no-any-return]


def weights_of(loss: Any, y: Tensor) -> float:
    return float(loss.weight[y].sum())


def other_classes(k: int, model: nn.Module, loss: Any) -> None:
    loss.weight *= torch.tensor([1.0, 1.5, 0.5])


class Spectral(nn.Module):
    """Complex weights and a complex buffer, as in Fourier neural operators and rotary angles."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(3, dtype=torch.cfloat))
        self.register_buffer("turn", torch.polar(torch.ones(3), torch.arange(3.0)))
        self.out = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.fft.fft(x) * self.w * self.turn
        return self.out(torch.tanh(h.real + h.imag**2))  # type: ignore[no-any-return]


SEEN: list[Tensor] = []


def log(module: nn.Module, inputs: Any, h: Tensor) -> None:
    SEEN.append(h)


def ablate(module: nn.Module, inputs: Any, h: Tensor) -> None:
    h[:, 2] = 0.0


def hook(k: int, model: Any, loss: Any) -> None:
    """Log outputs, and from the second update on change inputs and outputs of modules."""
    if k == 1:
        model[0].register_forward_hook(log)
    if k == 2:
        model[0].register_forward_hook(ablate)
        model[2].register_forward_pre_hook(lambda module, inputs: (inputs[0] * 1.5,))
        model.register_forward_hook(lambda module, inputs, h: 2 * h + inputs[0])


class Twice(nn.Module):
    """A layer and an activation that are called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.relu, self.out = nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3)
        self.layer.bias.data[0] = -20.0

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.relu(self.layer(self.relu(self.layer(x)))))  # type: ignore[no-any-return]


def dead_in_calls(model: Any, x: Tensor) -> list[float]:
    first = model.layer(x)
    second = model.layer(first.relu())
    return [float((z <= 0).all(0).double().mean()) for z in (first, second)]


class Gained(nn.Module):
    """An attribute and a buffer that the state dict leaves out."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.gain = small(), 1.0
        self.register_buffer("shift", torch.zeros(3), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.body(self.gain * x - self.shift)  # type: ignore[no-any-return]


def anneal(k: int, model: Any, loss: Any) -> None:
    model.gain *= 1.2
    model.shift += 0.3


class Tempered(nn.Module):
    """A loss with a temperature that is learnt."""

    def __init__(self) -> None:
        super().__init__()
        self.temperature = nn.Parameter(torch.tensor(1.0))

    def forward(self, h: Tensor, y: Tensor) -> Tensor:
        return cross_entropy(h / self.temperature, y)


def heat(k: int, model: nn.Module, loss: Any) -> None:
    loss.temperature.data *= 1.3


WEIGHTS = torch.tensor([0.02, 0.1, 0.4])


def light(h: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return sum and count of light classes: counts are below 1."""
    w = WEIGHTS.to(h)
    return cross_entropy(h, y, weight=w, reduction="sum"), w[y].sum()


class Attention(nn.Module):
    """A head over padded sequences; padded queries see nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.query = nn.Embedding(5, 4), nn.Linear(4, 4)
        self.head = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        pad = x == 0
        h = self.embedding(x)[:, None]
        h = scaled_dot_product_attention(self.query(h), h, h, attn_mask=~pad[:, None, None, :])
        return self.head((h[:, 0] * ~pad[..., None]).sum(1))  # type: ignore[no-any-return]


def token_mean(loss: Any) -> Any:
    def mean(model: nn.Module, batch: Any) -> Tensor:
        return cross_entropy(model(batch["x"]).transpose(1, 2), batch["y"], ignore_index=-100)

    return mean


def counted(loss: Any) -> Any:
    def both(model: nn.Module, batch: Any) -> tuple[Tensor, Tensor]:
        return loss(model(batch["x"]), batch["y"])  # type: ignore[no-any-return]

    return both


def small_with_norm() -> nn.Module:
    layers = (nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 3))
    normed = [nn.utils.parametrizations.weight_norm(layer) for layer in layers]
    return nn.Sequential(
        normed[0], nn.Tanh(), normed[1], nn.Tanh(), normed[2], nn.Tanh(), normed[3]
    )


CASES: dict[str, Case] = {
    "plain": Case(rectified, dead=dead_in_rectified),
    "batch norm": Case(lambda: small(nn.BatchNorm1d(4, momentum=0.5))),
    "dropout": Case(lambda: small(nn.Dropout(0.3))),
    "frozen": Case(frozen),
    "unfrozen later": Case(frozen, change=unfreeze),
    "padding, (sum, count)": Case(
        Tokens,
        Mean,
        TOKENS,
        PADDED,
        count=lambda loss, y: float((y >= 0).sum()),
        of_outputs=lambda loss, h, y: ratio(loss(h, y)),
    ),
    "padding, token mean, head 0": Case(
        lambda: Tokens(head=0.0),
        x=TOKENS,
        y=PADDED,
        batch_loss=token_mean,
        of_outputs=None,
    ),
    "class weights that change": Case(
        small,
        lambda: nn.CrossEntropyLoss(weight=torch.ones(3)),
        y=torch.tensor([0] * 6 + [1] * 4 + [2] * 2),
        change=other_classes,
        count=weights_of,
    ),
    "counts below 1": Case(
        small,
        lambda: light,
        count=lambda loss, y: float(WEIGHTS[y].sum()),
        of_outputs=lambda loss, h, y: ratio(loss(h, y)),
    ),
    "classes left out": Case(
        small,
        lambda: nn.CrossEntropyLoss(ignore_index=1),
        count=lambda loss, y: float((y != 1).sum()),
    ),
    "complex": Case(Spectral),
    "hooks": Case(small, change=hook),
    "several calls": Case(Twice, dead=dead_in_calls),
    "attributes that change": Case(Gained, change=anneal),
    "a loss that is learnt": Case(small, Tempered, change=heat),
    "attention with padding": Case(
        Attention, x=TOKENS * (torch.arange(4) > 0) + 0, y=torch.arange(12) % 3
    ),
    "weight norm": Case(small_with_norm),
    "four threads": Case(lambda: small(nn.Dropout(0.3)), threads=4),
}


# --- ways -------------------------------------------------------------------------------------

Found = Mapping[str, Any]


def updated(case: Case, each: Callable[[nn.Module, Any, Any], None]) -> None:
    """Train the network of a case by Adam, and call `each` at every state."""
    torch.manual_seed(0)
    model, loss = case.make(), case.loss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    each(model, loss, optimizer)
    for k in range(1, STEPS + 1):
        case.change(k, model, loss)
        optimizer.zero_grad()
        case.total(model.train(), loss, case.x, case.y).backward()
        optimizer.step()
        each(model, loss, optimizer)


def root_of(model: nn.Module, optimizer: Any) -> np.ndarray | None:
    """Return the square root of Adam's preconditioner of trained weights, written out."""
    roots = []
    for w in model.parameters():
        if w.requires_grad:
            state = optimizer.state.get(w)
            if not state:
                return None
            t = float(state["step"])
            v = state["exp_avg_sq"]
            v = (torch.view_as_real(v) if v.is_complex() else v).double()
            P = (1 - 0.9**t) * ((v / (1 - 0.999**t)).sqrt() + 1e-8)
            roots.append(P.flatten().sqrt())
    return torch.cat(roots).numpy()


def given_to(case: Case, loss: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return data and loss as `dyn` takes them."""
    if case.batch_loss is not None:
        return ({"x": case.x, "y": case.y},), {"loss": case.batch_loss(loss), "seed": SEED}
    return (case.x, case.y), {"loss": loss, "seed": SEED}


def by_measure(case: Case, measures: dict[str, Any]) -> tuple[list[Oracle], dict[str, list[Any]]]:
    """Measure copies of the network afterwards, with the loss as it is then."""
    models: list[nn.Module] = []
    states: list[Oracle] = []
    last: list[Any] = []

    def keep(model: nn.Module, loss: Any, optimizer: Any) -> None:
        models.append(copy.deepcopy(model))
        last[:] = model, loss, optimizer

    updated(case, keep)
    model, loss, optimizer = last
    states = [Oracle(case, one, loss) for one in models]
    states[-1].root = root_of(model, optimizer)
    data, options = given_to(case, loss)
    saved = [*models[:-1], model]
    asked = {name: one for name, one in measures.items() if name != "preconditioned_sharpness"}
    found: dict[str, list[Any]] = {}
    if asked:
        table = dyn.measure(
            model,
            *data,
            measures=list(asked.values()),
            checkpoints=dict(enumerate(saved)),
            start=models[0],
            **options,
        )
        found = dict(table.arrays)
    if asked != measures:
        one = ["preconditioned_sharpness"]
        table = dyn.measure(model, *data, measures=one, optimizer=optimizer, **options)
        found[one[0]] = [*[None] * STEPS, table.arrays[one[0]][0]]
    return states, found


def by_recorder(case: Case, measures: dict[str, Any]) -> tuple[list[Oracle], dict[str, list[Any]]]:
    """Record the network while it is trained."""
    states: list[Oracle] = []
    with tempfile.TemporaryDirectory() as directory:
        kept: list[Any] = []

        def each(model: nn.Module, loss: Any, optimizer: Any) -> None:
            if not kept:
                data, options = given_to(case, loss)
                kept.append(
                    dyn.Recorder(
                        Path(directory) / "run",
                        model,
                        *data,
                        optimizer=optimizer,
                        measures=list(measures.values()),
                        every=1,
                        **options,
                    )
                )
            else:
                kept[0].step()
            states.append(Oracle(case, model, loss, root_of(model, optimizer)))

        try:
            updated(case, each)
        finally:
            for recorder in kept:
                recorder.close()
        run = dyn.load_run(Path(directory) / "run")
        return states, {name: list(np.array(rows)) for name, rows in run.measures.items()}


class OfTable(Architecture, kind="of_table"):
    """A network of a situation."""

    case: str
    """The situation."""
    outputs: int = 3
    """Its outputs."""

    def build(self, d: int) -> nn.Module:
        model = CASES[self.case].make()
        if CASES[self.case].change is hook:
            for k in (1, 2):
                hook(k, model, None)
        return model.requires_grad_(True)  # `train` and `freeze` of the config say what rests


def by_train(
    name: str, backend: str, measures: dict[str, Any]
) -> tuple[list[Oracle], dict[str, list[Any]]]:
    """Train the network of a situation as a run."""
    case = CASES[name]
    architecture: dict[str, Any] = {"kind": "of_table", "case": name}
    if backend == "compiled":
        architecture = {"kind": "fully_connected", "widths": [4], "activation": "relu"}
        architecture |= {"outputs": 3, "bias": True}
    config: dict[str, Any] = {
        "name": "table",
        "seed": SEED,
        "backend": backend,
        "dtype": "float64",
        "dataset": {"kind": "points", "x": case.x.tolist(), "y": case.y.tolist()},
        "architecture": architecture,
        "initialization": {"kind": "as_built" if backend == "torch" else "default_scaled"},
        "loss": {"kind": "cross_entropy"},
        "optimizer": {"kind": "gd", "lr": 0.2, "momentum": 0.5, "iterations": STEPS},
        "record": {
            "snapshots": {"kind": "every", "interval": 1},
            "measures": list(measures.values()),
        },
    }
    resting = range(0)
    names = list(dyn.load_config(config).architecture.shapes(3))
    if name == "frozen":
        architecture["train"] = [w for w in names if w not in names[:2]]
        resting = range(STEPS + 1)
    if name == "unfrozen later":
        config["changes"] = [{"at": 1, "freeze": names[:2]}, {"at": 3, "freeze": []}]
        resting = range(2, 4)
    with tempfile.TemporaryDirectory() as directory:
        run = dyn.train(config, out=Path(directory) / "run")
        states = []
        for k in range(STEPS + 1):
            model = run.config.architecture.build(3)
            tensors = {w: torch.from_numpy(np.array(rows[k])) for w, rows in run.parameters.items()}
            doubled(model).load_state_dict(tensors)
            for w, weight in model.named_parameters():
                weight.requires_grad_(not (k in resting and w in names[:2]))
            states.append(Oracle(case, model, nn.CrossEntropyLoss()))
        return states, {w: list(np.array(rows)) for w, rows in run.measures.items()}


TRAINED = {
    "train compiled": ("plain", "frozen", "unfrozen later", "four threads"),
    "train torch": (
        "plain",
        "batch norm",
        "dropout",
        "frozen",
        "unfrozen later",
        "complex",
        "hooks",
        "several calls",
        "weight norm",
        "four threads",
    ),
}
WAYS: dict[str, Callable[[str, dict[str, Any]], Any]] = {
    "train compiled": lambda name, measures: by_train(name, "compiled", measures),
    "train torch": lambda name, measures: by_train(name, "torch", measures),
    "dyn.measure": lambda name, measures: by_measure(CASES[name], measures),
    "Recorder": lambda name, measures: by_recorder(CASES[name], measures),
}


# --- the table --------------------------------------------------------------------------------


@dataclass
class Cell:
    """The outcome of a measure: the worst relative error, or why there is none."""

    error: float | None = None
    refused: str = ""
    told: set[str] = field(default_factory=set)

    @property
    def wrong(self) -> bool:
        if self.refused:
            return not self.refused.startswith("InputError: ") or "\n" in self.refused
        return self.error is not None and not self.error <= RIGHT

    def __str__(self) -> str:
        if self.refused:
            return "FAILED" if self.wrong else "refused"
        if self.error is None:
            return "-"
        text = f"{self.error:.0e}"
        if self.wrong:
            text = f"WRONG {self.error:.2g}"
        return text + " told" * bool(self.told)


def difference(found: Any, right: Any, least: float) -> float:
    """Return the largest difference, relative to the largest number, or to `least`."""
    found, right = np.ravel(found), np.ravel(right)
    if found.shape != right.shape:
        return math.inf
    same = (found == right) | (np.isnan(found) & np.isnan(right))
    if same.all():
        return 0.0
    scale = max(float(np.abs(right[np.isfinite(right)]).max(initial=0.0)), least)
    return float(np.nan_to_num(np.abs(found - right)[~same], nan=math.inf).max()) / scale


def compared(column: str, got: Any) -> Any:
    """Return the numbers of a measure that have an oracle."""
    if column == "llc":
        return got[0]  # behind the mean stand its spread and R-hat
    if column == "hessian_spectrum":
        return got[np.isfinite(got)]  # behind it stands NaN for weights that rest
    return got


def offered_in(name: str) -> dict[str, Any]:
    """Return the measures that have a meaning in a situation."""
    case = CASES[name]
    none: set[str] = set()
    if case.dead is None:
        none |= {"dead_units"}
    if name != "attention with padding":
        none |= {"attention"}
    if case.of_outputs is None:
        none |= {"gauss_newton", "kernel_eigenvalues", "kernel_distance"}
    return {column: asked for column, asked in MEASURES.items() if column not in none}


def cells(way: str, name: str) -> dict[str, Cell]:
    """Return the cells of a way in a situation; measures that are refused are left out by turns."""
    offered = offered_in(name)
    if way.startswith("train"):
        offered.pop("preconditioned_sharpness")  # a run does not keep the state of its optimizer
    if way == "train compiled":
        offered.pop("dead_units", None)  # its modules have other names
    found = {column: Cell() for column in offered}
    try:
        todo = [(offered, turn) for turn in measured(way, name, offered)]
    except DynError:
        todo = []
        for column, asked in offered.items():
            try:
                one = {column: asked}
                todo += [(one, turn) for turn in measured(way, name, one)]
            except DynError as error:
                found[column].refused = f"{type(error).__name__}: {error}"
    for columns, (states, numbers, told) in todo:
        for k in range(len(states)):
            rights = dict(expected(states, k))
            for column, right in rights.items():
                if column not in columns or column not in numbers:
                    continue
                got = numbers[column][k]
                if got is None:
                    continue
                least = 1e-6
                if column == "smallest_eigenvalue":
                    least = abs(rights["sharpness"]())  # Lanczos iterations know no smaller unit
                cell = found[column]
                cell.error = max(
                    cell.error or 0.0, difference(compared(column, got), right(), least)
                )
                cell.told |= {line.partition(": ")[2] for line in told if column in line}
    return found


Turn = tuple[list[Oracle], dict[str, list[Any]], set[str]]


def measured(way: str, name: str, measures: dict[str, Any]) -> list[Turn]:
    """Return oracles, numbers and warnings of a way, of each of the threads of a situation."""
    count = CASES[name].threads
    with warnings.catch_warnings(record=True) as told, ThreadPoolExecutor(count) as pool:
        warnings.simplefilter("always")
        turns = list(pool.map(lambda _: WAYS[way](name, measures), range(count)))
    lines = {str(one.message) for one in told}
    return [(states, numbers, lines) for states, numbers in turns]


def main() -> int:
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--way", choices=WAYS, action="append")
    parser.add_argument("--situation", choices=CASES, action="append")
    given = parser.parse_args()
    wrong = 0
    notes: dict[str, list[str]] = {}
    for way in given.way or WAYS:
        rows = {}
        for name in given.situation or CASES:
            if name not in TRAINED.get(way, CASES):
                continue
            rows[name] = cells(way, name)
            for column, cell in rows[name].items():
                wrong += cell.wrong
                for line in [cell.refused, *sorted(cell.told)[:1]]:
                    if line:
                        key = re.sub(r"-?\d[\d.e-]*", "#", line)
                        notes.setdefault(key, []).append(f"{way}, {name}: {column}: {line}")
        print(f"\n{way}")
        columns = [column for column in MEASURES if any(column in row for row in rows.values())]
        width = max(map(len, columns))
        for first in range(0, len(rows), 6):
            part = list(rows)[first : first + 6]
            print(" " * width, *(f"{name[:17]:>17}" for name in part))
            for column in columns:
                texts = (str(rows[name].get(column, Cell())) for name in part)
                print(f"{column:{width}}", *(f"{text:>17}" for text in texts))
    print()
    for places in notes.values():
        print(places[0] + f" ({len(places)} cells)" * (len(places) > 1))
    print(f"\n{wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
