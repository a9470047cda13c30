"""First and second derivatives of the training loss and of the outputs at a recorded state, in float64.

Vectors are those of the trained weights, in the order of the network, each flattened by rows.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.architectures.fully_connected import FullyConnected
from dynamics_cli.architectures.two_layer import TwoLayer
from dynamics_cli.config.bases import Architecture, Floats, Loss, Parameters, State
from dynamics_cli.losses.squared import HalfMse, Mse
from dynamics_cli.measures.feed_forward import FeedForward, Layers

if TYPE_CHECKING:
    import torch

    from dynamics_cli.training.problem import Problem


def derivatives_of(state: State) -> Derivatives:
    """Return the derivatives at a state, made once and shared by its measures."""
    if "derivatives" not in state.shared:
        state.shared["derivatives"] = (ByHand if _by_hand(state.problem.config.architecture) else ByAutograd)(state)
    found: Derivatives = state.shared["derivatives"]
    return found


def _by_hand(architecture: Architecture) -> bool:
    return type(architecture) in (TwoLayer, FullyConnected)


def outputs_of(architecture: Architecture, parameters: Parameters, x: Floats) -> Floats:
    """Return the outputs for inputs `x` (n, d), neither scaled nor centred; by hand without importing torch."""
    if _by_hand(architecture):
        return FeedForward(layers_of(architecture, parameters), x).z[-1]
    return architecture.evaluation(parameters, x.shape[1])(x)


def trained_names(problem: Problem) -> list[str]:
    """Return the names of the weights that are trained."""
    architecture = problem.config.architecture
    fixed = {"output_weight"} if not getattr(architecture, "train_output", True) else set()
    allowed = architecture.train or list(problem.shapes)
    return [name for name in problem.shapes if name in allowed and name not in fixed]


class Derivatives(ABC):
    """What measures ask of a state."""

    def __init__(self, state: State) -> None:
        self.problem = state.problem
        self.names = trained_names(state.problem)
        """Of the trained weights."""

    @cached_property
    def size(self) -> int:
        """Number P of trained weights."""
        return sum(math.prod(self.problem.shapes[name]) for name in self.names)

    @abstractmethod
    def gradient(self) -> Floats:
        """Return the gradient of the training loss (P,)."""

    @abstractmethod
    def hessian_product(self, v: Floats) -> Floats:
        """Return the Hessian of the training loss times `v`, (P,)."""

    @abstractmethod
    def kernel(self, chosen: int | Sequence[int]) -> Floats:
        """Return the tangent kernel (n C, n C) of training samples, by number or the first so many.

        The outputs of a sample stand together.
        """

    @abstractmethod
    def gauss_newton_product(self, v: Floats) -> Floats:
        """Return `J^T (d2L/df2) J v`, (P,)."""

    @abstractmethod
    def squared_gradients(self) -> Floats:
        """Return `||grad l_k||^2` (n,) of the losses of single samples."""

    def hessian(self) -> Floats:
        """Return the Hessian (P, P)."""
        H = np.stack([self.hessian_product(v) for v in np.eye(self.size)])
        return np.asarray((H + H.T) / 2)


def _rows(chosen: int | Sequence[int]) -> slice | list[int]:
    return slice(chosen) if isinstance(chosen, int) else list(chosen)


_BENDS: dict[type[Loss], float] = {Mse: 2.0, HalfMse: 1.0}
"""Constant second derivatives of exactly these losses."""


def loss_derivatives(problem: Problem, h: Floats) -> tuple[Floats, Floats]:
    """Return `dL/dh` (n, C) and `d2L/dh2` (n, C, C) of the reduced training loss at outputs `h` (n, C)."""
    loss, y = problem.loss, problem.dataset.y
    square = _BENDS.get(type(loss), 0.0) * loss.sample_weight(len(h))
    if square and getattr(loss, "missing", None) is None:
        curvature = np.empty((len(h), h.shape[1], h.shape[1]))
        curvature[:] = square * np.eye(h.shape[1])
        return square * (h - y.reshape(h.shape)), curvature
    import torch

    labels = torch.tensor(y, dtype=torch.long if loss.labels == "classes" else torch.float64)
    several = y.ndim == 2 or loss.many_outputs
    at = torch.from_numpy(np.ascontiguousarray(h if several else h[:, 0])).requires_grad_()
    delta = loss.derivatives(at, labels) * loss.sample_weight(len(h))
    columns = delta if several else delta[:, None]  # (n, C)
    bends = []
    for column in columns.unbind(1):
        if column.requires_grad:
            (bend,) = torch.autograd.grad(column.sum(), at, retain_graph=True, allow_unused=True)
            bends.append((torch.zeros_like(at) if bend is None else bend).reshape(h.shape))
        else:  # a loss that is linear in its pieces
            bends.append(torch.zeros(h.shape, dtype=torch.float64))
    return columns.detach().numpy(), torch.stack(bends, 1).numpy()


def layers_of(architecture: Architecture, parameters: Parameters) -> Layers:
    """Return the layers of a fully connected network, float64."""
    assert isinstance(architecture, TwoLayer | FullyConnected)
    values = {name: np.asarray(value, np.float64) for name, value in parameters.items()}
    scale = architecture.output_scale or 1.0
    if isinstance(architecture, TwoLayer):
        weights = [values["hidden_weight"], np.atleast_2d(values["output_weight"])]
        return Layers(weights, [None, None], [1.0, 1.0], scale, architecture.sigma)
    depth = len(architecture.widths) + 1
    weights = [values[f"weight_{layer}"] for layer in range(1, depth + 1)]
    biases = [values.get(f"bias_{layer}") for layer in range(1, depth + 1)]
    multipliers = architecture.multipliers([weights[0].shape[1], *(len(W) for W in weights)])
    return Layers(weights, biases, multipliers or [1.0] * depth, scale, architecture.sigma)


class ByHand(Derivatives):
    """Fully connected networks, by `measures.feed_forward`."""

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self._state = state
        self._all = len(self.names) == len(state.problem.shapes)

    @cached_property
    def network(self) -> FeedForward:
        """The network on the training inputs."""
        return FeedForward(layers_of(self.problem.config.architecture, self._state.parameters), self.problem.dataset.x)

    @cached_property
    def _loss(self) -> tuple[Floats, Floats]:
        h = self.network.outputs
        if self.problem.config.architecture.centered:
            h = (
                h
                - FeedForward(
                    layers_of(self.problem.config.architecture, self._state.start), self.problem.dataset.x
                ).outputs
            )
        return loss_derivatives(self.problem, h)

    @cached_property
    def _mask(self) -> NDArray[np.bool_]:
        """Which weights are trained, of a vector of all."""
        shapes = self.problem.shapes
        return np.concatenate([np.full(math.prod(shape), name in self.names) for name, shape in shapes.items()])

    def _kept(self, vector: Floats) -> Floats:
        return vector if self._all else vector[self._mask]

    def gradient(self) -> Floats:
        """Return the gradient of the training loss (P,)."""
        return self._kept(self.network.gradient(self._loss[0]))

    def hessian_product(self, v: Floats) -> Floats:
        """Return the Hessian of the training loss times `v`, (P,)."""
        return self._kept(self._hessian(self._full(v)))

    def gauss_newton_product(self, v: Floats) -> Floats:
        """Return `J^T (d2L/df2) J v`, (P,): the Hessian's product where the loss has no slope."""
        return self._kept(self._gauss_newton(self._full(v)))

    @cached_property
    def _hessian(self) -> Callable[[Floats], Floats]:
        return self.network.hessian(*self._loss)

    @cached_property
    def _gauss_newton(self) -> Callable[[Floats], Floats]:
        return self.network.hessian(np.zeros_like(self._loss[0]), self._loss[1])

    def _full(self, v: Floats) -> Floats:
        if self._all:
            return v
        full = np.zeros(len(self._mask))
        full[self._mask] = v
        return full

    def kernel(self, chosen: int | Sequence[int]) -> Floats:
        """Return the tangent kernel of training samples, by number or the first so many."""
        layers = layers_of(self.problem.config.architecture, self._state.parameters)
        K = FeedForward(layers, self.problem.dataset.x[_rows(chosen)]).kernel(self._trained())
        return K.reshape(K.shape[0] * K.shape[1], -1)

    def squared_gradients(self) -> Floats:
        """Return `||grad l_k||^2` (n,) of the losses of single samples."""
        net, delta = self.network, self._loss[0] / self.problem.loss.sample_weight(self.problem.dataset.n)
        deltas, _ = net.backward(delta)
        summed = np.zeros(len(delta))
        parts = zip(deltas, net.h, net.layers.multipliers, self._trained(), strict=True)
        for one, h, c, (weight, bias) in parts:
            summed += (one**2).sum(1) * (weight * c * c * (h**2).sum(1) + bias)
        return summed

    def _trained(self) -> list[tuple[bool, bool]]:
        """Return of every layer whether its weights and its bias, where it has one, are trained."""
        weights = [name for name in self.problem.shapes if "weight" in name]
        return [(name in self.names, name.replace("weight", "bias") in self.names) for name in weights]


