"""When the phases of training end: Lemmas 2 to 4 and Fact 1 of Boursier et al. 2022."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli.measures.arrays import Floats

from .alignment import D_norms


@dataclass(frozen=True)
class PhaseTimes:
    """Ends of the phases, in units of gradient-flow time.

    "First" is the sign with the larger `||D||` (the paper assumes it to be +), "second" the other
    sign.
    """

    aligned: float
    """`t_1 = -eps ln(lambda) / ||D_second||` (Lemma 2)."""
    first_fitted: float
    """Bound on t_2, start of the saddle: `-(1 + 3 eps) ln(lambda) / ||D_first||` (Lemma 3, Fact
    1).
    """
    saddle_left: float
    """End of the saddle: `-(1 - eps) ln(lambda) / ||D_second||` (Fact 1)."""
    second_fitted: float
    """Bound on t_3: `-(1 + 3 r eps) ln(lambda) / ||D_second||` with `r = ||D_first|| /
    ||D_second||` (Lemma 4).
    """


def phase_times(
    x: Floats, y: Floats, lambda_: float, epsilon: float, *, loss_factor: float = 1.0
) -> PhaseTimes:
    """Return the times of Lemmas 2-4 and Fact 1 for initial weights `w_j = lambda g_j`, `g_j ~ N(0,
    I)` (Eq. 4).

    `epsilon` is the constant of the lemmas, at most `largest_epsilon(x, y)` there, and 0 for the
    leading order. `loss_factor` is 1 for the loss of the paper and 2 for the mean squared error
    (half the time). Lambda is in (0, 1), and labels have both signs.
    """
    second, first = sorted(D_norms(x, y))
    log = -float(np.log(lambda_)) / loss_factor
    return PhaseTimes(
        aligned=epsilon * log / second,
        first_fitted=(1 + 3 * epsilon) * log / first,
        saddle_left=(1 - epsilon) * log / second,
        second_fitted=(1 + 3 * (first / second) * epsilon) * log / second,
    )


def largest_epsilon(x: Floats, y: Floats) -> float:
    """Return the largest epsilon that the conditions of Appendix B.2 allow for these data.

    They are `(1 + 3 eps) max(1 - alpha, 1/r) <= 1 - eps` and `(1 + 3 r eps)(1 - beta) <= 1 - eps`.
    The paper prints `alpha = min y_k^2 / (2 ||D_+||^2)`; the proof of Lemma 10, where it is used,
    needs `y_k^2 / (2 n^2 ||D_+||^2)` (leaving point k out of D_+ removes `y_k x_k / n`), and so
    does beta. The latter are computed, with norms of the inputs for orthogonal inputs of any norm;
    labels have both signs.
    """
    shares = (
        y * np.linalg.norm(x, axis=1) / len(y)
    ) ** 2 / 2.0  # half of the share of point k in ||D||^2
    of_signs = zip(D_norms(x, y), (shares[y > 0].min(), shares[y < 0].min()), strict=True)
    (second, least_second), (first, least_first) = sorted(of_signs)
    alpha = least_first / first**2
    beta = least_second / second**2
    largest = max(1.0 - alpha, second / first)
    from_first = (1.0 - largest) / (1.0 + 3.0 * largest)
    from_second = beta / (1.0 + 3.0 * (first / second) * (1.0 - beta))
    return float(min(from_first, from_second))
