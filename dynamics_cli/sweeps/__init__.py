"""Sweeps: a config at many settings and seeds; and the one function, `train_all`, that trains
several runs.

`dyn sweep`, the figures of papers and their audits call it. Begin to read in `train.py`; a sweep is
`grid.py` (axes), `jobs.py` (a config per grid point and seed), `sweep.py` (trains the jobs left),
`directory.py` (files and table).
"""
