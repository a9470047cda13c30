"""Steppers: what advances a network; the contract is in `base`."""
