"""Figure 2: the state of training on two orthogonal points at four iterations.

`dyn reproduce boursier2022-fig2`. About 2 s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure as Drawing

from dynamics_cli.measures.clusters import Clusters, cluster_directions, distinct_kinks
from dynamics_cli.measures.neurons import angle_of, balancedness, parameter_norm_squared
from dynamics_cli.reproduction.claims import (
    Claim,
    at_most,
    claim,
    exactly,
    finding,
    less_than,
    more_than,
    near,
)
from dynamics_cli.reproduction.figure import Figure, Runs

from .line_panels import draw_states
from .orthogonal import CONFIG, ORIGIN, VARIANTS, Setting, assumption_claim, least_cosines, read_setting, violations
from .states import LineState, horizon, line_state
from .theory.minimum_norm import minimum_norm_value

ITERATIONS = (0, 4000, 8000, 15000)
"""Of panels a to d."""
FITTED = 0.01
"""A label counts as fitted when the output is this close to it: about the size of a dot in the figure."""


@dataclass(frozen=True)
class Evidence:
    """Four states, and what was measured in them."""

    setting: Setting
    states: list[LineState]
    """At `ITERATIONS`."""
    last: LineState
    cosines: tuple[float, float]
    """At the end of phase 1, least of `S_{+,1}` with `D_+` and of `S_{-,1}` with `-D_-`."""
    first_errors: tuple[float, float]
    """At the end of phase 2: largest |h - y| on the labels fitted first, largest |h| on the others."""
    errors: float
    """At the end of phase 3: largest |h - y|."""
    kinks: list[float]
    """Distinct kinks of neurons of non-negligible norm, at the end of phase 3."""
    groups: list[Clusters]
    """Groups of such neurons at the ends of phases 2 and 3."""
    norm_squared: float
    """`||theta||^2` of the last state."""
    least_norm_squared: float
    """That of the minimum-norm interpolator."""
    turned: float
    """Largest angle in degrees by which an active neuron turned after the end of phase 2."""
    imbalance: float
    """Largest `|a_j^2 - ||w_j||^2|` of the last state."""


def evidence(runs: Runs) -> Evidence:
    """Measure the four states of the orthogonal run."""
    run = runs["orthogonal"]
    setting = read_setting(run)
    states = [line_state(run, iteration) for iteration in ITERATIONS]
    last = line_state(run, horizon(run))
    _, aligned, first, second = states
    fitted = setting.y > 0 if np.linalg.norm(setting.D_plus) > np.linalg.norm(setting.D_minus) else setting.y < 0
    groups = [cluster_directions(state.W, signs=state.a) for state in (first, second)]
    usable = setting.usable
    return Evidence(
        setting=setting,
        states=states,
        last=last,
        cosines=least_cosines(setting, aligned),
        first_errors=(
            float(np.abs(first.h - setting.y)[fitted].max(initial=0.0)),
            float(np.abs(first.h)[~fitted].max(initial=0.0)),
        ),
        errors=float(np.abs(second.h - setting.y).max()),
        kinks=distinct_kinks(second.W).tolist(),
        groups=groups,
        norm_squared=float(parameter_norm_squared(last.W, last.a)),
        least_norm_squared=minimum_norm_value(setting.x, setting.y) if usable else float("nan"),
        turned=_turned(first, last, groups[0]),
        imbalance=float(np.abs(balancedness(last.W, last.a)).max()),
    )


def _turned(before: LineState, after: LineState, groups: Clusters) -> float:
    grown = groups.labels >= 0
    change = angle_of(after.W[grown]) - angle_of(before.W[grown])
    return float(np.abs((change + 180) % 360 - 180).max(initial=0.0))


def claims(found: Evidence) -> list[Claim]:
    """Compare the states with Sections 4.2 and 5."""
    return [*_first_phases(found), *_end(found)]


def _first_phases(found: Evidence) -> list[Claim]:
    """The states up to the end of the second phase."""
    aligned = found.states[1]
    tiny = found.states[0].norms.max()
    return [
        assumption_claim(found.setting),
        claim(
            "initial-norms",
            "At initialisation all neurons are close to 0 (largest norm over largest final norm)",
            "Section 5, Figure 2(a)",
            expected=less_than(1e-2),
            measured=tiny / found.last.norms.max(),
        ),
        claim(
            "aligned-plus",
            "After the first phase every neuron of S+,1 is aligned with D+ (least cosine)",
            "Lemma 2 (i), Figure 2(b)",
            expected=more_than(0.99),
            measured=found.cosines[0],
        ),
        claim(
            "aligned-minus",
            "After the first phase every neuron of S-,1 is aligned with -D- (least cosine)",
            "Lemma 2 (ii), Figure 2(b)",
            expected=more_than(0.99),
            measured=found.cosines[1],
        ),
        claim(
            "aligned-norms",
            "After the first phase all norms are small (largest)",
            "Lemma 2 (iii), Figure 2(b)",
            expected=less_than(0.05),
            measured=aligned.norms.max(),
        ),
        claim(
            "positive-fitted",
            "After the second phase the positive label is fitted (|h - y|)",
            "Lemma 3, Figure 2(c)",
            expected=less_than(FITTED),
            measured=found.first_errors[0],
        ),
        claim(
            "negative-idle",
            "After the second phase the network is still 0 on the negative label (|h|)",
            "Lemma 3 (iii), Figure 2(c)",
            expected=less_than(FITTED),
            measured=found.first_errors[1],
        ),
        claim(
            "one-group",
            "In the second phase a single group of neurons grows (groups of non-negligible norm)",
            "Section 4.2, Appendix A.1, Figure 2(c)",
            expected=exactly(1),
            measured=found.groups[0].count,
        ),
    ]


def _end(found: Evidence) -> list[Claim]:
    """The end of the third phase."""
    angles = sorted(angle_of(found.groups[1].directions).tolist())
    D = {"D+": found.setting.D_plus, "-D-": -found.setting.D_minus}
    expected = sorted((float(angle_of(vector)), name) for name, vector in D.items())
    two = len(angles) == 2
    return [
        claim(
            "both-fitted",
            "After the third phase both labels are fitted (largest |h - y|)",
            "Lemma 4, Figure 2(d)",
            expected=less_than(FITTED),
            measured=found.errors,
        ),
        claim(
            "two-kinks",
            "The estimated function has two kinks",
            "Section 5, Figure 2(d)",
            expected=exactly(2),
            measured=len(found.kinks),
        ),
        *[
            claim(
                f"kink-{k + 1}",
                f"Kink {k + 1} lies where the active neurons are orthogonal to the other point",
                "Section 4.2, Figure 2(d)",
                expected=near(place, 0.01),
                measured=found.kinks[k] if len(found.kinks) == 2 else float("nan"),
            )
            for k, place in enumerate(sorted(found.setting.x[:, 0].tolist()))
        ],
        *[
            claim(
                f"angle-{k + 1}",
                f"Group {k + 1} of active neurons points along {name} (angle in degrees)",
                "Lemma 4 (i), Figure 2(d)",
                expected=near(angle, 1.0),
                measured=angles[k] if two else float("nan"),
            )
            for k, (angle, name) in enumerate(expected)
        ],
        claim(
            "turned",
            "Neurons do not turn once they have grown (largest angle in degrees after the second phase)",
            "Section 3.2 (limitations), Lemma 4 (iii)",
            expected=at_most(1.0),
            measured=found.turned,
        ),
        claim(
            "minimum-norm",
            "The limit has minimal norm: final ||theta||^2 over the least one of an interpolator",
            "Theorem 1, Proposition 1 (orthogonal inputs of any norm)",
            expected=near(1.0, 1e-3),
            measured=found.norm_squared / found.least_norm_squared,
        ),
        finding(
            "final-norm", "Final ||theta||^2; the least one is 2.683282", "Proposition 1", measured=found.norm_squared
        ),
        finding(
            "imbalance",
            "Largest |a_j^2 - ||w_j||^2| at the end: gradient descent leaves the balance that the flow conserves",
            "Lemma 1",
            measured=found.imbalance,
        ),
    ]


def draw(found: Evidence) -> Drawing:
    """Draw panels a to d on common axes."""
    titles = ["Initialisation", "End of first phase", "End of second phase", "End of third phase"]
    return draw_states(found.states, titles, found.setting.x[:, 0], found.setting.y)


FIGURE = Figure(
    id="boursier2022-fig2",
    caption=(
        "Green dots are the data, the green line is the estimated function. Each blue star is a neuron w_j: x is "
        "-w_j2/w_j1, the kink of its ReLU, and y is s_j ||w_j||, its output weight (right axis)."
    ),
    configs={"orthogonal": CONFIG},
    variants=VARIANTS,
    origin=ORIGIN,
    evidence=evidence,
    claims=claims,
    draw=draw,
    remarks=lambda found: violations(found.setting),
)
