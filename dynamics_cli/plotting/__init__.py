"""Pictures of arrays: one style, reusable panels, files with reproducible bytes.

Panels draw on the axes that they are given and return their artists. They know nothing of runs, papers or files.
"""
