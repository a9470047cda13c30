"""Losses as kinds, each a formula from which torch, NumPy and compiled forms and all derivatives
are made.

Steppers, measures and theories call them. Begin with `squared.py`.
"""
