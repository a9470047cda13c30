"""Measures of attention heads: entropy, and scores of the previous, first and induction token."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.errors import InputError
from dynamics_cli.gradients.derivatives import network_of
from dynamics_cli.kinds import Floats, Measure, Problem, Sections, State
from dynamics_cli.recording.positions import symbols_of

if TYPE_CHECKING:
    from torch import Tensor

SAME = 1e-4
"""Difference of weights of attention that are equal but for rounding, of float32 too."""


@contextmanager
def watched_attention(see: Callable[[Tensor], None]) -> Iterator[None]:
    """Let `see` have the weights of attention, (..., T, T), whenever attention is computed.

    It is known by a softmax over the last axis of square matrices, by
    `torch.nn.functional.scaled_dot_product_attention` and by `torch.nn.MultiheadAttention`. Nothing
    watches after the end.
    """
    import torch
    from torch import Tensor
    from torch.nn import functional
    from torch.overrides import TorchFunctionMode

    softmaxes = (torch.softmax, Tensor.softmax, functional.softmax)

    class Watch(TorchFunctionMode):
        def __torch_function__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            kwargs = kwargs or {}
            if function is functional.multi_head_attention_forward:
                apart = {"need_weights": True, "average_attn_weights": False}
                outputs, weights = function(*args, **{**kwargs, **apart})
                assert weights is not None
                take(weights)
                if not kwargs.get("need_weights", True):
                    return outputs, None
                averaged = kwargs.get("average_attn_weights", True)
                return outputs, weights.mean(-3) if averaged else weights
            outputs = function(*args, **kwargs)
            if function is functional.scaled_dot_product_attention:
                take(_weights(*args, **kwargs))
            elif function in softmaxes:
                axis = kwargs.get("dim", args[1] if len(args) > 1 else None)
                if axis in (-1, outputs.ndim - 1):
                    take(outputs)
            return outputs

    def take(weights: Tensor) -> None:
        if weights.ndim > 2 and weights.shape[-1] == weights.shape[-2]:
            see(weights.detach().double())

    def _weights(query: Tensor, key: Tensor, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        # values that tell the keys apart
        S = key.shape[-2]
        keys = torch.eye(S, dtype=value.dtype, device=value.device).expand(*key.shape[:-1], S)
        weights: Tensor = functional.scaled_dot_product_attention(query, key, keys, *args, **kwargs)
        return weights

    with torch.no_grad(), Watch():
        yield


def samples_first(weights: Tensor, alone: Tensor, count: int) -> Tensor:
    """Return attention (count, H, T, T) of `count` samples, given the attention of the first one.

    The axis of samples is the axis that is longer for more samples; samples and heads that share an
    axis may stand in either order. Attention that does not depend on samples is the same for all.

    Raises:
        InputError: more than one axis is longer.
    """
    import torch

    T = weights.shape[-1]
    if weights.shape == alone.shape:
        return weights.reshape(1, -1, T, T).expand(count, -1, T, T)
    longer = [k for k, size in enumerate(alone.shape) if weights.shape[k : k + 1] != (size,)]
    if weights.ndim != alone.ndim or [weights.shape[k] for k in longer] != [
        count * alone.shape[k] for k in longer[:1]
    ]:
        raise InputError(
            f"attention: weights {tuple(weights.shape)} of {count} samples, and"
            f" {tuple(alone.shape)} of one, have no axis of samples"
        )
    (axis,) = longer
    H = alone.shape[axis]
    before = weights.shape[:axis]
    after = weights.shape[axis + 1 :]
    apart = weights.reshape(*before, count, H, *after)
    if not torch.allclose(apart.select(axis, 0), alone, rtol=SAME, atol=SAME, equal_nan=True):
        apart = weights.reshape(*before, H, count, *after).transpose(axis, axis + 1)
    return apart.movedim(axis, 0).reshape(count, -1, T, T)


class Attention(Measure, kind="attention"):
    """Entropy of attention, or its weight on the previous, the first or the induction token.

    A number for each head, layer by layer: the mean over samples and queries t of the entropy
    `-sum_s a_ts log a_ts` in nats; of the weight `a_{t, t-1}`; of the weight on the first token,
    for t > 1; or, for `induction`, of the weight on all tokens up to t behind an earlier occurrence
    of the token at t, `sum_{s < t, x_s = x_t} a_{t, s+1}`, over the queries that have such tokens
    (Olsson et al. 2022), where inputs are symbols: whole numbers or vectors of a 1 and else 0.
    A query that attends to no token, whose weights are all 0 or NaN, does not count, nor does one
    of `padding`. Attention is what a network computes by a softmax over the last axis of square
    matrices (..., T, T), by `torch.nn.functional.scaled_dot_product_attention` or by
    `torch.nn.MultiheadAttention`. The measure is called `attention_entropy` and so on, its columns
    `1.2` (layer and head) for networks of `dyn`, otherwise `1`, `2`, ... in the order of calls. A
    state takes a pass over the training samples for each number.
    """

    example = """\
