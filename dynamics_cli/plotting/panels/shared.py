"""What the planar panels share: legend handles by sign, round numbers, and room for labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray

from dynamics_cli.plotting.style import PALETTE

SIGN_NAMES = {1: r"$\mathsf{s}_j=+1$", -1: r"$\mathsf{s}_j=-1$", 0: "no output"}


def as_signs(signs: ArrayLike, count: int) -> NDArray[np.int64]:
    """Return the signs (m,) of `signs` as -1, 0, 1 (0 for NaN). Raises ValueError unless there are `count`."""
    array = np.asarray(signs, dtype=np.float64).ravel()
    if len(array) != count:
        raise ValueError(f"{len(array)} signs for {count} neurons")
    return np.sign(np.nan_to_num(array)).astype(np.int64)


def sign_handle(sign: int, *, marker: str = "", size: float = 7.5) -> Line2D:
    """Return a legend handle for neurons of this sign: a marker, or a line when there is none."""
    shape: dict[str, Any] = (
        {"marker": marker, "ls": "none", "ms": size, "mec": "white", "mew": 0.3} if marker else {"lw": 1.6}
    )
    return Line2D([], [], color=PALETTE.sign(sign), label=SIGN_NAMES[sign], **shape)


def round_up(value: float) -> float:
    """Return the smallest of 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8 times a power of ten >= `value`; 1 for 0 or non-finite."""
    if not np.isfinite(value) or value <= 0:
        return 1.0
    power = 10.0 ** np.floor(np.log10(value))
    return float(
        next((m * power for m in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if m * power >= value * (1 - 1e-9)), value)
    )


def free_angle(angles: ArrayLike, candidates: ArrayLike) -> float:
    """Return the first candidate angle (radians) at least 0.35 away from all `angles`, else the one farthest away."""
    options = np.asarray(candidates, dtype=np.float64)
    taken = np.asarray(angles, dtype=np.float64)
    taken = taken[np.isfinite(taken)]
    if len(taken) == 0:
        return float(options[0])
    away = np.abs((options[:, None] - taken[None, :] + np.pi) % (2 * np.pi) - np.pi).min(axis=1)
    return float(options[int(np.argmax(np.minimum(away, 0.35)))])
