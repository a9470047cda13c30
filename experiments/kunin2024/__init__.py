"""Kunin et al. (2024): get rich quick, unbalanced initialisation and rapid feature learning."""
