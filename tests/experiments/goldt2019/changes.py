"""Changes of the runs of each figure under which its claims fail."""

from __future__ import annotations

from tests.experiments.falsify import Change

RELU = ("architecture.activation=relu", "dataset.architecture.activation=relu")
CHANGES = {
    "goldt2019-dynamics": [
        Change("ReLU students of a ReLU teacher", RELU, ("ode",), untrained="on the plateau nothing fits"),
        Change("training ends on the plateau", ("optimizer.iterations=15000",), ("specialises", "one-each")),
    ],
    "goldt2019-size": [
        Change("ReLU students of a ReLU teacher", RELU, ("slope",), untrained="five samples a dimension fit nothing")
    ],
    "goldt2019-overparam": [
        Change("training ends on the plateau", ("optimizer.iterations=3000", "record.snapshots.interval=100"),
               ("soft-grows", "both-stays", "trained-contrast"),
               untrained="with noisy labels the plateau of some is above a tenth of the first loss"),
    ],
}  # fmt: skip
