"""The run directory: `RunWriter` writes it safely, `Run` reads it, `verify_run` checks it.

`training` writes runs; sweeps, figures, panels and commands read them. Begin with `store/arrays.py`
and `store/checkpoints.py`, which describe the files, then `writer.py`.
"""
