"""First and second derivatives of the training loss and of the outputs at a recorded state.

They are computed in float64.

Vectors hold the trained weights in the order of the network, each flattened by rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial, reduce
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.errors import InputError
from dynamics_cli.formulas import tracing
from dynamics_cli.formulas.tracing import facts
from dynamics_cli.kinds import Architecture, Floats, Parameters, Problem, Shapes, State
from dynamics_cli.kinds.base import bundled
from dynamics_cli.kinds.modules import (
    buffers_of,
    has_modes,
    layers_seed,
    make_dense,
    nodes_of,
    put_buffers,
    train_repeatedly,
)
from dynamics_cli.measures.arrays import Ints
from dynamics_cli.process import alone, threads_for

if TYPE_CHECKING:
    import torch
    from torch import nn

    from dynamics_cli.gradients.engine.curvature import Engine
    from dynamics_cli.gradients.lanczos import Largest, Spectrum

Mode = Literal["train"]
"""That of the network in training, where it differs from that in evaluation."""
Potential = Callable[[Floats, NDArray[np.int64] | None], tuple[Floats, Floats]]
"""Trained weights (K, P), and the numbers of samples (K, B) or None for all, -> mean losses
(K,), gradients (K, P).
"""


TOLERANCE = 1e-6
FINEST = 1e-12
"""Relative residuals of eigenvectors, and of those of the smallest eigenvalues."""
DERIVATIVES = 2**26
"""Derivatives of outputs by weights that are held at once: 512 MiB of float64."""
KERNEL = 2000
"""Most outputs of samples, all together, for which a tangent kernel is formed unasked."""
NEARBY = 1e-6
"""Step of finite differences, relative to the norm of the weights."""
FEW = 8
"""Samples whose Hessian is checked for symmetry."""
PAIRS = 2
"""Pairs of random vectors of this check."""
SMALLER = 0.1
"""Share of the weights at which it is checked again, where nothing is saturated."""
ASYMMETRY = 1e-3
"""Difference of `v^T H w` and `w^T H v`, relative to `||H v||`, that is no rounding error."""
ROUNDED = 1e4
"""Rounding errors of a block of a Hessian at most, relative to the whole, in units of precision."""
CHECKED = "checked"
"""What states of a problem share: the names of trained weights whose second derivatives are right.
"""
DIRECTIONS = 3
"""Directions along which a second derivative is compared with differences; a kink may lie on
one.
"""


def network_of(state: State, mode: Mode | None = None) -> nn.Module:
    """Return the network at a state as a module of torch, as measures compute it.

    It is in evaluation mode, or in training mode (see `train_repeatedly`).
    """
    import torch

    architecture = state.problem.config.architecture
    initial = state.parameters
    if architecture.centered:
        initial = state.start
    d = state.problem.dataset.d
    model = architecture.network(d, initial, torch.float64, architecture.device).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.copy_(torch.from_numpy(np.array(state.parameters[name])))
    put_buffers(model, state.buffers)
    make_dense(model)
    if mode == "train":
        number = layers_seed(state.problem.config.seed, state.iteration)
        apart = architecture.device == "cpu" and bundled(architecture)
        train_repeatedly(model, number, apart=apart)
    return model


def derivatives_of(state: State, mode: Mode | None = None) -> Derivatives:
    """Return the derivatives at a state, in evaluation or in training mode.

    They are made once, and all measures of the state share them.
    """
    key = "derivatives" if mode is None else f"derivatives, {mode}"
    if key not in state.shared:
        engine = engine_of(state.problem)
        if engine is None:
            state.shared[key] = Derivatives(state, mode)
        else:
            state.shared[key] = ByEngine(state, engine)
    derivatives: Derivatives = state.shared[key]
    return derivatives


def trained_names(problem: Problem) -> list[str]:
    """Return the names of the weights that are trained."""
    return trained_among(problem.config.architecture, problem.shapes)


def trained_among(architecture: Architecture, shapes: Shapes) -> list[str]:
    """Return the names of the weights, of such shapes, that are trained."""
    allowed = set(architecture.train or shapes)
    if not getattr(architecture, "train_output", True):
        allowed.discard("output_weight")
    return [name for name in shapes if name in allowed]


def layers_of(architecture: Architecture, parameters: Parameters) -> list[tuple[Floats, Floats]]:
    """Return `W_l` (m_l, m_{l-1}) and `b_l` (m_l,) of a network of layers, float64."""
    layers = []
    for name in architecture.matrices:
        W = np.atleast_2d(np.asarray(parameters[name], np.float64))
        b = parameters.get(name.replace("weight", "bias"), np.zeros(len(W)))
        layers.append((W, np.asarray(b, np.float64)))
    return layers


def features_of(
    architecture: Any, parameters: Parameters, x: Floats
) -> list[tuple[Floats, Floats]]:
    """Return preactivations and activations (n, m_l) of the hidden layers, in float64."""
    h = np.asarray(x, np.float64)
    z = np.zeros(1)
    layers = []
    hidden = layers_of(architecture, parameters)[:-1]
    for name, (W, b) in zip(architecture.matrices, hidden, strict=False):
        skipped = z if name in architecture.skips else 0.0
        z = h @ W.T + b + skipped
        h = architecture.sigma.value(z)
        layers.append((z, h))
    return layers


def engine_of(problem: Problem) -> Engine | None:
    """Return the engine of a problem, made once; None for networks and kinds that it does not know.

    It knows networks of layers whose activation and loss are formulas.
    """
    if "engine" not in problem.shared:
        c: Any = problem.config.architecture
        problem.shared["engine"] = None
        if c.engine and c.matrices and facts(c.sigma) and facts(problem.loss):
            from dynamics_cli.gradients.engine.curvature import Engine

            problem.shared["engine"] = Engine(problem, trained_names(problem))
    engine: Engine | None = problem.shared["engine"]
    return engine


def spectrum_of(problem: Problem, engine: Engine) -> Spectrum:
    """Return the compiled iterations for the Hessian of a problem, made once, as its engine."""
    from dynamics_cli.gradients.engine.curvature import REAL, hessian_product
    from dynamics_cli.gradients.lanczos import LIMIT, Spectrum

    shared = problem.shared
    if "spectrum" not in shared:
        product = hessian_product(REAL).address
        shared["spectrum"] = Spectrum(len(engine.places), LIMIT, product, engine.state)
    spectrum: Spectrum = shared["spectrum"]
    return spectrum


def _with_tangent(
    function: Callable[..., torch.Tensor],
    weights: dict[str, torch.Tensor],
    tangents: dict[str, torch.Tensor],
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the outputs of a function of weights, and their derivative along tangents.

    Torch counts the levels of forward derivatives for all threads together.
    """
    import torch

    with alone():
        outputs, moved = torch.func.jvp(function, (weights,), (tangents,))[:2]
    return outputs, moved