dataset: {kind: markov_chains, length: 10, symbols: 2, n: 100}
architecture: {kind: transformer, tokens: 10, width: 8, outputs: 2, predict: every}
initialization: {kind: lecun}
loss: {kind: cross_entropy}
record: {measures: [{kind: attention, of: induction}]}
"""
    needs = "a single network with attention"
    of: Literal["entropy", "previous", "first", "induction"] = "entropy"
    """Which number."""
    padding: int | str | None = None
    """Leave positions of padding out, as queries and as previous or first token: the positions with
    this symbol, or, for inputs by name, where the input of this name is 0 (`attention_mask`).
    """

    @property
    def name(self) -> str:
        """`attention_entropy` and so on."""
        return f"{self.kind}_{self.of}"

    def offered(self, problem: Problem) -> bool:
        """Return whether a single network is trained that computes attention.

        Raises:
            InputError: inputs are no symbols, for `induction`, or have no such padding.
        """
        architecture = problem.config.architecture
        if architecture.players:
            return False
        x = problem.dataset.x[:1]
        model = architecture.built(problem.dataset.d).double()
        lengths: list[int] = []
        with watched_attention(lambda weights: lengths.append(weights.shape[-1])):
            model(architecture.inputs_of(x)[:1])
        if lengths and self.of == "induction":
            symbols_of(problem, x, lengths[0])
        if lengths:
            self._there(problem, x, lengths[0])
        return bool(lengths)

    def columns(self, sections: Sections) -> Sequence[str]:
        """Return layer and head of each number, where the architecture names them."""
        architecture = sections["architecture"]
        layers = getattr(architecture, "layers", None)
        heads = getattr(architecture, "heads", None)
        if not isinstance(layers, int) or not isinstance(heads, int):
            return ()
        numbers = range(layers * heads)
        return [f"{k // heads + 1}.{k % heads + 1}" for k in numbers]

    def measure(self, state: State) -> float | Floats:
        """Return the number of each head (heads of all layers,), or of a single one."""
        problem = state.problem
        architecture = problem.config.architecture
        model = network_of(state)
        x = problem.dataset.x
        inputs = architecture.inputs_of(x)
        block = problem.block_samples(architecture.device)
        totals: list[list[Any]] = []
        alone: list[Tensor] = []
        for first in range(0, len(x), block):
            rows = slice(first, min(first + block, len(x)))
            count = rows.stop - first
            seen: list[Tensor] = []
            with watched_attention(seen.append):
                model(inputs[rows])
            if first == 0:
                with watched_attention(alone.append):
                    model(inputs[:1])
                totals = [[0.0, 0] for _ in seen]
            for total, weights, of_one in zip(totals, seen, alone, strict=True):
                heads = samples_first(weights, of_one, count).cpu().numpy()
                of_queries = self._of_queries(heads, problem, x[rows])
                total[0] = total[0] + np.nansum(of_queries, (0, 2))
                total[1] = total[1] + (~np.isnan(of_queries)).sum((0, 2))
        with np.errstate(invalid="ignore"):  # heads without a query that counts
            numbers = np.concatenate([summed / number for summed, number in totals])
        if numbers.size == 1:
            return float(numbers[0])
        return numbers

    def _of_queries(self, a: Floats, problem: Problem, x: Floats) -> Floats:
        """Return a number for each query (n, H, T') of attention (n, H, T, T).

        NaN for queries that do not count.
        """
        there = self._there(problem, x, a.shape[-1])
        counts = there[:, None, :, None] & (a.sum(-1, keepdims=True) > 0)
        a = np.where(counts, a, np.nan)
        if self.of == "entropy":
            return np.asarray(-(a * np.log(np.where(a > 0, a, 1.0))).sum(-1))
        if self.of == "previous":
            previous = np.diagonal(a, -1, -2, -1)
            return np.where(there[:, None, :-1], previous, np.nan)
        if self.of == "first":
            first = there.argmax(1)[:, None]
            weights = np.take_along_axis(a, first[:, :, None, None], -1)[..., 0]
            later = np.arange(a.shape[-1]) > first
            return np.where(later[:, None], weights, np.nan)[:, :, 1:]
        behind = behind_earlier(symbols_of(problem, x, a.shape[-1]))
        scores = (a * behind[:, None]).sum(-1)
        return np.where(behind.any(-1)[:, None], scores, np.nan)

    def _there(self, problem: Problem, x: Floats, T: int) -> NDArray[np.bool_]:
        """Return which positions of samples are no padding (n, T).

        Raises:
            InputError: there is no such padding.
        """
        if self.padding is None:
            return np.ones((len(x), T), bool)
        if isinstance(self.padding, int):
            return np.asarray(symbols_of(problem, x, T) != self.padding)
        inputs = problem.config.architecture.inputs_of(x)[: len(x)]
        if not isinstance(inputs, dict) or self.padding not in inputs:
            names = ", ".join(inputs) if isinstance(inputs, dict) else "none"
            raise InputError(
                f"record.measures: attention.padding: inputs by name have no {self.padding!r}:"
                f" {names}"
            )
        mask = np.asarray(inputs[self.padding].cpu())
        if mask.shape != (len(x), T):
            raise InputError(
                f"record.measures: attention.padding: {self.padding} has {mask.shape[1:]} numbers"
                f" a sample, attention has {T} positions"
            )
        return np.asarray(mask != 0)


def behind_earlier(symbols: Any) -> Any:
    """Return whether the token s is behind an earlier occurrence of the symbol at t (n, T, T)."""
    n, T = symbols.shape
    behind = np.zeros((n, T, T), bool)
    behind[:, :, 1:] = symbols[:, :, None] == symbols[:, None, :-1]
    return np.tril(behind)
