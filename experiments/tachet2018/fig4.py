"""Figure 4: logit and confidence for several depths and norms.

`dyn reproduce tachet2018-fig4`. About 4 s, nearly all of them training with autograd.
"""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.figure import Figure as Drawing

from dynamics_cli.reproduction.claims import Claim, claim, finding, less_than
from dynamics_cli.reproduction.figure import Figure, Runs
from dynamics_cli.theory.deep_mode import deep_time, depth_crossing

from .deep_modes import ORIGIN, U0, DeepEvidence, configs, deep_claims, deep_evidence, draw_deep, time_to

LEVEL = 0.95


@dataclass(frozen=True)
class Evidence:
    """The curves, and what the closed form says of small starts."""

    deep: DeepEvidence
    crossings: dict[int, float]
    """N -> initial logit above which it reaches P = 0.99 before N = 2."""
    slow: dict[int, float]
    """N -> time to P = 0.99 from u0 = 0.001."""


def evidence(runs: Runs) -> Evidence:
    """Compare networks of depth 2 and 4 with Eq. 5."""
    return Evidence(
        deep=deep_evidence(runs),
        crossings={depth: depth_crossing(depth) for depth in (4, 8)},
        slow={depth: float(deep_time(4.59511985013459, 1e-3, depth)) for depth in (2, 4, 8)},
    )


def claims(found: Evidence) -> list[Claim]:
    """Compare with Section 4."""
    by = {(one.depth, one.norm): time_to(one, LEVEL) for one in found.deep.curves}
    return [
        *deep_claims(found.deep),
        claim(
            "deeper",
            f"The deeper the network, the faster the learning (times to P = 0.95, N = 4 to N = 2, u0 = {U0:g})",
            "Section 4",
            expected=less_than(1),
            measured=max(by[4, norm] / by[2, norm] for norm in (1.0, 2.0)),
        ),
        *[
            finding(
                f"crossing-{depth}",
                f"True only for u0 large enough: N = {depth} reaches P = 0.99 before N = 2 from this u0 on (||x|| = 1)",
                "Section 4, Eq. 5",
                measured=u0,
            )
            for depth, u0 in found.crossings.items()
        ],
        *[
            finding(f"slow-{depth}", f"Time to P = 0.99 from u0 = 0.001, N = {depth}", "Eq. 5", measured=t)
            for depth, t in found.slow.items()
        ],
    ]


def draw(found: Evidence) -> Drawing:
    """Draw both depths."""
    return draw_deep(found.deep)


FIGURE = Figure(
    id="tachet2018-fig4",
    caption="Solutions of Eq. 5 (lines) and deep diagonal networks really trained (dots), initial logit 0.05.",
    configs=dict(configs(2, 4)),
    origin=ORIGIN,
    evidence=evidence,
    claims=claims,
    draw=draw,
)