def _derived(
    gradient: Sequence[torch.Tensor],
    vector: Sequence[torch.Tensor],
    at: Sequence[torch.Tensor],
    *,
    again: bool = False,
) -> Sequence[torch.Tensor]:
    """Return the derivatives of `gradient @ vector` by tensors; `again` keeps the graph."""
    import torch

    depending = [(g, part) for g, part in zip(gradient, vector, strict=True) if g.requires_grad]
    if not depending:
        return [torch.zeros_like(w) for w in at]
    functions, vectors = zip(*depending, strict=True)
    return torch.autograd.grad(functions, at, vectors, retain_graph=again, materialize_grads=True)


def functions_in(loss: torch.Tensor) -> list[str]:
    """Return the names of the `autograd.Function`s defined in Python that a number depends on."""
    from torch.autograd.function import BackwardCFunction

    names = [
        type(node).__name__.removesuffix("Backward")
        for node in nodes_of(loss)
        if isinstance(node, BackwardCFunction)
    ]
    return list(dict.fromkeys(names))


def _owner(name: str) -> str:
    """Return the name of the module that a weight belongs to, through any parametrization."""
    module, parametrized, _ = name.partition(".parametrizations.")
    if parametrized:
        return module
    return name.rpartition(".")[0]


def _parts(count: int, size: int) -> list[slice]:
    return [slice(first, min(first + size, count)) for first in range(0, count, size)]


