"""Figures 1 and 2: networks on orthogonally separable data beside the max-margin directions of
the data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics_cli import kit
from dynamics_cli.measures.least_distance import InfeasibleError, least_distance

from .panels import HIGH, correlations_chart, plane_chart, values_chart
from .theory.separability import separability_violations

OVERLAPPING = f"{{kind: gaussians, per_class: 250, mean: {[1.0] * 20}, deviation: 1.5}}"
"""Data that break Eq. 1: thousands of pairs of a class are at more than a right angle."""
NULLS = {
    "usual-start": ("initialization.factor=1.0",),
    "data": (f"dataset={OVERLAPPING}",),
}
"""Of both figures. From a usual start the initial weights are not small, and the network fits the
data all the same.
"""
ALONG = 10.0
"""Degrees in the plane within which a neuron is along a direction to the eye."""
ZERO = 0.1
"""Share of the largest up to which a singular value is effectively zero; Figure 4 counts from
the same on.
"""
RANK_ONE = "The weights of a linear network have rank one: `second` fails."
NEARLY_OPPOSITE = (
    "A linear network separates these data too, along w+ and w-, which are nearly opposite."
)
SOON = (
    "A hundredth of the training learns the data: the step of a summed loss is 50 times that of a"
    " mean."
)
"""Why claims on Figure 2 hold under `early` and `slow`."""
SUFFICIENT = (
    "Eq. 1 is sufficient, and no rate or bound for data without it is given: classes that a plane"
    " separates with a margin have two groups of neurons too."
)
"""Why claims hold under `data`."""
CLOUDS = 200
"""Gaussian clouds that say how many rows lie along two directions by chance."""
EARLY = 50
"""Updates of a hundredth of the training of Section 5: what holds as well then is no end of
training.
"""
LEARNT = float(np.log(2) / 100)
"""A loss below it is that of a network which has learnt the data: a hundredth of the loss at
output 0.
"""


@dataclass(frozen=True)
class Directions:
    """The solutions of Eqs. 6 and 7 for the data of a run.

    `violations` counts pairs that violate Eq. 1.

    `means` (2, d) are the means of the classes, which need no training.
    """

    rays: kit.Floats
    kkt: float
    violations: int
    means: kit.Floats


def max_margin(run: kit.Run) -> Directions:
    """Solve Eqs. 6 and 7 for the data of a run: `rays` (2, d) are w+ and w-, `kkt` the larger of
    their residuals.

    Raises InputError when a class cannot be separated from the origin.
    """
    data = run.dataset()
    try:
        if not (data.y > 0).any() or not (data.y < 0).any():
            raise ValueError("both classes must have points")
        plus, minus = (least_distance(data.x[data.y == sign]) for sign in (1, -1))
    except (InfeasibleError, ValueError) as error:
        raise kit.InputError(
            f"{run.path}: these data have no w+ and w- (Eqs. 6, 7): {error}"
        ) from error
    return Directions(
        rays=np.stack([plus.w, minus.w]),
        kkt=max(plus.kkt_residual, minus.kkt_residual),
        violations=separability_violations(data.x, data.y),
        means=np.stack([data.x[data.y == sign].mean(axis=0) for sign in (1, -1)]),
    )


def cosines_with(W: kit.Floats, lines: kit.Floats) -> kit.Floats:
    """Return the cosines (2, m) of rows `W` (m, d) with both `lines` (2, d)."""
    return np.stack([kit.cosines(W, line) for line in lines])


def chosen(cosines: kit.Floats, first: NDArray[Any]) -> kit.Floats:
    """Return of cosines (2, m) those with the first line where `first` (m,), else the second's."""
    return np.asarray(np.where(first, *cosines))


def third_over_first(W: kit.Floats) -> float:
    """Return the third singular value over the first; NaN where there is none."""
    values = np.append(kit.singular_values(W), np.nan)
    return float(values[2] / values[0]) if values[0] > 0 else np.nan


