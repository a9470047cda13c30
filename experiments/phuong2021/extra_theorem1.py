"""Beyond the figures: Theorem 1 and its lemmas on small data that satisfy the assumptions.

`dyn reproduce phuong2021-extra-theorem1`. About 9 s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.plotting.layout import panel_label, place_legend
from dynamics_cli.plotting.style import PALETTE, SERIES, new_figure
from dynamics_cli.reproduction.claims import Claim, around, at_most, claim, exactly, finding, less_than, near
from dynamics_cli.reproduction.figure import Figure, Runs, Wanted
from dynamics_cli.theory.canonical_neurons import CanonicalNeurons, canonical_neurons
from dynamics_cli.theory.extremal_sectors import G, extremal_directions

from .lemmas import SectorHistory, sector_history
from .limit_path import LimitPath, initial_scale, limit_path

SCALES = ("1.0e-1", "1.0e-2", "1.0e-3", "1.0e-4")
DRAWS = (("2", "11"), ("2", "13"), ("2", "18"), ("2", "20"), ("3", "13"), ("3", "31"))
"""Dimension and seed of the Gaussian data; these draws satisfy the assumptions of Theorem 1."""


@dataclass(frozen=True)
class Evidence:
    """Paths to the limit, and what became of the neurons of small runs."""

    limit: CanonicalNeurons
    paths: list[LimitPath]
    flows: list[SectorHistory]
    sgd: list[SectorHistory]
    angles: Floats
    """(k,) degrees of directions in the plane."""
    G: Floats
    """(k,) G there, for the data of `paths`."""
    extremal: tuple[list[float], list[float]]
    """Degrees of the positive and of the negative extremal directions."""


def evidence(runs: Runs) -> Evidence:
    """Measure all runs."""
    ordered = sorted(
        (run for role, run in runs.items() if role.startswith("scale")),
        key=lambda run: -initial_scale(run),
    )
    data = ordered[0].dataset()
    limit = canonical_neurons(data.x, data.y)
    angles = np.linspace(-180.0, 180.0, 721)
    circle = np.stack([np.cos(np.radians(angles)), np.sin(np.radians(angles))], axis=1)
    both = [[one.direction for one in extremal_directions(data.x, data.y, sign)] for sign in (1, -1)]
    positive, negative = ([float(np.degrees(np.arctan2(w[1], w[0]))) for w in side] for side in both)
    return Evidence(
        limit=limit,
        paths=[limit_path(run, limit) for run in ordered],
        flows=[sector_history(role, run) for role, run in runs.items() if role.startswith("flow")],
        sgd=[sector_history(role, run) for role, run in runs.items() if role.startswith("sgd")],
        angles=angles,
        G=G(data.x, data.y, circle),
        extremal=(positive, negative),
    )


def claims(found: Evidence) -> list[Claim]:
    """Compare with Theorem 1, Corollary 1 and the lemmas."""
    return [*_theorem(found), *_lemmas(found), *_sgd(found)]


def _theorem(found: Evidence) -> list[Claim]:
    small = found.paths[-1]
    final = [float(path.distances[-1]) for path in found.paths]
    return [
        claim(
            "assumptions",
            "The support examples of each class span the space (data sets for which they do not)",
            "Section 2",
            expected=exactly(0),
            measured=int(not found.limit.spans) + sum(not one.spans for one in found.flows),
        ),
        claim(
            "limit",
            "W/||W|| goes to u w+' + z w-' (states from log t = 2 on that are farther than the one before)",
            "Theorem 1, Eq. 8",
            expected=exactly(0),
            measured=small.rises,
        ),
        claim(
            "rate",
            "with the rate of linear networks, 1/log t (power of log t)",
            "Theorem 1; Soudry et al. 2018, Theorem 5, for its linear subnetworks",
            expected=around(-1.0),
            measured=small.rate,
        ),
        claim(
            "output",
            "a/||a|| has the size of W/||W||, row by row (largest difference)",
            "Theorem 1, Eq. 9; Lemma A.4",
            expected=less_than(1e-3),
            measured=small.imbalance,
        ),
        claim(
            "share",
            "Both groups grow as nu log t: share of the positive one in ||W||^2",
            "Proof of Theorem 1; nu = ||w+||, ||w-|| for the logistic loss",
            expected=near(found.limit.share, 0.01),
            measured=small.share,
        ),
        claim(
            "function",
            "f/||theta||^2 goes to u relu(w+'x) - z relu(w-'x), u = z = 1/(2 ||w+|| + 2 ||w-||) (relative error)",
            "Corollary 1",
            expected=less_than(0.01),
            measured=small.function_error,
        ),
        claim(
            "two-groups",
            "Every neuron dies or joins one of two groups (others, over all scales up to 0.01)",
            "Theorem 1, Lemma 1",
            expected=exactly(0),
            measured=sum(path.outside for path in found.paths if path.scale <= 0.01),
        ),
        finding(
            "large-scale",
            "Neurons that do neither from the largest scale: the lemma needs a small enough one",
            "Lemma 1",
            measured=found.paths[0].outside,
        ),
        finding("distance", "Final distance from the smallest scale", "Theorem 1", measured=final[-1]),
        finding("distance-large", "Final distance from the largest scale", "Theorem 1", measured=final[0]),
        finding("log-time", "log t reached", "Theorem 1", measured=float(small.log_times[-1])),
    ]


def _lemmas(found: Evidence) -> list[Claim]:
    neurons = sum(int(one.counts[0].sum()) for one in found.flows)
    counts = [count for one in found.flows for count in one.extremal]
    counts += [len(side) for side in found.extremal]
    return [
        claim(
            "lemma-2",
            "There is exactly one positive and one negative extremal direction (data sets and signs where not)",
            "Lemma 2",
            expected=exactly(0),
            measured=sum(count != 1 for count in counts),
        ),
        claim(
            "lemma-2-sectors",
            "Their sectors are those of Eqs. 13 and 14 (sectors that are not)",
            "Lemma 2, Eqs. 13, 14",
            expected=exactly(0),
            measured=sum(2 - one.predicted for one in found.flows),
        ),
        claim(
            "lemma-1",
            "On gradient flow neurons turn off or reach the extremal sector of their sign (neurons that do not)",
            "Lemma 1",
            expected=exactly(0),
            measured=sum(one.outside for one in found.flows),
        ),
        claim(
            "lemma-3",
            "A neuron that has entered its extremal sector never leaves (neurons that do)",
            "Lemma 3",
            expected=exactly(0),
            measured=sum(one.left for one in found.flows),
        ),
        claim(
            "signs",
            "Output weights keep their signs (neurons that do not)",
            "Lemma A.4",
            expected=exactly(0),
            measured=sum(one.sign_changes for one in found.flows),
        ),
        claim(
            "dead",
            "A neuron dies with probability at most 1/2 (share of dead neurons; all of a network: extra-dead)",
            "Proof of Theorem 1",
            expected=at_most(0.5),
            measured=sum(one.dead for one in found.flows) / max(neurons, 1),
        ),
        finding("neurons", "Neurons followed on gradient flow", "Lemmas 1 to 3", measured=neurons),
    ]


def _sgd(found: Evidence) -> list[Claim]:
    return [
        finding("sgd-left", "The same by SGD: neurons that leave their extremal sector", "Lemma 3",
                measured=sum(one.left for one in found.sgd)),
        finding("sgd-outside", "neither dead nor in their extremal sector at the end", "Lemma 1",
                measured=sum(one.outside for one in found.sgd)),
        finding("sgd-signs", "output weights that change their sign", "Lemma A.4",
                measured=sum(one.sign_changes for one in found.sgd)),
        finding("sgd-dead", "dead", "Lemma 1", measured=sum(one.dead for one in found.sgd)),
    ]  # fmt: skip


def draw(found: Evidence) -> Drawing:
    """Draw the distances, the neurons of one flow by sector, and G on the circle."""
    figure, axes = new_figure(3, 1, width=7.2, aspect=0.95)
    for path, color in zip(found.paths, SERIES, strict=False):
        shown = path.log_times > 0.1
        label = rf"$\lambda={path.scale:g}$"
        axes[0].plot(path.log_times[shown], path.distances[shown], color=color, label=label)
    guide = np.array([10.0, 450.0])
    axes[0].plot(guide, 3.0 / guide, color=PALETTE.theory, ls=(0, (4, 2)), lw=1.0, label=r"$\propto 1/\log t$")
    axes[0].set(xscale="log", yscale="log", xlabel=r"$\log t$", ylabel="distance to the limit")
    place_legend(axes[0], axes[0].get_lines(), columns=3)
    panel_label(axes[0], 0, "Theorem 1")
    _draw_sectors(axes[1], found.flows[0])
    _draw_G(axes[2], found)
    return figure


def _draw_sectors(axes: Axes, one: SectorHistory) -> None:
    names = ("dead", r"in $\sigma^+$, $a_j>0$", r"in $\sigma^-$, $a_j<0$", "elsewhere")
    colors = (PALETTE.muted, PALETTE.highlight, PALETTE.neurons, PALETTE.theory)
    after = one.times > 0
    for k, (name, color) in enumerate(zip(names, colors, strict=True)):
        axes.plot(one.times[after], one.counts[after, k], color=color, label=name, drawstyle="steps-post")
    axes.set(xscale="log", xlabel="time $t$", ylabel="neurons")
    place_legend(axes, axes.get_lines())
    panel_label(axes, 1, "Lemmas 1 and 3")


def _draw_G(axes: Axes, found: Evidence) -> None:
    axes.plot(found.angles, found.G, color=PALETTE.function, label="$G(w)$")
    for side, marker, color, name in zip(
        found.extremal, "^v", (PALETTE.highlight, PALETTE.neurons), ("maximum", "minimum"), strict=True
    ):
        heights = np.interp(side, found.angles, found.G)
        axes.plot(side, heights, marker, color=color, ms=7, ls="none", label=name)
    axes.set(xlabel="angle of $w$ (degrees)", ylabel="$G(w)$", xticks=(-180, -90, 0, 90, 180))
    place_legend(axes, axes.get_lines())
    panel_label(axes, 2, "Lemma 2")


def _wanted() -> dict[str, str | Wanted]:
    wanted: dict[str, str | Wanted] = {
        f"scale {scale}": Wanted("phuong2021/small.yaml", (f"initialization.scale={scale}",)) for scale in SCALES
    }
    for kind in ("flow", "sgd"):
        for dim, seed in DRAWS:
            changes = (f"dataset.dim={dim}", f"seed={seed}")
            wanted[f"{kind} {dim} {seed}"] = Wanted(f"phuong2021/small_{kind}.yaml", changes)
    return wanted


FIGURE = Figure(
    id="phuong2021-extra-theorem1",
    caption=(
        "Not in the paper. (a) Distance of W/||W|| to the limit of Theorem 1 against the logarithm of time, for four "
        "scales of a balanced initialisation. (b) Neurons of a run of gradient flow by sector. (c) The function G of "
        "Eq. 12 on the unit circle, with its strict maxima (positive extremal) and minima (negative extremal)."
    ),
    configs=_wanted(),
    origin={"balanced start, loss, flow": "stated", "all else": "assumed"},
    evidence=evidence,
    claims=claims,
    draw=draw,
)
