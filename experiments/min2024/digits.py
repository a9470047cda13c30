"""Figures 5, 10 and 11: two digits of MNIST; `--preset full` takes all images, six times the
default number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.patches import Rectangle

from dynamics_cli import kit
from dynamics_cli.kinds import Streams, stream

from .shared import read_states
from .theory.cones import centres, correlated_shares, least_correlation

SHOWN = 120
"""Images of each digit in the heat map, evenly spread over all."""
PERMUTATIONS = 199
"""Of the labels."""
GROWTH_OVER = 2
"""Recorded states over which the growth of the neurons is measured, 100 iterations."""


@dataclass(frozen=True)
class Evidence:
    """A run on two digits.

    `products` (2 SHOWN, 2 SHOWN) are `<x_i, x_j>`, positive label first, `same` and `different`
    shares of correlated pairs, `chance` is the larger p-value of the two among permuted labels.
    `plus` and `minus` are alignments of V_+ and V_- by the current sign of v_j; `mean` (d,) is the
    image that was subtracted. `growth` is the rate at which the norms of neurons grow right before
    the loss falls, over `|x_+| / n`. `tiles` (2, 2, d) are `x_+ / |I_+|` and `x_- / |I_-|`, and
    below them the mean neurons of V_+ and V_- at the end, of the same lengths.
    """

    iterations: kit.Ints
    loss_iterations: kit.Ints
    losses: kit.Floats
    products: kit.Floats
    same: float
    different: float
    mu: float
    chance: float
    x_plus: kit.Floats
    x_minus: kit.Floats
    plus: Alignment
    minus: Alignment
    squared_norm: kit.Floats
    stable_rank: kit.Floats
    growth: float
    tiles: kit.Floats
    mean: kit.Floats


def evidence(runs: kit.Runs) -> Evidence:
    """Measure a run on two digits."""
    run = runs["digits"]
    config: Any = run.config
    states = read_states(run)
    rng = stream(run.config.seed, "analysis")
    x = states.x
    y = states.y
    W = np.asarray(states.W, np.float64)
    v = np.asarray(states.v)
    x_plus, x_minus = centres(x, y)
    shares, *null = correlated_shares(
        x, np.stack([y, *(rng.permutation(y) for _ in range(PERMUTATIONS))])
    )
    above = np.count_nonzero(null >= shares, axis=0)
    groups = [np.flatnonzero(sign * y > 0) for sign in (1, -1)]
    shown = np.concatenate([_spread(x[rows]) for rows in groups])
    raw = run.config.dataset.model_copy(update={"center": False}).load(Streams(run.config.seed))
    top = np.asarray(np.linalg.eigvalsh(W @ W.swapaxes(1, 2))[:, -1], np.float64)
    squares = np.sum(W**2, axis=(1, 2))
    falls = kit.first_at(states.loss_iterations, states.losses < 0.99)
    times = states.iterations * config.optimizer.lr
    pace = growth(times, squares, falls * config.optimizer.lr)
    return Evidence(
        iterations=states.iterations,
        loss_iterations=states.loss_iterations,
        losses=states.losses,
        products=shown @ shown.T,
        same=shares[0],
        different=shares[1],
        mu=least_correlation(x, y),
        chance=float((1 + above.max()) / (1 + PERMUTATIONS)),
        x_plus=x_plus,
        x_minus=x_minus,
        plus=alignment(W, v > 0, x_plus),
        minus=alignment(W, v < 0, x_minus),
        squared_norm=top,
        stable_rank=squares / top,
        growth=float(pace * len(x) / np.linalg.norm(x_plus)),
        tiles=_tiles(x, y, W[-1], v[-1]),
        mean=raw.x[:, : x.shape[1]].mean(axis=0),
    )


@dataclass(frozen=True)
class Alignment:
    """Cosines (K,) of neurons with a vector.

    `low` is the least of them and `high` the largest; all are NaN while there are no members.
    """

    mean: kit.Floats
    low: kit.Floats
    high: kit.Floats


def alignment(W: kit.Floats, members: kit.Bools, target: kit.Floats) -> Alignment:
    """Return cosines (K,) of neurons `W` (K, m, d) with `target` (d,): of the `mean` of `members`
    (K, m), and of each.
    """
    each = np.where(members, kit.cosines(W, target), np.nan)
    mean = kit.cosines(np.where(members[..., None], W, 0.0).sum(axis=1), target)
    return Alignment(mean=mean, low=np.fmin.reduce(each, axis=1), high=np.fmax.reduce(each, axis=1))


def _spread(images: kit.Floats) -> kit.Floats:
    """Return `SHOWN` images at most, evenly spread over all (n, d)."""
    n = len(images)
    return images[np.linspace(0, n - 1, min(SHOWN, n)).astype(np.int64)]


def growth(times: kit.Floats, squares: kit.Floats, until: float) -> float:
    """Return the rate of the logarithm of norms from their `squares` (K,) at the last states before
    the time `until`.

    NaN when there are too few states before it, or it is NaN.
    """
    last = int(np.count_nonzero(times < until)) - 1
    first = last - GROWTH_OVER
    if first < 0 or squares[first] <= 0:
        return np.nan
    return float(np.log(squares[last] / squares[first]) / (2 * (times[last] - times[first])))


def _tiles(x: kit.Floats, y: kit.Floats, W: kit.Floats, v: kit.Floats) -> kit.Floats:
    centre = [x[y > 0].mean(axis=0), x[y < 0].mean(axis=0)]
    neurons = []
    for target, members in zip(centre, (v > 0, v < 0), strict=True):
        average = W[members].mean(axis=0) if members.any() else np.zeros(W.shape[1])
        length = float(np.linalg.norm(average))
        neurons.append(average * (np.linalg.norm(target) / length if length > 0 else 0.0))
    return np.stack([centre, neurons])


def claims(e: Evidence, figure: str, text: bool) -> list[kit.Claim]:
    """Compare a run with Section 4 and Appendix A.4; the source is `figure`.

    With `text` Section 4 speaks of these digits; of the others (Figures 10, 11) there are only
    pictures.
    """
    losses = e.losses
    smaller = np.fmin(e.plus.mean, e.minus.mean)
    least = np.fmin(e.plus.low, e.minus.low)

    def at(iteration: float, cosines: kit.Floats) -> float:
        return kit.value_at(e.iterations, cosines, iteration)

    w_plus, w_minus = (
        kit.cosines(w[None], x)[0] for w, x in zip(e.tiles[1], (e.x_plus, e.x_minus), strict=True)
    )
    falls = {level: kit.first_at(e.loss_iterations, losses < level) for level in (0.99, 0.9)}
    at_fall = at(falls[0.99], smaller) if np.isfinite(falls[0.99]) else np.nan
    good = f"Section 4, {figure}; 0.9 is our reading of good"
    of_text: list[kit.Claim] = []

    if text:
        of_text = [
            kit.theory(
                "same-label",
                "A pair of data is very likely to be positively correlated if it has the same "
                "label (share)",
                f"Section 4, {figure} (left); very likely: 0.9",
                kit.at_least(0.9),
                e.same,
            ),
            kit.theory(
                "different-label",
                "A pair of data is negatively correlated if it has different labels (share)",
                f"Section 4, {figure} (left); very likely: 0.9",
                kit.at_least(0.9),
                e.different,
            ),
            kit.theory(
                "opposite",
                "cos(x+, x-) is almost -1; after centring x+ = -x-",
                "Section 4, Final convergence",
                kit.near(-1.0, 1e-6),
                kit.cosines(e.x_plus[None], e.x_minus)[0],
            ),
            kit.claim(
                "aligned",
                "After about 2000 iterations all neurons achieve good alignment (first iteration "
                "with a least cosine of 0.9)",
                f"{good} (second, band)",
                kit.around(2000),
                kit.first_at(e.iterations, least >= 0.9),
            ),
            kit.claim(
                "aligned-mean",
                "Mean neurons reach good alignment (smaller cosine of the two)",
                f"{good} (second, lines)",
                kit.at_least(0.9),
                at(2000, smaller),
            ),
            kit.claim(
                "loss-falls",
                "After about 3000 iterations the norm grows and the loss decreases (first loss "
                "below 0.9)",
                f"Section 4, {figure} (third)",
                kit.around(3000),
                falls[0.9],
            ),
            kit.claim(
                "rank-one",
                "The stable rank is almost 1 at the end",
                "Section 4, Final convergence",
                kit.around(1.0),
                e.stable_rank[-1],
            ),
            kit.claim(
                "w-plus",
                "At the end the mean neuron of V+ shows good alignment with x+ (cosine)",
                f"{good} (right)",
                kit.at_least(0.9),
                w_plus,
            ),
            kit.claim(
                "w-minus",
                "At the end the mean neuron of V- shows good alignment with x- (cosine)",
                f"{good} (right)",
                kit.at_least(0.9),
                w_minus,
            ),
        ]
    return [
        kit.theory(
            "not-by-chance",
            "Permuted labels give no such shares of positive and negative pairs (larger p-value of"
            " the two)",
            f"{figure} (left); {PERMUTATIONS} permutations",
            kit.less_than(0.05),
            e.chance,
        ),
        *of_text,
        kit.claim(
            "alignment-drops",
            "When the loss starts to decrease the alignment drops (smaller cosine at a loss of "
            "0.99, less that at the end)",
            "Section 4, Alignment phase; 0.01, which a plot shows, is our reading of drops",
            kit.at_least(0.01),
            at_fall - smaller[-1],
        ),
        kit.claim(
            "growth",
            "Neurons grow by the data of their own label alone (rate of their norms before a "
            "loss of 0.99, over |x+| / n)",
            "Section 3.1, Final convergence; Eq. 13",
            kit.around(1.0),
            e.growth,
        ),
        kit.claim(
            "rank-below-2",
            "The stable rank decreases below 2 (at the end)",
            f"Section 4, Theorem 1, {figure} (third)",
            kit.less_than(2.0),
            e.stable_rank[-1],
        ),
        kit.claim(
            "loss-end",
            "The loss converges to 0 (last loss over the first)",
            f"Theorem 1, {figure} (third); a fifth is our reading of the figure",
            kit.at_most(0.2),
            losses[-1] / losses[0],
        ),
    ]


def numbers(e: Evidence) -> dict[str, float]:
    """Return how far the images are from Assumption 1, and readings of the curves that no claim
    has.
    """
    least = np.fmin(e.plus.low, e.minus.low)
    times = e.loss_iterations
    return {
        "least y_i y_j cos(x_i, x_j); Assumption 1 asks for more than 0": e.mu,
        "share of pairs of one label with positive correlation": e.same,
        "share of pairs of two labels with negative correlation": e.different,
        "first iteration with a least cosine of 0.9": kit.first_at(e.iterations, least >= 0.9),
        "first loss below 0.99": kit.first_at(times, e.losses < 0.99),
        "first loss below 0.95": kit.first_at(times, e.losses < 0.95),
        "cosine of the mean neuron of V+ at the end": e.plus.mean[-1],
        "cosine of the mean neuron of V- at the end": e.minus.mean[-1],
        "stable rank at the end": e.stable_rank[-1],
    }


def draw(e: Evidence) -> kit.Drawing:
    figure, axes = kit.new_figure(2, 2, aspect=0.76)
    _heat_map(figure, axes[0], e.products)
    _alignment(axes[1], e)
    kit.place_legend(axes[2], kit.panel(axes[2], 2, convergence(e)), columns=3)
    _draw_tiles(axes[3], e.tiles, e.mean)
    titles = (
        "Data correlation",
        "Alignment with $x_+$, $x_-$",
        "Convergence and rank",
        "Data and neurons",
    )
    for k, title in enumerate(titles):
        kit.panel_label(axes[k], k, title)
        axes[k].set_box_aspect(1.0 if k == 0 else 0.72)
        axes[k].set_anchor("W")
    return figure


def _heat_map(figure: kit.Drawing, axes: kit.Axes, products: kit.Floats) -> None:
    size = float(np.quantile(np.abs(products), 0.98)) or 1.0
    shown = axes.imshow(products, cmap="RdBu_r", vmin=-size, vmax=size, interpolation="nearest")
    half = len(products) / 2
    axes.axhline(half - 0.5, color="black", lw=0.5)
    axes.axvline(half - 0.5, color="black", lw=0.5)
    axes.set_xticks([half / 2, 1.5 * half], labels=["$y=+1$", "$y=-1$"])
    axes.set_yticks([half / 2, 1.5 * half], labels=["$y=+1$", "$y=-1$"], rotation=90, va="center")
    axes.tick_params(length=0)
    bar = figure.colorbar(shown, cax=axes.inset_axes((1.06, 0.0, 0.05, 1.0)), extend="both")
    bar.set_label(r"$\langle x_i, x_j\rangle$", fontsize=8)
    bar.ax.tick_params(labelsize=kit.SMALL)


def _alignment(axes: kit.Axes, e: Evidence) -> None:
    for group, sign, style in ((e.plus, "+", "-"), (e.minus, "-", "--")):
        color = kit.PALETTE.sign(float(f"{sign}1"))
        label = rf"$\cos(\overline{{w}}_{sign}, x_{sign})$"
        axes.fill_between(e.iterations, group.low, group.high, color=color, alpha=0.18, lw=0)
        kit.draw_curve(axes, e.iterations, group.mean, color=color, label=label, ls=style)
    axes.axhline(0.9, color=kit.PALETTE.muted, lw=0.7, ls=":", zorder=0)
    axes.set_ylim(-0.2, 1.05)
    kit.set_time_axis(axes, e.iterations)
    axes.set_ylabel("cosine (band: min to max)")
    axes.legend(loc="center right")


def convergence(e: Evidence) -> kit.Chart:
    """Return the loss, the stable rank and the squared norm of W over the iterations."""
    return kit.chart(
        "Convergence and rank",
        "value",
        kit.line(e.loss_iterations, e.losses, r"loss $\mathcal{L}$", "measured"),
        kit.line(e.iterations, e.stable_rank, r"$\|W\|_F^2/\|W\|_2^2$", "rank dashed"),
        kit.line(e.iterations, e.squared_norm, r"$\|W\|_2^2$", "C2 dotted"),
        limits=(0, max(3.0, 1.1 * float(e.squared_norm.max()))),
    )


def _draw_tiles(axes: kit.Axes, tiles: kit.Floats, mean: kit.Floats) -> None:
    """Draw x_+, x_-, with and without the mean image, and the mean neurons below them."""
    names = ((r"$\bar{x}_+$", r"$\bar{x}_-$"), (r"$\overline{w}_+$", r"$\overline{w}_-$"))
    side = round(np.sqrt(len(mean)))
    for r in range(2):
        row = [*zip(tiles[r], names[r], strict=True)]
        for c, (vector, name) in enumerate(
            [*row, *((v + mean, f"{n}$+\\bar{{x}}$") for v, n in row)]
        ):
            left = c * (side + 4)
            top = r * (side + 13)
            extent = (left, left + side, top + side, top)
            axes.imshow(
                vector.reshape(side, side), cmap="gray", extent=extent, interpolation="nearest"
            )
            axes.add_patch(
                Rectangle((left, top), side, side, fill=False, ec=kit.PALETTE.muted, lw=0.4)
            )
            axes.text(left + side / 2, top + side + 2, name, ha="center", va="top", fontsize=8)
    axes.set_xlim(-1, 4 * (side + 4) - 3)
    axes.set_ylim(2 * (side + 13), -1)
    axes.set_aspect("equal")
    axes.set_axis_off()


def _figure(number: int, config: str, first_digit: int, *, text: bool = False) -> kit.Figure:
    """Return the figure of one pair of digits, where `first_digit` has the positive label;
    `text` as in `claims`.
    """
    return kit.Figure(
        id=f"min2024-fig{number}",
        caption=(
            f"(a) Inner products of the centred images, digit {first_digit} first. (b) Cosine of"
            " the mean neuron of V+ with x+ and of V- with x-, with the range over single neurons;"
            " dotted: 0.9. (c) Loss, stable rank and squared spectral norm of W. (d) Data centres"
            " and mean neurons at the end, these as long as their centres, also with the mean image"
            " added."
        ),
        configs={"digits": config},
        presets={"full": {"digits": kit.Wanted(config, ("dataset.source=full",))}},
        passes={
            "linear": {
                "aligned-mean rank-*": (
                    "All neurons of a linear network turn to one line too, that of the sum of the "
                    "labelled images."
                ),
                "alignment-drops": (
                    "The gradient turns to images that are not fitted yet, for a linear network"
                    " too."
                ),
                "loss-end": "A linear function separates these digits.",
            }
        },
        claims=lambda e: claims(e, f"Figure {number}", text),
    )


FIGURES = kit.by_id(
    _figure(5, "min2024/mnist_01.yaml", first_digit=1, text=True),
    _figure(10, "min2024/mnist_38.yaml", first_digit=3),
    _figure(11, "min2024/mnist_17.yaml", first_digit=1),
)
