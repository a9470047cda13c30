"""Pure functions of arrays that describe a network or a loss curve: float64 NumPy in, numbers out.

Weights follow the papers: `W` is the hidden layer `(..., m, d)` with one neuron a row, `a` the output layer `(..., m)`;
leading axes are batches (snapshots, replicas). Nothing here knows about runs, plots or training.
"""
