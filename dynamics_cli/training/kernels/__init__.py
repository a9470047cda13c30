"""Compiled CPU kernels of the two-layer network: many iterations a call, gradients derived by hand.

Weights are stored with neurons last, `W` (d, m) and `a` (m,), so that the inner loops run over neurons and vectorise.
Every kernel accumulates the gradient and applies one rounded update per weight.
"""

from __future__ import annotations

UNROLLED = 4
"""Up to this many input columns the loops over columns are unrolled; kept here, where the cost model reads it too."""
