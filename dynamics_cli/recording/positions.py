"""Measures by position of a sequence: loss, accuracy, and the distance to predictors that count."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import pairwise
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from dynamics_cli.errors import InputError
from dynamics_cli.kinds import Floats, Measure, NonNegative, PositiveInt, Problem, Sections, State
from dynamics_cli.kinds.arrays import Ints
from dynamics_cli.recording.measures import classifies, once, right

SINGULAR = 1e-10
"""Eigenvalues of least squares below this share of the largest count as 0."""


def tokens_of(problem: Problem, x: Floats, positions: int) -> Floats:
    """Return the inputs of samples as vectors of numbers for each position (n, T, k).

    Raises InputError: the positions have other numbers or sizes.
    """
    from torch import Tensor
    from torch.utils._pytree import tree_leaves

    inputs = problem.config.architecture.inputs_of(x)
    first = tree_leaves(inputs[: len(x)])[0]
    assert isinstance(first, Tensor)
    tokens = first.detach().cpu().double().numpy().reshape(len(x), -1)
    if tokens.shape[1] % positions:
        raise InputError(
            f"record.measures: {tokens.shape[1]} numbers of a sample are not {positions} positions"
            " of equal size"
        )
    return tokens.reshape(len(x), positions, -1)


def symbols_of(problem: Problem, x: Floats, positions: int) -> Ints:
    """Return the symbol at each position (n, T): its number, or where its vector is 1.

    Raises InputError: inputs are neither numbers of symbols nor vectors of a 1 and else 0.
    """
    tokens = tokens_of(problem, x, positions)
    if tokens.shape[2] == 1:
        numbers = tokens[..., 0].astype(np.int64)
        if np.array_equal(numbers, tokens[..., 0]) and (numbers >= 0).all():
            return numbers
    elif np.isin(tokens, [0.0, 1.0]).all() and (tokens.sum(-1) == 1).all():
        return np.asarray(tokens.argmax(-1), np.int64)
    raise InputError(
        "record.measures: inputs at positions are no symbols, that is whole numbers or vectors of"
        " a 1 and else 0"
    )


def _shares(counts: Floats) -> Floats:
    """Return the shares of counts (..., C), equal where all are 0."""
    totals = counts.sum(-1, keepdims=True)
    shares = np.where(totals > 0, counts / np.maximum(totals, 1), 1 / counts.shape[-1])
    return np.asarray(shares, np.float64)


def unigram(labels: Ints, classes: int) -> Floats:
    """Return the shares of the classes among labels (C,); labels -1 do not count."""
    return _shares(np.bincount(labels[labels >= 0], minlength=classes).astype(np.float64))


def bigram(symbols: Ints, labels: Ints, classes: int) -> Floats:
    """Return the shares of the classes among the labels at each symbol (S, C)."""
    counts = np.zeros((symbols.max() + 1, classes))
    there = labels >= 0
    np.add.at(counts, (symbols[there], labels[there]), 1.0)
    return _shares(counts)


def context_unigram(symbols: Ints, classes: int) -> Floats:
    """Return the shares of the classes up to each position (n, T, C), each counted once more."""
    counts = np.eye(classes)[symbols].cumsum(1)
    return _shares(counts + 1.0)


def context_bigram(symbols: Ints, classes: int) -> Floats:
    """Return shares of the classes after earlier occurrences of each symbol (n, T, C).

    Each class is counted once more.
    """
    n, T = symbols.shape
    rows = np.arange(n)
    counts = np.ones((n, classes, classes))
    predicted = np.empty((n, T, classes))
    for t in range(T):
        if t:
            counts[rows, symbols[:, t - 1], symbols[:, t]] += 1.0
        predicted[:, t] = counts[rows, symbols[:, t]]
    return _shares(predicted)


def log_probabilities(h: Floats) -> Floats:
    """Return the logarithms of the probabilities that outputs (..., C) give classes."""
    # class by class: `np.logaddexp.reduce` gives the same bits one position after another
    total = reduce(np.logaddexp, np.moveaxis(h, -1, 0))
    return np.asarray(h - total[..., None])


def divergence(p: Floats, log_q: Floats) -> Floats:
    """Return `KL(p || q) = sum_c p_c log(p_c / q_c)` (...) of probabilities (..., C), in nats."""
    log_p = np.log(np.where(p > 0, p, 1.0))
    return np.asarray((p * (log_p - log_q)).sum(-1))


def ridge(tokens: Floats, y: Floats, there: Floats, strength: float) -> Floats:
    """Return the predictions (n, T, k) at each position of ridge regression on those before it.

    The tokens (n, T, D) with a label are regressed on, `there` (n, T) says which. Where `strength`
    is 0, it is the least squares solution of least norm.
    """
    n, T, D = tokens.shape
    A = np.zeros((n, D, D)) + strength * np.eye(D)
    b = np.zeros((n, D, y.shape[2]))
    predicted = np.zeros(y.shape)
    for t in range(T):
        x = tokens[:, t]
        if strength:
            w = np.linalg.solve(A, b)
        else:
            w = np.linalg.pinv(A, rcond=SINGULAR, hermitian=True) @ b
        predicted[:, t] = np.einsum("nd,ndk->nk", x, w)
        known = x * there[:, t, None]
        A += known[:, :, None] * x[:, None]
        b += known[:, :, None] * np.where(there[:, t, None], y[:, t], 0.0)[:, None]
    return predicted


class ByPosition(Measure, kind="by_position"):
    """Loss, accuracy, or distance to a given predictor, at each position of a sequence.

    A number for each position, or bin of positions: the mean over its labels, NaN where it has
    none. `kl_...` is the divergence `KL(p || q) = sum_c p_c log(p_c / q_c)` of the network's
    probabilities q from a predictor's p, in nats: `uniform`; `unigram` and `bigram` of the
    training samples, the shares of labels, overall and at the same symbol; `context_unigram` and
    `context_bigram` of the sequence up to the position, the shares of symbols, overall and behind
    the same symbol, each counted once more (Edelman et al. 2024). They need inputs that are symbols
    and the loss `cross_entropy`. `ridge` is the squared distance of the outputs from predictions of
    ridge regression on the tokens with a label before the position (Garg et al. 2022), for real
    labels. The measure is called `by_position_loss` and so on, with `_held_out` behind. A state
    takes a forward pass over the samples, which measures of outputs share; `ridge` also a linear
    system of D equations for every position of every sample.
    """

    example = """\
