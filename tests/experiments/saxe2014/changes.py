"""Changes of the runs of each figure under which its claims fail."""

from __future__ import annotations

from dynamics_cli.reproduction.catalogue import load_figure
from tests.experiments.falsify import Change

TWO, THREE = tuple(f"2 {s}" for s in ("0.1", "0.0316", "0.01", "0.001")), ("3 0.1", "3 0.0316")
DEEPER = ("4 matrices", "5 matrices")
DEEP = tuple(role for role in load_figure("saxe2014-fig4").configs if role.endswith("/n"))
NEAR_FLOW = tuple(role for role in load_figure("saxe2014-fig4").configs if not role.endswith("/n"))
SLOW = "optimizer.lr=0.00625"  # 0.1/n at 16 matrices, at which none diverges
ORTHOGONAL, GAUSSIAN = (
    tuple(role for role in load_figure("saxe2014-fig6a").configs if role.startswith(f"{start}, n = 16"))
    for start in ("orthogonal", "Gaussian")
)
SHORT = "500 iterations fit the strong modes alone, in the figure's own runs too"
# fmt: off
CHANGES = {
    "saxe2014-fig3": [
        Change("a start a hundred times as strong", ("initialization.scale=1.0e-4",),
               ("exact", "exact-half"), ("decoupled", "decoupled, half the step"), SHORT),
        Change("the same step twice", ("optimizer.lr=2.5e-4", "optimizer.iterations=1000"), ("exact-order",),
               ("decoupled",), SHORT),
        Change("weights ten times as large", ("initialization.scale=2.5e-3",), ("random",), ("linear",)),
        Change("large weights", ("initialization.scale=2.0", "optimizer.lr=1e-4", "optimizer.iterations=2000"),
               ("order",), ("linear",)),
        Change("no tanh", ("architecture.activation=linear",), ("tanh",), ("tanh",)),
    ],
    "saxe2014-fig4": [
        Change("a start ten times as strong", ("initialization.scale=0.01",), ("trained",), NEAR_FLOW),
        Change("three iterations", ("optimizer.iterations=3",), ("saturates-networks", "steps"), DEEP, "too few"),
    ],
    "saxe2014-silent-alignment": [
        Change("weights 31.6 times as large", ("initialization.scales=[31.6, 31.6]",),
               ("half", "slope", "same", "silent"), TWO),
        Change("inputs that are not white", ("dataset.n=40",), ("final-2",), TWO),
        Change("inputs that are not white", ("dataset.n=40",), ("final-3",), THREE),
        Change("weights four times as large", ("initialization.scale=0.4",), ("final-4", "final-5"), DEEPER),
        Change("white inputs after all", ("dataset.anisotropy=0.0",), ("anisotropic",),
               tuple(f"gamma {gamma}" for gamma in (0.0, 0.25, 0.5, 0.75, 1.0))),
        Change("balanced orthogonal weights", ("initialization.kind=balanced_product",),
               ("three-half", "three-aligned", "three-first"), THREE),
        Change("lazy weights", ("initialization.scale=3.0", "optimizer.lr=0.005", "optimizer.iterations=20000"),
               ("relu-last", "relu-first"), ("relu",)),
    ],
    "saxe2014-fig6a": [
        Change("Gaussian weights at one step", ("initialization.kind=lecun", SLOW), ("flat", "sooner"), ORTHOGONAL),
        Change("orthogonal weights", ("initialization.kind=orthogonal",), ("grows",), GAUSSIAN),
    ],
}
# fmt: on