@dataclass(frozen=True)
class LayerMeasures:
    """A weight matrix (m, d) after training.

    Of its singular `values`, descending, `third` is the third over the first and `gap` the second
    over the third, NaN where there is none; `grown` is `third` of what training has added to
    `start`, and `early` is `third` after `EARLY` updates. `points` (m, 2) are rows
    on the two leading right-singular directions, `basis` (2, d), and `angles` (m,) the degrees
    there between a row and the closer of the two main directions, `means` (2, 2). `chance` is the
    95 % point of the share within `ALONG` degrees, of Gaussian rows with the same two singular
    values.
    """

    values: kit.Floats
    third: float
    gap: float
    early: float
    grown: float
    basis: kit.Floats
    points: kit.Floats
    means: kit.Floats
    angles: kit.Floats
    chance: float


def measure_layer(
    W: kit.Floats, side: NDArray[Any], start: kit.Floats, early: kit.Floats
) -> LayerMeasures:
    """Measure a weight matrix (m, d), given which rows (m,) belong to the first direction, and its
    earlier states.
    """
    values = kit.singular_values(W)
    basis = kit.leading_directions(W)
    points = kit.project(W, basis)
    means, angles = main_directions(points, side)
    gaussian = np.random.default_rng(0).standard_normal((CLOUDS, *points.shape))
    clouds = np.linalg.qr(gaussian)[0] * values[:2]
    by_chance = np.mean(main_directions(clouds, sides_in_plane(clouds))[1] <= ALONG, axis=-1)
    second, third = np.append(values, np.nan)[1:3]  # there are two at least
    return LayerMeasures(
        values=values,
        third=third_over_first(W),
        gap=second / third,
        early=third_over_first(early),
        grown=third_over_first(W - start),
        basis=basis,
        points=points,
        means=means,
        angles=angles,
        chance=float(np.quantile(by_chance, 0.95)),
    )


def main_directions(points: kit.Floats, side: NDArray[Any]) -> tuple[kit.Floats, kit.Floats]:
    """Return the mean directions (..., 2, 2) of rows (..., m, 2) by side, and each row's angle
    (..., m) to the closer.

    Means are weighted by norm, angles are in degrees; the mean of no rows is NaN.
    """
    heavy = points * kit.norms(points)[..., None]
    totals = np.stack([np.sum(heavy * s[..., None], axis=-2) for s in (side, ~side)], axis=-2)
    lengths = np.linalg.norm(totals, axis=-1, keepdims=True)
    means = np.divide(totals, lengths, out=np.full_like(totals, np.nan), where=lengths > 0)
    units = points / np.maximum(kit.norms(points), 1e-300)[..., None]
    closer = np.nan_to_num(units @ np.swapaxes(means, -1, -2), nan=-1.0).max(axis=-1)
    return means, np.degrees(np.arccos(np.clip(closer, -1.0, 1.0)))


def sides_in_plane(points: kit.Floats) -> NDArray[np.bool_]:
    """Tell rows (..., m, 2) closer to the longest from those closer to the longest at 45 degrees
    or more to it.
    """
    lengths = kit.norms(points)
    units = points / np.maximum(lengths, 1e-300)[..., None]

    def cosines(heights: kit.Floats) -> kit.Floats:
        longest = np.take_along_axis(units, np.argmax(heights, axis=-1)[..., None, None], axis=-2)
        result: kit.Floats = np.sum(units * longest, axis=-1)
        return result

    first = cosines(lengths)
    side: NDArray[np.bool_] = first > cosines(np.where(first < np.sqrt(0.5), lengths, -1.0))
    return side


