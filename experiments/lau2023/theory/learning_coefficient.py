"""Learning coefficients of deep linear networks, exactly (Aoyagi 2024)."""

from __future__ import annotations

from collections.abc import Sequence

from dynamics_cli.errors import InputError


def dln_learning_coefficient(rank: int, sizes: Sequence[int]) -> tuple[float, int]:
    """Return the learning coefficient and its multiplicity of a deep linear network whose true map
    has a rank.

    `sizes` are `H_0` (inputs), `H_1`, ..., `H_L` (outputs). Of the `M_l = H_l - rank`, the set of
    the k + 1 smallest with `max < min of the others` and `k max <= sum < k min of the others`
    decides; with its sum s, `M = ceil(s / k)` and `a = s - (M - 1) k` the coefficient is `(rank
    (H_0 + H_L) - rank^2) / 2 + a (k - a) / (4 k) - (k - 1) s^2 / (4 k) + sum_(i<j) M_i M_j / 2`,
    and the multiplicity `a (k - a) + 1` (Aoyagi 2024, Consideration on the learning efficiency of
    multiple-layered neural networks with linear units).

    Raises:
        InputError: the rank is negative or larger than a size, or there are fewer than two sizes.
    """
    if len(sizes) < 2 or not 0 <= rank <= min(sizes):
        raise InputError(
            f"a product of matrices of sizes {', '.join(map(str, sizes))} has no rank {rank}"
        )
    M = sorted(size - rank for size in sizes)

    def decides(k: int) -> bool:
        chosen = M[: k + 1]
        left = M[k + 1 :]
        below = not left or (chosen[-1] < left[0] and sum(chosen) < k * left[0])
        return below and sum(chosen) >= k * chosen[-1]

    k = next(k for k in range(1, len(M)) if decides(k))
    s = sum(M[: k + 1])
    squares = sum(m * m for m in M[: k + 1])
    a = s - (-(-s // k) - 1) * k
    regular = (rank * (sizes[0] + sizes[-1]) - rank**2) / 2
    return regular + a * (k - a) / (4 * k) - (k - 1) * s * s / (4 * k) + (
        s * s - squares
    ) / 4, a * (k - a) + 1
