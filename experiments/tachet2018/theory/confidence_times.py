"""Times to a required confidence, balanced modes (Tachet des Combes et al. 2018, Corollary 3.3, A.5, Section 5).

Time is (learning rate) x (updates) with samples drawn from the data set, of which the class is a share p. Under
cross-entropy the confidence is `sigmoid(u)`; under the hinge loss the output u itself is trained to reach 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log1p

from dynamics_cli.measures.arrays import Floats

from .arguments import as_positive, as_share
from .modes import time_to_logit


def required_logit(delta: ArrayLike) -> Floats:
    """Return `log((1 - delta) / delta)`, the logit at which the confidence is `1 - delta`, precise for tiny delta too.

    Raises ValueError unless `0 < delta < 1`.
    """
    share = as_share(delta, "delta")
    return np.asarray(log1p(-share) - np.log(share))


def cross_entropy_time(delta: ArrayLike, u0: ArrayLike, norm: ArrayLike = 1.0, *, p: ArrayLike = 1.0) -> Floats:
    """Return when a balanced mode that starts at the logit `u0 > 0` has confidence `1 - delta` (A.5).

    It grows like `1 / delta`. Arguments broadcast; 0 where u0 suffices. Raises ValueError unless `0 < delta < 1`, and
    u0, norm and p are positive.
    """
    y0 = np.sqrt(as_positive(u0, "u0") * as_positive(norm, "norm"))
    return time_to_logit(required_logit(delta), y0, y0 / norm, norm, p=p)


def hinge_time(confidence: ArrayLike, u0: ArrayLike, norm: ArrayLike = 1.0, *, p: ArrayLike = 1.0) -> Floats:
    """Return when a balanced mode under the hinge loss has the output `confidence` in (0, 1].

    This is `ln(confidence / u0) / (2 p ||x||)`. It stays finite up to 1. Arguments broadcast; 0 where u0
    suffices. Raises ValueError for arguments out of range.
    """
    rate = 2.0 * as_positive(p, "p") * as_positive(norm, "norm")
    gain = np.log(as_share(confidence, "confidence", closed=True)) - np.log(as_positive(u0, "u0"))
    return np.asarray(np.maximum(gain, 0.0) / rate)


def time_ratio(norm1: ArrayLike, norm2: ArrayLike, p: ArrayLike) -> Floats:
    """Return `(||x_1|| / ||x_2||) p / (1 - p)`, the leading `t_2* / t_1*` (Corollary 3.3); `p` is the share of D_1.

    Arguments broadcast. Raises ValueError unless norms are positive and `0 < p < 1`.
    """
    share = as_share(p, "p")
    return np.asarray(as_positive(norm1, "norm1") / as_positive(norm2, "norm2") * share / (1.0 - share))


def exact_time_ratio(
    delta: ArrayLike, u0: ArrayLike, v0: ArrayLike, norm1: ArrayLike, norm2: ArrayLike, p: ArrayLike
) -> Floats:
    """Return `t_2* / t_1*` from logits `u0 > 0` on D_1 and `-v0 < 0` on D_2 (A.5).

    For `u0 <= v0` it is `time_ratio` times `1 - t_v / t*`. Give `v0` as the positive `|v_0|`. Arguments broadcast.
    Raises ValueError as `time_ratio` and `cross_entropy_time`, and when D_1 has the confidence from the start.
    """
    share = as_share(p, "p")
    first = cross_entropy_time(delta, u0, norm1, p=share)
    if not (first > 0).all():
        raise ValueError("u0 already has the confidence 1 - delta: t_1* is 0")
    return np.asarray(cross_entropy_time(delta, v0, norm2, p=1.0 - share) / first)
