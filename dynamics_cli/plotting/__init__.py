"""Charts, scenes and tables as arrays, their Matplotlib artists in one style, and files with
reproducible bytes.

Figures of papers, `analysis`, `sweeps` and `pages` call it; it knows nothing of runs and papers.
Begin with `chart.py`.
"""
