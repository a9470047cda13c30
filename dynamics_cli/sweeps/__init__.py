"""Sweeps: a config at many settings and seeds.

Figures and audits train their runs by the same function, `train_all` of `training/many/train.py`.
A sweep is `grid.py` (axes), `jobs.py` (a config per grid point and seed), `sweep.py` (trains the
jobs left), `directory.py` (files and table).
"""
