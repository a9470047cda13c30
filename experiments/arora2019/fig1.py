"""Figure 1: error of matrix factorization against the number of entries that are seen, and the
scale of the start.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit

from .completion import (
    ALWAYS,
    BASE,
    COUNTS,
    DOUBLED,
    FITTED,
    FULL_SCALES,
    FURTHER,
    SCALES,
    Solution,
    base,
    pick,
    problem,
    solutions,
    wanted,
)

DEPTHS = (2, 3, 4)
OVER_SCALES = (2, 3)
LOOKS = {2: "C0 o", 3: "C2 ^", 4: "C1 s", 0: "theory dashed 1", -1: "muted dotted 1.2"}
NAMES = {2: "depth 2", 3: "depth 3", 4: "depth 4", 0: "least nuclear norm", -1: "truth"}
"""Depth -> look and name in all panels; 0 is the convex program, -1 the truth."""


POINTS = 9
"""Numbers of entries at which the error of the least nuclear norm is drawn, with those that
networks are trained on.
"""


@dataclass(frozen=True)
class Evidence:
    """What all runs found, and the error of the least nuclear norm."""

    solutions: list[Solution]
    least: dict[tuple[str, ...], kit.Floats]


def evidence(runs: kit.Runs) -> Evidence:
    """Return the `solutions`, and by panel the error of the least nuclear norm at many numbers
    of entries, `least`.
    """
    e = Evidence(solutions=solutions(runs), least={})
    for counts in (COUNTS, DOUBLED):
        config = next(run.config for role, run in runs.items() if role.startswith(f"{counts[-1]},"))
        fewest, few, many = (base(e.solutions, count, 2).observed for count in counts)
        seen = sorted({*np.linspace(fewest, many, POINTS).round().astype(int).tolist(), few})
        solved = [
            problem(config.dataset.model_copy(update={"observed": count}), config.seed)
            for count in seen
        ]
        e.least[counts] = np.array(
            [seen, [np.mean((matrix - truth) ** 2) for truth, matrix, _ in solved]]
        )
    return e


def claims(evidence: Evidence) -> list[kit.Claim]:
    e = evidence.solutions
    falls = [np.diff([s.error for s in pick(e, "few further", depth)]) < 0 for depth in OVER_SCALES]
    return [
        *_over_counts(e, COUNTS),
        kit.claim(
            "scale",
            "A smaller start gives a smaller error with few entries (share of smaller ones, depths"
            " 2 and 3)",
            "Figure 1, released notebook",
            kit.exactly(1.0),
            np.mean(np.concatenate(falls)),
        ),
        *_over_counts(e, DOUBLED, "-2r", "Twice the rank: "),
    ]


def _over_counts(
    e: list[Solution], counts: tuple[str, ...], suffix: str = "", of: str = ""
) -> list[kit.Claim]:
    """Return the claims of one panel against the number of entries."""
    source = "Figure 1 (recalled); number ours"
    fewest, few, many = (
        {depth: base(e, count, depth).error for depth in (*DEPTHS, 0)} for count in counts
    )
    alike = kit.farthest([errors[3] / errors[4] for errors in (fewest, few, many)])
    fitted = all(base(e, count, depth).loss < FITTED for count in counts for depth in (3, 4))

    return [
        kit.claim(
            "many" + suffix,
            f"{of}With many entries all depths recover the matrix (largest error)",
            source,
            kit.less_than(1e-2),
            max(many[depth] for depth in DEPTHS),
        ),
        kit.claim(
            "many-least" + suffix,
            f"{of}With many entries the least nuclear norm recovers the matrix (error)",
            source,
            kit.less_than(1e-6),
            many[0],
            always=ALWAYS,
        ),
        kit.claim(
            "few" + suffix,
            f"{of}With few depths 3 and 4 do far better than depth 2 (error of depth 2 over "
            "theirs, the smaller)",
            source,
            kit.more_than(10),
            few[2] / max(few[3], few[4]),
        ),
        kit.claim(
            "few-least" + suffix,
            f"{of}With few entries deeper networks err less than the least nuclear norm "
            "(its error over theirs, the smaller)",
            source,
            kit.more_than(10),
            few[0] / max(few[3], few[4]),
        ),
        kit.claim(
            "alike" + suffix,
            f"{of}Depths 3 and 4 are alike (error of 3 over error of 4, the farthest from 1 "
            "of three numbers of entries)",
            "Section 2.3 (recalled); number ours",
            kit.Interval(0.1, 10),
            kit.given(fitted, alike),
        ),
    ]


def curve(found: list[Solution], x: str, y: str, depth: int, look: str) -> kit.Line:
    """Return a number of solutions of a depth over another."""
    xs, ys = ([getattr(one, name) for one in found] for name in (x, y))
    return kit.line(xs, ys, NAMES[depth], f"{LOOKS[depth]} {look}")


def draw(evidence: Evidence) -> kit.Drawing:
    e = evidence.solutions
    error = "mean square error"

    def over_counts(title: str, counts: tuple[str, ...]) -> kit.Chart:
        seen, least = evidence.least[counts]
        return kit.chart(
            title,
            error,
            *(
                curve([base(e, count, depth) for count in counts], "observed", "error", depth, "")
                for depth in DEPTHS
            ),
            kit.line(seen, np.maximum(least, 1e-16), NAMES[0], f"{LOOKS[0]} joined ."),
            xlabel="entries seen",
            log="y",
            limits=(1e-6, 2),
            limits_x=(0.9 * seen[0], 1.05 * seen[-1]),
        )

    return kit.charts(
        over_counts(f"Scale {BASE:g}", COUNTS),
        over_counts("Twice the rank", DOUBLED),
        kit.chart(
            "Few; dotted many",
            error,
            *(
                curve(pick(e, count, depth), "start", "error", depth, f"joined {dash}")
                for count, dash in zip(FURTHER, ("", "dotted"), strict=True)
                for depth in OVER_SCALES
            ),
            kit.level(base(e, "few", 0).error, NAMES[0], LOOKS[0]),
            xlabel=r"start $\Vert W(0)\Vert_F$",
            log="xy",
            limits=(1e-8, 2),
        ),
    )


FIGURE = kit.Figure(
    id="arora2019-fig1",
    caption=(
        "Completion of a matrix of low rank by a product of 2, 3 or 4 matrices from a small"
        " Gaussian start, and by the least nuclear norm: mean square error of all entries against"
        " how many are seen, for two ranks, and against the size of the start, for the second (few)"
        " and third number of entries (many). Where few are seen, depth 3 recovers what depth 2 and"
        " the nuclear norm do not."
    ),
    configs={**wanted(COUNTS + DOUBLED, DEPTHS, (BASE,)), **wanted(FURTHER, OVER_SCALES, SCALES)},
    presets={
        "full": {
            **wanted(COUNTS + DOUBLED, DEPTHS, (BASE,), "full"),
            **wanted(FURTHER, OVER_SCALES, SCALES + FULL_SCALES, "full"),
        }
    },
)
