"""A coarse phase diagram: accuracies against the share of pairs that is trained and of labels
that are replaced.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynamics_cli import kit

from .corruption import Corrupted, corrupted, smaller

DECAYS = (0.0, 5.0, 15.0)
NOISES = (0.1, 0.3, 0.5, 0.7)
SHARES = (0.3, 0.5, 0.7, 0.9)
RIGHT = 0.9
"""Accuracy from which on a part of the pairs counts as learnt."""
PHASES = {"M": "memorisation", "C": "coexistence", "P": "partial inversion", "F": "full inversion"}
"""Letter -> name of the phase."""


def phase(net: Corrupted) -> str:
    """Return the letter of the phase of the last network; empty where neither labels nor rule
    are learnt.
    """
    train = net.train[-1]
    test = net.test[-1]
    replaced = net.replaced[-1]
    if test > RIGHT:
        return "C" if replaced > RIGHT else "P" if replaced > net.chance else "F"
    return "M" if train > RIGHT else ""


@dataclass(frozen=True)
class Evidence:
    """The last states, (decays, noises, shares) each."""

    train: kit.Floats
    test: kit.Floats
    letters: NDArray[np.str_]


def evidence(runs: kit.Runs) -> Evidence:
    """Read the last states: `train`, `test` and `letters` are (decays, noises, shares)."""
    shape = (len(DECAYS), len(NOISES), len(SHARES))
    last = [corrupted(run) for run in runs.values()]
    return Evidence(
        train=np.array([net.train[-1] for net in last]).reshape(shape),
        test=np.array([net.test[-1] for net in last]).reshape(shape),
        letters=np.array([phase(net) for net in last]).reshape(shape),
    )


def claims(e: Evidence) -> list[kit.Claim]:
    none, some = (e.test[k] > RIGHT for k in range(2))
    fitted = e.train[0].min() > RIGHT  # else test accuracies say nothing of generalisation
    return [
        kit.claim(
            "memorises",
            "no decay: all labels are memorised, whatever share was replaced (least training "
            "accuracy)",
            "abstract (i)",
            kit.near(1, 0.01),
            e.train[0].min(),
        ),
        kit.claim(
            "both",
            f"no decay: of {SHARES[-1]:.0%} of the pairs the rule is learnt too, {NOISES[0]:.0%} of"
            " the labels replaced (test accuracy)",
            "abstract (i); 100 %",
            kit.around(1),
            e.test[0, 0, -1],
        ),
        kit.claim(
            "few",
            f"no decay: of {SHARES[0]:.0%} of the pairs the rule is not learnt (test accuracy, once"
            " all labels are memorised)",
            "phase diagram",
            kit.less_than(0.5),
            kit.given(fitted, e.test[0, 0, 0]),
        ),
        kit.claim(
            "noise",
            f"no decay: with {NOISES[-1]:.0%} of the labels replaced the rule is not learnt (test "
            "accuracy, once all are memorised)",
            "phase diagram",
            kit.less_than(0.5),
            kit.given(fitted, e.test[0, -1, -1]),
        ),
        kit.claim(
            "decay",
            "decay 5: the rule is learnt at more points than without (difference of their numbers)",
            "abstract (iii)",
            kit.more_than(0),
            some.sum() - none.sum(),
        ),
        kit.claim(
            "inverts",
            "decay 5: where the rule is learnt, replaced labels are ignored at some points (their "
            "number)",
            "abstract (iii); 1/p and three deviations",
            kit.at_least(1),
            (e.letters[1] == "F").sum(),
        ),
    ]


def draw(e: Evidence) -> kit.Drawing:
    figure, axes = kit.new_figure(3, 2, aspect=0.95, extra_height=0.35)
    for row, (title, accuracy) in enumerate((("Training", e.train), ("Test", e.test))):
        for column, values in enumerate(accuracy):
            panel = axes[3 * row + column]
            image = panel.imshow(
                values, origin="lower", cmap="viridis", vmin=0, vmax=1, aspect="auto"
            )
            for (y, x), letter in np.ndenumerate(e.letters[column]):
                panel.text(
                    x,
                    y,
                    letter,
                    ha="center",
                    va="center",
                    color="white" if values[y, x] < 0.6 else "black",
                )
            panel.set_xticks(range(len(SHARES)), [f"{share:g}" for share in SHARES])
            panel.set_yticks(range(len(NOISES)), [f"{noise:g}" for noise in NOISES])
            panel.set_xlabel("share of pairs trained" if row else "")
            panel.set_ylabel("" if column else r"labels replaced, $\xi$")
            kit.panel_label(panel, 3 * row + column, f"{title}: decay {DECAYS[column]:g}")
    figure.colorbar(image, ax=axes, label="accuracy", fraction=0.03, pad=0.02)
    keys = [
        axes[0].plot(
            [],
            [],
            ls="",
            marker=rf"$\mathrm{{{letter}}}$",
            ms=5,
            mew=0.2,
            color="black",
            label=name,
        )[0]
        for letter, name in PHASES.items()
        if letter in e.letters
    ]
    kit.figure_legend(figure, keys)
    return figure


def _wanted(epochs: int, *size: str) -> dict[str, kit.Wanted]:
    return kit.grid(
        "doshi2023/coexistence.yaml",
        {
            "optimizer.weight_decay": DECAYS,
            "dataset.replaced_labels": NOISES,
            "dataset.train_fraction": SHARES,
        },
        "decay {:g}, noise {}, share {}",
        *size,
        f"optimizer.iterations={epochs}",
        f"record.snapshots.interval={epochs}",
        "record.parameters=none",
    )


FIGURE = kit.Figure(
    id="doshi2023-diagram",
    caption=(
        "Addition modulo 31, a size of ours: accuracy on the training pairs as they are labelled"
        " (top) and on held-out pairs (bottom) after 1 000 epochs of AdamW of three weight decays."
        " M: labels memorised, rule not learnt; C: coexistence, both; P: partial inversion, the"
        " rule learnt and some replaced labels memorised; no letter: neither learnt. Modulo 97, the"
        " released size, decay 15 is full inversion and 20 is forgetting."
    ),
    configs=_wanted(1000, *smaller(31, 150)),
    presets={"full": _wanted(2000)},
    passes={
        "slow": {
            "few noise": (
                "With a hundredth of the step labels are memorised within the run, and the rule is"
                " not learnt."
            )
        },
        "decay": {
            "memorises both few noise": (
                "These networks have no decay: this null leaves them as they are."
            )
        },
    },
)