def data_claims(directions: Directions) -> list[kit.Claim]:
    """Return the claims of Section 5.1 on the data."""
    return [
        kit.theory(
            "separable",
            "The data are orthogonally separable (pairs that violate Eq. 1)",
            "Section 5.1, Eq. 1",
            kit.exactly(0),
            directions.violations,
        ),
        kit.theory(
            "kkt",
            "w+ and w- are exact (larger KKT residual of the two programs)",
            "Eqs. 6, 7",
            kit.less_than(1e-8),
            directions.kkt,
        ),
    ]


def layer_claims(
    layer: LayerMeasures, suffix: str, name: str, source: str, expected: kit.Interval, learnt: bool
) -> list[kit.Claim]:
    """Return that a weight matrix has rank two, by the `expected` third singular value, and its
    rows two directions.
    """
    return [
        kit.claim(
            f"rank{suffix}",
            f"{name} has rank two: all singular values but two are effectively zero (third over"
            " first)",
            source,
            expected,
            kit.given(learnt, layer.third),
        ),
        kit.claim(
            f"grown{suffix}",
            f"Training has added a matrix of rank two to {name} (third singular value over first of"
            " the difference to its initial value)",
            "Theorem 1: the initial weights are near zero",
            kit.at_most(ZERO),
            kit.given(learnt, layer.grown),
        ),
        kit.claim(
            f"second{suffix}",
            "The rank is not one: the second value stands out (over the third; closer to it "
            "than to 0 below 2)",
            source,
            kit.more_than(2.0),
            kit.given(learnt, layer.gap),
        ),
        kit.claim(
            f"directions{suffix}",
            f"The rows of {name} align along two main directions (share within {ALONG:g} degrees in"
            " the plane; most, and more than 95 % of Gaussian clouds with these singular values)",
            source,
            kit.more_than(max(0.5, layer.chance)),
            kit.given(learnt, np.mean(layer.angles <= ALONG)),
        ),
    ]


def end_claims(
    e: Evidence, statement: str, source: str, figure: str, expected: kit.Interval
) -> list[kit.Claim]:
    """Return claims on the correlations with the max-margin directions, and that the data are
    learnt.

    `expected` is the share of high correlations.
    """
    return [
        kit.claim(
            "correlation",
            f"{statement} (share above {HIGH:g})",
            f"{source}, {figure}",
            expected,
            kit.given(e.loss < LEARNT, np.mean(e.correlations > HIGH)),
        ),
        kit.claim(
            "closer",
            "Neurons are closer to their max-margin direction than to the mean of its class, whose"
            f" own correlation is above {HIGH:g} without training (share of neurons; most)",
            f"{source}, Theorem 1",
            kit.most(),
            np.mean(e.correlations > e.with_means),
        ),
        kit.claim(
            "learnt",
            "The network learns the data (final loss)",
            source,
            kit.less_than(LEARNT),
            e.loss,
        ),
    ]


@dataclass(frozen=True)
class Evidence:
    """The final network, m rows of its first layer.

    `layers` are its weight matrices but the last. `side` (m,) is 1 for rows whose max-margin
    direction is w+, and -1 for w-; `correlations` (m,) are the cosines with it, `with_means` those
    with the mean of the class, `early_correlations` the former after `EARLY` updates.
    """

    directions: Directions
    layers: list[LayerMeasures]
    side: kit.Floats
    correlations: kit.Floats
    with_means: kit.Floats
    early_correlations: kit.Floats
    loss: float


