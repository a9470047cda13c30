"""For every claim on trained networks a change of the figure's runs under which it fails."""

from __future__ import annotations

from dynamics_cli.reproduction.catalogue import load_figure
from tests.experiments.falsify import Change

LARGE = ("initialization.scale=1.0",)


def roles(figure: str, *parts: str) -> tuple[str, ...]:
    """Return the roles of a figure in whose names all parts occur."""
    return tuple(role for role in load_figure(figure).configs if all(part in role for part in parts))


# fmt: off
CHANGES = {
    "arora2019-fig1": [
        Change("a large start", LARGE, ("many",), roles("arora2019-fig1", "many", "scale 0.001")),
        Change("a large start", LARGE, ("few", "few-least"), roles("arora2019-fig1", "few,", "scale 0.001")),
        Change("a large start of depth 4", LARGE, ("alike",), roles("arora2019-fig1", "N = 4")),
        Change("few entries", ("dataset.observed=700",), ("many-least",), roles("arora2019-fig1", "many,")),
        Change("few entries", ("dataset.observed=750",), ("many-2r", "many-least-2r"),
               roles("arora2019-fig1", "many of 2 r")),
        Change("a large start", LARGE, ("few-2r", "few-least-2r"), roles("arora2019-fig1", "few of 2 r")),
        Change("a large start in place of the smallest", LARGE, ("scale",),
               roles("arora2019-fig1", "few further,", "scale 0.0001")),
    ],
    "arora2019-fig2": [
        Change("many entries", ("dataset.observed=1250",), ("above-2", "above-3", "not-truth"),
               roles("arora2019-fig2", "few further,")),
        Change("a large start", LARGE, ("norm", "rank", "rank-less"), roles("arora2019-fig2", "few further,", "N = 3")),
        Change("a large start", LARGE, ("many",), roles("arora2019-fig2", "many further,")),
    ],
    "arora2019-fig3": [
        Change("two matrices for one", ("architecture.depth=2",), ("unseen", "ranks"), ("N = 1",)),
        Change("one matrix for three", ("architecture.depth=1",), ("gaps",), ("N = 3",)),
        Change("a single step", ("optimizer.iterations=1",), ("printed-1", "printed-2"), ("N = 1", "N = 2"), "too few"),
        Change("a large Gaussian start", ("initialization={kind: balanced_product, scale: 0.5}",), ("diagonal",),
               ("N = 2",)),
        Change("layers that are not balanced", ("initialization={kind: lecun, scale: 1.0}",),
               tuple(f"{what}-{depth}" for what in ("theorem", "balance") for depth in (2, 3, 4)),
               roles("arora2019-fig3", "balanced")),
    ],
}
# fmt: on
