"""Losses as kinds, each a formula.

Forms for torch, NumPy and compiled code, and all derivatives, are made from it.

Steppers, measures and theories call them. Begin with `squared.py`.
"""
