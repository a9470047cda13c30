"""Pruning neurons by their inverse participation ratio: low ones memorise, high ones know the
rule.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit

from ..gromov2023.grokking import layers
from .corruption import COEXISTENCE, Corrupted, accuracies, corrupted, mean_ipr

LOWEST = "lowest"
HIGHEST = "highest"
BLOCK = 5
"""Neurons that are pruned at once, of 500."""
SHOWN = {LOWEST: 0.7, HIGHEST: 0.3}
"""Largest share of pruned neurons in the notebook's picture."""
RIGHT = 0.9
"""Accuracy on test pairs and on replaced labels from which on the network knows rule and labels
before pruning.
"""


def pruned(run: kit.Run, order: kit.Ints) -> dict[str, kit.Floats]:
    """Prune the last network in order: return the `share` (J,) of pruned neurons and accuracies
    (J,) by part.
    """
    data = run.dataset()
    U, V, W = layers(run, -1)
    assert data.x_test is not None
    assert data.y_test is not None
    hidden = np.concatenate([U, V], axis=1)[order]
    replaced = np.asarray(data.replaced)
    n = data.n
    z = (np.concatenate([data.x, data.x_test]) @ hidden.T) ** 2  # (pairs, N)
    truth = np.concatenate([data.y, data.y_test]).argmax(1)
    parts = {
        "train": slice(n),
        "kept": np.flatnonzero(~replaced),
        "replaced": np.flatnonzero(replaced),
        "test": slice(n, None),
    }
    output = z @ W[:, order].T
    right = []
    for j in range(0, len(order), BLOCK):
        right.append(output.argmax(1) == truth)
        output -= z[:, j : j + BLOCK] @ W[:, order[j : j + BLOCK]].T
    share = np.arange(0, len(order), BLOCK) / len(order)
    return {
        "share": share,
        **{
            part: np.array([answers[rows].mean() for answers in right])
            for part, rows in parts.items()
        },
    }


def first(curves: dict[str, kit.Floats], where: kit.Bools, known: kit.Bools) -> dict[str, float]:
    """Return the numbers at the first point of curves where a condition holds; NaN without one
    or if not `known`.
    """
    at = np.flatnonzero(where & known)
    return {name: float(values[at[0]]) if len(at) else np.nan for name, values in curves.items()}


@dataclass(frozen=True)
class Evidence:
    """The network of the coexistence phase, pruned."""

    curves: dict[str, dict[str, kit.Floats]]
    ipr: kit.Floats
    run: Corrupted


def evidence(runs: kit.Runs) -> Evidence:
    """Prune from both ends: `curves` is end -> name -> (J,), `ipr` (N,) of neurons."""
    run = runs["coexistence"]
    ipr = mean_ipr(*layers(run, -1))
    order = np.argsort(ipr)
    curves = {LOWEST: pruned(run, order), HIGHEST: pruned(run, order[::-1])}
    return Evidence(curves, ipr, run=corrupted(run))


def claims(e: Evidence) -> list[kit.Claim]:
    """Compare with the abstract (ii): pruning takes the replaced labels from the network and
    leaves the rule.
    """
    run: Corrupted = e.run
    both = run.test[-1] > RIGHT and run.replaced[-1] > RIGHT
    low = e.curves[LOWEST]
    high = e.curves[HIGHEST]
    cleared = first(low, low["replaced"] <= run.chance, both)
    lost = first(high, high["test"] < 0.5, both)
    return [
        kit.claim(
            "low-clears",
            "the lowest IPR first: replaced labels come to chance before most neurons are pruned "
            "(share of pruned neurons there)",
            "abstract (ii); picture: 0.6 of 0.7",
            kit.at_most(SHOWN[LOWEST]),
            cleared["share"],
        ),
        kit.claim(
            "low-test",
            "With the lowest IPR pruned the rule is known, as nothing is memorised (test accuracy)",
            "README; 100 %",
            kit.near(1, 0.01),
            cleared["test"],
        ),
        kit.claim(
            "low-improves",
            "The lowest IPR first: the rule is known better than before pruning (difference of "
            "test accuracies)",
            "abstract (ii)",
            kit.more_than(0),
            cleared["test"] - low["test"][0],
        ),
        kit.claim(
            "low-kept",
            "The lowest IPR first: all kept labels are right (accuracy on them)",
            "README; 100 %",
            kit.near(1, 0.01),
            cleared["kept"],
        ),
        kit.claim(
            "low-plateau",
            "The lowest IPR first: the training accuracy is 1 - noise (1 - 1/p)",
            "derived; picture",
            kit.near(run.plateau, 0.02 * run.plateau),
            cleared["train"],
        ),
        kit.claim(
            "high-rule",
            "the highest IPR first: the rule is lost soon (share of pruned neurons at which fewer "
            "than half of the test pairs are right)",
            "abstract (ii); picture",
            kit.at_most(SHOWN[HIGHEST]),
            lost["share"],
        ),
        kit.claim(
            "high-memory",
            "With the highest IPR pruned replaced labels are memorised still (accuracy on them)",
            "picture; 100 %",
            kit.around(1),
            lost["replaced"],
        ),
    ]


def draw(e: Evidence) -> kit.Drawing:
    figure, axes = kit.new_figure(3, aspect=0.95, extra_height=0.45)
    titles = {LOWEST: "Lowest IPR first", HIGHEST: "Highest IPR first"}
    for k, (end, title) in enumerate(titles.items()):
        curves = accuracies(e.curves[end]["share"], e.curves[end], e.run.plateau)
        words = {"xlabel": "share of pruned neurons", "limits_x": (0, SHOWN[end])}
        shown = kit.chart(title, "accuracy", curves, limits=(-0.03, 1.05), **words)
        handles = kit.panel(axes[k], k, shown)
    axes[2].hist(e.ipr, bins=np.linspace(0, 1, 41).tolist(), color=kit.PALETTE.measured)
    axes[2].set(xlabel="IPR of a neuron", ylabel="neurons", xlim=(0, 1))
    kit.panel_label(axes[2], 2, "All neurons")
    kit.figure_legend(figure, handles)
    return figure


FIGURE = kit.Figure(
    id="doshi2023-pruning",
    caption=(
        "The network of the coexistence phase without some of its neurons: accuracy on trained and"
        " held-out pairs against the share of neurons that is pruned, the lowest or the highest"
        " inverse participation ratio first; the ratios of all neurons."
    ),
    configs={"coexistence": COEXISTENCE},
    nulls={"decay 15": ("optimizer.weight_decay=15.0",)},
)
