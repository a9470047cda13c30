"""Beyond the figures: how likely all neurons of a small network die, beside the bound of the proof of Theorem 1."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np

from dynamics_cli import kit

from .theory.canonical_neurons import canonical_neurons
from .theory.extremal_sectors import sector_of
from .theory.separability import separability_violations

WIDTHS = (1, 2, 3, 4, 5, 6)
NETWORKS = 2000
"""Of each width on each data set."""
TOLERANCE = 3.0
"""Binomial standard deviations within which a share is at its probability."""
CONE_ANGLES = (40.0, 50.0, 145.0, 150.0)
"""Degrees of the points of the second data set; the first two are positive. All assumptions of Theorem 1 hold."""
CONE_POINTS = [[float(np.cos(np.radians(a))), float(np.sin(np.radians(a)))] for a in CONE_ANGLES]
PLANE = (
    "dataset.x=[[1.9, 0.5], [0.6, 1.5], [1.2, 1.3], [2.0, 2.4], "
    "[-1.6, -0.3], [-0.4, -1.2], [-1.1, -1.4], [-2.2, -1.0]]",
    "dataset.y=[1, 1, 1, 1, -1, -1, -1, -1]",
)
"""The data of `small.yaml`, whose cone is the plane: no direction is inactive on all of them."""
NAMES = {"orthogonal": "one orthogonal point a class", "cone": "four points, two cones"}


@dataclass(frozen=True)
class Fates:
    """What became of the neurons of many networks of p neurons."""

    p: int
    dead: kit.Ints
    """(R,) dead neurons of each network: active on no example at the end."""
    undecided: int
    """Neurons that are active on examples of the other class only at the end."""
    exceptions: int
    """Neurons that start active on an example of their class, and do not end so (Lemma B.1: none)."""

    @property
    def bound(self) -> float:
        """`2^-p`."""
        return 0.5**self.p

    @property
    def share(self) -> float:
        """Share of networks all of whose neurons are dead."""
        return float(np.mean(self.dead == self.p))

    @property
    def excess(self) -> float:
        """Share minus bound, in standard deviations of the share of as many networks at the bound."""
        return (self.share - self.bound) / float(np.sqrt(self.bound * (1 - self.bound) / len(self.dead)))


def evidence(runs: kit.Runs) -> kit.Evidence:
    """Look at the first and the last state of all networks: fates by data set, in the order of the widths.

    `plane` are single neurons on the data of `small.yaml`. `violations` counts pairs of the four points that violate
    Eq. 1, plus 1 when a class's support examples do not span the plane.
    """
    orthogonal, cone = ([fates(runs[f"{name} {p}"]) for p in WIDTHS] for name in NAMES)
    points = runs["cone 1"].dataset()
    spans = canonical_neurons(points.x, points.y).spans
    return kit.Evidence(
        orthogonal=orthogonal,
        cone=cone,
        plane=fates(runs["plane 1"]),
        violations=separability_violations(points.x, points.y) + int(not spans),
    )


def fates(run: kit.Run) -> Fates:
    """Return the fates of the neurons of networks trained together."""
    data = run.dataset()
    W, a = (run.parameters[key] for key in ("hidden_weight", "output_weight"))  # (K, R, p, d), (K, R, p)
    active = [sector_of(data.x, np.asarray(W[k])) > 0 for k in (0, -1)]  # (R, p, n) each
    own = np.sign(np.asarray(a[0]))[..., None] == np.sign(data.y)
    started, ended = ((on & own).any(axis=-1) for on in active)
    dead = ~active[1].any(axis=-1)
    return Fates(
        p=dead.shape[1],
        dead=dead.sum(axis=1),
        undecided=int((~dead & ~ended).sum()),
        exceptions=int((started & ~ended).sum()),
    )


def claims(e: kit.Evidence) -> list[kit.Claim]:
    """Compare with the proof of Theorem 1."""
    source, every = "Theorem 1; its proof", [*e.orthogonal, *e.cone, e.plane]
    # training went on until no neuron is undecided: the dead neurons are known only then
    settled = not any(one.undecided for one in every)
    return [
        kit.theory("assumptions",
                  "The four points satisfy Eq. 1, and the support examples of each class span the plane (violations)",
                  "Section 2", kit.exactly(0), e.violations),
        kit.claim("bound",
                  "All p neurons die with probability at most 2^-p (largest excess of a share of networks over it, "
                  f"for p = 1 to 6, in binomial standard deviations; up to {TOLERANCE:g} are chance)",
                  source, kit.at_most(TOLERANCE), kit.given(settled, max(one.excess for one in every))),
        kit.claim("attained",
                  "On one orthogonal point a class the probability is 2^-p: a neuron lives exactly when it "
                  "starts active on the point of its class (largest deviation, same unit)",
                  "Lemma B.1, which is sharp there",
                  kit.at_most(TOLERANCE), max(abs(one.excess) for one in e.orthogonal)),
        kit.claim("stays", "A neuron that starts active on an example of its class stays so (neurons that do not)",
                  "Lemma B.1", kit.exactly(0), kit.given(settled, sum(one.exceptions for one in every))),
        kit.claim("decided",
                  "Neurons die or are active on their class "
                  "(neurons that at the end are active on the other class only)",
                  "Lemma 1", kit.exactly(0), sum(one.undecided for one in every)),
        *[
            kit.finding(f"{key}-{one.p}", f"{name}: share of networks of {one.p} that die; 2^-p = {one.bound:.4g}",
                        source, one.share)
            for (key, name), side in zip(NAMES.items(), (e.orthogonal, e.cone), strict=True)
            for one in side
        ],
        kit.finding("plane", "Data of small.yaml: share of single neurons that die", source, e.plane.share),
    ]  # fmt: skip


def draw(e: kit.Evidence) -> kit.Drawing:
    """Draw the shares over the width, and the number of dead neurons of the widest networks."""
    figure, axes = kit.new_figure(2, aspect=0.85)
    _draw_shares(axes[0], e)
    _draw_counts(axes[1], e.orthogonal[-1])
    return figure


def _draw_shares(axes: kit.Axes, evidence: kit.Evidence) -> None:
    widths = np.array(WIDTHS)
    axes.plot(widths, 0.5**widths, color=kit.PALETTE.theory, ls=(0, (4, 2)), label="$2^{-p}$")
    looks = ((evidence.orthogonal, kit.MARKER, kit.PALETTE.measured, 0.0), (evidence.cone, "s", kit.PALETTE.rank, 0.12))
    for (side, marker, color, shift), name in zip(looks, NAMES.values(), strict=True):
        shares = np.array([one.share for one in side])
        deviations = np.sqrt(shares * (1 - shares) / [len(one.dead) for one in side])
        axes.errorbar(
            widths + shift, shares, 2 * deviations, color=color, marker=marker, ms=4, ls="none", capsize=2, label=name
        )
    axes.set(xlabel="neurons $p$", ylabel="share of networks")
    axes.set_yscale("log", base=2)
    axes.set_xticks(WIDTHS)
    kit.place_legend(axes, axes.get_legend_handles_labels()[0], columns=1)
    kit.panel_label(axes, 0, "All $p$ neurons dead")


def _draw_counts(axes: kit.Axes, one: Fates) -> None:
    counts = np.arange(one.p + 1)
    expected: kit.Floats = np.array([comb(one.p, int(k)) for k in counts]) * one.bound * len(one.dead)
    bars = axes.bar(
        counts, np.bincount(one.dead, minlength=one.p + 1), color=kit.PALETTE.neurons, label="trained networks"
    )
    (line,) = axes.plot(
        counts, expected, ls="none", marker="D", mfc="none", color=kit.PALETTE.theory, label=r"binomial, $1/2$ each"
    )
    axes.set(
        xlabel=f"dead neurons of {one.p}", ylabel="networks", xticks=counts, ylim=(0, 1.15 * float(expected.max()))
    )
    kit.place_legend(axes, [bars, line], columns=1)  # type: ignore[list-item]
    kit.panel_label(axes, 1, "Neurons die independently")


def _wanted() -> dict[str, str | kit.Wanted]:
    cone = (f"dataset.x={CONE_POINTS!r}", "dataset.y=[1, 1, -1, -1]")
    data = {"orthogonal": (), "cone": cone}
    wanted: dict[str, str | kit.Wanted] = {
        f"{name} {p}": kit.Wanted("phuong2021/small_networks.yaml", (*changes, f"architecture.width={p}"), NETWORKS)
        for name, changes in data.items()
        for p in WIDTHS
    }
    wanted["plane 1"] = kit.Wanted("phuong2021/small_networks.yaml", (*PLANE, "architecture.width=1"), NETWORKS)
    return wanted


FIGURE = kit.Figure(
    id="phuong2021-extra-dead",
    caption=(
        "Not in the paper. (a) Share of 2 000 networks of p neurons all of which die, with two binomial standard "
        "deviations to either side, and the bound 2^-p: for one orthogonal point a class, where it is attained, and "
        "for four points that satisfy all assumptions of Theorem 1 (drawn a little to the right). (b) Number of dead "
        "neurons of the networks of six on the orthogonal points, and what six independent neurons would give."
    ),
    configs=_wanted(), origin={"balanced start, loss": "stated", "all else": "chosen"},
)  # fmt: skip
