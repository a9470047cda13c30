"""What the figures of this paper share: the two groups of neurons of a run, how tightly they
cluster, and panels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit
from dynamics_cli.analysis.view import PRINT
from dynamics_cli.architectures.two_layer import TwoLayer
from dynamics_cli.kinds import Samples
from dynamics_cli.measures.two_layer import outputs
from dynamics_cli.plotting.panels.inputs import data_window
from dynamics_cli.plotting.panels.neurons import rays_scene
from dynamics_cli.plotting.scene import (
    Role,
    Scene,
    SceneLayer,
    Window,
    draw_scene,
    fixed,
    level_set,
    levels,
)

from .theory.agreement import Directions, agreement_share
from .theory.clustering import (
    clustering_ratio,
    largest_angle,
    outside_linear_regime,
    sharp_constant,
    signs_differ,
)

LARGE = {"large": ("initialization.scale=10",)}
"""The null of this paper: the large initialisation of Figure 1, from which neurons do not
cluster.
"""
LINEAR = (
    "The paper proves that such networks end as linear classifiers, which a linear network is from"
    " the start."
)
ALIKE = "All neurons of a group of a linear network get the same updates, so they cluster too."
"""Why neurons agree and cluster under `linear`; from a large start they do not."""
MAX_MARGIN = (
    "With slope 1 the convex program is the linear max-margin one, to which a linear network tends."
)
ONE_DIRECTION = "Neurons of a linear network turn to one direction, which separates the points."
ANY_SLOPE = "The theorem is for any positive slope, and that of a linear network is 1."
SEPARABLE = "A linear network with a bias separates what a line separates."
SLIPS = ("dataset.random_labels=0.05",)
"""The null `data`: a twentieth of the labels are drawn at random, so that no line separates."""
SOON = "The data are easy: a hundredth of the training is enough."
"""Why claims hold under `early` and `slow`."""
SMALL = 0.01
"""A share below it counts as zero: the width of a line in a plot of shares."""


@dataclass(frozen=True)
class Groups:
    """The two groups of neurons at the recorded states, in float64, and the data that they were
    trained on.
    """

    data: Samples
    iterations: kit.Ints
    """(K,)"""
    epochs: kit.Floats
    """(K,) passes over the training set; steps where the batch is full."""
    W: kit.Floats
    """(K, k, d) neurons with output weight +v."""
    U: kit.Floats
    """(K, k', d) neurons with output weight -v."""
    alpha: float
    v: float

    @property
    def last(self) -> tuple[kit.Floats, kit.Floats]:
        """Both groups at the last state: (k, d) and (k', d)."""
        return self.W[-1], self.U[-1]

    @property
    def network(self) -> tuple[kit.Floats, kit.Floats]:
        """The last hidden weights (m, d) of both groups together, `w` first, and the output
        weights (m,).
        """
        W, U = self.last
        return np.concatenate([W, U]), self.v * np.concatenate([np.ones(len(W)), -np.ones(len(U))])

    @property
    def margins(self) -> kit.Floats:
        """Margins (K, n) of the training points: label times output."""
        H = np.concatenate([self.W, self.U], axis=1)  # (K, m, d)
        a = np.broadcast_to(self.network[1], H.shape[:2])
        return np.asarray(self.data.y * outputs(self.data.x, H, a, self.alpha))

    @property
    def accuracies(self) -> kit.Floats:
        """Shares (K,) of training points that the network classifies."""
        return np.asarray((self.margins > 0).mean(axis=-1))

    @property
    def accuracy(self) -> float:
        """Share of training points that the last network classifies."""
        return float(np.mean(outputs(self.data.x, *self.network, self.alpha) * self.data.y > 0))

    @property
    def late(self) -> kit.Bools:
        """Which states (K,) Assumption 6.1 holds at: the summed loss has been below log 2."""
        loss = np.logaddexp(0.0, -self.margins).sum(axis=-1)
        return np.asarray(np.logical_or.accumulate(loss < np.log(2)))

    @property
    def par_shares(self) -> dict[str, kit.Floats]:
        """Shares (K,) of neurons `w` and `u` that are in the PAR."""
        x = self.data.x
        y = self.data.y
        return {"w": agreement_share(x, y, self.W), "u": agreement_share(x, -y, self.U)}

    def joint_cosine(self, i: int, predicted: Directions) -> float:
        """Return the cosine of `(w_bar, u_bar)` of state `i` with the predicted `(w, u)`."""
        means = np.concatenate([self.W[i].mean(axis=0), self.U[i].mean(axis=0)])
        return float(kit.cosines(means, predicted.joint))


def read_groups(run: kit.Run) -> Groups:
    """Return the two groups of neurons of a run, up to the last state whose weights are finite.

    Raises InputError unless the network has two layers, the second fixed with both signs.
    """
    architecture = run.config.architecture
    if not isinstance(architecture, TwoLayer) or architecture.train_output:
        raise kit.InputError(
            f"{run.path}: the figures of sarussi2021 need a two_layer network with train_output:"
            " false"
        )
    H = np.array(run.parameters["hidden_weight"], dtype=np.float64)  # (K, m, d)
    a = np.asarray(run.state(0)["output_weight"], dtype=np.float64)
    if not ((a > 0).any() and (a < 0).any()):
        raise kit.InputError(
            f"{run.path}: output weights of both signs are needed (initialization.output_signs:"
            " halves)"
        )
    finite = np.isfinite(H).all(axis=(1, 2))
    count = len(H) if finite.all() else max(int(np.argmin(finite)), 1)
    iterations = np.asarray(run.snapshot_iterations[:count], dtype=np.int64)
    batch = getattr(run.config.optimizer, "batch_size", None)
    data = run.dataset()
    per_epoch = 1.0 if batch is None else np.ceil(data.n / batch)
    slope = architecture.sigma.negative_slope or 0.0
    v = float(np.abs(a).max())
    return Groups(
        data, iterations, iterations / per_epoch, H[:count, a > 0], H[:count, a < 0], slope, v
    )


@dataclass(frozen=True)
class Clustering:
    """How tightly the neurons of a run are clustered at the recorded states."""

    epochs: kit.Floats
    """(K,)"""
    ratio: kit.Floats
    """(K,) `2 r / ||w_bar - u_bar||`."""
    angle: kit.Floats
    """(K,) the largest within a group, in degrees."""
    outside: Mapping[str, kit.Floats]
    """Shares (K,) of `training` and `held-out` points outside the linear regime; NaN for none."""
    differ: int
    """Points whose signs by the last network and by the classifier `w_bar - u_bar` differ."""
    sizes: Mapping[str, int]
    """Number of `training` and of `held-out` points."""
    surely_outside: float
    """Share of training points outside every regime that Theorem 5.1 could have, at the end."""
    accuracy: kit.Floats
    """(K,) on the training points."""
    linear_accuracy: float
    """What linear least squares reaches on them without training."""

    @property
    def learnt(self) -> kit.Bools:
        """Which states (K,) classify at least as many training points as least squares."""
        return np.asarray(self.accuracy >= self.linear_accuracy)


def clustering(run: kit.Run) -> Clustering:
    """Measure how tightly the neurons of a run are clustered."""
    groups = read_groups(run)
    W = groups.W
    U = groups.U
    none = np.full(len(groups.W), np.nan)
    points = {"training": groups.data.x, "held-out": groups.data.x_test}
    sharp = sharp_constant(groups.alpha)
    return Clustering(
        epochs=groups.epochs,
        ratio=clustering_ratio(W, U),
        angle=np.maximum(largest_angle(W), largest_angle(U)),
        outside={
            name: none if x is None else outside_linear_regime(x, W, U).mean(axis=-1)
            for name, x in points.items()
        },
        differ=sum(
            int(signs_differ(x, W[-1], U[-1], groups.alpha).sum())
            for x in points.values()
            if x is not None
        ),
        sizes={name: 0 if x is None else len(x) for name, x in points.items()},
        surely_outside=float(outside_linear_regime(groups.data.x, *groups.last, sharp).mean()),
        accuracy=groups.accuracies,
        linear_accuracy=least_squares_accuracy(groups.data.x, groups.data.y),
    )


def least_squares_accuracy(x: kit.Floats, y: kit.Floats) -> float:
    """Return the share of points (n, d) to which linear least squares through the origin gives the
    sign y (n,).
    """
    normal = np.linalg.lstsq(x, y, rcond=None)[0]
    return float((y * (x @ normal) > 0).mean())


def settled(epochs: kit.Floats, values: kit.Floats) -> float:
    """Return the largest of values (K,) over the last third of epochs: the last state alone may
    be a lucky one.
    """
    return float(values[epochs >= 2 / 3 * epochs[-1]].max())


def nearly_zero(part: str, size: int) -> kit.Interval:
    """Return the meaning of zero for a share of points: below `SMALL`.

    Held-out points are a sample, so that two binomial standard deviations of their share are
    allowed for.
    """
    if part == "training" or not size:
        return kit.less_than(SMALL)
    chance = 2 * float(np.sqrt(SMALL * (1 - SMALL) / size))
    return kit.Interval(
        None, SMALL + chance, f"< {SMALL:g} + {chance:.2g} (two binomial deviations)"
    )


RATIO = r"ratio $2r/\|\bar w-\bar u\|$"


SHARE = (-0.04, 1.04)
"""The axis of a share."""


@dataclass(frozen=True)
class Plane:
    """A trained network of two inputs, cut along its boundary."""

    groups: Groups
    regions: Scene
    """Where the output is positive, negative and 0."""
    signs: kit.Floats
    """(m,) of the output weights."""


def plane(groups: Groups, margin: float = 0.25) -> Plane:
    """Cut the inputs of a trained network along its boundary.

    The window is wider than the data by a share `margin`. A third input may be the constant 1 of a
    bias.
    """
    H, a = groups.network
    regions = regions_scene(
        H, a, groups.alpha, data_window(groups.data.x[:, :2], margin), data=groups.data
    )
    return Plane(groups, regions, np.sign(a))


def boundary_directions(H: kit.Floats, a: kit.Floats, alpha: float) -> kit.Floats:
    """Return the angles (b,), ascending in [0, 360), of the rays on which a network `H` (m, 2), `a`
    (m,) is 0.

    Between neighbouring kinks the output is a linear function; regions of zeros give no ray.
    """
    normals = np.arctan2(H[:, 1], H[:, 0])
    quarter = np.array([[np.pi / 2], [-np.pi / 2]])
    kinks = np.unique(np.mod(normals + quarter, 2 * np.pi))
    ends = np.append(kinks[1:], kinks[0] + 2 * np.pi)
    middle = (kinks + ends) / 2
    z = np.stack([np.cos(middle), np.sin(middle)], axis=1) @ H.T  # (b, m)
    g = (np.where(z > 0, 1.0, alpha) * a) @ H  # (b, 2) gradient in every sector
    zeros = np.arctan2(g[:, 1], g[:, 0]) + quarter  # (2, b)
    inside = np.mod(zeros - kinks, 2 * np.pi) < ends - kinks
    inside &= np.linalg.norm(g, axis=1) > 1e-12 * np.abs(H).max() * np.abs(a).sum()
    return np.sort(np.degrees(np.mod(zeros[inside], 2 * np.pi)))


def regions_scene(
    H: kit.Floats,
    a: kit.Floats,
    alpha: float,
    window: Window,
    heights: Sequence[float] = (0.0,),
    *,
    shade: tuple[float, float] = (0.3, 0.0),
    data: Samples | None = None,
) -> Scene:
    """Describe the signs of the output of a network `H` (m, 2), `a` (m,), its level sets of
    `heights`, and data.

    A third column of `H` holds biases, the weights of a constant input 1.
    """
    sides = [np.linspace(low, high, PRINT.side) for low, high in (window[:2], window[2:])]
    points = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
    fill = [Role("positive", "$N(x)>0$"), Role("negative", "$N(x)<0$"), Role("ground", "$N(x)=0$")]
    constant = np.ones((len(points), H.shape[1] - 2))
    h = outputs(np.hstack([points, constant]), H, a, alpha).reshape(PRINT.side, PRINT.side)
    layers = [SceneLayer(form="field", roles=fill, at=fixed(levels(h)), z=-1, shade=shade)]
    for height in heights:
        edge = [Role("theory", "decision boundary" if height == 0 else "")]
        size = 0.6 if height and 0 in heights else 1.1
        layers.append(
            SceneLayer(
                form="segments", roles=edge, at=fixed(level_set(h, window, height)), z=1, size=size
            )
        )
    if data is not None:
        rows = fixed(np.column_stack([data.x[:, :2], data.y < 0]))
        signs = [Role("positive", "$y=+1$"), Role("negative", "$y=-1$", "s")]
        layers.append(SceneLayer(form="points", roles=signs, at=rows, z=3, size=3.4))
    return Scene(
        title="Decision regions", alternative="Signs of the output.", layers=layers, window=window
    )


def draw_neurons(
    axes: kit.Axes, H: kit.Floats, signs: kit.Floats, label: str, limit: float | None = None
) -> list[kit.Artist]:
    """Draw neurons (m, 2) as rays; return the handles. The axes are called `<label> 1` and
    `<label> 2`.
    """
    reach = kit.round_up(float(kit.norms(H).max())) if limit is None else limit
    names = {1: "neurons $w_i$", -1: "neurons $u_i$"}  # the paper's names of the two groups
    labels = (f"{label} 1", f"{label} 2")
    return draw_scene(
        axes, rays_scene(lambda _: H, lambda _: signs, reach, names=labels, sign_names=names), 0
    ).handles
