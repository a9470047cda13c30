"""Table 2: accuracies of a network that was trained on images with the light effect."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure as Drawing

from dynamics_cli.datasets.samples import Samples
from dynamics_cli.datasets.streams import Streams
from dynamics_cli.measures.arrays import Floats
from dynamics_cli.plotting.layout import format_number
from dynamics_cli.plotting.panels.table import table_figure
from dynamics_cli.reproduction.claims import Claim, Interval, around, claim, finding
from dynamics_cli.reproduction.figure import Runs
from dynamics_cli.runs import Run

PRINTED = {"train": "100 %", "test": "100 %", "real": "43.2 %"}
"""Table 2 of the paper."""
TITLES = {"train": "Training", "test": "Testing", "real": "Testing (untouched)"}
HUNDRED = Interval(0.995, 1.0, "100 % (rounded)")


@dataclass(frozen=True)
class Accuracy:
    """Share of right answers."""

    images: int
    both: float
    first: float
    """Of the class labelled 1, which is dark under the light effect."""
    second: float


@dataclass(frozen=True)
class Evidence:
    """Everything that the table and claims need."""

    classes: tuple[str, str]
    """The dark and the bright one."""
    accuracy: dict[str, Accuracy]
    """`train`, `test`, `real`."""
    history: Floats
    """(K,) accuracy on the untouched test set at the recorded states after the first."""
    brightness: float
    """Accuracy on the untouched test set of calling an image dark when its mean is below 127.5 of 255."""
    chance: float
    """Two standard deviations of the accuracy of a coin on the untouched test set."""


def accuracy(h: Floats, y: Floats) -> Accuracy:
    """Return the accuracies of outputs `h` (n,) for labels ±1; an output of 0 is wrong."""
    right = h * y > 0
    return Accuracy(len(y), float(right.mean()), float(right[y > 0].mean()), float(right[y < 0].mean()))


def evidence(run: Run, classes: tuple[str, str]) -> Evidence:
    """Score the trained network on modified and untouched images."""
    config = run.config
    lit = config.dataset.load(Streams(config.seed))
    untouched = config.dataset.model_copy(update={"light_effect": False}).load(Streams(config.seed))
    x_lit, y_lit = _test(lit)
    x, y = _test(untouched)
    networks = [run.network(k) for k in range(1, len(run.snapshot_iterations))]
    history = [network(x) for network in networks]
    last = networks[-1]
    return Evidence(
        classes=classes,
        accuracy={
            "train": accuracy(last(lit.x), lit.y),
            "test": accuracy(last(x_lit), y_lit),
            "real": accuracy(history[-1], y),
        },
        history=np.array([accuracy(h, y).both for h in history]),
        brightness=accuracy(np.asarray(127.5 / 255 - x.mean(axis=1)), y).both,
        chance=1.0 / float(np.sqrt(len(y))),
    )


def _test(data: Samples) -> tuple[Floats, Floats]:
    assert data.x_test is not None
    assert data.y_test is not None
    return data.x_test, data.y_test


def claims(found: Evidence, *, substitute: bool) -> list[Claim]:
    """Compare with Table 2."""
    real = found.accuracy["real"]
    where = "Table 2, there for cats and dogs" if substitute else "Table 2"
    return [
        claim(
            "train", "The network learns the modified training set perfectly", where,
            expected=HUNDRED, measured=found.accuracy["train"].both,
        ),
        claim(
            "test", "and the modified test set", where, expected=HUNDRED, measured=found.accuracy["test"].both,
        ),
        *(
            []
            if substitute
            else [
                claim(
                    "printed", "Accuracy on the untouched test set is 43.2 %", where,
                    expected=around(0.432), measured=real.both,
                )
            ]
        ),
        claim(
            "fails", "but utterly fails on the untouched test set: no better than chance (two standard deviations)",
            "Section 6, Results", measured=real.both,
            expected=Interval(None, 0.5 + found.chance, f"<= {0.5 + found.chance:.4f}"),
        ),
        finding(
            "untouched-dark", f"Untouched test images of class {found.classes[0]} that are classified right", "",
            measured=real.first,
        ),
        finding(
            "untouched-bright", f"Untouched test images of class {found.classes[1]} that are classified right", "",
            measured=real.second,
        ),
        finding(
            "brightness", "Accuracy of the mean brightness alone (threshold 127.5 of 255), untouched test set", "",
            measured=found.brightness,
        ),
        finding(
            "range-low", "Least accuracy on the untouched test set at the recorded states after the first", "",
            measured=float(found.history.min()),
        ),
        finding(
            "range-high", "Largest of them", "", measured=float(found.history.max()),
        ),
    ]  # fmt: skip


def table(found: Evidence) -> tuple[list[str], list[list[str]]]:
    """Return the table: the paper's accuracies and ours."""
    header = ["Set", "Images", "Paper", "Here", *(f"{name} only" for name in found.classes)]
    rows = [
        [
            TITLES[part],
            format_number(one.images),
            PRINTED[part],
            *(f"{100 * value:.1f} %" for value in (one.both, one.first, one.second)),
        ]
        for part, one in found.accuracy.items()
    ]
    return header, rows


def draw(found: Evidence) -> Drawing:
    """Draw the table."""
    return table_figure(*table(found), align="lrrrrr")


def of(runs: Runs, classes: tuple[str, str]) -> Evidence:
    """Return the evidence of a figure's only run."""
    return evidence(runs["network"], classes)
