"""Lau et al. (2023): the local learning coefficient, a singularity-aware complexity measure."""
