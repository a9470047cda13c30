"""Weights become periodic when the network generalises: inverse participation ratios."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from dynamics_cli import kit

from .grokking import ADAMW, GD, KEYS, NO_DECAY, Evidence, Grokking, chosen, evidence, own_form
from .theory.analytic import participation

FEW = ", few pairs"


def with_few(runs: Mapping[str, str | kit.Wanted]) -> dict[str, str | kit.Wanted]:
    """Return runs, and each with a fifth of the pairs, too few to generalise."""
    both = dict(runs)
    for name, run in runs.items():
        wanted = kit.Wanted(run) if isinstance(run, str) else run
        changes = (*wanted.overrides, "dataset.train_fraction=0.2")
        both[f"{name}{FEW}"] = replace(wanted, overrides=changes)
    return both


def growth(run: Grokking, until: float) -> float:
    """Return the mean IPR at an epoch over that at which the training pairs are learnt."""
    mean = run.ipr.mean(1)
    return run.at(mean, until) / run.at(mean, run.t_train)


def claims(e: Evidence) -> list[kit.Claim]:
    made = []

    for name, run in e.items():
        if name not in KEYS:
            continue
        key = KEYS[name]
        mean = run.ipr.mean(1)
        few = e[f"{name}{FEW}"]
        made += [
            kit.theory(
                f"{key}-start",
                f"{name}: mean IPR at first over the mean of Gaussian rows, 2/(p//2 + 1)",
                "derived",
                kit.near(1, 0.1),
                mean[0] / (2 / (run.p // 2 + 1)),
            ),
            kit.claim(
                f"{key}-rises",
                f"{name}: between memorising and generalising the IPR grows by more than from"
                " memorising to the end in a network of a fifth of the pairs, which never"
                " generalises (ratio of the means, over its ratio)",
                "Eq. 20",
                kit.more_than(1),
                kit.given(
                    few.test[-1] < 0.5,
                    growth(run, run.t_test) / growth(few, few.epochs[-1]),
                ),
            ),
            kit.claim(
                f"{key}-periodic",
                f"{name}: most neurons of the network that generalises are periodic (share with an"
                " IPR of U above 1/2)",
                "analytic weights; most: more than half",
                kit.most(),
                kit.given(run.test[-1] > 0.5, np.mean(participation(run.last[0]) > 0.5)),
            ),
        ]
    return made


def draw(e: Evidence) -> kit.Drawing:
    run = e[ADAMW]
    k = int(np.argsort(participation(run.last[0]))[len(run.last[0]) // 2])  # the median neuron
    bins = np.linspace(0, 1, 26)

    def both(
        title: str, ylabel: str, xlabel: str, curve: Callable[[kit.Floats, str, str], kit.Line]
    ) -> kit.Chart:
        """Chart the curve of U at the start and at the end."""
        start = curve(run.first[0], "start", "muted")
        return kit.chart(title, ylabel, start, curve(run.last[0], "end", "C0"), xlabel=xlabel)

    looks = zip(run.ipr.T, "UVW", ("C0", "C3 dashed", "C2 dotted"), strict=True)
    return kit.charts(
        kit.chart(
            "AdamW",
            "test accuracy, mean IPR",
            kit.line(run.epochs, run.test, "test accuracy", "rank"),
            *(kit.line(run.epochs, ipr, f"mean IPR of {part}", look) for ipr, part, look in looks),
            xlabel="epoch",
            limits=(0, 1.03),
        ),
        both(
            "The median neuron",
            "$U_{kn}$ / largest",
            "$n$",
            lambda U, *look: kit.line(0, U[k] / np.abs(U[k]).max(), *look),
        ),
        both(
            "Its spectrum",
            "Fourier modulus, normalised",
            "frequency",
            lambda U, *look: kit.line(0, kit.directions(np.abs(np.fft.rfft(U[[k]])))[0], *look),
        ),
        both(
            "All neurons",
            "neurons",
            "IPR of a neuron's row of $U$",
            lambda U, *look: kit.stairs(bins, np.histogram(participation(U), bins)[0], *look),
        ),
    )


CONFIGS, PRESETS = chosen(ADAMW, GD)
FIGURE = kit.Figure(
    id="gromov2023-ipr",
    caption=(
        "Inverse participation ratio of the Fourier moduli of the weights, 1 for a cosine: its mean"
        " against epochs with the test accuracy; a row of U and its spectrum at the start and the"
        " end; all neurons. AdamW."
    ),
    evidence=evidence,
    configs=with_few(CONFIGS),
    presets={name: with_few(runs) for name, runs in PRESETS.items()},
    variants={
        name: replace(variant, configs=with_few(variant.configs))
        for name, variant in own_form(GD).items()
    },
    passes={"decay": {"gd-*": NO_DECAY}},
)
