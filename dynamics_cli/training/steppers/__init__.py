"""Steppers advance a network from state to state; their contract is in `base`."""