class Derivatives:
    """The derivatives that measures ask of a state of any network.

    They come from `torch.func` and double backward passes, over blocks of samples.
    """

    def __init__(self, state: State, mode: Mode | None = None) -> None:
        self.problem = state.problem
        self._state = state
        self._mode = mode
        self._kept: tuple[torch.Tensor, ...] | None = None
        self._maps_samples = True
        self._maps_weights = True

    @cached_property
    def _model(self) -> nn.Module:
        return network_of(self._state, self._mode)

    @cached_property
    def _weights(self) -> dict[str, torch.Tensor]:
        trained = trained_names(self.problem)
        return {name: w for name, w in self._model.named_parameters() if name in trained}

    @cached_property
    def names(self) -> list[str]:
        """Of the trained weights."""
        return list(self._weights)

    @cached_property
    def size(self) -> int:
        """Number P of trained weights."""
        return sum(math.prod(self.problem.shapes[name]) for name in self.names)

    @property
    def tolerance(self) -> float:
        """Relative residual of eigenvectors."""
        return max(TOLERANCE, self._rounding)

    @property
    def finest(self) -> float:
        """The residual that is sought of the smallest eigenvalues.

        They may be 0 beside the largest eigenvalue, to which residuals are relative.
        """
        return max(FINEST, self._rounding)

    @cached_property
    def _rounding(self) -> float:
        import torch

        return max(100 * torch.finfo(p.dtype).eps for p in self._weights.values())

    @property
    def keeps_statistics(self) -> bool:
        """Whether the network keeps statistics for its evaluation mode.

        Batch normalisation does.
        """
        return bool(buffers_of(self._model)) and has_modes(self._model)

    @cached_property
    def _x(self) -> Any:
        return self.problem.config.architecture.inputs_of(self.problem.dataset.x)

    @cached_property
    def _y(self) -> torch.Tensor:
        import torch

        loss = self.problem.loss
        device = self.problem.config.architecture.device
        return torch.tensor(loss.numbered(self.problem.dataset.y), device=device)

    @cached_property
    def _at_once(self) -> int:
        """Samples of a block."""
        if self._mode == "train":  # statistics of a batch are of all samples
            return len(self._y)
        return self.problem.block_samples(self.problem.config.architecture.device)

    def _detached(self) -> dict[str, torch.Tensor]:
        return {name: p.detach() for name, p in self._weights.items()}

    def _blocks(self, count: int | None = None) -> Iterator[tuple[Any, torch.Tensor]]:
        """Yield inputs and labels of all samples, or of the first `count`, block by block."""
        for block in _parts(count or len(self._y), self._at_once):
            yield self._x[block], self._y[block]

    @staticmethod
    def _flat(tensors: Sequence[torch.Tensor]) -> Floats:
        if any(tensor.is_sparse for tensor in tensors):
            raise InputError(
                "the network has sparse gradients, which measures do not take: call"
                " torch.nn.functional.embedding with sparse=False"
            )
        return np.concatenate(
            [tensor.detach().cpu().numpy().ravel() for tensor in tensors], dtype=np.float64
        )

    def _outputs(self, weights: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        import torch

        h: torch.Tensor = torch.func.functional_call(self._model, weights, (x,))
        return h

    def _split(self, v: Floats | torch.Tensor) -> list[torch.Tensor]:
        """Split a vector (P,) into tensors of the shapes and dtypes of the trained weights."""
        import torch

        if not isinstance(v, torch.Tensor):
            v = torch.from_numpy(np.ascontiguousarray(v))
        weights = list(self._weights.values())
        parts = torch.split(v, [w.numel() for w in weights])
        return [part.view_as(w).to(w) for part, w in zip(parts, weights, strict=True)]

    def _gradients(self) -> Iterator[tuple[torch.Tensor, ...]]:
        """Yield the gradient of the part of each block in the training loss, with its graph.

        A single graph is kept.
        """
        if self._kept is not None:
            yield self._kept
            return
        for x, y in self._blocks():
            gradient = self._part_of_gradient(x, y, self.problem.loss.weight(self._y))
            if len(y) == len(self._y):
                self._kept = gradient
            yield gradient

    def _part_of_gradient(self, x: Any, y: torch.Tensor, weight: Any) -> tuple[torch.Tensor, ...]:
        """Return the part of some samples in the gradient of a loss, with its graph.

        `weight` is that of a label in the loss.
        """
        import torch

        loss = self.problem.loss
        weights = list(self._weights.values())
        share = weight / loss.weight(y)
        part = share * loss.total(self._model(x), y)
        if part.requires_grad:
            return torch.autograd.grad(part, weights, create_graph=True, materialize_grads=True)
        return tuple(torch.zeros_like(w) for w in weights)  # it depends on no trained weight

    def gradient(self) -> Floats:
        """Return the gradient of the training loss (P,)."""
        return reduce(np.add, map(self._flat, self._gradients()))

    def hessian_product(self, v: Floats) -> Floats:
        """Return the Hessian of the training loss times `v`, (P,)."""
        self._check()
        parts = self._split(v)
        return reduce(np.add, (self._along(parts, gradient) for gradient in self._gradients()))

    def _along(self, parts: Sequence[torch.Tensor], gradient: Sequence[torch.Tensor]) -> Floats:
        """Return the derivative (P,) of `gradient @ vector`, given the gradient with its graph."""
        weights = list(self._weights.values())
        return self._flat(_derived(gradient, parts, weights, again=self._kept is not None))

    def batch_curvature(self, rows: NDArray[np.int64]) -> float:
        """Return `g^T H g / ||g||^2` of the loss of a batch; NaN where its gradient is 0."""
        self._check()
        blocks = [rows[part] for part in _parts(len(rows), self._at_once)]

        def gradients() -> Iterator[tuple[torch.Tensor, ...]]:
            weight = self.problem.loss.weight(self._y[rows])
            for block in blocks:
                yield self._part_of_gradient(self._x[block], self._y[block], weight)

        # a single block keeps its graph; several take the memory of one, and the time of two passes
        graphs: Any = list(gradients()) if len(blocks) == 1 else None
        # g = sum over blocks of their gradients
        g = reduce(np.add, map(self._flat, graphs or gradients()))
        square = float(g @ g)
        if not square > 0:
            return math.nan
        # H g = sum over blocks of the derivatives of <gradient, g>
        parts = self._split(g)
        product = reduce(np.add, (self._along(parts, part) for part in graphs or gradients()))
        return float(g @ product) / square

    def _check(self) -> None:
        """Check second derivatives, once for all states of a problem with these trained weights.

        Raises:
            InputError: they are wrong.
        """
        checked = self.problem.shared.setdefault(CHECKED, set())
        trained = tuple(self.names)
        if trained not in checked:
            self._check_twice_differentiable()
            self._check_symmetric()
            checked.add(trained)

    def _check_twice_differentiable(self) -> None:
        """Compare a product with differences of gradients.

        This is done where the graph has an `autograd.Function` written in Python.

        The backward of such a function may hide what it depends on; then second derivatives are 0
        without an error.

        Raises:
            InputError: they differ.
        """
        if functions := functions_in(self._loss_of_two()):
            kept = {name: weight.dtype for name, weight in self._model.named_parameters()}
            self._model.double()
            agree = any(self._agree_along(k) for k in range(DIRECTIONS))
            for name, weight in self._model.named_parameters():
                weight.data = weight.data.to(kept[name])
            self._kept = None  # a graph of before knows other nodes of the weights
            if not agree:
                raise InputError(
                    f"{', '.join(functions)}: its second derivative disagrees with its gradient, so"
                    " curvature would be wrong; compute its backward by torch operations on saved"
                    " tensors"
                )

    def _agree_along(self, seed: int) -> bool:
        """Return whether the Hessian of two samples agrees with differences of gradients.

        They are compared along a random direction.
        """
        import torch

        weights = list(self._weights.values())
        flat = torch.cat([w.detach().flatten() for w in weights])
        v = torch.randn(
            self.size, generator=torch.Generator().manual_seed(seed), dtype=flat.dtype
        ).to(flat)
        step = NEARBY * (float(flat.norm()) or 1.0) / float(v.norm())

        def gradient(*, graph: bool = False) -> torch.Tensor:
            gradients = torch.autograd.grad(
                self._loss_of_two(), weights, create_graph=graph, materialize_grads=True
            )
            return torch.cat([part.flatten() for part in gradients])

        def beside(sign: int) -> torch.Tensor:
            with torch.no_grad():
                for w, part in zip(weights, self._split(flat + sign * step * v), strict=True):
                    w.copy_(part)
            return gradient()

        difference = (beside(1) - beside(-1)) / (2 * step)
        beside(0)
        g = gradient(graph=True)
        try:
            along = _derived([g], [v], weights)
        except RuntimeError:  # what may be differentiated once
            return False
        product = torch.cat([part.flatten() for part in along])
        rounding = 1e-12 * float(g.detach().norm()) / step
        allowed = 1e-3 * max(difference.norm(), product.norm()) + rounding
        return bool((difference - product).norm() <= allowed)

    def _loss_of_two(self) -> torch.Tensor:
        loss: torch.Tensor = self.problem.loss.total(self._model(self._x[:2]), self._y[:2])
        return loss

    def _check_symmetric(self) -> None:
        """Compare `v^T H w` with `w^T H v` for few samples.

        This is done for the whole Hessian and for the block of each module.

        Some operations of torch, such as that of `weight_norm`, have a wrong second derivative,
        which makes the Hessian asymmetric.

        Raises:
            InputError: they differ; the message names the modules.
        """
        owners: dict[str, list[int]] = {}
        for place, name in enumerate(self.names):
            owners.setdefault(_owner(name), []).append(place)
        blocks = [list(range(len(self.names))), *owners.values()]
        wrong = self._asymmetric(blocks, 1.0)
        if any(wrong):
            # where a softmax is saturated, all of a Hessian can be rounding errors, which are
            # asymmetric; at smaller weights it is not
            again = self._asymmetric(blocks, SMALLER)
            wrong = [first and second for first, second in zip(wrong, again, strict=True)]
        if any(wrong):
            modules = [
                f"{owner or 'the network'} ({type(self._model.get_submodule(owner)).__name__})"
                for owner, is_wrong in zip(owners, wrong[1:], strict=True)
                if is_wrong
            ]
            raise InputError(
                f"{', '.join(modules) or 'the network'}: torch's second derivative is not"
                " symmetric, so curvature would be wrong; write the module in elementary operations"
                " of torch"
            )

    def _asymmetric(self, blocks: Sequence[Sequence[int]], share: float) -> list[bool]:
        """Return for each block whether the Hessian of few samples is asymmetric.

        The comparison takes a share of the weights.

        A block is given by the places of its arrays of weights; the first block is the whole.
        Pairs of random vectors v, w are compared by `v^T S H S w` and `w^T S H S v`, where S has
        the root mean square of each array: H of a module can be far smaller than H of another
        module that is right.
        """
        import torch

        weights = {name: (share * w.detach()).requires_grad_() for name, w in self._weights.items()}
        few = slice(min(FEW, self._at_once))
        loss = self.problem.loss.total(self._outputs(weights, self._x[few]), self._y[few])
        if not loss.requires_grad:
            return [False] * len(blocks)
        at = list(weights.values())
        gradient = torch.autograd.grad(loss, at, create_graph=True, materialize_grads=True)
        sizes = [float(w.detach().square().mean().sqrt()) or 1.0 for w in at]
        rng = np.random.default_rng(0)
        rounding = 0.0

        def scaled(parts: Sequence[torch.Tensor], block: Sequence[int]) -> list[torch.Tensor]:
            return [sizes[k] * part for k, part in zip(block, parts, strict=True)]

        def product(v: Floats, block: Sequence[int]) -> Floats:
            """Return `S H S v` of a block."""
            split = torch.split(torch.from_numpy(v), [at[k].numel() for k in block])
            parts = [part.view_as(at[k]).to(at[k]) for k, part in zip(block, split, strict=True)]
            inside = [gradient[k] for k in block]
            along = _derived(inside, scaled(parts, block), [at[k] for k in block], again=True)
            return self._flat(scaled(along, block))

        found = []
        for block in blocks:
            differs = False
            for _ in range(PAIRS):
                v, w = rng.standard_normal((2, sum(at[k].numel() for k in block)))
                Hv = product(v, block)
                Hw = product(w, block)
                size = max(float(np.linalg.norm(Hv)), float(np.linalg.norm(Hw)))
                rounding = rounding or ROUNDED * torch.finfo(at[0].dtype).eps * size  # of the whole
                differs |= bool(abs(v @ Hw - w @ Hv) > max(ASYMMETRY * size, rounding))
            found.append(differs)
        return found

    def gauss_newton_product(self, v: Floats) -> Floats:
        """Return `J^T (d2L/df2) J v`, (P,)."""
        import torch

        weights = self._detached()
        along = dict(zip(weights, self._split(v), strict=True))
        loss = self.problem.loss
        weight = loss.weight(self._y)

        def product(x: Any, y: torch.Tensor) -> Floats:
            def outputs(weights: dict[str, torch.Tensor]) -> torch.Tensor:
                return self._outputs(weights, x)

            h, moved = _with_tangent(outputs, weights, along)
            with torch.enable_grad():
                at = h.detach().requires_grad_()
                (slope,) = torch.autograd.grad(loss.of_samples(at, y).sum(), at, create_graph=True)
                bent = 0 * h
                if slope.requires_grad:
                    (bent,) = torch.autograd.grad((slope * moved).sum(), at)
            (back,) = torch.func.vjp(outputs, weights)[1](weight * bent)
            return self._flat(list(back.values()))

        return reduce(np.add, [product(x, y) for x, y in self._blocks()])

    def _jacobian(self, of: Any, rows: slice) -> list[torch.Tensor]:
        """Return the Jacobian over samples of a function of weights, inputs (1, d) and label."""
        import torch
        from torch.func import jacrev, vmap
        from torch.utils._pytree import tree_map

        def single(weights: Any, x: Any, y: torch.Tensor) -> Any:
            return of(weights, tree_map(lambda sample: sample[None], x), y[None])

        weights = self._detached()
        samples = (self._x[rows], self._y[rows])
        if self._maps_samples:
            try:
                return list(vmap(jacrev(single), (None, 0, 0))(weights, *samples).values())
            except RuntimeError:  # recurrent layers, for example, write to buffers
                self._maps_samples = False
        numbers = range(len(samples[1]))
        each = [
            jacrev(single, chunk_size=1)(weights, *tree_map(lambda x, k=k: x[k], samples))
            for k in numbers
        ]
        return [torch.stack([jacobian[name] for jacobian in each]) for name in weights]

    def _few(self, count: int, outputs: int = 1) -> list[slice]:
        """Yield parts of the first samples; the derivatives of each part fit in memory."""
        return _parts(count, max(1, min(self._at_once, DERIVATIVES // (outputs * self.size))))

    def kernel(self, count: int) -> Floats:
        """Return the tangent kernel (n C, n C) of the first training samples."""
        import torch

        def jacobian(rows: slice) -> torch.Tensor:
            parts = self._jacobian(
                lambda w, x, y: self._outputs(w, x).reshape(-1), rows
            )  # (n, C, *shape)
            return torch.cat([part.reshape(part.shape[0] * part.shape[1], -1) for part in parts], 1)

        C = self.problem.outputs
        K = np.empty((count, C, count, C))
        parts = self._few(count, C)
        for k, rows in enumerate(parts):
            J = jacobian(rows)
            for columns in parts[: k + 1]:
                block = J @ (J if columns == rows else jacobian(columns)).T
                K[rows, :, columns] = block.double().cpu().numpy().reshape(len(J) // C, C, -1, C)
                K[columns, :, rows] = K[rows, :, columns].transpose(2, 3, 0, 1)
        return K.reshape(count * C, count * C)

    def kernel_product(self, count: int) -> Callable[[Floats], Floats]:
        """Multiply by the tangent kernel of the first samples, by a backward and a forward pass."""
        import torch

        weights = self._detached()

        def functions() -> Iterator[Callable[..., torch.Tensor]]:
            return (partial(self._outputs, x=x) for x, _ in self._blocks(count))

        def product(u: Floats) -> Floats:
            at = 0
            along = {name: torch.zeros_like(w) for name, w in weights.items()}
            for outputs in functions():
                h, pull = torch.func.vjp(outputs, weights)[:2]
                (back,) = pull(torch.from_numpy(u[at : at + h.numel()]).view_as(h).to(h))
                along = {name: along[name] + back[name] for name in along}
                at += h.numel()
            return self._flat(
                [_with_tangent(outputs, weights, along)[1] for outputs in functions()]
            )

        return product

    def squared_gradients(self) -> Floats:
        """Return `||grad l_k||^2` (n,) of the losses of single samples."""
        loss = self.problem.loss

        def squares(rows: slice) -> Any:
            parts = self._jacobian(
                lambda w, x, y: loss.of_samples(self._outputs(w, x), y).sum(), rows
            )
            return sum((part.flatten(1) ** 2).sum(1) for part in parts)

        share = len(self._y) / float(loss.count(self._y))  # 1 of one label a sample
        return share**2 * self._flat([squares(rows) for rows in self._few(len(self._y))])

    def potential(self, count: int, labels: Floats) -> Potential:
        """Return the mean loss, and its gradient, at several weights side by side."""
        import torch

        problem = self.problem
        criterion = self.problem.loss
        targets = torch.from_numpy(np.array(labels)).to(self._y)

        def loss(theta: torch.Tensor, x: Any, y: torch.Tensor, number: Any) -> torch.Tensor:
            weights = dict(zip(self._weights, self._split(theta), strict=True))
            summed: torch.Tensor = criterion.of_samples(self._outputs(weights, x), y).sum()
            return summed / (criterion.count(y) if number is None else number)  # type: ignore[no-any-return]

        both = torch.func.grad_and_value(loss)

        def one_by_one(theta: torch.Tensor, part: Any, number: Any) -> tuple[torch.Tensor, ...]:
            """Return gradients (K, P) and losses (K,) by backward passes, without `torch.func`."""
            pairs = []
            for k, weights in enumerate(theta):
                samples = part if isinstance(part, slice) else part[k]
                own = weights.clone().requires_grad_()
                value = loss(own, self._x[samples], targets[samples], number)
                pairs.append((torch.autograd.grad(value, own)[0], value.detach()))
            return tuple(torch.stack(values) for values in zip(*pairs, strict=True))

        def at(weights: Floats, rows: NDArray[np.int64] | None) -> tuple[Floats, Floats]:
            parts: list[Any] = _parts(count, self._at_once)
            axes: tuple[int | None, ...] = (0, None, None, None)
            number = criterion.count(targets[:count])  # of labels in all parts
            if rows is not None:  # samples of its own for each of the weights
                parts = [rows]
                axes = (0, 0, 0, None)
                number = None
            theta = torch.from_numpy(weights).to(self.problem.config.architecture.device)
            mapped = torch.func.vmap(both, axes, chunk_size=max(1, self._at_once // count))
            with threads_for(problem.threaded_work(len(weights) * count)):
                pairs: list[Any] = []
                for part in parts:
                    if self._maps_weights:
                        try:
                            pairs.append(mapped(theta, self._x[part], targets[part], number))
                            continue
                        except RuntimeError:  # a branch on values, or requires_grad_() in the loss
                            self._maps_weights = False
                    pairs.append(one_by_one(theta, part, number))
            gradients, losses = (
                sum(parts).detach().cpu().numpy() for parts in zip(*pairs, strict=True)
            )
            return losses, gradients

        return at

    def largest(
        self,
        start: Floats,
        k: int = 1,
        *,
        whole: bool = True,
        block: Ints | slice = slice(None),
        sign: float = 1.0,
        scale: Floats | None = None,
        tolerance: float | None = None,
    ) -> Largest:
        """Return the k largest eigenvalues of the Hessian, descending, and their vectors (P, k).

        Args:
            start: (P,) or (P, j), see `gradients.lanczos.largest_eigenvalues`.
            k: how many.
            whole: False for the Gauss-Newton part of the Hessian.
            block: picks a diagonal block.
            sign: -1 for the negative Hessian.
            scale: diagonal S (P,) of the matrix S H S, by default 1.
            tolerance: relative residual at which iterations end, by default `self.tolerance`; of
                the smallest eigenvalues they go on to `self.finest`.
        """
        from dynamics_cli.gradients.lanczos import largest_eigenvalues

        finest = tolerance
        if tolerance is None:
            tolerance = self.tolerance
            if sign < 0:
                finest = self.finest
        if whole and k == sign == 1 and scale is None and len(start) == self.size:
            return self._largest(start, tolerance)
        multiply = self.hessian_product
        if not whole:
            multiply = self.gauss_newton_product
        v = np.zeros(self.size)

        def product(part: Floats) -> Floats:
            if scale is None:
                v[block] = part
                return sign * multiply(v)[block]
            v[block] = scale[block] * part
            return sign * scale[block] * multiply(v)[block]

        return largest_eigenvalues(product, start, k, tolerance=tolerance, finest=finest)

    def _largest(self, start: Floats, tolerance: float) -> Largest:
        """Return the largest eigenvalue of the whole Hessian."""
        from dynamics_cli.gradients.lanczos import largest_eigenvalues

        return largest_eigenvalues(self.hessian_product, start, tolerance=tolerance)

    def weights(self, parameters: Parameters) -> Floats:
        """Return the trained weights (P,) among those by name."""
        return np.concatenate(
            [np.asarray(parameters[name], np.float64).ravel() for name in self.names]
        )

    def hessian(self) -> Floats:
        """Return the Hessian (P, P)."""
        H = np.stack(list(map(self.hessian_product, np.eye(self.size))))
        return np.asarray((H + H.T) / 2)


class ByEngine(Derivatives):
    """Fully connected networks whose activation and loss are formulas, by the compiled engine.

    Torch gives those that few measures ask of many outputs.
    """

    tolerance = TOLERANCE
    finest = FINEST
    keeps_statistics = False

    def __init__(self, state: State, engine: Engine) -> None:
        super().__init__(state)
        self._engine = engine
        self.names = engine.names
        self.size = len(engine.places)

    @property
    def _evaluated(self) -> Engine:
        """The engine, which has evaluated this state last."""
        engine = self._engine
        work = self._engine.work
        if engine.evaluated is not self:
            if self.problem.config.architecture.centered:
                work.write(self._state.start)
                work.centre()
            work.write(self._state.parameters)
            work.evaluate()
            engine.evaluated = self
        return engine

    def gradient(self) -> Floats:
        """Return the gradient of the training loss (P,)."""
        return np.asarray(self._evaluated.work.gradient[self._engine.places])

    def hessian_product(self, v: Floats) -> Floats:
        """Return the Hessian of the training loss times `v`, (P,)."""
        return self._evaluated.multiply(v)

    def _layers(self, x: Floats, slopes: Floats) -> Iterator[tuple[Floats, Floats, bool, bool]]:
        """Yield the parts of derivatives of F by the weights of each layer, the last layer first.

        They are the inputs of the layer (n, m), the derivatives of F by its preactivations, and
        whether its weights and its biases are trained. `slopes` (n, C) are the derivatives of F by
        the outputs.
        """
        c: Any = self.problem.config.architecture
        layers = layers_of(c, self._state.parameters)
        features = features_of(c, self._state.parameters, x)
        inputs = [x, *(h for _, h in features)]
        delta = slopes * (c.output_scale or 1.0)
        for k in reversed(range(len(layers))):
            name = c.matrices[k]
            trained = name in self.names, name.replace("weight", "bias") in self.names
            yield inputs[k], delta, *trained
            if k:
                W, _ = layers[k]
                z, _ = features[k - 1]
                skipped = delta if name in c.skips else 0.0
                delta = (delta @ W) * tracing.slopes(c.sigma, z, 1) + skipped

    def _largest(self, start: Floats, tolerance: float) -> Largest:
        """Return the largest eigenvalue of the whole Hessian by a compiled call."""
        return spectrum_of(self.problem, self._evaluated).largest(start, tolerance)

    def kernel(self, count: int) -> Floats:
        """Return the tangent kernel (n C, n C) of the first training samples."""
        x = self.problem.dataset.x[:count]
        C = getattr(self.problem.config.architecture, "outputs", None) or 1
        n = len(x)
        outputs = [list(self._layers(x, np.tile(row, (len(x), 1)))) for row in np.eye(C)]
        K = np.zeros((n, C, n, C))
        for of_layer in zip(*outputs, strict=True):
            h, _, weight, bias = of_layer[0]
            inner = weight * (h @ h.T) + bias
            for a in range(C):
                for b in range(C):
                    K[:, a, :, b] += inner * (of_layer[a][1] @ of_layer[b][1].T)
        return K.reshape(n * C, n * C)

    def squared_gradients(self) -> Floats:
        """Return `||grad l_k||^2` (n,) of the losses of single samples."""
        samples = self.problem.dataset
        loss = self.problem.loss
        slopes = loss.derivatives(self._state.network(samples.x), samples.y)
        layers = self._layers(samples.x, slopes.reshape(samples.n, -1))
        parts = [
            (delta**2).sum(1) * (weight * (h**2).sum(1) + bias) for h, delta, weight, bias in layers
        ]
        return np.asarray(np.sum(parts, 0))

    def potential(self, count: int, labels: Floats) -> Potential:
        """Return the mean loss, and its gradient, by the engine."""
        engine = self._evaluated
        samples = self.problem.dataset
        work = self._engine.batch(count)
        work.write(self._state.parameters)
        base = engine.work.base.reshape(samples.n, -1).copy()
        given: list[tuple[Any, Any]] = [
            (samples.x, work.x),
            (labels, work.y),
            (base, work.base.reshape(count, -1)),
        ]

        def at(weights: Floats, rows: NDArray[np.int64] | None) -> tuple[Floats, Floats]:
            losses = np.empty(len(weights))
            gradients = np.empty(weights.shape)
            for k, theta in enumerate(weights):
                if rows is not None:
                    for source, working in given:
                        working[...] = source[rows[k]]
                elif k == 0:
                    for source, working in given:
                        working[...] = source
                work.theta[engine.places] = theta
                losses[k] = work.evaluate() / count
                gradients[k] = work.gradient[engine.places]
            return losses, gradients

        return at
