"""Table 1, Figures 3 and 4: the convolutional network of Appendix D on two digits, its features,
one of its layers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynamics_cli import _bundled, kit
from dynamics_cli.architectures.convolutional import Convolutional, ImageLayer
from dynamics_cli.config import load_config

from .panels import plane_chart, values_chart
from .theory.separability import PairProducts, mixed_share, pair_products

CONFIGS: dict[str, str | kit.Wanted] = {"mnist": "phuong2021/mnist.yaml"}
PRESETS = {"full": {"mnist": "phuong2021/mnist_full.yaml"}}


def architecture_of(run: kit.Run) -> Convolutional:
    """Return the architecture of a run.

    Raises InputError when it is not a convolutional one with at least two fully connected layers.
    """
    section = run.config.architecture
    if not isinstance(section, Convolutional) or not section.widths:
        raise kit.InputError(
            f"{run.path}: this figure needs architecture.kind convolutional with hidden widths"
        )
    return section


HEADER = ["layer", "type", "output", "weights", "biases", "parameters"]


@dataclass(frozen=True)
class Table1Evidence:
    """The layers of the network, and the shapes of its weights."""

    layers: list[ImageLayer]
    shapes: dict[str, tuple[int, ...]]


def evidence_table1(runs: kit.Runs) -> Table1Evidence:
    """Read the `layers` and the `shapes` of the weights from the config of Figures 3 and 4."""
    section = load_config(_bundled.CONFIGS / "phuong2021/mnist.yaml").architecture
    assert isinstance(section, Convolutional)
    channels, rows, columns = section.image
    return Table1Evidence(layers=section.layers(), shapes=section.shapes(channels * rows * columns))


def claims_table1(e: Table1Evidence) -> list[kit.Claim]:
    kinds = [len(layer.weight) for layer in e.layers]
    rows, columns = next((layer.weight for layer in e.layers if len(layer.weight) == 2), (0, 0))
    return [
        kit.theory(
            "convolutions", "Six convolutional layers", "Appendix D", kit.exactly(6), kinds.count(4)
        ),
        kit.theory(
            "connected",
            "Two fully connected layers follow the convolutions",
            "Appendix D",
            kit.exactly(2),
            kinds[kinds.index(2) :].count(2),
        ),
        kit.theory("w7-rows", "W7 has 128 rows", "Appendix D", kit.exactly(128), rows),
        kit.theory("w7-columns", "W7 has 3136 columns", "Appendix D", kit.exactly(3136), columns),
        kit.theory(
            "biases",
            "Layers have biases (layers with one)",
            "Appendix D",
            kit.exactly(8),
            sum(f"bias_{layer.number}" in e.shapes for layer in e.layers),
        ),
    ]


def table_table1(e: Table1Evidence) -> tuple[list[str], list[list[str]]]:
    """Return the architecture, a layer a row."""
    rows = []
    for layer in e.layers:
        output, weights = (" x ".join(map(str, shape)) for shape in (layer.output, layer.weight))
        rows.append(
            [
                str(layer.number),
                layer.name,
                output,
                weights,
                str(layer.weight[0]),
                str(layer.parameters),
            ]
        )
    return HEADER, rows


def draw_table1(e: Table1Evidence) -> kit.Drawing:
    return kit.table_figure(*table_table1(e), align="lllllr")


TABLE1 = kit.Figure(
    id="phuong2021-table1",
    caption=(
        "conv(n, k, s, p): n kernels of size k x k with stride s, the input padded by p on each"
        " margin; fc(n, o): n inputs, o outputs. A ReLU follows every layer but the last. The cells"
        " are assumed so that W7 is 128 x 3136."
    ),
)


SIGNIFICANT = 0.1
"""Share of the largest singular value above which one is significantly non-zero."""
OUTER = 0.5
"""A neuron is away from the origin from this share on of ..."""
MANY = 0.9
"""... this quantile of the norms in the plane. A single far neuron moves the largest norm, but
not this one.
"""
PERMUTATIONS = 1000
"""Of the signs, or of the places."""
NEAR = 0.25
"""Share of the largest norm up to which a neuron is near the origin."""


@dataclass(frozen=True)
class Connected:
    """The first fully connected layer."""

    values: kit.Floats
    """All singular values of W7."""
    points: kit.Floats
    """(m, 2) rows on the two leading right-singular directions."""
    signs: kit.Floats
    """(m,) signs of the output weights W8."""

    def above(self, share: float) -> int:
        """Return the number of singular values above a share of the largest."""
        return int(np.sum(self.values > share * self.values[0]))

    def outer(self) -> kit.Bools:
        """Return which neurons (m,) have a norm in the plane above `OUTER` of the `MANY`
        quantile of all.
        """
        lengths = kit.norms(self.points)
        result: kit.Bools = lengths > OUTER * np.quantile(lengths, MANY)
        return result

    def in_cluster(self, some: kit.Bools, signs: kit.Floats | None = None) -> kit.Floats:
        """Return which of some neurons (m,) are closer to the mean of the neurons of their sign, or
        of the given sign.

        NaN when one sign has none there.
        """
        points = self.points[some]
        signs = (self.signs if signs is None else signs)[some]
        if not (signs > 0).any() or not (signs < 0).any():
            return np.full(len(points), np.nan)
        plus, minus = (kit.cosines(points, points[signs == s].mean(axis=0)) for s in (1, -1))
        hits: kit.Floats = ((plus > minus) == (signs > 0)).astype(np.float64)
        return hits

    def by_chance(self, outer: kit.Bools) -> float:
        """Return the 95 % point of their share when the signs of the outer neurons are permuted
        at random.
        """
        rng = np.random.default_rng(0)
        signs = np.tile(self.signs, (PERMUTATIONS, 1))
        signs[:, outer] = rng.permuted(signs[:, outer], axis=1)
        return float(np.quantile([self.in_cluster(outer, drawn).mean() for drawn in signs], 0.95))

    def more_mixed(self, near: kit.Bools, outer: kit.Bools) -> tuple[float, float]:
        """Return how much less `near` are sorted than `outer`, and the 95 % point of that under
        exchanged places.
        """
        hits = np.concatenate([self.in_cluster(outer), self.in_cluster(near)])
        n = int(outer.sum())
        permuted = np.random.default_rng(0).permuted(np.tile(hits, (PERMUTATIONS, 1)), axis=1)
        chance = np.quantile(permuted[:, :n].mean(axis=1) - permuted[:, n:].mean(axis=1), 0.95)
        return float(hits[:n].mean() - hits[n:].mean()), float(chance)


def evidence_fig4(runs: kit.Runs) -> Connected:
    """Measure the weights of the first fully connected layer."""
    run = runs["mnist"]
    section = architecture_of(run)
    state = run.state(-1)
    number = len(section.convolutions) + 1
    W, a = (state[f"weight_{k}"].astype(np.float64) for k in (number, number + 1))
    points = kit.project(W, kit.leading_directions(W))
    return Connected(kit.singular_values(W), points, np.sign(a[0]))


def claims_fig4(e: Connected) -> list[kit.Claim]:
    lengths = kit.norms(e.points)
    outer = e.outer()
    near = lengths < NEAR * lengths.max()
    mixed, chance = e.more_mixed(near, outer)
    return [
        kit.claim(
            "few",
            "Very few singular values are significantly non-zero, perhaps five or ten, more than"
            " two (above 10 %)",
            "Appendix D, Figure 4a",
            kit.Interval(3, 10),
            e.above(SIGNIFICANT),
        ),
        kit.claim(
            "by-sign",
            "Two clusters away from the origin belong to the signs of W8 (share of neurons in"
            f" theirs, of those with a norm above {OUTER:g} of the {MANY:.0%} quantile; most, and"
            " more than 95 % of permutations of the signs)",
            "Appendix D, Figure 4b",
            kit.more_than(np.fmax(0.5, e.by_chance(outer))),
            e.in_cluster(outer).mean(),
        ),
        kit.claim(
            "mixed",
            "A mixed cluster lies close to the origin (share of neurons in the cluster of their"
            " sign: how much less than away from it; more than where places are exchanged at"
            " random, 95 % point)",
            "Appendix D, Figure 4b",
            kit.more_than(chance),
            mixed,
        ),
    ]


def numbers_fig4(e: Connected) -> dict[str, float]:
    """Return the counts of singular values above other shares of the largest."""
    return {
        f"singular values above {share:.0%} of the largest": e.above(share) for share in (0.2, 0.05)
    }


def draw_fig4(e: Connected) -> kit.Drawing:
    signs = {"positive": "$W_8[j] > 0$", "negative": "$W_8[j] < 0$"}
    return kit.charts(
        values_chart("Singular values of $W_7$", e.values),
        plane_chart("Neurons", e.points, e.signs, signs),
    )


AT_ONCE = (
    "The gradient of row j of W7 is W8[j] times a vector that is nearly the same for all active"
    " neurons, so that one update sorts the rows by the sign of W8; the paper names no time."
)
FIGURE_4 = kit.Figure(
    id="phuong2021-fig4",
    caption=(
        "(a) The ten largest singular values of the first fully connected layer after training. (b)"
        " Its neurons on the two leading right-singular directions, purple for W8[j] > 0, red for"
        " W8[j] < 0."
    ),
    configs=CONFIGS,
    presets=PRESETS,
    passes={
        "one_step": {"by-sign": AT_ONCE},
        "early": {"by-sign": AT_ONCE},
        "slow": {"by-sign": AT_ONCE},
        "random_features": {"by-sign": "The layers above a frozen first one are trained."},
    },
)


SORTS = {
    "across": ("different digits", "neurons"),
    "first": ("both 0", "highlight"),
    "second": ("both 1", "function"),
}
CLASSES = ("first", "second")
DRAWN_BINS = 60
UPDATES = 4950
IMAGES = 12665
BATCH = 128
"""Of the paper: 50 epochs in batches of 128."""
PAIRED = 1000
"""Images of each class whose pairs are drawn; all images decide whether layer 7 is orthogonally
separable.
"""


def means(layers: list[PairProducts], sort: str) -> kit.Floats:
    """Return the mean product of pairs of a sort (L,), layer by layer."""
    return np.array([layer.means[sort] for layer in layers])


def places(layers: list[PairProducts], sort: str) -> kit.Floats:
    """Return the same in mean deviations."""
    spread = np.array([np.mean([*layer.stds.values()]) for layer in layers])
    with np.errstate(divide="ignore", invalid="ignore"):  # dead units have no deviations
        return np.asarray(means(layers, sort) / spread)


def upward(series: kit.Floats) -> float:
    """Return in how many pairs of layers the higher one has the larger number, as a share, of
    series (..., L).
    """
    lower, higher = np.triu_indices(series.shape[-1], 1)
    return float(np.mean(series[..., higher] > series[..., lower]))


def upward_by_chance(series: kit.Floats) -> float:
    """Return the 95 % point of `upward` when the layers are in any order."""
    rng = np.random.default_rng(0)
    orders = (rng.permutation(series.shape[-1]) for _ in range(PERMUTATIONS))
    return float(np.quantile([upward(series[..., order]) for order in orders], 0.95))


def gaps_of(layers: list[PairProducts]) -> list[float]:
    """Return, layer by layer, how far the closer class lies right of the mixed pairs, in mean
    deviations.
    """
    closer = np.minimum(*(places(layers, sort) for sort in CLASSES))
    with np.errstate(invalid="ignore"):
        return [*map(float, closer - places(layers, "across"))]


def classes(
    layers: list[PairProducts], of_sort: Callable[[list[PairProducts], str], kit.Floats]
) -> kit.Floats:
    """Return `means` or `places` of both classes (2, L)."""
    return np.stack([of_sort(layers, key) for key in CLASSES])


def right_of(layers: list[PairProducts]) -> list[tuple[float, float]]:
    """Return, layer by layer, the probability that a pair of each class has a larger product
    than a mixed one.
    """
    return [(layer.right("first"), layer.right("second")) for layer in layers]


def unit_rows(features: NDArray[np.floating]) -> kit.Floats:
    """Return features (n, D) over their norms; 0 where all units of a layer are dead."""
    return np.asarray(features / np.maximum(kit.norms(features), 1e-12)[:, None])


@dataclass(frozen=True)
class Fig3Evidence:
    """Pairs of the training images, one layer after the other.

    `before` are the products of the input, and of every hidden layer before its ReLU, as `f^l` of
    Section 5.2 is, `first` the same of the untrained network, `after` of features after the ReLU
    and `cosines` of normalised ones. `mixed` is the share of mixed pairs of layer 7 with a product
    of at most 0 by the number of updates, and `training` says how much of the paper's training this
    is.
    """

    before: list[PairProducts]
    first: list[PairProducts]
    after: list[PairProducts]
    cosines: list[PairProducts]
    mixed: dict[int, float]
    as_in_paper: bool
    training: str


def evidence_fig3(runs: kit.Runs) -> Fig3Evidence:
    """Compute the pairs of the training images, one layer after the other."""
    run = runs["mnist"]
    section = architecture_of(run)
    data = run.dataset()
    state = run.state(-1)
    some = np.concatenate([np.flatnonzero(data.y == label)[:PAIRED] for label in (-1.0, 1.0)])
    x = data.x[some]
    y = data.y[some]
    layers = range(1, len(section.convolutions) + len(section.widths) + 1)
    features = [x.astype(np.float32)]
    features += [section.layer_outputs(state, x, number) for number in layers]
    initial = (section.layer_outputs(run.state(0), x, number) for number in layers)
    before = [pair_products(one, y) for one in features]
    mixed = {}
    for place, updates in enumerate(run.snapshot_iterations):
        last = section.layer_outputs(run.state(place), data.x, layers[-1])
        mixed[int(updates)] = mixed_share(last, data.y)
    batch = getattr(run.config.optimizer, "batch_size", None)
    return Fig3Evidence(
        before=before,
        first=[before[0], *(pair_products(one, y) for one in initial)],
        after=[before[0], *(pair_products(np.maximum(one, 0), y) for one in features[1:])],
        cosines=[pair_products(unit_rows(one), y) for one in features],
        mixed=mixed,
        as_in_paper=(len(data.x), batch) == (IMAGES, BATCH) and run.iterations >= UPDATES // 5,
        training=(
            f"after {run.iterations} updates of {batch} images, of {len(data.x)}; the paper has"
            f" {UPDATES} of {BATCH}, of {IMAGES}"
        ),
    )


def claims_fig3(e: Fig3Evidence) -> list[kit.Claim]:
    gaps = np.array(gaps_of(e.before))
    right = right_of(e.before)
    last = len(gaps) - 1
    untrained = float(np.mean(np.array(right_of(e.first)[1:]) > 0.5))

    def rising(
        id: str, statement: str, series: kit.Floats, first: kit.Floats, note: str
    ) -> kit.Claim:
        """Return that a series (..., L) rises up the layers, more than by chance and than that of
        the network without training.
        """
        return kit.claim(
            id,
            f"{statement} (share of pairs of layers, {note}; more than 95 % of orders of the layers"
            " have, and than without training)",
            "Appendix D, Figure 3",
            kit.more_than(max(upward_by_chance(series), upward(first))),
            upward(series),
        )

    return [
        kit.claim(
            "right",
            "Pairs of a class are more to the right than mixed ones (share of layers and classes"
            " where it is likelier; most, and more than without training)",
            "Appendix D, Figure 3",
            kit.more_than(max(0.5, untrained)),
            np.mean(np.array(right[1:]) > 0.5),
        ),
        rising(
            "depth",
            "Higher layers are generally more strongly separated",
            gaps,
            np.array(gaps_of(e.first)),
            "gap in mean deviations larger",
        ),
        rising(
            "blue-left",
            "Up the layers the blue distribution shifts leftward",
            -means(e.before, "across"),
            -means(e.first, "across"),
            "mean product lower in the higher",
        ),
        rising(
            "others-right",
            "Other distributions keep shifting rightward",
            classes(e.before, means),
            classes(e.first, means),
            "mean product higher, both classes",
        ),
        kit.claim(
            "last-gap",
            f"Layer {last} is more strongly separated than the input (gap there minus gap of the "
            "input)",
            "Appendix D, Figure 3",
            kit.more_than(0.0),
            gaps[-1] - gaps[0],
        ),
        _separable(e, last),
    ]


def _separable(e: Fig3Evidence, last: int) -> kit.Claim:
    """Return that no mixed pair of the last hidden layer has a positive product; undecided by a
    shorter training.
    """
    claim = kit.claim(
        "separable",
        f"Layer {last} is orthogonally separable (share of mixed pairs that satisfy Eq. 1, before"
        " the ReLU)",
        "Appendix D, Figure 3, Eq. 1",
        kit.exactly(1),
        list(e.mixed.values())[-1],
    )
    if e.as_in_paper:
        return claim
    return kit.undecided(claim, f"--preset full decides it; the share still changes {e.training}")


def numbers_fig3(e: Fig3Evidence) -> dict[str, float]:
    """Return mixed pairs of the last layer by updates, and what three claims measure for other
    features.
    """
    mixed = "share of mixed pairs of the last layer with a product of at most 0"
    shares = {f"{mixed} after {updates} updates": share for updates, share in e.mixed.items()}
    others = {
        "blue-left, mean deviations": upward(-places(e.before, "across")),
        "others-right, mean deviations": upward(classes(e.before, places)),
    }
    kinds = {"after the ReLU": e.after, "cosines": e.cosines, "without training": e.first}
    for name, layers in kinds.items():
        gaps = np.array(gaps_of(layers))
        others[f"depth, {name}"] = upward(gaps)
        others[f"last-gap, {name}"] = gaps[-1] - gaps[0]
        others[f"blue-left, {name}"] = upward(-means(layers, "across"))
        others[f"others-right, {name}"] = upward(classes(layers, means))
    return {**shares, **{name: value for name, value in others.items() if np.isfinite(value)}}


def draw_fig3(e: Fig3Evidence) -> kit.Drawing:
    titles = ["Input", *(f"Layer {k}" for k in range(1, len(e.before)))]
    figure = kit.charts(*map(_densities, titles, e.before), columns=4)
    figure.suptitle(e.training, fontsize=kit.SMALL)
    for axes in figure.axes:
        axes.set_yticks([])
        axes.locator_params(axis="x", nbins=3)
    return figure


def _densities(title: str, products: PairProducts) -> kit.Chart:
    """Chart the three densities over the range that holds all but a thousandth of the pairs on
    each side.
    """
    total = np.cumsum(sum(counts / counts.sum() for counts in products.counts.values())) / len(
        products.counts
    )
    low, high = np.searchsorted(total, [0.001, 0.999])
    low = max(int(low) - 1, 0)
    high = min(int(high) + 2, len(products.edges) - 1)
    step = max((high - low) // DRAWN_BINS, 1)
    starts = np.arange(low, high, step)
    edges = products.edges[[*starts, min(starts[-1] + step, len(products.edges) - 1)]]
    power = int(np.floor(np.log10(np.abs(edges).max())))
    scale = 10.0**power if power >= 4 else 1.0
    curves = []
    for sort, (name, role) in SORTS.items():
        counts = products.counts[sort]
        sums = np.add.reduceat(counts[: starts[-1] + step], starts) / counts.sum()
        heights = sums / np.diff(edges) * scale
        curves.append(kit.stairs(edges / scale, heights, name, f"{role} 1"))
    unit = rf" [$10^{{{power}}}$]" if power >= 4 else ""
    return kit.chart(
        title,
        "density",
        curves,
        kit.upright(0, look="theory 0.6"),
        xlabel=f"inner product{unit}",
        limits=(0, None),
    )


LESS_FAR = (
    "With a hundredth of the step size the layers move in the same directions, less far: `right`"
    " and `depth` fail."
)
FIGURE_3 = kit.Figure(
    id="phuong2021-fig3",
    caption=(
        "Distributions over pairs of training images, of at most 1 000 of each digit, of the inner"
        " products of inputs and of what each layer gives before its ReLU, for images of different"
        " digits (blue), both 0 (orange), both 1 (green)."
    ),
    configs=CONFIGS,
    presets=PRESETS,
    passes={
        "one_step": {
            "right": (
                "One update changes the signs of gaps in most layers, not their size: `depth` and"
                " `last-gap` fail."
            )
        },
        "slow": {"others-right last-gap": LESS_FAR},
        "random_features": {
            "right depth others-right last-gap": "The layers above a frozen first one are trained."
        },
        "wrong_gradient": {
            "right depth others-right last-gap": (
                "The statements are about the seven layers below the wrong one, which learn 0.9995"
                " of the training images all the same."
            )
        },
    },
)


FIGURES = kit.by_id(TABLE1, FIGURE_4, FIGURE_3)
