"""Figures 7, 8 and 9: two positive points of correlation mu."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure as Drawing

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.measures.correlation import centres, correlation
from dynamics_cli.measures.neurons import cosines
from dynamics_cli.measures.regions import PLUS
from dynamics_cli.reproduction.claims import Claim, claim, finding, less_than, more_than, near
from dynamics_cli.reproduction.figure import Runs, Wanted

from .plane import Moment, draw_moments, least_cosine, moment
from .shared import read_states

CONFIG = "min2024/two_points.yaml"
ITERATIONS = (0, 7000, 21000)
"""Of the three panels (stated)."""


def at_angle(angle: float, *changes: str) -> Wanted:
    """Return the run on x_1 = (1, 0), x_2 = (sin a, cos a), with further changes."""
    x = f"[[1.0, 0.0], [{float(np.sin(angle))!r}, {float(np.cos(angle))!r}]]"
    return Wanted(CONFIG, (f"dataset.x={x}", *changes))


@dataclass(frozen=True)
class Evidence:
    """Three moments of a run on two points."""

    x: Floats
    y: Floats
    mu: float
    moments: list[Moment]
    outside: list[int]
    """Live neurons of V_+ outside S_+ at each moment."""
    cosine: list[float]
    """Least cosine at each moment of V_+ in S_+ with x_+."""
    stray: float
    """Mean cosine of those outside S_+ with x_+ at the last moment; NaN without any."""
    strays_apart: float
    """Least over them of the larger cosine with x_1 or x_2."""
    growth: float
    """Largest norm of a neuron outside S_+ at the end over that of one inside."""
    loss: float


def evidence(runs: Runs) -> Evidence:
    """Measure the three moments."""
    states = read_states(runs["descent"])
    moments = [moment(states, iteration) for iteration in ITERATIONS]
    x_plus, _ = centres(states.x, states.y)
    last = moments[2]
    strays = last.W[last.outside & last.plus]
    inside = last.W[last.plus & (last.found == PLUS)]
    each = np.stack([cosines(strays, point) for point in states.x]) if len(strays) else np.full((2, 1), np.nan)
    sizes = [float(np.linalg.norm(group, axis=1).max(initial=0.0)) for group in (strays, inside)]
    return Evidence(
        x=states.x,
        y=states.y,
        mu=correlation(states.x, states.y).mu,
        moments=moments,
        outside=[int(np.count_nonzero(now.outside & now.plus)) for now in moments],
        cosine=[least_cosine(now, now.plus & (now.found == PLUS), x_plus) for now in moments],
        stray=float(cosines(strays, x_plus).mean()) if len(strays) else float("nan"),
        strays_apart=float(each.max(axis=0).min()),
        growth=sizes[0] / sizes[1] if sizes[1] > 0 else float("nan"),
        loss=float(states.losses[-1]),
    )


def common_claims(found: Evidence, source: str, mu: float, *, aligned: int = 7000) -> list[Claim]:
    """Compare what all three figures share: positive neurons in S+ where the text sees them aligned, the end."""
    return [
        claim("mu", "The correlation of the two points", source, expected=near(mu, 1e-9), measured=found.mu),
        claim(
            "cosine",
            f"Positive neurons in S+ are aligned with x+ (least cosine at iteration {aligned})",
            source,
            expected=more_than(0.95),
            measured=found.cosine[ITERATIONS.index(aligned)],
        ),
        claim(
            "converges",
            "and then grow for final convergence (loss at iteration 21000)",
            source,
            expected=less_than(0.1),
            measured=found.loss,
        ),
    ]


def outside_findings(found: Evidence, source: str) -> list[Claim]:
    """Count the live positive neurons outside S+ at the three moments."""
    return [
        finding(f"outside-{now.iteration}", f"Outside S+ at iteration {now.iteration}", source, measured=count)
        for now, count in zip(found.moments, found.outside, strict=True)
    ]


def draw(found: Evidence) -> Drawing:
    """Draw the three moments."""
    return draw_moments(found.x, found.y, found.moments, ("Initialisation", "Alignment", "Late"), outside=True)


__all__ = ["Evidence", "at_angle", "common_claims", "draw", "evidence", "outside_findings"]