def measured(
    run: kit.Run, belong: Callable[[dict[str, kit.Floats], kit.Floats], kit.Bools]
) -> Evidence:
    """Measure the final network beside the max-margin `directions` of its data.

    `belong` tells rows of the first layer (m,) with the direction w+, given a state and the cosines
    (2, m) with both directions. Raises InputError as `max_margin` does, and for a first layer of
    one row or column.
    """
    names = [*run.parameters][:-1]
    if min(run.parameters[names[0]].shape[1:]) < 2:
        raise kit.InputError(
            f"{run.path}: one row or column lies in no plane: this figure needs a width of 2 or"
            " more"
        )
    directions = max_margin(run)
    after = int(np.flatnonzero(run.snapshot_iterations <= EARLY)[-1])
    start, early, last = (kit.in_double(run.state(k)) for k in (0, after, -1))

    def of_state(state: dict[str, kit.Floats]) -> tuple[kit.Floats, kit.Bools]:
        cosines = cosines_with(state[names[0]], directions.rays)
        return cosines, belong(state, cosines)

    cosines, first = of_state(last)
    further = [last[name] for name in names[1:]]
    sides = [first, *(sides_in_plane(kit.project(W, kit.leading_directions(W))) for W in further)]
    return Evidence(
        directions=directions,
        layers=[
            measure_layer(last[name], side, start[name], early[name])
            for name, side in zip(names, sides, strict=True)
        ],
        side=np.where(first, 1.0, -1.0),
        correlations=chosen(cosines, first),
        with_means=chosen(cosines_with(last[names[0]], directions.means), first),
        early_correlations=chosen(*of_state(early)),
        loss=mean_loss(run),
    )


def evidence_fig1(runs: kit.Runs) -> Evidence:
    """Measure the two-layer network, whose output weights tell the direction of a neuron."""
    return measured(runs["two_layer"], lambda state, _: state["output_weight"] > 0)


def mean_loss(run: kit.Run) -> float:
    """Return the final loss a point, whether the loss is a mean or, as in Section 2, a sum."""
    summed = getattr(run.config.loss, "reduction", "mean") == "sum"
    return run.final_loss / run.dataset().n if summed else run.final_loss


def before_and_below(early: float) -> kit.Interval:
    """Return the interval of a third singular value that is effectively zero and was larger
    after `EARLY` updates.
    """
    bar = float(np.nextafter(np.fmin(ZERO, early), 0))
    return kit.Interval(None, bar, f"< {ZERO:g}, and less than after {EARLY} updates ({early:.3g})")


def claims_fig1(e: Evidence) -> list[kit.Claim]:
    early = float(np.mean(e.early_correlations > HIGH))
    return [
        *data_claims(e.directions),
        *layer_claims(
            e.layers[0],
            "",
            "W",
            "Section 5.1, Figure 1a, b; Theorem 1",
            before_and_below(e.layers[0].early),
            e.loss < LEARNT,
        ),
        *end_claims(
            e,
            "The correlation with the respective max-margin direction is high for most neurons",
            "Section 5.1",
            "Figure 1c",
            kit.Interval(
                np.nextafter(max(0.5, early), 1),
                None,
                f"> 0.5, and more than after {EARLY} updates ({early:g})",
            ),
        ),
    ]


def numbers_fig1(e: Evidence) -> dict[str, float]:
    """Return how far w+ and w- are from opposite, which would make W of rank one, and other
    yardsticks.
    """
    return {"cosine of w+ and w-": float(kit.cosines(*e.directions.rays)), **yardsticks(e)}


def yardsticks(e: Evidence) -> dict[str, float]:
    """Return how close the class means are to the max-margin directions, and correlations after
    `EARLY` updates.
    """
    plus, minus = kit.cosines(e.directions.means, e.directions.rays)
    return {
        "cosine of w+ with the mean of its class": float(plus),
        "cosine of w- with the mean of its class": float(minus),
        f"share of correlations above {HIGH:g} after {EARLY} updates": float(
            np.mean(e.early_correlations > HIGH)
        ),
    }


def draw_fig1(e: Evidence) -> kit.Drawing:
    (layer,) = e.layers
    signs = {"positive": "$a_j > 0$", "negative": "$a_j < 0$"}
    rays = kit.project(e.directions.rays, layer.basis)
    return kit.charts(
        values_chart("Singular values", layer.values),
        plane_chart("Neurons", layer.points, e.side, signs, layer.means, rays),
        correlations_chart(e.correlations, e.side),
    )


