"""Clusters with further dimensions that say nothing: both layers trained, against the output
layer alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics_cli import kit

from .solvers import hidden, largest_margin, output_layer

NETWORKS = 5
WIDTH = 200
SAMPLES = (32, 64, 128, 256)
DIMENSIONS = (5, 10, 15, 20, 25)
WIDTHS = (8, 16, 32, 64, 128, 256)
"""Numbers of samples; input dimensions with the bias, as the paper counts them; numbers of
neurons.
"""
ABSTRACT = "Abstract"
SECTION = "Section 5 (recalled)"
RELEASED = (
    "optimizer.schedule={kind: power, exponent: 0.5}",
    "optimizer.iterations=50000",
    "record.loss_every=1000",
    "record.snapshots={kind: every, interval: 1000}",
)


@dataclass(frozen=True)
class Evidence:
    """Networks at each number of samples, dimension or width `at` (points,); else (points,
    networks).
    """

    at: kit.Floats
    fits: kit.Floats
    """Whether a network separates its samples, 1 or 0."""
    both: kit.Floats
    """Held-out errors,"""
    output: kit.Floats
    """and of the max-margin output layer on the initial neurons."""
    f1: kit.Floats
    """Margin over the mean of the squared weights of a neuron, as released, at the best snapshot. A
    margin of variation norm 1 is twice as large: weights of equal length are the best of a norm.
    """
    f1_output: kit.Floats


@dataclass(frozen=True)
class MarginEvidence(Evidence):
    """The networks by width, and what their margins are compared with."""

    limit: float
    """The largest margin found of any network on their samples,"""
    bound: float
    """and the bound that was found for it."""
    alone: float
    """Margin of the trained output layer over the solver's,"""
    agree: float
    """and the share of held-out samples that both put into one class."""


def network(run: kit.Run) -> tuple[float, ...]:
    """Return `fits`, `both`, `output`, `f1` and `f1_output` of one network."""
    samples, width = run.dataset(), run.config.architecture.width  # type: ignore[attr-defined]
    a = np.asarray(run.parameters["hidden_weight"][0])
    weights = run.measures["weight_norm"] ** 2 / width
    b = output_layer(a, samples.x, samples.y)
    assert samples.x_test is not None
    assert samples.y_test is not None
    wrong = (hidden(a, samples.x_test) @ b) * samples.y_test <= 0
    last = np.flatnonzero(np.isfinite(weights))[-1]
    return (
        run.measures["train_accuracy"][last] == 1,
        1 - run.measures["test_accuracy"][last],
        kit.given(np.isfinite(b).all(), np.mean(wrong)),
        np.nanmax(run.measures["margin"] / weights),
        width / (2 * np.abs(b) @ np.linalg.norm(a, axis=1)),
    )


def evidence(runs: kit.Runs) -> Evidence:
    """Measure the networks at each number of samples, dimension or width."""
    points: dict[float, list[tuple[float, ...]]] = {}
    for (_, value, _), run in kit.by_values(runs, "{} = {} ({})").items():
        points.setdefault(value, []).append(network(run))
    numbers = np.array([*points.values()])  # (points, networks, quantities)
    return Evidence(np.array([*points]), *np.moveaxis(numbers, -1, 0))


def _claims(e: Evidence) -> list[kit.Claim]:
    """Return the claims that hold for samples and dimensions alike."""
    fits = bool(e.fits.all())
    return [
        kit.claim(
            "better",
            "Both layers err less than the output layer alone (share of the points, mean error of"
            " the networks)",
            ABSTRACT,
            kit.exactly(1),
            kit.given(fits, np.mean(e.both.mean(1) < e.output.mean(1))),
        ),
        kit.claim(
            "f1",
            "Both layers separate with a larger margin of variation norm 1 (smallest ratio of all "
            "networks)",
            ABSTRACT,
            kit.more_than(1),
            kit.given(fits, (e.f1 / e.f1_output).min()),
        ),
    ]


def claims_samples(e: Evidence) -> list[kit.Claim]:
    fits = bool(e.fits.all())
    both = e.both.mean(1)
    output = e.output.mean(1)
    falls = np.diff(both) < 0
    return [
        *_claims(e),
        kit.claim(
            "learns",
            "The error of both layers falls with every doubling of the samples (share)",
            SECTION,
            kit.exactly(1),
            kit.given(fits, falls.mean()),
        ),
        kit.claim(
            "half",
            "Both layers need less than half of the samples: their error with the half of the"
            " largest number is below the output layer's with all (ratio)",
            ABSTRACT,
            kit.less_than(1),
            kit.given(fits and falls.all(), both[-2] / output[-1]),
        ),
    ]


