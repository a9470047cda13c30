"""Optimizers and schedules of their step sizes as kinds, each update a formula of weight, gradient
and memory.

Steppers call them. Begin with `descent.py`; gradient flow is `gradient_flow.py`.
"""
