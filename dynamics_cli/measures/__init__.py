"""Pure functions of arrays that describe a network or a loss curve: float64 NumPy in, numbers out.

Kinds of measures, panels, theories and figures call them. Weights follow the papers: `W` is the
hidden layer `(..., m, d)` with one neuron a row, `a` the output layer `(..., m)`; leading axes are
batches. Begin with `neurons.py`.
"""
