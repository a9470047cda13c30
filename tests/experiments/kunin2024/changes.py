"""Changes of the runs of each figure under which its claims fail."""

from __future__ import annotations

from dynamics_cli._bundled.experiments.kunin2024.relu import PLANE, PRINTED, SMALL

from tests.experiments.falsify import Change

COARSE = ("optimizer={kind: gd, lr: 0.2, iterations: 100}",)
MOMENTUM = ("optimizer={kind: gd, lr: 0.01, iterations: 2000, momentum: 0.9}",)
BALANCED = ("initialization={kind: values, hidden_weight: [[-1.0, 0.0]], output_weight: [1.0]}",)
NARROW = tuple(f"map 0 {j}" for j in SMALL[1])
CHANGES = {
    "kunin2024-fig1": [
        Change("steps of 0.02", ("optimizer.lr=0.02", "optimizer.iterations=5000"), ("conserved",), tuple(PLANE)),
        Change("downstream starts", ("initialization.scales=[10.0, 0.1]",), ("signs", "aligned"), ("rich", "upstream")),
        Change(
            "balanced starts",
            ("initialization.scales=[1.0, 1.0]",),
            ("upstream", "flips-up", "flips-down", "where", *(id for id in PRINTED if id != "distance")),
            NARROW,
        ),
        Change(
            "upstream starts",
            ("initialization.scales=[0.1, 10.0]",),
            ("lazy-first", "rich-later", "distance"),
            NARROW,
        ),
    ],
    "kunin2024-fig3": [
        Change("steps of 0.2", COARSE, ("conserved", "exact")),
        Change("momentum", MOMENTUM, ("exact", "conserved")),
        Change("a balanced start", BALANCED, ("distances", "lazy-first", "rich-later", "sooner", "never")),
    ],
    "kunin2024-fig4": [
        Change("momentum", MOMENTUM, ("exact", "ends")),
        Change(
            "an early end",
            ("optimizer.until=2.0",),
            ("one-solution", "ends", "fits"),
            untrained="where a sample is fitted the predictor is at its end",
        ),
    ],
}
