"""Times to a required confidence, balanced modes (Tachet des Combes et al. 2018, Corollary 3.3,
A.5, Section 5).

Time is (learning rate) x (updates) with samples drawn from the data set, where the class has the
share p. Under cross-entropy the confidence is `sigmoid(u)`; under the hinge loss the output u
itself is trained to reach 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expi, log1p

from dynamics_cli.measures.arrays import Floats


def required_logit(delta: ArrayLike) -> Floats:
    """Return `log((1 - delta) / delta)`, the logit of the confidence `1 - delta`, precise for
    tiny delta too.
    """
    share = np.asarray(delta, np.float64)
    return np.asarray(log1p(-share) - np.log(share))


def cross_entropy_time(
    delta: ArrayLike, u0: ArrayLike, norm: ArrayLike = 1.0, *, p: ArrayLike = 1.0
) -> Floats:
    """Return when a balanced mode that starts at the logit `u0 > 0` has confidence `1 - delta`
    (A.5, Eq. 15).

    It grows like `1 / delta`. Arguments broadcast; 0 where u0 suffices.
    """
    u = required_logit(delta)
    start = np.asarray(u0, np.float64)
    end = np.maximum(u, start)
    return np.asarray(
        (np.log(end / start) + expi(end) - expi(start)) / (2.0 * np.multiply(p, norm))
    )


def hinge_time(
    confidence: ArrayLike, u0: ArrayLike, norm: ArrayLike = 1.0, *, p: ArrayLike = 1.0
) -> Floats:
    """Return when a balanced mode under the hinge loss has the output `confidence` in (0, 1].

    This is `ln(confidence / u0) / (2 p ||x||)`. It stays finite up to 1. Arguments broadcast; 0
    where u0 suffices.
    """
    return np.asarray(
        np.maximum(np.log(confidence) - np.log(u0), 0.0) / (2.0 * np.multiply(p, norm))
    )
