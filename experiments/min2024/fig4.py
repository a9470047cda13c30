"""Figure 4: the activation patterns of two positive neurons over time, one for either branch of
the caption.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit

from .shared import ANOTHER_SIDE, Premise, read_premise, read_states
from .theory.cones import DEAD, MINUS, PLUS, regions


@dataclass(frozen=True)
class Evidence:
    """Two neurons, and what no positive neuron may do.

    `living` goes to S_+, `dying` to S_dead; where no neuron does, it is the last of all that start
    so. Each has its `changes` (c,), iterations, and `patterns` (c + 1, n) between them. `forbidden`
    counts activations on positive data lost, or on negative data gained, by positive neurons of the
    whole run, `died_active` positive neurons that died although they were active on a positive
    point at first.
    """

    y: kit.Floats
    forbidden: int
    died_active: int
    premise: Premise
    living: Branch
    dying: Branch


def evidence(runs: kit.Runs) -> Evidence:
    """Find positive neurons that start active on all negative and no positive data, and take the
    last to arrive.
    """
    states = read_states(runs["descent"])
    active = kit.activation_patterns(states.x, states.W)  # (K, n, m)
    reached = regions(states.x, states.y, states.W)
    always = (np.asarray(states.v) > 0).all(axis=0)
    if not always.any():
        raise kit.InputError(
            f"{runs['descent'].path}: no neuron has v_j > 0 throughout; take more neurons or"
            " another seed"
        )
    started = np.flatnonzero(always & (reached[0] == MINUS))
    pool = started if len(started) else np.flatnonzero(always)
    branches = {}
    for name, end in (("living", PLUS), ("dying", DEAD)):
        arrived = pool[reached[-1, pool] == end]
        chosen = arrived if len(arrived) else pool
        last = chosen[np.argmax((reached[:, chosen] != end).sum(axis=0))]
        branches[name] = _branch(states.iterations, active[:, :, last])
    gains = np.diff(active[:, :, always].astype(np.int8), axis=0)  # (K - 1, n, m')
    wrong = np.count_nonzero(gains[:, states.y > 0] < 0) + np.count_nonzero(
        gains[:, states.y < 0] > 0
    )
    touched = active[0][states.y > 0].any(axis=0)  # (m,)
    return Evidence(
        y=states.y,
        **branches,
        forbidden=int(wrong),
        died_active=int((always & touched & (reached[-1] == DEAD)).sum()),
        premise=read_premise(runs["descent"], states),
    )


@dataclass(frozen=True)
class Branch:
    """The patterns of a neuron, and the iterations of its changes."""

    changes: kit.Floats
    patterns: kit.Bools


def _branch(iterations: kit.Ints, active: kit.Bools) -> Branch:
    """Return when the activation (K, n) of a neuron changes, and its patterns."""
    changed = np.flatnonzero((active[1:] != active[:-1]).any(axis=1)) + 1
    return Branch(changes=iterations[changed].astype(np.float64), patterns=active[[0, *changed]])


def claims(e: Evidence) -> list[kit.Claim]:
    source = "Section 3.3, Figure 4"
    living = e.living
    dying = e.dying
    lives = len(living.changes) > 0 and np.array_equal(living.patterns[-1], e.y > 0)
    dies = len(dying.changes) > 0 and not dying.patterns[-1].any()
    return [
        kit.claim(
            "one-way",
            "No positive neuron loses a positive or gains a negative point (such changes in the"
            " run)",
            "Eq. 7, Section 3.3",
            kit.exactly(0),
            kit.given(lives, e.forbidden),
        ),
        kit.claim(
            "count",
            "A neuron takes at most n changes of its pattern (the more of two)",
            "Section 3.3",
            kit.at_most(len(e.y)),
            kit.given(lives, max(len(living.changes), len(dying.changes))),
        ),
        kit.claim(
            "end",
            "A neuron that starts in S- and gains a positive point eventually reaches S+ (0 if"
            " not)",
            f"{source}, branch 2",
            kit.exactly(1),
            lives,
        ),
        kit.claim(
            "dies",
            "One that loses all negative points before it gains a positive one reaches Sdead (0 if "
            "not)",
            f"{source}, branch 1",
            kit.exactly(1),
            dies and not dying.patterns[:, e.y > 0].any(),
        ),
        e.premise.of_theorem(
            kit.claim(
                "active-live",
                "No positive neuron dies that is active on a positive point at first (those that"
                " do)",
                "Theorem 1, Section 3.3",
                kit.exactly(0),
                kit.given(dies, e.died_active),
            )
        ),
    ]


def draw(e: Evidence) -> kit.Drawing:
    figure, axes = kit.new_figure(2, width=6.3, aspect=0.72, extra_height=0.35)
    _draw_branch(axes[0], e.y, e.dying)
    _draw_branch(axes[1], e.y, e.living)
    kit.panel_labels(axes, r"From $S_-$ to $S_\mathrm{dead}$", "From $S_-$ to $S_+$")
    looks = (
        (kit.PALETTE.positive, "P", "$y_i=+1$, active"),
        (kit.PALETTE.negative, "s", "$y_i=-1$, active"),
    )
    handles: list[kit.Artist] = []
    for color, marker, label in looks:
        handles += axes[0].plot([], [], marker, ms=7, color=color, label=label)
    handles += axes[0].plot(
        [], [], "s", ms=7, mfc="white", mec=kit.PALETTE.muted, label="not active"
    )
    handles += axes[0].plot(
        [],
        [],
        kit.MARKER,
        ms=9,
        mfc="none",
        mec=kit.PALETTE.theory,
        label="changed",
    )
    kit.figure_legend(figure, handles, columns=4)
    return figure


def _draw_branch(axes: kit.Axes, y: kit.Floats, branch: Branch) -> None:
    """Draw a column of marks for each pattern of a neuron."""
    times = [0.0, *branch.changes.tolist()]
    for k, pattern in enumerate(branch.patterns):
        for row, (on, label) in enumerate(zip(pattern, y, strict=True)):
            color = kit.PALETTE.sign(label)
            axes.plot(
                k,
                -row,
                marker="P" if label > 0 else "s",
                ms=7,
                mec=color,
                mfc=color if on else "white",
                mew=1.0,
            )
            if k and on != branch.patterns[k - 1, row]:
                axes.plot(
                    k, -row, marker=kit.MARKER, ms=13, mec=kit.PALETTE.theory, mfc="none", mew=0.8
                )
    axes.set_xticks(
        range(len(times)),
        labels=[kit.format_number(t) for t in times],
        rotation=30,
        ha="right",
        rotation_mode="anchor",
    )
    axes.set_yticks([-k for k in range(len(y))], labels=[f"$x_{k + 1}$" for k in range(len(y))])
    axes.set(xlabel="iteration from which the pattern holds", xlim=(-0.5, len(times) - 0.5))
    axes.margins(y=0.12)


DEAD_STAYS = (
    "A neuron without active points has no gradient, of these data or others, right or not."
)
FIGURE = kit.Figure(
    id="min2024-fig4",
    caption=(
        "Two positive neurons of the balanced run on the data of Figure 6 that start active on all"
        " negative and no positive data: filled marks are the points on which they are active, at"
        " first and after each change (ringed). (a) One loses the negative points and dies. (b) One"
        " gains a positive point and reaches S+."
    ),
    configs={"descent": "min2024/two_drops_flow.yaml"},
    nulls={"data": ANOTHER_SIDE},
    passes={
        "linear": {
            "one-way count end": (
                "A linear neuron turns to x+ - x-, which is right on every point."
            ),
        },
        "data": {"dies": DEAD_STAYS},
        "wrong_gradient": {"dies": DEAD_STAYS},
    },
)
