"""Weights become periodic when the network generalises: inverse participation ratios."""

from __future__ import annotations

from collections.abc import Mapping
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
    figure, axes = kit.new_figure(2, 2, aspect=0.72)
    curve, row, spectrum, histogram = axes
    curve.plot(run.epochs, run.test, color=kit.PALETTE.rank, label="test accuracy")
    for part, color, style in zip(
        "UVW", (f"C{k}" for k in (0, 3, 2)), ("-", "--", ":"), strict=True
    ):
        curve.plot(
            run.epochs,
            run.ipr[:, "UVW".index(part)],
            color=color,
            ls=style,
            label=f"mean IPR of {part}",
        )
    curve.legend(loc="lower right")
    kit.set_time_axis(curve, run.epochs, label="epoch")
    curve.set(ylim=(0, 1.03), ylabel="test accuracy, mean IPR")
    k = int(np.argsort(participation(run.last[0]))[len(run.last[0]) // 2])  # the median neuron
    for label, weights, color in (
        ("start", run.first[0], kit.PALETTE.muted),
        ("end", run.last[0], "C0"),
    ):
        row.plot(weights[k] / np.abs(weights[k]).max(), color=color, label=label)
        power = np.abs(np.fft.rfft(weights[k]))
        spectrum.plot(power / np.linalg.norm(power), color=color, label=label)
        histogram.hist(
            participation(weights),
            bins=np.linspace(0, 1, 26).tolist(),
            color=color,
            label=label,
            alpha=0.8,
        )
    row.set(xlabel="$n$", ylabel="$U_{kn}$ / largest")
    spectrum.set(xlabel="frequency", ylabel="Fourier modulus, normalised")
    histogram.set(xlabel="IPR of a neuron's row of $U$", ylabel="neurons")
    histogram.legend(loc="upper center")
    spectrum.legend(loc="best")  # where the peak is not
    kit.panel_labels(axes, "AdamW", "The median neuron", "Its spectrum", "All neurons")
    return figure


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
