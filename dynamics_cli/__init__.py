"""`dyn`: train, plot and reproduce experiments on the learning dynamics of neural networks."""

from __future__ import annotations

__version__ = "0.1.0"
