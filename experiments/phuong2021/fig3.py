"""Figure 3: inner products of features within and across two digits, layer by layer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.lines import Line2D

from dynamics_cli import kit

from .mnist import CONFIGS, ORIGIN, PRESETS, architecture_of
from .theory.separability import PairProducts, pair_products

SORTS = {
    "across": ("different digits", kit.PALETTE.neurons),
    "first": ("both 0", kit.PALETTE.highlight),
    "second": ("both 1", kit.PALETTE.function),
}
CLASSES = ("first", "second")
DRAWN_BINS = 60
UPDATES, IMAGES = 4950, 12665
"""Of the paper: 50 epochs in batches of 128."""


@dataclass(frozen=True)
class Evidence:
    """Distributions of products of pairs."""

    before: list[PairProducts]
    """Of the input, and of every hidden layer before its ReLU, as `f^l` of Section 5.2 is."""
    after: list[PairProducts]
    """Of the input, and of every hidden layer after its ReLU."""
    accuracy: float
    updates: int
    images: int

    @property
    def training(self) -> str:
        """How much of the paper's training this is."""
        share = self.updates / UPDATES
        return f"after {self.updates} updates on {self.images} images: {share:.0%} of the paper's {UPDATES} on {IMAGES}"

    def places(self, sort: str) -> kit.Floats:
        """Return, layer by layer, the mean product of pairs of a sort, in mean deviations."""
        with np.errstate(divide="ignore", invalid="ignore"):  # a layer whose units are dead has no deviations
            return np.array([one.means[sort] / np.mean([*one.stds.values()]) for one in self.before])

    def gaps(self) -> list[float]:
        """Return, layer by layer, how far the closer class lies right of the mixed pairs, in mean deviations."""
        closer = np.minimum(*(self.places(sort) for sort in CLASSES))
        with np.errstate(invalid="ignore"):
            return [*map(float, closer - self.places("across"))]

    def right(self) -> list[tuple[float, float]]:
        """Return, layer by layer, the probability that a pair of each class has a larger product than a mixed one."""
        return [(one.right("first"), one.right("second")) for one in self.before]


def evidence(runs: kit.Runs) -> Evidence:
    """Compute all pairs of the training images, one layer after the other."""
    run = runs["mnist"]
    section, data, state = architecture_of(run), run.dataset(), run.state(-1)
    before = [pair_products(data.x.astype(np.float32), data.y)]
    after = before[:]
    for number in range(1, len(section.convolutions) + len(section.widths) + 1):
        z = section.layer_outputs(state, data.x, number)
        before.append(pair_products(z, data.y))
        after.append(pair_products(np.maximum(z, 0, out=z), data.y))
    accuracy = float(np.mean(np.sign(run.network(-1)(data.x)) == np.sign(data.y)))
    return Evidence(before, after, accuracy, run.iterations, len(data.x))


def claims(e: Evidence) -> list[kit.Claim]:
    """Compare with Appendix D."""
    gaps, right = e.gaps(), e.right()
    last = len(gaps) - 1
    return [
        kit.claim("right",
                  "Pairs of a class are more to the right than mixed ones "
                  "(share of layers and classes where it is likelier)",
                  "Appendix D, Figure 3", kit.most(), np.mean(np.array(right[1:]) > 0.5)),
        kit.claim("depth",
                  "Higher layers are generally more strongly separated (share with a larger gap than the layer before)",
                  "Appendix D, Figure 3", kit.most(), np.mean(np.diff(gaps) > 0)),
        kit.claim("blue-left", "Up the layers the blue distribution shifts leftward (share of layers, mean deviations)",
                  "Appendix D, Figure 3", kit.most(), np.mean(np.diff(e.places("across")) < 0)),
        kit.claim("others-right", "and the others keep shifting rightward (share of layers and classes)",
                  "Appendix D, Figure 3", kit.most(), np.mean([np.diff(e.places(k)) > 0 for k in CLASSES])),
        kit.claim("last-gap",
                  f"Layer {last} is more strongly separated than the input (gap there minus gap of the input)",
                  "Appendix D, Figure 3", kit.more_than(0.0), gaps[-1] - gaps[0]),
        kit.claim("separable",
                  f"Layer {last} is orthogonally separable (share of pairs that satisfy Eq. 1, before the ReLU)",
                  "Appendix D, Figure 3, Eq. 1", kit.exactly(1), e.before[-1].share),
        kit.finding("separable-after",
                    "The same after the ReLU, where only disjoint supports satisfy it across digits", "Eq. 1",
                    e.after[-1].share),
        kit.finding("mixed-before", f"Mixed pairs of layer {last} with a product <= 0, before the ReLU", "Eq. 1",
                    e.before[-1].satisfied["across"]),
        kit.finding("right-means",
                    "Share of layers and classes whose pairs have a larger mean product than mixed ones", "Figure 3",
                    np.mean([one.means[k] > one.means["across"] for one in e.before[1:] for k in CLASSES])),
        kit.finding("depth-right",
                    "Share of layers where the less likely class is likelier right of mixed pairs than before",
                    "Figure 3", np.mean(np.diff([min(one) for one in right]) > 0)),
        kit.finding("last-right", f"Smaller of these probabilities in layer {last} minus that of the input",
                    "Figure 3", min(right[-1]) - min(right[0])),
        kit.finding("gap-input", "Gap of the input, in mean standard deviations", "Figure 3", gaps[0]),
        kit.finding("gap-last", f"Gap of layer {last}", "Figure 3", gaps[-1]),
        kit.finding("gap-largest", "Largest gap of a layer", "Figure 3", max(gaps)),
        kit.finding("right-0", f"Layer {last}: probability that a pair of 0s exceeds a mixed one", "Figure 3",
                    right[-1][0]),
        kit.finding("right-1", f"Layer {last}: probability that a pair of 1s exceeds a mixed one", "Figure 3",
                    right[-1][1]),
        kit.finding("accuracy", "Training accuracy", "Appendix D", e.accuracy),
        kit.finding("updates", f"Updates (the paper: {UPDATES})", "Appendix D", e.updates),
    ]  # fmt: skip


