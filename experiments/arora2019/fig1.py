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
LOOKS = {
    2: ("C0", "depth 2"),
    3: ("C2", "depth 3"),
    4: ("C1", "depth 4"),
    0: ("black", "least nuclear norm"),
    -1: (kit.PALETTE.muted, "truth"),
}
"""Depth -> color and name; 0 is the convex program, -1 the truth."""
MARKERS = {2: kit.MARKER, 3: "^", 4: "s"}
"""Depth -> marker, in all panels against the number of entries and the size of the start."""


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
    alike = max(
        (errors[3] / errors[4] for errors in (fewest, few, many)),
        key=lambda ratio: abs(np.log(ratio)),
    )
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


def draw(evidence: Evidence) -> kit.Drawing:
    e = evidence.solutions
    figure, (left, middle, right) = kit.new_figure(3, aspect=1.0, extra_height=0.25)
    for panel, counts in ((left, COUNTS), (middle, DOUBLED)):
        handles = list[kit.Artist]()
        for depth in DEPTHS:
            color, name = LOOKS[depth]
            trained = [base(e, count, depth) for count in counts]
            handles += panel.plot(
                [s.observed for s in trained],
                [s.error for s in trained],
                color=color,
                label=name,
                ls="",
                marker=MARKERS[depth],
                ms=8 - 1.3 * depth,
            )
        seen, error = evidence.least[counts]
        handles += panel.plot(
            seen, np.maximum(error, 1e-16), "--", color=LOOKS[0][0], label=LOOKS[0][1], marker="."
        )
        panel.set(yscale="log", ylim=(1e-6, 2), xlabel="entries seen", ylabel="mean square error")
    for count, ls in zip(FURTHER, ("-", ":"), strict=True):
        for depth in OVER_SCALES:
            trained = pick(e, count, depth)
            right.plot(
                [s.start for s in trained],
                [s.error for s in trained],
                color=LOOKS[depth][0],
                ls=ls,
                marker=MARKERS[depth],
                ms=4,
            )
    right.axhline(base(e, "few", 0).error, color="black", ls="--", lw=1.0)
    right.set(
        xscale="log",
        yscale="log",
        ylim=(1e-8, 2),
        xlabel=r"size of the start $\Vert W(0)\Vert_F$",
        ylabel="mean square error",
    )
    kit.panel_labels(figure.axes, f"Scale {BASE:g}", "Twice the rank", "Few; dotted: many")
    kit.figure_legend(figure, handles)
    return figure


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
