"""Goldt et al. (2019): online learning of two-layer networks, teacher and student, and its ODE."""