def ratios(margins: kit.Floats) -> kit.Floats:
    """Return the means of margins (points, networks) over the mean at the point before."""
    means = margins.mean(1)
    return np.asarray(means[1:] / means[:-1])


def claims_dimension(e: Evidence) -> list[kit.Claim]:
    fits = bool(e.fits.all())
    both = e.both.mean(1)
    output = e.output.mean(1)
    return [
        *_claims(e),
        kit.claim(
            "gap",
            "The dimension costs the output layer more: the difference of the errors is larger in"
            " the most dimensions than in the fewest (difference)",
            ABSTRACT,
            kit.more_than(0),
            kit.given(fits, (output - both)[-1] - (output - both)[0]),
        ),
        kit.claim(
            "margin",
            "The margin of both layers does not shrink with the dimension: a function of the first "
            "inputs stays available (means, least ratio of a dimension to the next smaller)",
            ABSTRACT,
            kit.at_least(1),
            kit.given(fits, ratios(e.f1).min()),
        ),
        kit.theory(
            "kernel",
            "The margin of the output layer in variation norm 1 shrinks with the dimension (means, "
            "largest ratio of a dimension to the next smaller)",
            ABSTRACT,
            kit.less_than(1),
            ratios(e.f1_output).max(),
        ),
    ]


def evidence_margin(runs: kit.Runs) -> MarginEvidence:
    """Measure the networks of each width, the largest margin of any on their samples, and the
    trained output layer.
    """
    samples = next(iter(runs.values())).dataset()
    limit, bound = largest_margin(samples.x, samples.y)
    alone = runs["output"]
    few = runs["output"].dataset()
    a = np.asarray(alone.parameters["hidden_weight"][0])
    b = np.asarray(alone.parameters["output_weight"][-1])
    solved = output_layer(a, few.x, few.y)
    margin = (few.y * (hidden(a, few.x) @ b)).min() / len(a)
    assert few.x_test is not None
    outputs = hidden(a, few.x_test)
    return MarginEvidence(
        **vars(evidence(runs)),
        limit=limit / 2,
        bound=bound / 2,
        alone=float(margin * np.linalg.norm(solved) / max(np.linalg.norm(b), 1e-300)),
        agree=float(np.mean((outputs @ b) * (outputs @ solved) > 0)),
    )


def claims_margin(e: MarginEvidence) -> list[kit.Claim]:
    fits = bool(e.fits[-1].all())
    return [
        kit.claim(
            "grows",
            "The margin of both layers grows with every doubling of the width (share, mean)",
            SECTION,
            kit.exactly(1),
            kit.given(fits, np.mean(np.diff(e.f1.mean(1)) > 0)),
        ),
        kit.claim(
            "larger",
            "The output layer alone has a smaller margin of variation norm 1 (ratio of means, both "
            "over output, largest width)",
            ABSTRACT,
            kit.more_than(1),
            kit.given(fits, e.f1[-1].mean() / e.f1_output[-1].mean()),
        ),
        kit.claim(
            "alone",
            "Training the output layer alone maximises the margin of the kernel (share of the"
            " solver's)",
            ABSTRACT,
            kit.around(1),
            e.alone,
        ),
        kit.claim(
            "agree",
            "Training the output layer alone ends in the classifier of the solver (share of equal "
            "held-out classes)",
            ABSTRACT,
            kit.around(1),
            e.agree,
        ),
    ]


def numbers_margin(e: MarginEvidence) -> dict[str, float]:
    """Return the largest margin that was found, and the mean margin at the largest width over
    it.
    """
    return {
        "largest margin found": e.limit,
        "margin of both layers at the largest width over it": e.f1[-1].mean() / e.limit,
    }


def _draw(e: Evidence, label: str, **words: Any) -> kit.Drawing:
    def over(title: str, ylabel: str, *values: kit.Floats, high: float | None) -> kit.Chart:
        layers = dict(zip(("both layers", "output layer alone, solved"), values, strict=True))
        return kit.chart(
            title,
            ylabel,
            [kit.line(e.at, single, look="dashed 0.6") for single in values],
            [kit.line(e.at, each.mean(1), name, "joined") for name, each in layers.items()],
            limits=(0, high),
        )

    return kit.charts(
        over("Errors", "held-out error", e.both, e.output, high=0.55),
        over("Margins", r"$\mathcal{F}_1$ margin", e.f1, e.f1_output, high=None),
        xlabel=label,
        **words,
    )