class ByAutograd(Derivatives):
    """Any network, by `torch.func` and double backward passes."""

    def __init__(self, state: State) -> None:
        super().__init__(state)
        import torch

        architecture, d = state.problem.config.architecture, state.problem.dataset.d
        initial = state.start if architecture.centered else state.parameters
        self._model = architecture.network(d, initial, torch.float64)
        with torch.no_grad():
            for name, weight in self._model.named_parameters():
                weight.copy_(torch.from_numpy(np.array(state.parameters[name], np.float64)))
        self._weights = {name: p for name, p in self._model.named_parameters() if name in self.names}
        self.names = list(self._weights)
        self._x = torch.tensor(state.problem.dataset.x)
        labels = torch.long if state.problem.loss.labels == "classes" else torch.float64
        self._y = torch.tensor(state.problem.dataset.y, dtype=labels)

    @staticmethod
    def _flat(tensors: Sequence[torch.Tensor]) -> Floats:
        return np.concatenate([one.detach().numpy().ravel() for one in tensors])

    @cached_property
    def _gradient(self) -> tuple[torch.Tensor, ...]:
        import torch

        loss = self.problem.loss.total(self._model(self._x), self._y)
        return torch.autograd.grad(loss, list(self._weights.values()), create_graph=True)

    def gradient(self) -> Floats:
        """Return the gradient of the training loss (P,)."""
        return self._flat(self._gradient)

    def hessian_product(self, v: Floats) -> Floats:
        """Return the Hessian of the training loss times `v`, (P,)."""
        import torch

        parts = torch.split(torch.from_numpy(np.ascontiguousarray(v)), [p.numel() for p in self._weights.values()])
        inner = sum((g * part.view_as(g)).sum() for g, part in zip(self._gradient, parts, strict=True))
        assert isinstance(inner, torch.Tensor)
        weights = list(self._weights.values())
        if not inner.requires_grad:
            return np.zeros(self.size)
        products = torch.autograd.grad(inner, weights, retain_graph=True, allow_unused=True)
        return self._flat([torch.zeros_like(w) if g is None else g for g, w in zip(products, weights, strict=True)])

    def gauss_newton_product(self, v: Floats) -> Floats:
        """Return `J^T (d2L/df2) J v`, (P,)."""
        import torch

        weights = {name: p.detach() for name, p in self._weights.items()}
        parts = torch.split(torch.from_numpy(np.ascontiguousarray(v)), [p.numel() for p in weights.values()])
        along = {name: part.view_as(weights[name]) for name, part in zip(weights, parts, strict=True)}

        def outputs(weights: dict[str, torch.Tensor]) -> torch.Tensor:
            h: torch.Tensor = torch.func.functional_call(self._model, weights, (self._x,))
            return h.reshape(len(self._x), -1)

        h, moved = torch.func.jvp(outputs, (weights,), (along,))[:2]
        bend = torch.from_numpy(loss_derivatives(self.problem, h.detach().numpy())[1])
        pull = torch.func.vjp(outputs, weights)[1]
        (back,) = pull((bend @ moved[..., None])[..., 0])
        return self._flat(list(back.values()))

    def _jacobian(self, of: Any, samples: torch.Tensor, *more: torch.Tensor) -> list[torch.Tensor]:
        """Return the derivatives by each weight of a function of weights and one sample, over samples."""
        import torch

        weights = {name: p.detach() for name, p in self._weights.items()}
        axes = (None, *([0] * (1 + len(more))))
        return list(torch.func.vmap(torch.func.jacrev(of), axes)(weights, samples, *more).values())

    def kernel(self, chosen: int | Sequence[int]) -> Floats:
        """Return the tangent kernel of training samples, by number or the first so many."""
        import torch

        def output(weights: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
            h: torch.Tensor = torch.func.functional_call(self._model, weights, (x[None],))
            return h.reshape(-1)

        parts = self._jacobian(output, self._x[_rows(chosen)])  # (n, C, *shape)
        J = torch.cat([part.reshape(part.shape[0] * part.shape[1], -1) for part in parts], 1)
        return (J @ J.T).numpy()

    def squared_gradients(self) -> Floats:
        """Return `||grad l_k||^2` (n,) of the losses of single samples."""
        import torch

        def loss(weights: dict[str, torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            h: torch.Tensor = torch.func.functional_call(self._model, weights, (x[None],))
            return self.problem.loss.values(h, y[None]).sum()  # type: ignore[no-any-return]

        parts = self._jacobian(loss, self._x, self._y)
        return np.asarray(sum((part.flatten(1) ** 2).sum(1) for part in parts).numpy())  # type: ignore[union-attr]
