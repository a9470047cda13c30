"""Changes of the runs of each figure under which its claims fail."""

from __future__ import annotations

from tests.experiments.falsify import Change

CHANGES = {
    "chizat2019-scaling": [
        Change("an output not centred", ("architecture.centered=false",),
               ("moved-tanh", "moved-relu", "weights", "train", "test")),
    ],
    "chizat2019-fig2": [
        Change("outputs times 1/sqrt(m)", ("initialization.scale=0.05", "optimizer.lr=25.0"), ("width-16",),
               ("1/m, m = 16",)),
        Change("outputs times 1/sqrt(m)", ("initialization.scale=0.0353553", "optimizer.lr=12.5"), ("width-64",),
               ("1/m, m = 64",)),
        Change("the small scale for tau = 1", ("initialization.scale=1.4142", "optimizer.lr=6.25"),
               ("online", "rises"), ("SGD, tau = 1",)),
    ],
    "chizat2019-fig1": [
        Change("the large scale in the plane", ("initialization.scale=2",), ("recovered",), ("tau = 0.1",)),
        Change("the small scale in the plane", ("initialization.scale=0.1",), ("still",), ("tau = 2",)),
        Change("the smallest scale for tau = 1", ("initialization.scale=0.03", "optimizer.lr=10.0"),
               ("costs", "rises", "stopping", "linearised", "travelled"), ("scale 1",)),
    ],
}  # fmt: skip
