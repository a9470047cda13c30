"""Measures and snapshots as kinds: what runs record beside their losses, and when.

The loop of training and `dyn.measure` call `Measure.measure` with a `State`; derivatives at a state
are made once and shared (`derivatives.py`). Begin with `measures.py`, then `derivatives.py` and
`curvature.py`.
"""