dataset: {kind: markov_chains, length: 10, symbols: 2, n: 100}
architecture: {kind: transformer, tokens: 10, width: 8, outputs: 2, predict: every}
initialization: {kind: lecun}
loss: {kind: cross_entropy}
record: {measures: [{kind: by_position, of: kl_context_bigram, bins: [1, 2, 5]}]}
"""
    panel = "positions"
    needs = (
        "a kind of loss and such samples with labels at each position: classes for `kl_...`,"
        " numbers for `ridge`"
    )
    of: Literal[
        "loss",
        "accuracy",
        "kl_uniform",
        "kl_unigram",
        "kl_bigram",
        "kl_context_unigram",
        "kl_context_bigram",
        "ridge",
    ] = "loss"
    """Which number."""
    held_out: Literal[True] | None = None
    """Take the held-out samples; by default the training samples."""
    bins: Annotated[list[PositiveInt], Field(min_length=1)] | None = None
    """The first position of each bin, from 1, in order; positions before the first are left out.
    By default every position is a bin.
    """
    strength: NonNegative = 0.0
    """Of `ridge`: the penalty `strength |w|^2` beside the sum of squares; 0 is least squares."""

    @property
    def name(self) -> str:
        """`by_position_loss` and so on."""
        return f"{self.kind}_{self.of}" + "_held_out" * bool(self.held_out)

    def offered(self, problem: Problem) -> bool:
        """Return whether there are such samples, and labels at positions of such a form.

        Raises:
            InputError: a bin begins behind the last position, bins do not increase, inputs are not
                what a predictor needs, or `strength` is not that of `ridge`.
        """
        data = problem.dataset
        if not data.positions or problem.config.architecture.players:
            return False
        if self.held_out and data.y_test is None:
            return False
        T = data.y.shape[1]
        bins = self.bins or [1]
        if sorted(set(bins)) != bins or bins[-1] > T:
            raise InputError(
                f"record.measures: {self.kind}.bins must increase and be at most {T}, the positions"
            )
        if self.strength and self.of != "ridge":
            raise InputError(f"record.measures: {self.kind}.strength goes with `of: ridge`")
        if self.of == "accuracy":
            return classifies(problem)
        if self.of == "ridge":
            return problem.loss.labels == "real"
        if self.of.startswith("kl_"):
            if problem.loss.labels != "classes":
                return False
            if self.of not in ("kl_uniform", "kl_unigram"):
                self._symbols(problem, data.x, T)
        return True

    def columns(self, sections: Sections) -> Sequence[str]:
        """Return the positions of the bins."""
        if not self.bins:
            return ()
        ends = [b - 1 for b in self.bins[1:]]
        labels = [
            str(a) if a == b else f"{a}-{b}" for a, b in zip(self.bins[:-1], ends, strict=True)
        ]
        return [*labels, f"{self.bins[-1]}-"]

    def measure(self, state: State) -> Floats:
        """Return the number of each position or bin."""
        problem = state.problem
        data = problem.dataset
        x = data.x
        y = data.y
        if self.held_out:
            assert data.x_test is not None
            assert data.y_test is not None
            x = data.x_test
            y = data.y_test
        key = f"outputs, held out: {bool(self.held_out)}"
        h = once(state.shared, key, lambda: state.network(x))
        of_labels = self._of_labels(problem, x, h, y)
        there = np.asarray(problem.loss.labelled(y))
        T = y.shape[1]
        starts = [first - 1 for first in self.bins or range(1, T + 1)]
        numbers = np.full(len(starts), np.nan)
        for k, (a, b) in enumerate(pairwise([*starts, T])):
            if there[:, a:b].any():
                numbers[k] = of_labels(slice(a, b))
        return numbers

    def _of_labels(
        self, problem: Problem, x: Floats, h: Floats, y: Floats
    ) -> Callable[[slice], float]:
        """Return the function that gives the mean over the labels at some positions."""
        if self.of == "accuracy":
            return lambda part: right(problem, h[:, part], y[:, part])
        there = np.asarray(problem.loss.labelled(y))
        if self.of == "loss":
            values = np.asarray(problem.loss.of_positions(h, problem.loss.numbered(y)))
        elif self.of == "ridge":
            tokens = tokens_of(problem, x, y.shape[1])
            predicted = ridge(tokens, y.reshape(*there.shape, -1), there, self.strength)
            values = ((h.reshape(predicted.shape) - predicted) ** 2).sum(-1)
        else:
            p = self._predictor(problem, x, h.shape[1:])
            values = divergence(p, log_probabilities(h))
        return lambda part: float(values[:, part][there[:, part]].mean())

    def _predictor(self, problem: Problem, x: Floats, shape: Sequence[int]) -> Floats:
        """Return the predictor's probabilities, as (n, T, C) or such that they broadcast to it."""
        T, C = shape
        if self.of == "kl_uniform":
            return np.full(C, 1 / C)
        data = problem.dataset
        labels = data.y.astype(np.int64)
        if self.of == "kl_unigram":
            return unigram(labels, C)
        symbols = self._symbols(problem, x, T)
        if self.of == "kl_context_unigram":
            return context_unigram(symbols, C)
        if self.of == "kl_context_bigram":
            return context_bigram(symbols, C)
        table = problem.shared.get(self.of)
        if table is None:
            table = bigram(self._symbols(problem, data.x, T), labels, C)
            problem.shared[self.of] = table
        unseen = np.full((max(0, int(symbols.max()) + 1 - len(table)), C), 1 / C)
        return np.concatenate([table, unseen])[symbols]

    def _symbols(self, problem: Problem, x: Floats, T: int) -> Ints:
        """Return the symbols (n, T).

        Raises InputError: there are none, or a symbol of the context is no class.
        """
        symbols = symbols_of(problem, x, T)
        classes = problem.outputs // T
        if self.of.startswith("kl_context") and symbols.max() >= classes:
            raise InputError(
                f"record.measures: {self.name}: the symbol {symbols.max()} is no class, there are"
                f" {classes} outputs"
            )
        return symbols
