"""Charts of a run: losses, measures, densities of eigenvalues, and weights over training."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.analysis.networks import LOSS, Networks, drawn_measures, sources_of
from dynamics_cli.analysis.resolve import Resolved
from dynamics_cli.analysis.states import plateaus_of
from dynamics_cli.analysis.view import View, spread
from dynamics_cli.kinds import Measure
from dynamics_cli.kinds.pictures import Description
from dynamics_cli.measures.arrays import Floats, Ints
from dynamics_cli.measures.neurons import angle_of, cosines, norms
from dynamics_cli.measures.spectra import leading_directions, mean_density, singular_values
from dynamics_cli.plotting.chart import Chart, Level, Line, Reference, look
from dynamics_cli.plotting.labels import format_number
from dynamics_cli.plotting.panels.neurons import SIGN_NAMES, SIGN_ROLES
from dynamics_cli.process import one_blas_thread
from dynamics_cli.runs.run import measured, of_measure
from dynamics_cli.runs.titles import called

LABELLED = 0.08
"""Share of the iterations that a plateau covers at least to be underlined: room for its value."""
MANY_CURVES = 20
"""Coefficients that are drawn at most."""
DENSE_POINTS = 1000
WIDTH = 0.005
"""Points of a density, and the width of the Gaussians as a share of the range of eigenvalues."""
DENSITIES = 5
"""Densities that are drawn at most."""
MANY_NEURONS = 1000
"""More neurons than this are not all drawn over training; a note says how many are."""
NAMED_POINTS = 6
"""Data points up to which their directions are named in the margin of `directions`."""
NAMED_VALUES = 3
"""Singular values that have a colour and a name."""
SVD_SPEED = 5
"""Multiplications of a decomposition that take as long as reading one weight."""


# -- what was recorded: losses, measures, densities


def no_losses(view: View) -> str | None:
    """Return why there is no loss to draw, or None."""
    if len(view.run.losses):
        return None
    return "no loss is recorded yet"


def losses(view: View, at: int | None = None) -> list[Chart]:
    """Chart the training loss with plateaus, the held-out loss, and the loss over time of flows."""
    run = view.run
    plateaus = [
        p for p in plateaus_of(view) if p.length >= LABELLED * float(run.loss_iterations[-1])
    ]
    (chart,) = recorded_charts(view, y=loss_names(view))
    levels = [Level(p.value, p.first, p.last) for p in plateaus]
    charts = [replace(chart, title="Loss", plateaus=levels)]
    if run.times is not None and np.isfinite(run.times).sum() > 1:
        (over,) = recorded_charts(view, y=[LOSS], x="time")
        charts.append(replace(over, title="Loss over time"))
    return charts


def loss_names(view: View) -> list[str]:
    """Return the losses over the samples that are trained on, and held out."""
    return [LOSS, *(name for name in ("test_loss",) if name in view.run.measures)]


def recorded_charts(view: View, **words: Any) -> list[Chart]:
    """Chart what a run has recorded, as `dyn.picture` describes it."""
    description = Description(log=view.log, **words)
    resolved = Resolved(description, Networks(sources_of([view.run])))
    return [chart for chart in resolved.charts if isinstance(chart, Chart)]


def no_measures(view: View) -> str | None:
    """Return why there are no measures to draw, or None."""
    if not drawn_measures(view.run):
        return "no measures are recorded (see record.measures in its config)"
    if not len(view.iterations):
        return "no measures are recorded yet"
    return None


def measures(view: View, at: int | None = None, names: Sequence[str] = ()) -> list[Chart]:
    """Chart accuracies together and others alone: `names`, or all but the held-out loss."""
    return recorded_charts(view, y=names or measure_names(view))


def measure_names(view: View) -> list[str]:
    """Return the measures that are curves, without the held-out loss beside the training loss."""
    chosen = sorted(drawn_measures(view.run), key="test_accuracy".__eq__)
    if len(chosen) > 1 and "test_loss" in chosen:
        chosen.remove("test_loss")
    return chosen


def no_positions(view: View) -> str | None:
    """Return why there is no number by position to draw, or None."""
    if _measures(view, _by_position):
        return None
    return "by_position is not recorded"


def _measures(view: View, ask: Callable[[Measure], bool]) -> list[str]:
    """Return the names of recorded measures that answer yes."""
    return [name for name in view.run.measures if of_measure(view.run.config, name, ask)]


def _by_position(measure: Measure) -> bool:
    return measure.panel == "positions"


def _of_spectrum(measure: Measure) -> bool:
    return measure.of_spectrum


def positions(view: View, at: int | None = None) -> list[Chart]:
    """Chart numbers over positions at some states, or at the state nearest to `at`.

    Bins are charted over iterations.
    """
    charts: list[Chart] = []
    for name in _measures(view, _by_position):
        if of_measure(view.run.config, name, lambda measure: getattr(measure, "bins", None)):
            charts += recorded_charts(view, y=[name])
            continue
        steps, values = measured(view.run, name)
        labelled = np.isfinite(values).any(0)  # others have no label
        x = np.arange(1, values.shape[1] + 1)[labelled]
        chosen = _some_states(steps, at)
        lines = _of_states(steps[chosen], x, values[chosen][:, labelled])
        charts += _chart(view, "", called(name), lines, xlabel="position")
    return charts


def _chart(view: View, title: str, ylabel: str, lines: Sequence[Line], **words: Any) -> list[Chart]:
    return [Chart(title=title, ylabel=ylabel, lines=lines, log=view.log, **words)]


def _some_states(steps: Ints, at: int | None) -> Ints:
    """Return indices of some recorded states, or of the one nearest to `at`."""
    if at is None:
        return spread(len(steps), DENSITIES)
    return np.array([np.argmin(np.abs(steps - at))])


def _of_states(steps: Ints, x: ArrayLike, curves: Floats) -> list[Line]:
    """Return a line for each state."""
    names = [f"iteration {format_number(int(step))}" for step in steps]
    return _family(x, dict(zip(names, curves, strict=True)))


def _family(x: ArrayLike, curves: Mapping[str, Floats]) -> list[Line]:
    """Return lines of different looks by their names."""
    return [Line(x=x, y=y, name=name, **look(k)) for k, (name, y) in enumerate(curves.items())]


def no_density(view: View) -> str | None:
    """Return why there are no densities of eigenvalues to draw, or None."""
    if _measures(view, _of_spectrum):
        return None
    return "neither spectral_density nor hessian_spectrum is recorded"


def density(view: View, at: int | None = None) -> list[Chart]:
    """Chart densities of eigenvalues of some states, or of the one nearest to `at`."""
    charts: list[Chart] = []
    for name in _measures(view, _of_spectrum):
        steps, values = measured(view.run, name)
        chosen = _some_states(steps, at)
        rules = [_rules(values[i], view.run.measures[name].shape[1:]) for i in chosen]
        nodes = np.concatenate([rule[:, 0].ravel() for rule in rules])
        low = float(np.nanmin(nodes))
        high = float(np.nanmax(nodes))
        width = WIDTH * (high - low) or 1.0
        x = np.linspace(low - 5 * width, high + 5 * width, DENSE_POINTS)
        curves = np.stack([mean_density(rule, x, width) for rule in rules])
        # tails of Gaussians are no part of it
        shown = np.where(curves > 1e-7 * curves.max(), curves, np.nan)
        lines = _of_states(steps[chosen], x, shown)
        charts += _chart(view, called(name), "density", lines, xlabel="eigenvalue")
    return charts


def _rules(values: Floats, shape: tuple[int, ...]) -> Floats:
    """Return the record of a state as rules (probes, 2, steps); a spectrum has equal weights."""
    if len(shape) == 3:
        return values.reshape(shape)
    return np.stack([values, np.full(len(values), 1 / len(values))])[None]


# -- weights: coefficients, norms, directions, spectra


def no_predictor(view: View) -> str | None:
    """Return why there are no coefficients of a linear predictor to draw, or None."""
    if hasattr(view.run.config.architecture, "predictor"):
        return None
    return "the network has no predictor as a vector"


def coefficients(view: View, at: int | None = None) -> list[Chart]:
    """Chart the `MANY_CURVES` coefficients of a linear predictor that end as the largest."""
    states = view.curve_states(sum(array[0].size for array in view.run.parameters.values()))
    architecture: Any = view.run.config.architecture
    beta = np.stack([architecture.predictor(view.run.state(int(i))) for i in states])  # (k, d)
    largest = np.sort(np.argsort(-np.abs(beta[-1]), kind="stable")[:MANY_CURVES])
    named = {rf"$\beta_{{{i + 1}}}$": beta[:, i] for i in largest}
    lines = _family(view.iterations[states], named)
    cut = ""
    if beta.shape[1] > MANY_CURVES:
        cut = f"the {MANY_CURVES} largest of {beta.shape[1]}"
    return _chart(view, "Coefficients", r"coefficients $\beta_i^t$", lines, note=cut)


def norms_over_training(view: View, at: int | None = None) -> list[Chart]:
    """Chart norms of neurons of two layers, by the sign of their output, or of deep layers."""
    if view.two_layer:
        m, d = view.hidden_shape
        states = view.curve_states(m * d)
        drawn = spread(m, MANY_NEURONS)
        lengths = np.stack([norms(view.weights(i)[drawn]) for i in states])  # (k, m)
        lines = _by_sign(view, states, lengths, drawn)
        note = _some(len(drawn), m)
        return _chart(view, "Norms of neurons", r"norm $\Vert w_j^t\Vert$", lines, note=note)
    states = view.curve_states(sum(int(np.prod(view.weight_shape(name))) for name in view.layers))
    named = {
        layer_title(name): np.array([norms(view.weights(i, name).ravel()) for i in states])
        for name in view.layers
    }
    lines = _family(view.iterations[states], named)
    return _chart(view, "Norms of layers", r"norm $\Vert W_\ell^t\Vert_F$", lines)


def _some(drawn: int, m: int) -> str:
    if drawn == m:
        return ""
    return f"{drawn} of {m} neurons"


def _by_sign(view: View, states: Ints, values: Floats, drawn: Ints) -> list[Line]:
    """Return the curves (k, m) of some neurons, a line for each sign of their last outputs."""
    signs = view.signs(view.states - 1)[drawn]
    steps = view.iterations[states]
    return [
        Line(x=steps, y=values[:, signs == sign], name=SIGN_NAMES[sign], color=SIGN_ROLES[sign])
        for sign in SIGN_NAMES
        if (signs == sign).any()
    ]


def layer_title(name: str) -> str:
    """Return `W_2` in mathtext for `weight_2`, `query1` for `weight_query1`, `W` for two layers.

    A layer of a player has its name before it: `generator W_2`.
    """
    title = name.rpartition("_")[2]
    if title.isdigit():
        title = f"$W_{{{title}}}$"
    elif title == "weight":
        title = "$W$"
    player, of_player, _ = name.partition("_weight_")
    if of_player:
        return f"{player} {title}"
    return title


def directions_of_neurons(view: View, at: int | None = None) -> list[Chart]:
    """Chart angles of neurons in the plane, or, above, cosines with directions that matter."""
    m, d = view.hidden_shape
    states = view.curve_states(m * d)
    drawn = spread(m, MANY_NEURONS)
    weights = [view.weights(i)[drawn] for i in states]
    form: dict[str, Any] = {"linear": True, "note": _some(len(drawn), m)}
    if d > 2:
        named = {
            "cosine with leading direction": leading_directions(view.weights(view.states - 1), 1)[0]
        }
        if not view.no_dataset and view.dataset.y.ndim == 1 and not view.classifies:
            named[r"cosine with $\Sigma_k\, y_k x_k$"] = view.dataset.y @ view.dataset.x
        charts: list[Chart] = []
        for name, direction in named.items():
            values = np.stack([cosines(w, direction) for w in weights])
            lines = _by_sign(view, states, values, drawn)
            charts += _chart(view, "", name, lines, reach=(-1, 1), **form)
        return charts
    angles = np.stack([angle_of(w) for w in weights])  # (k, m), in (-180, 180]
    # no line from one end of the axis to the other
    angles[1:][np.abs(np.diff(angles, axis=0)) > 180] = np.nan
    points = []
    if not view.no_dataset and view.dataset.n <= NAMED_POINTS:
        points = [
            Reference(f"$x_{{{k + 1}}}$", float(a))
            for k, a in enumerate(angle_of(view.dataset.x))
            if np.isfinite(a)
        ]
    lines = _by_sign(view, states, angles, drawn)
    label = "direction of $w_j^t$ (degrees)"
    form |= {"reach": (-180, 180), "levels": points}
    return _chart(view, "Directions of neurons", label, lines, **form)


def spectra(view: View, at: int | None = None) -> list[Chart]:
    """Chart the singular values of every weight matrix, and the stable ranks of all of them."""
    charts: list[Chart] = []
    ranks = []
    for k, name in enumerate(view.layers):
        steps, values = _spectrum(view, name)
        top = values[:, :1]
        title = layer_title(name)
        shares = np.divide(values, top, out=np.full_like(values, np.nan), where=top > 0)
        ranks.append(
            Line(
                x=steps,
                y=np.sum(shares**2, axis=1),
                name=title if len(view.layers) > 1 else "",
                **look(k),
            )
        )
        lines = [*_named_values(steps, values)]
        charts += _chart(view, f"Singular values of {title}", "singular values", lines)
    return charts + _chart(view, "Stable rank", "stable rank", ranks, reach=(1,))


def _named_values(steps: Ints, values: Floats) -> Iterator[Line]:
    for k, column in enumerate(values.T[:NAMED_VALUES]):
        yield Line(x=steps, y=column, name=rf"$\sigma_{{{k + 1}}}$", color=f"series-{k}")
    if values.shape[1] > NAMED_VALUES:
        yield Line(x=steps, y=values[:, NAMED_VALUES:], name="others", color="muted", width=0.6)


def _spectrum(view: View, name: str) -> tuple[Ints, Floats]:
    """Return iterations (k,) and singular values (k, r) of a weight matrix."""
    m, d = view.weight_shape(name)
    states = view.curve_states(m * d * min(m, d) // SVD_SPEED)
    with one_blas_thread():
        values = [singular_values(view.weights(i, name)) for i in states]
    return view.iterations[states], np.stack(values)
