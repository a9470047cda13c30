"""Shared by the figures: the loss of a run, its network at the iterations that a caption names,
panels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics_cli import kit
from dynamics_cli.initializations.scaled import Scaled
from dynamics_cli.plotting.panels.inputs import (
    Frame,
    LineNetwork,
    common_zero,
    default_window,
    line_scene,
)
from dynamics_cli.plotting.scene import draw_scene

LOSS_FACTOR = 2.0
"""The released code minimises 1/n sum (h - y)^2, twice the loss of Eq. 1."""
STEP = 1e-3
"""The step of all the paper's experiments. Time along gradient flow is counted in it, as
iterations of descent.
"""
NAN = np.nan
"""The time of an event that did not happen, or a number on which the theory is silent."""


def on_flow(role: str, config: str, redrawn: tuple[str, ...] = ()) -> dict[str, kit.Variant]:
    """Return the variant of a figure on gradient flow itself.

    `redrawn` are the changes of the config under which the seeds after the first draw their own
    weights, where the first reads its weights from a file.
    """
    return {
        "flow": kit.Variant(
            "on gradient flow",
            "Gradient flow itself: a statement on iteration k is measured at time k/1000.",
            {role: config},
            {role: kit.Wanted(config, redrawn)} if redrawn else {},
        )
    }


@dataclass(frozen=True)
class LossCurve:
    """The training loss of a run."""

    iterations: kit.Ints
    """(k,) ascending; along gradient flow times over `STEP`."""
    losses: kit.Floats
    """(k,)"""
    flow: bool
    """Whether the run is gradient flow itself."""

    @property
    def start(self) -> float:
        """Loss at initialisation."""
        return float(self.losses[0])

    @property
    def xlabel(self) -> str:
        """How an axis of iterations is labelled."""
        return r"time $t\,/\,10^{-3}$" if self.flow else "iteration"

    def at(self, iteration: float) -> float:
        """Return the loss recorded nearest to an iteration."""
        return kit.value_at(self.iterations, self.losses, iteration)

    def first_below(self, level: float) -> float:
        """Return the first iteration with a loss below `level`; NaN if none."""
        iteration = kit.first_below(self.iterations, self.losses, level)
        return NAN if iteration is None else float(iteration)

    def escape(self, level: float, drop: float = 0.01) -> float:
        """Return the iteration at which the saddle of loss `level` is left (by a share `drop`);
        NaN if never.
        """
        above = np.flatnonzero(self.losses >= (1 - drop) * level)
        left = above[-1] + 1 if above.size else 0
        return float(self.iterations[left]) if left < len(self.iterations) else NAN

    def plateau(self, iteration: float, tolerance: float) -> kit.Plateau:
        """Return the stretch around an iteration on which the loss stays within `tolerance` of
        its value there.
        """
        centre = int(np.argmin(np.abs(self.iterations - int(iteration))))
        outside = np.flatnonzero(np.abs(self.losses - self.losses[centre]) > tolerance)
        before = outside[outside < centre]
        after = outside[outside > centre]
        part = slice(
            before[-1] + 1 if before.size else 0, after[0] if after.size else len(self.losses)
        )
        iterations = self.iterations[part].tolist()
        return kit.Plateau(float(np.median(self.losses[part])), iterations[0], iterations[-1])


@dataclass(frozen=True)
class NetworkState:
    """The network after `iteration` updates, in float64; along gradient flow at that many times
    `STEP`.
    """

    iteration: int
    when: str
    """How a panel says so: `it. 4 000`, or along gradient flow `$t = 4$`."""
    W: kit.Floats
    """(m, d) hidden weights, the bias as last column where there is one."""
    a: kit.Floats
    """(m,) output weights."""
    h: kit.Floats
    """(n,) outputs on the data."""
    norms: kit.Floats
    """(m,) `||w_j||`."""
    signs: kit.Floats
    """(m,) signs of the output weights now."""


@dataclass(frozen=True)
class LineState(NetworkState):
    """A state of a network of one input and a bias, as the panels of Figures 2, 4 and 5 show it."""

    kinks: kit.Floats
    """(m,) `-w_{j,2} / w_{j,1}`."""
    outputs: kit.Floats
    """(m,) `s_j ||w_j||`."""
    function: Callable[[kit.Floats], kit.Floats]
    """Inputs (k,) -> outputs (k,)."""


def clock(run: kit.Run, numbers: kit.Ints) -> kit.Ints:
    """Return the iterations (k,) of the states with these numbers (k,); along gradient flow
    times over `STEP`.
    """
    if run.times is None:
        return np.array(numbers)
    return np.rint(np.interp(numbers, run.loss_iterations, run.times) / STEP).astype(np.int64)


def horizon(run: kit.Run) -> int:
    """Return the iteration of the last state."""
    return int(clock(run, np.array([run.iterations]))[0])


def loss_curve(run: kit.Run) -> LossCurve:
    """Return the loss over all iterations."""
    return LossCurve(clock(run, run.loss_iterations), np.array(run.losses), run.times is not None)


def state_at(run: kit.Run, iteration: int) -> NetworkState:
    """Return the recorded state nearest to an iteration.

    Raises InputError when the network is not a two-layer one.
    """
    i = nearest(run, iteration)
    parameters = run.state(i)
    if set(parameters) != {"hidden_weight", "output_weight"}:
        raise kit.InputError(
            f"{run.path}: the figures of boursier2022 need architecture.kind two_layer"
        )
    W, a = (parameters[name].astype(np.float64) for name in ("hidden_weight", "output_weight"))
    h = run.network(i)(run.dataset().x)
    reached = int(clock(run, run.snapshot_iterations)[i])
    return NetworkState(
        reached, time_text(reached, run.times is not None), W, a, h, kit.norms(W), kit.signs(a)
    )


def nearest(run: kit.Run, iteration: int) -> int:
    """Return the number of the snapshot nearest to an iteration, the earlier of two."""
    return int(np.argmin(np.abs(clock(run, run.snapshot_iterations) - iteration)))


def line_state(run: kit.Run, iteration: int) -> LineState:
    """Return the recorded state of a network of one input and a bias nearest to an iteration.

    Raises InputError when the inputs are others.
    """
    state = state_at(run, iteration)
    if state.W.shape[1] != 2 or not run.dataset().bias:
        raise kit.InputError(
            f"{run.path}: this figure needs one input and a bias (dataset.append_bias: true)"
        )
    network = run.network(nearest(run, iteration))

    def function(x: kit.Floats) -> kit.Floats:
        return np.asarray(network(np.column_stack([x, np.ones_like(x)])), dtype=np.float64)

    return LineState(
        **vars(state),
        kinks=kit.kinks(state.W),
        outputs=state.signs * state.norms,
        function=function,
    )


def bends(state: LineState, inputs: kit.Floats) -> bool:
    """Return whether the function of a network is not linear between the least and the largest
    input.
    """
    values = state.function(np.linspace(inputs.min(), inputs.max(), 201))
    return bool(np.abs(np.diff(values, 2)).max() > 1e-6 * np.ptp(values))


def distinct_kinks(W: kit.Floats, within: tuple[float, float] = (-np.inf, np.inf)) -> kit.Floats:
    """Return the distinct kinks (c,), ascending, of the neurons `W` (m, 2) of non-negligible norm,
    in an interval.

    Kinks at most 0.01 apart, or chained so, count once: their mean, weighted by the slopes of their
    neurons.
    """
    weights = W[kit.significant(W)]
    places = kit.kinks(weights)
    low, high = within
    keep = np.isfinite(places) & (places >= low) & (places <= high)
    order = np.argsort(places[keep], kind="stable")
    places = places[keep][order]
    slopes = np.abs(weights[keep, 0])[order]
    if places.size == 0:
        return places
    group = np.concatenate([[0], np.cumsum(np.diff(places) > 1e-2)])
    shares = slopes / slopes.max()
    return np.bincount(group, weights=shares * places) / np.bincount(group, weights=shares)


def initial_scale(run: kit.Run) -> float:
    """Return lambda, the standard deviation of the initial hidden weights (Eq. 4).

    From the config where it says so, else the root mean square of the recorded weights.
    """
    section = run.config.initialization
    W = state_at(run, 0).W
    if isinstance(section, Scaled):
        return section.divided(width=len(W), dim=run.dataset().input_dim) * (section.rescale or 1.0)
    largest = np.abs(W).max()
    return float(largest * np.sqrt(np.mean((W / largest) ** 2)))


def time_text(iteration: float, flow: bool) -> str:
    """Return the name of an iteration in a label: `it. 4 000`, or along gradient flow `$t = 4$`."""
    return (
        f"$t = {kit.format_number(iteration * STEP)}$"
        if flow
        else f"it. {kit.format_number(iteration)}"
    )


def turns(before: NetworkState, after: NetworkState) -> kit.Floats:
    """Return by how many degrees (m,) every neuron of two dimensions turned."""
    change = kit.angle_of(after.W) - kit.angle_of(before.W)
    return np.abs((change + 180) % 360 - 180)


def draw_states(
    states: Sequence[LineState],
    titles: Sequence[str],
    x: kit.Floats,
    y: kit.Floats,
    *,
    overlay_label: str = "",
    overlay: Callable[[kit.Floats], kit.Floats] | None = None,
    extra: Callable[[kit.Axes], None] | None = None,
) -> kit.Drawing:
    """Draw a panel for every state, two in a row, and a last panel by `extra` where it is given;
    data (n,) and (n,).

    `overlay` is drawn dashed in the last state. All panels share both scales, so that growth can be
    seen.
    """
    count = len(states) + (extra is not None)
    rows = (count + 1) // 2
    figure, axes = kit.new_figure(2, rows, aspect=0.68, extra_height=0.3)
    window = default_window(x)
    grid = np.linspace(*window, 512)
    functions = [*(state.function for state in states), *([overlay] if overlay else [])]
    stars = [
        state.outputs[(state.kinks >= window[0]) & (state.kinks <= window[1])] for state in states
    ]
    limits = common_zero(
        np.concatenate([y, *(function(grid) for function in functions)]), np.concatenate(stars)
    )
    nets = [LineNetwork(state.function, state.kinks, state.outputs) for state in states]
    scene = line_scene(nets.__getitem__, len(states[0].kinks), (x, y), Frame(window, *limits))
    handles: list[kit.Artist] = []
    for k, (state, title) in enumerate(zip(states, titles, strict=True)):
        panel = draw_scene(axes[k], scene, k)
        handles = panel.handles
        kit.panel_label(axes[k], k, f"{title} ({state.when})")
    if overlay is not None:
        grid = np.linspace(*window, 800)
        top = panel.right or panel.axes
        handles += top.plot(
            grid,
            overlay(grid),
            color=kit.PALETTE.theory,
            lw=1.0,
            ls=kit.DASHED,
            zorder=3.5,
            label=overlay_label,
            transform=panel.axes.transData,
        )
    if extra is not None:
        extra(axes[len(states)])
    for unused in axes[count:]:
        unused.remove()
    kit.figure_legend(figure, handles, columns=4)
    return figure


def loss_chart(curve: LossCurve, *more: kit.Line, name: str = "", **words: Any) -> kit.Chart:
    """Chart the loss, and more lines, on linear axes."""
    return kit.chart(
        "Loss profile",
        r"training loss $L(\theta^t)$",
        kit.line(curve.iterations, curve.losses, name, "measured"),
        *more,
        xlabel=curve.xlabel,
        **words,
    )


def saddle_of(plateau: kit.Plateau | None) -> list[kit.Level]:
    """Return what underlines a plateau of the loss, if there is one."""
    return [kit.Level(plateau.value, plateau.first, plateau.last)] if plateau else []
