"""Charts, scenes and tables as arrays, and their Matplotlib artists in one style.

Files of pictures have reproducible bytes.

Figures of papers, `analysis`, `sweeps` and `pages` call it; it knows nothing of runs and papers.
Begin with `chart.py`.
"""
