"""Training: from a config to a finished run directory.

It holds the problem made of a config, the steppers that train it and the loop that records. `api`,
sweeps and reproduction call `session.obtain_run` with a plan. Begin with `steppers/base.py` (the
contract of a stepper), then `loop.py` and `session.py`; `backends.py` says which stepper trains
what.
"""
