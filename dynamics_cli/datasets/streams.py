"""Independent random streams of one seed, so that changing how one is used leaves the others as they were."""

from __future__ import annotations

import numpy as np

_STREAMS = {"data": 0, "initialization": 1, "batches": 2, "noise": 3}


def stream(seed: int, name: str, *position: int) -> np.random.Generator:
    """Return the generator of the stream `name` of `seed`, at `position` (for batches: the epoch).

    A generator depends on (seed, name, position) alone, never on what was drawn before.
    """
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, _STREAMS[name], *position])))
