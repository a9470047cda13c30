"""Progressive sharpening along gradient flow, and how long gradient descent follows it (Cohen et
al. 2021).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit

from .edge import NAN, Edge, edge, sharpness
from .theory.central_flow import trained_weights

STEPS = {"0.4": 3750, "0.2": 7500}
"""Step size -> iterations, to time 1500, as in Figure 1."""
EVERY = 10.0
"""Time between two states that are compared."""


@dataclass(frozen=True)
class Path:
    """Gradient descent beside the flow."""

    edge: Edge
    distance: kit.Floats
    """(T,) from the flow, over how far that has moved from the start; NaN at 0."""


@dataclass(frozen=True)
class Evidence:
    """Gradient flow at `times` (T,), and gradient descent beside it."""

    times: kit.Floats
    sharpness: kit.Floats
    paths: list[Path]


def distance_at(path: Path, multiple: float) -> float:
    """Return the distance at a multiple of the time of the crossing; NaN where that is after the
    end.
    """
    i = multiple * path.edge.crossing * path.edge.lr / EVERY
    return float(path.distance[round(i)]) if i <= len(path.distance) - 1 else NAN


def evidence(runs: kit.Runs) -> Evidence:
    """Measure how far gradient descent is from the flow."""
    flow = runs["flow"]
    flowed = trained_weights(flow)
    moved = np.linalg.norm(flowed - flowed[0], axis=1)
    paths = []
    for lr, run in runs.items():
        if lr == "flow":
            continue
        every = round(EVERY / float(lr))
        chosen = trained_weights(run)[
            np.isin(run.snapshot_iterations, np.arange(0, run.iterations + 1, every))
        ]
        count = min(len(chosen), len(flowed))
        distance = np.full(len(flowed), NAN)
        distance[1:count] = (
            np.linalg.norm(chosen[1:count] - flowed[1:count], axis=1) / moved[1:count]
        )
        paths.append(Path(edge(run), distance))
    return Evidence(
        times=np.arange(len(flowed), dtype=np.float64) * EVERY,
        sharpness=flow.measures["sharpness"].reshape(len(flowed)),
        paths=paths,
    )


def claims(e: Evidence) -> list[kit.Claim]:
    bounds = [path.edge.bound for path in e.paths]
    rises = e.sharpness.max() > max(bounds)
    return [
        kit.claim(
            "sharpens",
            r"Along gradient flow the sharpness rises beyond $2/\eta$ of every step size (its "
            r"maximum over the largest $2/\eta$)",
            "progressive sharpening (recalled)",
            kit.more_than(1),
            e.sharpness.max() / max(bounds),
        ),
        kit.claim(
            "progressive",
            r"The sharpness of gradient flow begins below $2/\eta$ of every step size (first over "
            r"the smallest $2/\eta$, where it rises so)",
            "progressive sharpening (recalled)",
            kit.less_than(1),
            e.sharpness[0] / min(bounds) if rises else NAN,
        ),
        *[
            kit.claim(
                f"follows-{path.edge.lr:g}",
                rf"$\eta$ = {path.edge.lr:g}: gradient descent follows the flow until "
                r"its sharpness reaches $2/\eta$ (distance there over that moved)",
                "gradient flow (recalled)",
                kit.at_most(0.05),
                distance_at(path, 1),
            )
            for path in e.paths
        ],
        *[
            kit.claim(
                f"leaves-{path.edge.lr:g}",
                rf"$\eta$ = {path.edge.lr:g}: gradient descent leaves the flow at the "
                "edge (distance at twice that time over the distance at the crossing)",
                "gradient flow (recalled)",
                kit.at_least(5),
                distance_at(path, 2) / distance_at(path, 1),
            )
            for path in e.paths
        ],
    ]


def draw(e: Evidence) -> kit.Drawing:
    name = r"gradient descent, $\eta = {:g}$".format
    edges = [path.edge for path in e.paths]
    return kit.charts(
        kit.chart(
            "Progressive sharpening",
            r"sharpness; dashed: $2/\eta$",
            kit.line(e.times, e.sharpness, "gradient flow", "theory"),
            *(
                sharpness(edge.lr * edge.iterations, edge, f"C{k}", name(edge.lr))
                for k, edge in enumerate(edges)
            ),
            limits=(0, None),
        ),
        kit.chart(
            "Distance; dotted: crossing",
            "distance / distance moved",
            [kit.line(e.times, path.distance, look="1.0") for path in e.paths],
            [kit.upright(edge.crossing * edge.lr, look="dotted 0.9") for edge in edges],
            log="y",
        ),
        xlabel=r"time ($\eta \times$ iteration)",
    )


def _descent(lr: str, count: int) -> kit.Wanted:
    every = f"record.snapshots.interval={round(EVERY / float(lr))}"
    return kit.Wanted(
        "cohen2021/chebyshev.yaml", (f"optimizer.lr={lr}", f"optimizer.iterations={count}", every)
    )


FIGURE = kit.Figure(
    passes={
        "one_step": {
            "sharpens progressive": "Gradient flow, which takes no steps, is left as it is."
        }
    },
    id="cohen2021-flow",
    caption=(
        "A Chebyshev polynomial of degree 4. Left: sharpness along gradient flow, and of gradient"
        " descent at several step sizes against time; each leaves the flow's curve at its own"
        " 2/eta. Right: distance of the weights from those of the flow, over the distance that the"
        " flow has moved; dotted lines where 2/eta is reached."
    ),
    configs={
        **{lr: _descent(lr, count) for lr, count in STEPS.items()},
        "flow": "cohen2021/chebyshev_flow.yaml",
    },
    presets={
        "full": {
            "0.1": _descent("0.1", 18000),
            "flow": kit.Wanted(
                "cohen2021/chebyshev_flow.yaml", ("optimizer.until=1800.0", "optimizer.points=180")
            ),
        }
    },
)
