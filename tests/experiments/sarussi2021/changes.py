"""Changes of the runs of each figure under which its claims fail."""

from __future__ import annotations

from tests.experiments.falsify import Change

SCALE = ("initialization.scale=10",)
PARTS = ("training", "held-out", "training-enters", "held-out-enters", "linear")
MORE = ("1-7", "2-3", "4-9", "5-8", "6-0")
CHANGES = {
    "sarussi2021-fig1": [
        Change("the large scale for both", SCALE, ("small-linear", "small-outside", "small-clusters"), ("small",)),
        Change("the small scale for both", ("initialization.scale=1.0e-3",), ("large-not-linear", "large-clusters"),
               ("large",)),
        Change("a step of 1e-9", ("optimizer.lr=1e-9",), ("separated",),
               untrained="that the data are separated fails only where they are not"),
    ],
    "sarussi2021-fig2": [
        Change("a large scale", SCALE, tuple(f"{pair}-{part}" for pair in ("0-1", "3-5") for part in PARTS),
               ("0-1", "3-5"), untrained="digits 3 and 5 take longer from there; 0 and 1 are fitted"),
    ],
    "sarussi2021-fig4": [
        Change("a hundred steps", ("optimizer.iterations=100",),
               ("directions", "boundary", "margin-grows", "symmetric-directions"), ("limit", "symmetric")),
        Change("a large scale and step", ("initialization.scale=100", "optimizer.lr=5.0"),
               ("par-w", "par-u", "margin-largest", "symmetric-par")),
    ],
    "sarussi2021-fig6": [
        Change("a large scale", SCALE, tuple(f"{pair}-{part}" for pair in MORE for part in PARTS), MORE,
               untrained="some pairs take longer from there"),
    ],
    "sarussi2021-fig7": [
        Change("a large scale", SCALE, ("0-1-ratio", "0-1-angle", "3-5-ratio", "3-5-angle"),
               untrained="digits 3 and 5 take longer from there; 0 and 1 are fitted"),
    ],
    "sarussi2021-fig8": [
        Change("a large scale, longer", ("initialization.scale=10", "optimizer.epochs=500"),
               tuple(f"{group}-{dim}" for group in "wu" for dim in (10, 50, 100))),
    ],
    "sarussi2021-fig9": [
        Change("a large scale", ("initialization.scale=30",), ("agreement-w", "agreement-u", "nar", "limit")),
        Change("random labels", ("dataset.random_labels=1.0",), ("accuracy",), untrained="no fit exists"),
        Change("no outlier, but one more point of its class", ("dataset.outliers=[[0.0, 3.0]]",), ("not-par",)),
    ],
    "sarussi2021-extra-convergence": [
        Change("random labels", ("dataset.random_labels=1.0",), ("polynomial-small", "polynomial-narrow"),
               untrained="one of the three networks cannot fit them"),
        Change("a step of 1e-5", ("optimizer.lr=1e-5",), tuple(f"polynomial-{n}" for n in ("small", "large", "narrow")),
               untrained="the hundred neurons of a large start fit even random labels in a power below 2"),
    ],
}  # fmt: skip
