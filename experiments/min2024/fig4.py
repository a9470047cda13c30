"""Figure 4: the activation pattern of a positive neuron over time."""

from __future__ import annotations

import numpy as np

from dynamics_cli import kit

from .shared import read_states
from .theory.cones import MINUS, PLUS, regions


def evidence(runs: kit.Runs) -> kit.Evidence:
    """Find positive neurons that start active on all negative and no positive data, and take the last to reach S_+.

    `changes` (c,) are iterations, `patterns` (c + 1, n) hold between them; `forbidden` counts activations on positive
    data lost, or on negative data gained, by positive neurons of the whole run.
    """
    states = read_states(runs["descent"])
    active = kit.activation_patterns(states.x, states.W)  # (K, n, m)
    reached = regions(states.x, states.y, states.W)
    always = (np.asarray(states.v) > 0).all(axis=0)
    if not always.any():
        raise kit.InputError(
            f"{runs['descent'].path}: no neuron has v_j > 0 throughout; take more neurons or another seed"
        )
    dying = np.flatnonzero(always & (reached[0] == MINUS))
    living = dying[reached[-1, dying] == PLUS]
    pool = living if len(living) else dying if len(dying) else np.flatnonzero(always)
    arrivals = (reached[:, pool] != PLUS).sum(axis=0)
    shown = active[:, :, pool[np.argmax(arrivals)]]  # (K, n)
    changed = np.flatnonzero((shown[1:] != shown[:-1]).any(axis=1)) + 1
    gains = np.diff(active[:, :, always].astype(np.int8), axis=0)  # (K - 1, n, m')
    wrong = np.count_nonzero(gains[:, states.y > 0] < 0) + np.count_nonzero(
        gains[:, states.y < 0] > 0
    )
    changes = states.iterations[changed].astype(np.float64)
    return kit.Evidence(
        y=states.y, changes=changes, patterns=shown[[0, *changed]], forbidden=int(wrong)
    )


def claims(e: kit.Evidence) -> list[kit.Claim]:
    source = "Section 3.3, Figure 4"
    last = e.patterns[-1]
    arrived = len(e.changes) > 0 and (np.array_equal(last, e.y > 0) or not last.any())
    return [
        kit.claim(
            "one-way",
            "No positive neuron loses a positive or gains a negative point (such changes in the run)",
            "Eq. 7, Section 3.3",
            kit.exactly(0),
            kit.given(arrived, e.forbidden),
        ),
        kit.claim(
            "count",
            "A neuron takes at most n changes of its pattern",
            "Section 3.3",
            kit.at_most(len(e.y)),
            kit.given(arrived, len(e.changes)),
        ),
        kit.claim(
            "end",
            "The neuron eventually reaches S+ or Sdead (0 if not)",
            source,
            kit.exactly(1),
            arrived,
        ),
    ]


@kit.styled
def draw(e: kit.Evidence) -> kit.Drawing:
    figure, (axes,) = kit.new_figure(1, width=4.6, aspect=0.55, extra_height=0.35)
    times = [0.0, *e.changes.tolist()]
    for k, pattern in enumerate(e.patterns):
        for row, (on, label) in enumerate(zip(pattern, e.y, strict=True)):
            color = kit.PALETTE.sign(label)
            axes.plot(
                k,
                -row,
                marker="P" if label > 0 else "s",
                ms=9,
                mec=color,
                mfc=color if on else "white",
                mew=1.0,
            )
            if k and on != e.patterns[k - 1, row]:
                axes.plot(
                    k, -row, marker=kit.MARKER, ms=17, mec=kit.PALETTE.theory, mfc="none", mew=0.8
                )
    for k, pattern in enumerate(e.patterns[[0, -1]]):
        name = (
            {True: "$S_-$", False: "$S_+$"}.get(bool(pattern[e.y < 0].all()), "")
            if pattern.any()
            else "dead"
        )
        axes.text(k * (len(times) - 1), 0.85, name, ha="center", va="center")
    axes.set_xticks(range(len(times)), labels=[kit.format_number(t) for t in times])
    axes.set_yticks([-k for k in range(len(e.y))], labels=[f"$x_{k + 1}$" for k in range(len(e.y))])
    axes.set(
        xlabel="iteration from which the pattern holds (columns are not to scale)",
        xlim=(-0.5, len(times) - 0.5),
    )
    axes.margins(y=0.12)
    looks = (
        (kit.PALETTE.positive, "P", "$y_i=+1$, active"),
        (kit.PALETTE.negative, "s", "$y_i=-1$, active"),
    )
    handles = [
        axes.plot([], [], ls="none", marker=m, ms=7, color=c, label=t)[0] for c, m, t in looks
    ]
    handles += axes.plot(
        [], [], ls="none", marker="s", ms=7, mfc="white", mec=kit.PALETTE.muted, label="not active"
    )
    handles += axes.plot(
        [],
        [],
        ls="none",
        marker=kit.MARKER,
        ms=9,
        mfc="none",
        mec=kit.PALETTE.theory,
        label="changed",
    )
    kit.figure_legend(figure, handles, columns=4)
    return figure


FIGURE = kit.Figure(
    id="min2024-fig4",
    caption=(
        "A positive neuron of the balanced run on the data of Figure 6 that starts active on all negative and no "
        "positive data: filled marks are the points on which it is active, at first and after each change (ringed)."
    ),
    configs={"descent": "min2024/two_drops_flow.yaml"},
    passes={
        "linear": {
            "one-way count end": "A linear neuron turns to x+ too, which lies on the positive side of every point.",
        }
    },
)
