"""Figures of papers as programs: the runs they need, the claims they check, the picture they draw.

`dyn reproduce`, `dyn audit` and the pages of papers call it. Begin to read in `figure.py` (what a
figure declares) and `reproduce.py` (from its id to its files); `claims.py` holds ranges and
verdicts.
"""
