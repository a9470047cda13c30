"""How fast the neurons of a two-layer network grow and turn along gradient flow (Min et al.
2024, Appendix A.5).
"""

from __future__ import annotations

import numpy as np

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.measures.neurons import norms


def motion(W: Floats, gradient: Floats) -> tuple[float, float]:
    """Return the changes in norms and in directions of neurons `W` (m, d) for the `gradient` (m, d)
    of the loss.

    With `w_j' = -grad_j L` these are `sum_j d/dt ||w_j||^2` and `sum_j || d/dt (w_j / ||w_j||) ||`,
    in which a neuron that is 0 does not count.
    """
    lengths = norms(W)
    kept = lengths > 0
    units = W[kept] / lengths[kept, None]
    along = -np.sum(gradient[kept] * units, axis=1)  # d||w_j||/dt
    across = norms(gradient[kept] + along[:, None] * units)
    return float(np.sum(2 * along * lengths[kept])), float(np.sum(across / lengths[kept]))
