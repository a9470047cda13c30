"""Figure 2: error, nuclear norm and effective rank of the result, against the scale of the
start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics_cli import kit

from .completion import (
    ALWAYS,
    FULL_SCALES,
    FURTHER,
    SCALES,
    Solution,
    pick,
    problem,
    solutions,
    wanted,
)
from .fig1 import LOOKS, NAMES, OVER_SCALES, curve

PRINTED = {2000: 210.15163, 5000: 221.02568}
"""Entries that are seen -> least nuclear norm that the released notebook printed, of 100 rows
and rank 5.
"""


@dataclass(frozen=True)
class Evidence:
    """What all runs found, and the least nuclear norms of other draws."""

    solutions: list[Solution]
    norms: dict[int, float]


def evidence(runs: kit.Runs) -> Evidence:
    """Return the `solutions`, and the least nuclear norms of the matrices of `PRINTED`, from our
    own draw.
    """
    config = next(iter(runs.values())).config
    norms = {}
    for observed in PRINTED:
        data = config.dataset.model_copy(update={"rows": 100, "rank": 5, "observed": observed})
        norms[observed] = float(np.linalg.norm(problem(data, config.seed)[1], "nuc"))
    return Evidence(solutions=solutions(runs), norms=norms)


def claims(evidence: Evidence) -> list[kit.Claim]:
    e = evidence.solutions
    two, three = (pick(e, "few further", depth)[-1] for depth in OVER_SCALES)
    least, truth = (pick(e, "few further", depth)[0] for depth in (0, -1))
    norms = [
        pick(e, "many further", depth)[-1].norm / pick(e, "many further", 0)[0].norm
        for depth in OVER_SCALES
    ]
    trained = [s for s in e if s.depth > 0]
    source = "Figure 2, released notebook"
    return [
        kit.theory(
            "certificate",
            "The nuclear norm of the convex program is the least (largest relative gap to its "
            "dual)",
            "weak duality",
            kit.less_than(1e-4),
            max(s.gap for s in e if s.depth == 0),
        ),
        kit.theory(
            "none-less",
            "No trained matrix has less (least norm, with what its residual may hide, over the "
            "bound)",
            "weak duality",
            kit.at_least(1 - 1e-4),
            min(s.excess for s in trained),
        ),
        *(
            kit.theory(
                f"printed-{observed}",
                f"100 rows, rank 5, {observed} entries: the least nuclear norm is as the "
                "notebook printed it of its own draw",
                "released notebook, output of cell 7",
                kit.around(printed),
                evidence.norms[observed],
            )
            for observed, printed in PRINTED.items()
        ),
        kit.claim(
            "not-truth",
            "With few entries the least nuclear norm is below the truth's (by the share)",
            source,
            kit.more_than(0.005),
            1 - least.norm / truth.norm,
            always=ALWAYS,
        ),
        *(
            kit.claim(
                f"above-{s.depth}",
                f"Depth {s.depth} does not minimise the nuclear norm where entries are "
                "few (its norm from the smallest start over the minimum, less 1)",
                source,
                kit.more_than(0.005),
                s.norm / least.norm - 1,
            )
            for s in (two, three)
        ),
        kit.claim(
            "norm",
            "Depth 3 has the norm of the truth (distance from it over the minimum's)",
            source,
            kit.less_than(0.1),
            abs(three.norm - truth.norm) / (truth.norm - least.norm),
        ),
        kit.claim(
            "rank",
            "The effective rank of depth 3 is the truth's (ratio)",
            source,
            kit.around(1.0),
            three.rank / truth.rank,
        ),
        kit.claim(
            "rank-less",
            "The effective rank of depth 3 is less than depth 2's and the minimum's (over the "
            "smaller)",
            source,
            kit.less_than(1.0),
            three.rank / min(two.rank, least.rank),
        ),
        kit.claim(
            "many",
            "With many entries all have the least norm (largest distance, relative)",
            source,
            kit.less_than(0.01),
            max(abs(np.array(norms) - 1)),
        ),
    ]


def draw(evidence: Evidence) -> kit.Drawing:
    e = evidence.solutions
    names = {"error": "mean square error", "norm": "nuclear norm", "rank": "effective rank"}

    def over_scales(count: str, key: str) -> kit.Chart:
        least = pick(e, count, 0)[0]
        words: dict[str, Any] = {"log": "xy", "limits": (1e-8, 2)} if key == "error" else {}
        return kit.chart(
            f"{least.observed} entries",
            names[key],
            *(curve(pick(e, count, depth), "start", key, depth, "joined") for depth in OVER_SCALES),
            *(
                kit.level(max(getattr(one, key), 1e-20), NAMES[one.depth], LOOKS[one.depth])
                for one in (least, pick(e, count, -1)[0])
            ),
            **words,
        )

    return kit.charts(
        *(over_scales(count, key) for count in FURTHER[::-1] for key in names),
        xlabel=r"$\Vert W(0)\Vert_F$",
        log="x",
    )


FIGURE = kit.Figure(
    passes={
        "random_features": {
            "rank rank-less": (
                "Behind a fixed first factor two are trained: their product favours low rank too."
            )
        }
    },
    id="arora2019-fig2",
    caption=(
        "Completion of a matrix of low rank, many entries (above) and few (below): error, nuclear"
        " norm and effective rank of products of 2 and 3 matrices against the size of their start,"
        " of the matrix of least nuclear norm, and of the truth. With few entries depth lowers the"
        " effective rank, and the nuclear norm is not the least."
    ),
    configs=wanted(FURTHER, OVER_SCALES, SCALES),
    presets={"full": wanted(FURTHER, OVER_SCALES, SCALES + FULL_SCALES, "full")},
)
