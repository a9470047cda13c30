"""Every claim of this paper fails under some named change of its own runs."""

from __future__ import annotations

from dynamics_cli._bundled.experiments.cohen2021.momentum import STEPS

from tests.experiments.falsify import Change

SLOW = "the Chebyshev polynomial is not fitted in these iterations, at the figure's own steps neither"
LINEAR = "20 linear layers are not fitted in these iterations, at the figure's own steps neither"
CHEBYSHEV, CLASSES = ("chebyshev 0.4", "chebyshev 0.2"), ("classes 0.3", "classes 0.25")
DEEP = ("deep_linear 2.0e-4", "deep_linear 1.0e-4")


def edge(name: str, *more: str) -> tuple[str, ...]:
    return tuple(f"{name}-{claim}" for claim in ("sharpens", "band-1", "band-2", *more))


FALLS = edge("chebyshev", "after", "falls", "half")
# fmt: off
CHANGES = {
    "cohen2021-fig1": [
        Change("a tenth of the step", ("optimizer.lr=0.02",), FALLS, CHEBYSHEV, SLOW),
        Change("a quarter of the step", ("optimizer.lr=0.05",), edge("classes", "falls", "half"), CLASSES),
        Change("a tenth of the step", ("optimizer.lr=1e-5",), edge("deep_linear", "falls", "half"), DEEP, LINEAR),
        Change("momentum", ("optimizer.momentum=0.9", "optimizer.lr=0.1"), ("chebyshev-before",), CHEBYSHEV),
        Change("momentum", ("optimizer.momentum=0.9", "optimizer.lr=0.05"), ("classes-before",), CLASSES),
        Change("momentum", ("optimizer.momentum=0.99", "optimizer.lr=1e-5"), ("deep_linear-before",), DEEP, LINEAR),
    ],
    "cohen2021-flow": [
        Change("a line instead of a polynomial", ("dataset.degree=1", "optimizer.until=300.0", "optimizer.points=30"),
               ("sharpens",), ("flow",)),
        Change("large output weights", ("initialization.scales=[1.9, 3.0]", "optimizer.until=30.0",
               "optimizer.points=3"), ("progressive",), ("flow",), SLOW),
        Change("momentum", ("optimizer.momentum=0.5",), ("follows-0.4", "follows-0.2", "leaves-0.4", "leaves-0.2"),
               ("0.4", "0.2")),
    ],
    "cohen2021-momentum": [
        Change("a tenth of the step", ("optimizer.lr=0.01",),
               tuple(f"{kind}-{beta}{more}" for kind, beta in STEPS for more in ("", "-reaches"))),
    ],
    "cohen2021-taylor": [
        Change("momentum", ("optimizer.momentum=0.9", "optimizer.lr=0.19"), ("before",), ("run",)),
        Change("a tenth of the step", ("optimizer.lr=0.04",), ("diverges", "stays", "resumes", "new-edge"), (), SLOW),
    ],
    "cohen2021-central": [
        Change("momentum", ("optimizer.momentum=0.9",), ("loss", "distance", "variance"), ("descent",)),
        Change("a fifth of the step", ("optimizer.lr=0.02",), ("edge-descent", "variance"), ("descent",),
               "700 iterations of that step end too early"),
    ],
}
# fmt: on
