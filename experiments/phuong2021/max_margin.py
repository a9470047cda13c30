"""What Figures 1 and 2 share: the max-margin directions of the data, and what is measured of a weight matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics_cli import kit
from dynamics_cli.config.streams import Streams
from dynamics_cli.datasets.orthogonally_separable import OrthogonallySeparable
from dynamics_cli.theory.least_distance import LeastDistance, least_distance

from .theory.separability import Separability, is_orthogonally_separable

ORIGIN: dict[str, kit.Origin] = {
    "data": "stated",
    "architecture": "stated",
    "width": "stated",
    "step, batch, epochs": "stated",
    "factor of the initial weights": "stated",
    "law of the initial weights": "inferred",
    "mean over the batch": "inferred",
    "precision": "inferred",
    "seed": "assumed",
}
HIGH = 0.9
"""A correlation that the paper calls high."""
ALONG = 10.0
"""Degrees in the plane within which a neuron is along a direction to the eye."""
SHARES = (0.1, 0.05)
"""Other thresholds for a singular value that counts, as shares of the largest."""
ANGLES = (5.0, 20.0)
"""Other angles than `ALONG`."""


@dataclass(frozen=True)
class Directions:
    """The max-margin vectors of both classes (Eqs. 6 and 7) and the data that they are of."""

    plus: LeastDistance
    minus: LeastDistance
    separability: Separability
    unfiltered: float
    """Cosine of w+ and w- for the same draw without the filter `<x, z> >= 0`; NaN for other data."""

    @property
    def cosine(self) -> float:
        """Cosine of w+ and w-."""
        return float(kit.cosines(self.plus.w, self.minus.w))


@dataclass(frozen=True)
class Trained:
    """A trained network beside the max-margin directions of its data: how Figures 1 and 2 open."""

    directions: Directions
    start: dict[str, kit.Floats]
    """Initial weights by name."""
    last: dict[str, kit.Floats]
    """Final weights by name."""
    plus: kit.Floats
    """(m,) cosine of each first-layer row with w+."""
    minus: kit.Floats
    """(m,) the same with w-."""


@dataclass(frozen=True)
class Layer:
    """A weight matrix after training."""

    values: kit.Floats
    """All singular values, descending."""
    grown: int
    """Number of singular values above the largest one at initialisation."""
    points: kit.Floats
    """(m, 2) rows on the two leading right-singular directions."""
    means: kit.Floats
    """(2, 2) the two main directions there, unit vectors."""
    angles: kit.Floats
    """(m,) degrees in the plane between a row and the closer of them."""

    def above(self, share: float) -> int:
        """Number of singular values above a share of the largest."""
        return int(np.sum(self.values > share * self.values[0]))

    def along(self, degrees: float) -> float:
        """Share of rows within an angle of one of the main directions."""
        return float(np.mean(self.angles <= degrees))

    @property
    def along_weighted(self) -> float:
        """Share of the norms in the plane that rows within `ALONG` degrees hold."""
        lengths = kit.norms(self.points)
        return float(lengths[self.angles <= ALONG].sum() / lengths.sum())

    @property
    def third(self) -> float:
        """Third singular value over the first."""
        return float(self.values[2] / self.values[0])


def max_margin(run: kit.Run) -> Directions:
    """Solve Eqs. 6 and 7 for the data of a run.

    Raises InfeasibleError when a class cannot be separated from the origin.
    """
    data, section = run.dataset(), run.config.dataset
    unfiltered = float("nan")
    if isinstance(section, OrthogonallySeparable) and section.filtered:
        other = section.model_copy(update={"filtered": False}).load(Streams(run.config.seed))
        plus, minus = (least_distance(other.x[other.y == s]).w for s in (1, -1))
        unfiltered = float(kit.cosines(plus, minus))
    return Directions(
        least_distance(data.x[data.y > 0]),
        least_distance(data.x[data.y < 0]),
        is_orthogonally_separable(data.x, data.y),
        unfiltered,
    )


def read_trained(run: kit.Run, first: str) -> Trained:
    """Read the first and last state of a run, whose first layer is the parameter `first`; raises as `max_margin`."""
    directions = max_margin(run)
    start, last = ({name: value.astype(np.float64) for name, value in run.state(i).items()} for i in (0, -1))
    plus, minus = (kit.cosines(last[first], one.w) for one in (directions.plus, directions.minus))
    return Trained(directions, start, last, plus, minus)


def measure_layer(W: kit.Floats, W_0: kit.Floats, side: NDArray[Any]) -> Layer:
    """Measure a weight matrix (m, d), given its initial value and which rows (m,) belong to the first direction."""
    values = kit.singular_values(W)
    points = kit.project(W, kit.leading_directions(W))
    means = np.stack([_mean(points[side]), _mean(points[~side])])
    angles = np.degrees(np.arccos(np.max([kit.cosines(points, mean) for mean in means], axis=0)))
    grown = int(np.sum(values > kit.singular_values(W_0)[0]))
    return Layer(values, grown, points, means, angles)


def two_sides(W: kit.Floats) -> NDArray[np.bool_]:
    """Tell rows of `W` (m, d) closer to the heaviest one from those closer to the heaviest at 45 degrees or more to it.

    Angles are those in the leading plane.
    """
    points = kit.project(W, kit.leading_directions(W))
    lengths = kit.norms(points)
    first = kit.cosines(points, points[np.argmax(lengths)])
    second = kit.cosines(points, points[np.argmax(np.where(first < np.sqrt(0.5), lengths, -1.0))])
    side: NDArray[np.bool_] = first > second
    return side


def _mean(points: kit.Floats) -> kit.Floats:
    """Return the norm-weighted mean direction of rows (k, 2); NaN for none."""
    total = (points * kit.norms(points)[:, None]).sum(axis=0)
    length = np.linalg.norm(total)
    return total / length if length > 0 else np.full(2, np.nan)


def data_claims(directions: Directions) -> list[kit.Claim]:
    """Return what Section 5.1 says of the data."""
    # fmt: off
    return [
        kit.claim("separable", "The data are orthogonally separable (pairs that violate Eq. 1)", "Section 5.1, Eq. 1",
                  kit.exactly(0), directions.separability.violations),
        kit.finding("cosine",
                    "Cosine of w+ and w- (the text that we have reads w+ ~ -w-; the sign may have lost a stroke, "
                    "see NOTES)",
                    "Section 5.1", directions.cosine),
        kit.finding("unfiltered", "The same cosine for data drawn without the filter",
                    "Section 5.1", directions.unfiltered),
        kit.finding("margin", "Margin of Eq. 1", "Eq. 1", directions.separability.margin),
        kit.finding("support", "Support examples of both classes", "Eqs. 6, 7",
                    len(directions.plus.support) + len(directions.minus.support)),
        kit.claim("kkt", "w+ and w- are exact (larger KKT residual of the two programs)", "Eqs. 6, 7",
                  kit.less_than(1e-8), max(directions.plus.kkt_residual, directions.minus.kkt_residual)),
    ]
    # fmt: on


def layer_claims(layer: Layer, suffix: str, name: str, source: str) -> list[kit.Claim]:
    """Return that a weight matrix has rank two and its rows two directions."""
    # fmt: off
    return [
        kit.claim(f"rank{suffix}",
                  f"{name} has rank two: the others have not grown "
                  "(singular values above the largest at initialisation)",
                  source, kit.exactly(2), layer.grown),
        kit.finding(f"third{suffix}", f"Third singular value of {name} over the first", source, layer.third),
        kit.finding(f"second{suffix}", f"Second singular value of {name} over the third", source,
                    layer.values[1] / layer.values[2]),
        kit.claim(f"directions{suffix}",
                  f"The rows of {name} align along two main directions (share within {ALONG:g} degrees in the plane)",
                  source, kit.most(), layer.along(ALONG)),
        *[
            kit.finding(f"above-{share * 100:g}{suffix}",
                        f"Singular values of {name} above {share:.0%} of the largest", source, layer.above(share))
            for share in SHARES
        ],
        *[
            kit.finding(f"directions-{degrees:g}{suffix}", f"Share of the rows of {name} within {degrees:g} degrees",
                        source, layer.along(degrees))
            for degrees in ANGLES
        ],
        kit.finding(f"directions-weighted{suffix}", f"Share of the norms that rows within {ALONG:g} degrees hold",
                    source, layer.along_weighted),
    ]
    # fmt: on


def end_claims(correlations: kit.Floats, statement: str, source: str, figure: str, loss: float) -> list[kit.Claim]:
    """Return what is said of the correlations (m,) with the max-margin directions, and that the data are learnt."""
    # fmt: off
    return [
        kit.claim("correlation", f"{statement} (share above {HIGH:g})", f"{source}, {figure}", kit.most(),
                  np.mean(correlations > HIGH)),
        kit.finding("median", "Median correlation", figure, np.median(correlations)),
        kit.claim("learnt", "The network learns the data (final loss)", source, kit.less_than(np.log(2) / 100), loss),
    ]
    # fmt: on
