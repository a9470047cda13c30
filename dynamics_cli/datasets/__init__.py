"""Data sets as kinds, and in `files` the formats and the store of data files.

The problem of a run (`training/problem.py`) calls `samples`, which calls a kind's `load`; `dyn
data` fills the store. Begin with `points.py`, then `teachers.py`.
"""
