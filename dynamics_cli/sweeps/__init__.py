"""Sweeps: a config at many settings and seeds, trained together where that is possible."""