def draw_samples(e: Evidence) -> kit.Drawing:
    return _draw(e, "samples, $n$", log="x", ticks=e.at)


def draw_dimension(e: Evidence) -> kit.Drawing:
    return _draw(e, "input dimension with the bias, $d$")


def draw_margin(e: MarginEvidence) -> kit.Drawing:
    layers = {"both layers": e.f1, "output layer alone": e.f1_output}
    return kit.charts(
        kit.chart(
            "",
            r"$\mathcal{F}_1$ margin",
            [kit.line(e.at, values.mean(1), name) for name, values in layers.items()],
            [kit.line(e.at, values, look="+") for values in layers.values()],
            kit.entry("single networks", "muted +"),
            kit.level(e.limit, "largest found (solver)", "theory dotted"),
            kit.level(e.bound, "largest its search leaves open", "muted dotted"),
            xlabel="neurons, $m$",
            log="x",
            ticks=e.at,
        ),
        legend="inside",
    )


def _wanted(
    name: str,
    changes: dict[int, tuple[str, ...]],
    full: bool = False,
    step: float = 0.1,
    seed: str = "seed",
) -> dict[str, kit.Wanted]:
    """Return the runs of a figure: value -> its changes, of several networks, of the released
    size or small.
    """
    made: dict[str, kit.Wanted] = {}
    for value, of_value in changes.items():
        width = value if name == "m" else 1000 if full else WIDTH
        rate, further = (0.5, RELEASED) if full else (step, ())
        sizes = (
            f"architecture.width={width}",
            f"architecture.output_scale={1 / width!r}",
            f"optimizer.lr={rate * width!r}",
            *further,
            *of_value,
        )
        seeds = {seed: range(3 if name == "m" else NETWORKS)}
        made |= kit.grid("chizat2020/both.yaml", seeds, f"{name} = {value} ({{}})", *sizes)
    return made


def _samples(*numbers: int, full: bool = False) -> dict[str, kit.Wanted]:
    return _wanted("n", {n: (f"dataset.n={n}",) for n in numbers}, full)


def _dimensions(full: bool = False) -> dict[str, kit.Wanted]:
    return _wanted("d", {d: (f"dataset.dim={d - 1}",) for d in DIMENSIONS}, full)


def _widths(*widths: int, full: bool = False) -> dict[str, kit.Wanted]:
    small = (
        ()
        if full
        else (
            "dataset.n=128",
            "optimizer.iterations=16000",
            "record.snapshots={kind: every, interval: 800}",
        )
    )
    made = _wanted("m", dict.fromkeys(widths, small), full, 0.02, "initialization.seed")
    return {**made, "output": kit.Wanted("chizat2020/output.yaml")}


FIGURES = kit.by_id(
    kit.Figure(
        id="chizat2020-samples",
        caption=(
            "Errors and margins of networks whose two layers are trained, and of the max-margin"
            " output layer on the neurons of their start, which is solved, against the number of"
            " samples, in 15 dimensions of which two matter; dashed: single networks."
        ),
        configs=_samples(*SAMPLES),
        presets={"full": _samples(*SAMPLES, 512, full=True)},
    ),
    kit.Figure(
        id="chizat2020-dimension",
        caption=(
            "Errors and margins of networks whose two layers are trained, and of the max-margin"
            " output layer on the neurons of their start, which is solved, against the input"
            " dimension, for 256 samples that two inputs label; dashed: single networks."
        ),
        configs=_dimensions(),
        presets={"full": _dimensions(full=True)},
    ),
    kit.Figure(
        id="chizat2020-margin",
        caption=(
            "Margins of variation norm against the width: both layers trained, and the max-margin"
            " output layer on the neurons of their start, which is solved and has no point where no"
            " output weights separate the samples; networks that do not separate theirs have a"
            " margin of 0. Dotted: the largest margin that a linear program found, which no network"
            " of any width need attain, and, grey, the largest that its search leaves open."
        ),
        configs=_widths(*WIDTHS),
        presets={"full": _widths(*WIDTHS, 512, 1024, full=True)},
        passes={
            "random_features": {
                "alone agree": "These networks train the output layer alone: this null leaves them."
            }
        },
    ),
)
