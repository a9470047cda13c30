"""Learning coefficients of deep linear networks, exactly (Aoyagi 2024), beside those that `llc` samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynamics_cli.errors import InputError
from dynamics_cli.kinds import Curve, Theory
from dynamics_cli.measures.arrays import Bools, Floats
from dynamics_cli.theory.assumptions import plain_violations

RANK = 0.05
"""Singular values of a product above this share of the largest of all states count for its rank."""
FITTED = 1e-5
"""Share of the first loss below which labels are fitted."""


def dln_learning_coefficient(rank: int, sizes: Sequence[int]) -> tuple[float, int]:
    """Return the learning coefficient and its multiplicity of a deep linear network whose true map has a rank.

    `sizes` are `H_0` (inputs), `H_1`, ..., `H_L` (outputs). Of the `M_l = H_l - rank`, the set of the k + 1 smallest
    with `max < min of the others` and `k max <= sum < k min of the others` decides; with its sum s,
    `M = ceil(s / k)` and `a = s - (M - 1) k` the coefficient is
    `(rank (H_0 + H_L) - rank^2) / 2 + a (k - a) / (4 k) - (k - 1) s^2 / (4 k) + sum_(i<j) M_i M_j / 2`, and the
    multiplicity `a (k - a) + 1` (Aoyagi 2024, Consideration on the learning efficiency of multiple-layered neural
    networks with linear units).

    Raises:
        InputError: the rank is negative or larger than a size, or there are fewer than two sizes.
    """
    if len(sizes) < 2 or not 0 <= rank <= min(sizes):
        raise InputError(f"a product of matrices of sizes {', '.join(map(str, sizes))} has no rank {rank}")
    M = sorted(size - rank for size in sizes)

    def decides(k: int) -> bool:
        chosen, left = M[: k + 1], M[k + 1 :]
        below = not left or (chosen[-1] < left[0] and sum(chosen) < k * left[0])
        return below and sum(chosen) >= k * chosen[-1]

    k = next(k for k in range(1, len(M)) if decides(k))
    s, squares = sum(M[: k + 1]), sum(m * m for m in M[: k + 1])
    a = s - (-(-s // k) - 1) * k
    regular = (rank * (sizes[0] + sizes[-1]) - rank**2) / 2
    return regular + a * (k - a) / (4 * k) - (k - 1) * s * s / (4 * k) + (s * s - squares) / 4, a * (k - a) + 1


class LinearLearningCoefficient(Theory, kind="learning_coefficient"):
    """The exact learning coefficient of a deep linear network at the rank of its product (Aoyagi 2024).

    It belongs to the least degenerate map of the rank with layers of no higher rank; it speaks of states that fit
    their labels, or of all where `llc` takes the network's own outputs for labels.
    """

    example = """\
dataset: {kind: linear_map, inputs: 4, outputs: 4, singular_values: [1.0, 1.0]}
architecture: {kind: fully_connected, widths: [4], outputs: 4, activation: linear, bias: false}
initialization: {kind: unbalanced, scale: 0.1}
optimizer: {kind: gd, lr: 0.05, iterations: 2000}
record: {measures: [{kind: llc, nbeta: 1000.0, chains: 2, draws: 3000, at: {kind: list, include: [2000]}}]}
"""

    def applies(self, run: Any) -> list[str] | None:
        """Return which assumptions fail; None unless `llc` is recorded of a fully connected product of matrices."""
        net = run.config.architecture
        linear = getattr(getattr(net, "activation", None), "kind", None) == "linear"
        if not _samplers(run) or net.kind != "fully_connected" or not linear or net.bias:
            return None
        violations = plain_violations(net)
        if run.config.loss.kind not in ("mse", "half_mse"):
            violations.append(f"the loss is squared: it is {run.config.loss.kind}")
        if not any(own_labels or _fitted(run).any() for own_labels in _samplers(run).values()):
            violations.append(f"labels are fitted: no recorded loss is below {FITTED:g} of the first")
        return violations

    def predict(self, run: Any) -> Mapping[str, Floats | Curve]:
        """Return the learning coefficient at the ranks of the recorded states beside the mean over chains."""
        sizes = [run.dataset().d, *run.config.architecture.widths, run.config.architecture.outputs]
        values, steps = np.linalg.svd(linear_product(run), compute_uv=False), np.asarray(run.snapshot_iterations)
        ranks = (values > RANK * values.max()).sum(1)
        exact = np.array([dln_learning_coefficient(int(rank), sizes)[0] for rank in ranks])
        curves: dict[str, Floats | Curve] = {}
        for name, own_labels in _samplers(run).items():
            measured = np.asarray(run.measures[name])[:, 0]
            speaks = np.isfinite(measured) & (own_labels | _fitted(run))
            curves[name] = Curve(name, steps.astype(np.float64), measured, np.where(speaks, exact, np.nan))
        return curves


def _samplers(run: Any) -> dict[str, bool]:
    """Return the names of the recorded coefficients, and whether labels are the network's own outputs."""
    return {
        measure.name: measure.labels == "own" for measure in run.config.record.measures or [] if measure.kind == "llc"
    }


def _fitted(run: Any) -> Bools:
    """Return at which recorded states (K,) the labels are fitted."""
    losses = np.interp(run.snapshot_iterations, run.loss_iterations, run.losses)
    return np.asarray(losses <= FITTED * losses[0])


def linear_product(run: Any) -> Floats:
    """Return `W_L ... W_1` (K, outputs, inputs) of the recorded states of a fully connected linear network."""
    product = np.asarray(run.parameters["weight_1"], np.float64)
    for name in run.config.architecture.matrices[1:]:
        product = np.asarray(run.parameters[name], np.float64) @ product
    return product
