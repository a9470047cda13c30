"""Measures of networks that `dyn` did not train.

`dyn.measure`, and the measuring half of `dyn.Recorder`.

A module of torch becomes an architecture (`network.py`), a function of outputs and labels a loss
(`losses.py`). Rows of `Samples.x` are numbers of samples, by which inputs of any form are looked up
(`data.py`). Begin with `measure.py`, then `instrument.py`.
"""
