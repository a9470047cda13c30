"""Figures of Min, Mallada and Vidal 2024."""
