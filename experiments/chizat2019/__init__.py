"""Chizat, Oyallon, Bach (2019): lazy training."""