FIGURE_1 = kit.Figure(
    id="phuong2021-fig1",
    caption=(
        "(a) The ten largest singular values of the first-layer weights after training. (b) The 100"
        " neurons on the two leading right-singular directions, purple for a_j > 0, red for a_j <"
        " 0; lines are the mean directions, dashed ones w+ and w- projected on the plane; the axes"
        " have scales of their own. (c) Correlation of each neuron with its max-margin direction;"
        " the dashed line is at 0.9."
    ),
    configs={"two_layer": "phuong2021/two_layer.yaml"},
    nulls=NULLS,
    passes={
        "linear": {"rank grown": RANK_ONE, "correlation learnt": NEARLY_OPPOSITE},
        "data": {"*": SUFFICIENT},
    },
)


def evidence_fig2(runs: kit.Runs) -> Evidence:
    """Measure the residual network, whose rows belong to the closest direction."""
    run = runs["residual"]
    if run.config.architecture.kind != "residual":
        raise kit.InputError(f"{run.path}: this figure needs architecture.kind residual")
    return measured(run, lambda _, cosines: np.greater(*cosines))


def claims_fig2(e: Evidence) -> list[kit.Claim]:
    stated = [
        claim
        for k, layer in enumerate(e.layers, 1)
        for claim in layer_claims(
            layer,
            f"-{k}",
            f"W{k}",
            f"Section 5.2, Figure 2{'abc'[k - 1 : k]}, {'def'[k - 1 : k]}",
            kit.at_most(ZERO),
            e.loss < LEARNT,
        )
    ]
    return [
        *data_claims(e.directions),
        *stated,
        *end_claims(
            e,
            "First-layer rows align with the closest max-margin direction",
            "Section 5.2",
            "Figure 2g",
            kit.most(),
        ),
    ]


def numbers_fig2(e: Evidence) -> dict[str, float]:
    """Return what the layers have after `EARLY` updates, and other yardsticks."""
    early = {
        f"third over first of W{k} after {EARLY} updates": layer.early
        for k, layer in enumerate(e.layers, 1)
    }
    return {**early, **yardsticks(e)}


def draw_fig2(e: Evidence) -> kit.Drawing:
    first, *others = e.layers
    sides = {"positive": "rows of $W_1$ closer to $w_+$", "negative": "closer to $w_-$"}
    rays = kit.project(e.directions.rays, first.basis)  # in the space of inputs
    return kit.charts(
        *(values_chart(f"Values of $W_{k}$", layer.values) for k, layer in enumerate(e.layers, 1)),
        plane_chart("Rows of $W_1$", first.points, e.side, sides, first.means, rays),
        *(
            plane_chart(
                f"Rows of $W_{k}$",
                layer.points,
                np.ones(len(layer.points)),
                {"muted": "rows of other layers"},
                layer.means,
            )
            for k, layer in enumerate(others, 2)
        ),
        correlations_chart(e.correlations, e.side),
        columns=3,
    )


FIGURE_2 = kit.Figure(
    id="phuong2021-fig2",
    caption=(
        "(a-c) The ten largest singular values of the weights of the first three layers after"
        " training. (d-f) Rows on the two leading right-singular directions, each axis to its own"
        " scale; lines are the mean directions, dashed ones w+ and w-. (g) Correlation of each"
        " first-layer row with the closest max-margin direction; the dashed line is at 0.9."
    ),
    configs={"residual": "phuong2021/residual.yaml"},
    nulls=NULLS,
    passes={
        "linear": {"rank-* grown-*": RANK_ONE, "correlation learnt": NEARLY_OPPOSITE},
        "early": {"*": SOON},
        "slow": {"*": SOON},
        "data": {"directions-* second-* learnt": SUFFICIENT},
        "random_features": {
            "*-2 *-3 learnt": "The layers above a frozen first one learn the data in the same way."
        },
    },
)


FIGURES = kit.by_id(FIGURE_1, FIGURE_2)
