"""Integrators of gradient flow; the contract is in `base`."""
