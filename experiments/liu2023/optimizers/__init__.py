"""Optimizers that only this paper needs."""
