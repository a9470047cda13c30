"""Optimizers and schedules of their step sizes as kinds.

Each update is a formula of weight, gradient and memory.

Steppers call them. Begin with `descent.py`; gradient flow is `gradient_flow.py`.
"""
