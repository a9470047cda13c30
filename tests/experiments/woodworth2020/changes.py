"""Changes of the runs of each figure under which its claims fail."""

from __future__ import annotations

from tests.experiments.falsify import Change

CHANGES = {
    "woodworth2020-fig2": [
        Change(
            "Adam",
            ("optimizer={kind: adam, lr: 1.0e-3, iterations: 20000, stop_below: 1.0e-11}", "record.loss_every=1"),
            ("limit", "conserved"),
            ("D = 2, alpha = 0.1",),
        ),
        Change("depth 3 at alpha = 3", ("architecture.depth=3",), ("lazy",), ("D = 2, alpha = 3",)),
        Change("a large alpha for the least", ("initialization.scale=0.5",), ("trained",), ("D = 2, alpha = 0.001",)),
    ],
    "woodworth2020-fig3": [
        Change(
            "Adam",
            ("optimizer={kind: adam, lr: 1.0e-3, iterations: 20000, stop_below: 1.0e-11}", "record.loss_every=1"),
            ("limit",),
        )
    ],
}
