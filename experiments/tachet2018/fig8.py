"""Figure 8: as Figure 4 for N = 4 and N = 8.

`dyn reproduce tachet2018-fig8`. About 4 s, nearly all of them training with autograd.
"""

from __future__ import annotations

from dynamics_cli.reproduction.claims import Claim, claim, less_than
from dynamics_cli.reproduction.figure import Figure

from .deep_modes import ORIGIN, U0, DeepEvidence, configs, deep_claims, deep_evidence, draw_deep, time_to


def claims(found: DeepEvidence) -> list[Claim]:
    """Compare with Appendix B."""
    by = {(one.depth, one.norm): time_to(one, 0.95) for one in found.curves}
    return [
        *deep_claims(found),
        claim(
            "deeper",
            f"The deeper the network, the faster the learning (times to P = 0.95, N = 8 to N = 4, u0 = {U0:g})",
            "Section 4, Appendix B",
            expected=less_than(1),
            measured=max(by[8, norm] / by[4, norm] for norm in (1.0, 2.0)),
        ),
    ]


FIGURE = Figure(
    id="tachet2018-fig8",
    caption="Solutions of Eq. 5 (lines) and deep diagonal networks really trained (dots), initial logit 0.05.",
    configs=dict(configs(4, 8)),
    origin=ORIGIN,
    evidence=deep_evidence,
    claims=claims,
    draw=draw_deep,
)
