"""Chizat, Bach (2020): implicit bias of wide two-layer networks trained with the logistic loss."""
