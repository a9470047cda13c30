"""Gromov (2023): grokking modular arithmetic."""
