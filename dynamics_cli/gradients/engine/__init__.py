"""Compiled networks of layers.

Forward, backward, updates and curvature are functions of pointers, called by address.

The compiled stepper (`training/steppers/layers.py`) trains by `network.train`, and measures of
derivatives (`gradients/derivatives.py`) ask `curvature.Engine`. Begin to read at the diagram of
`network.py`, then `records.py`, which names all that it reads, and `units.py`, which makes
activations, losses and updates from formulas.
"""