def draw(e: Evidence) -> kit.Drawing:
    """Draw one panel for the input and each layer."""
    columns = 4
    figure, axes = kit.new_figure(columns, -(-len(e.before) // columns), width=7.2, aspect=0.82, extra_height=0.3)
    for k, one in enumerate(e.before):
        _draw_products(axes[k], one)
        kit.panel_label(axes[k], k, "input" if k == 0 else f"layer {k}")
    for unused in axes[len(e.before) :]:
        figure.delaxes(unused)
    figure.suptitle(e.training, fontsize=kit.SMALL)
    kit.figure_legend(figure, [Line2D([], [], color=color, lw=1.6, label=name) for name, color in SORTS.values()])
    return figure


def _draw_products(axes: kit.Axes, one: PairProducts) -> None:
    """Draw the three densities over the range that holds all but a thousandth of the pairs on each side."""
    total = np.cumsum(sum(counts / counts.sum() for counts in one.counts.values())) / len(one.counts)
    low, high = np.searchsorted(total, [0.001, 0.999])
    low, high = max(int(low) - 1, 0), min(int(high) + 2, len(one.edges) - 1)
    step = max((high - low) // DRAWN_BINS, 1)
    starts = np.arange(low, high, step)
    edges = one.edges[[*starts, min(starts[-1] + step, len(one.edges) - 1)]]
    power = int(np.floor(np.log10(np.abs(edges).max())))
    scale = 10.0**power if power >= 4 else 1.0
    for sort, (_, color) in SORTS.items():
        sums = np.add.reduceat(one.counts[sort][: starts[-1] + step], starts) / one.counts[sort].sum()
        height = sums / np.diff(edges) * scale
        axes.stairs(height, edges / scale, fill=True, color=color, alpha=0.3)
        axes.stairs(height, edges / scale, color=color, lw=1.0)
    axes.axvline(0.0, color=kit.PALETTE.theory, lw=0.6)
    unit = rf" [$10^{{{power}}}$]" if power >= 4 else ""
    axes.set_xlabel(f"inner product{unit}")
    axes.set_ylabel("density" if axes.get_subplotspec().colspan.start == 0 else "")  # type: ignore[union-attr]
    axes.set_yticks([])
    axes.locator_params(axis="x", nbins=4)
    axes.tick_params(labelsize=kit.SMALL)


def remarks(e: Evidence) -> list[str]:
    """Say what a short training leaves open."""
    if e.updates >= UPDATES:
        return []
    return [f"Drawn {e.training}. How far the last layers separate by then depends on the seed (NOTES)."]


FIGURE = kit.Figure(
    id="phuong2021-fig3",
    caption=(
        "Distributions over all pairs of training images of the inner products of inputs and of what each layer gives "
        "before its ReLU, for images of different digits (blue), both 0 (orange), both 1 (green)."
    ),
    configs=CONFIGS, presets=PRESETS, origin=ORIGIN, evidence=evidence, claims=claims, draw=draw, remarks=remarks,
)  # fmt: skip
