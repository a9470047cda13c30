"""Woodworth et al. (2020): kernel and rich regimes of diagonal linear networks."""
