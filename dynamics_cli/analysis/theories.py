"""Predictions of theories for a run, drawn beside its measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dynamics_cli.analysis.curves import time_scale, value_scale
from dynamics_cli.analysis.panels.training import called
from dynamics_cli.errors import DynError, InputError, UsageError, did_you_mean
from dynamics_cli.kinds import Curve, Theory, all_kinds
from dynamics_cli.kinds.base import loaded
from dynamics_cli.plotting.layout import note, panel_label, place_legend
from dynamics_cli.plotting.style import PALETTE, SERIES, new_figure, styled
from dynamics_cli.plotting.time_axis import draw_curve, set_time_axis, set_value_axis, visible
from dynamics_cli.runs import Run
from dynamics_cli.runs.errors import CorruptRunError

MANY = 12
"""Numbers of one curve that are drawn at most."""


@dataclass(frozen=True)
class Prediction:
    """A theory that speaks of a run."""

    theory: Theory
    violated: list[str]
    """Assumptions that the run violates."""
    curves: Mapping[str, Curve]
    """What it predicts; nothing where assumptions fail, unless it was asked for all the same."""

    @property
    def name(self) -> str:
        """The kind of the theory."""
        return self.theory.kind

    @property
    def deviations(self) -> dict[str, float]:
        """Largest deviation of each curve over the largest measured value."""
        return {name: curve.deviation for name, curve in self.curves.items()}


def predictions(run: Run, anyway: Sequence[str] = ()) -> list[Prediction]:
    """Return the predictions of all theories for `run`; of theories in `anyway` also where their assumptions fail.

    Raises:
        InputError: a theory cannot predict this run.
        UsageError: `anyway` names none that speaks of it, or no theory does.
    """
    _refuse_unloaded(run)
    found, shapes = [], run.config.architecture.shapes(run.dataset().d)
    for cls in all_kinds("theory").values():
        theory = cls()
        assert isinstance(theory, Theory)
        missing = [name for name in shapes if name not in run.parameters]
        told = ""
        if missing:
            keeps = f"record.parameters is {run.config.record.parameters}, without {missing[0]}"
            told = f"all weights are recorded: {keeps}"
        elif not len(run.losses):
            told = "losses are recorded: the run broke off before the first"
        try:
            violated = theory.applies(run)
            if violated is not None and not len(run.losses):
                raise LookupError(told)
            if violated is not None:
                curves = _curves(run, theory) if theory.kind in anyway or not violated else {}
                found.append(Prediction(theory, violated, curves))
        except ValueError as error:
            raise InputError(f"the theory {theory.kind} says nothing of this run: {error}") from error
        except (DynError, LookupError) as error:
            if not told or isinstance(error, CorruptRunError):
                raise
            if theory.kind in anyway:
                raise InputError(f"the theory {theory.kind} says nothing of this run. It needs that {told}") from error
            found.append(Prediction(theory, [told], {}))
    names = [one.name for one in found]
    if not names:
        raise UsageError("no theory speaks of this run; `dyn list kinds` has all of them, `dyn explain` an example")
    for name in anyway:
        if name not in names:
            there = f"it is about {', '.join(names)}"
            raise UsageError(f"no theory {name!r} speaks of this run{did_you_mean(name, names)}; {there}")
    return found


def _refuse_unloaded(run: Run) -> None:
    for section, one in run.config:
        loaded(one, section)


def _curves(run: Run, theory: Theory) -> dict[str, Curve]:
    return {
        name: one if isinstance(one, Curve) else _beside(run, theory, name, np.asarray(one, np.float64))
        for name, one in theory.predict(run).items()
    }


def _beside(run: Run, theory: Theory, name: str, predicted: np.ndarray) -> Curve:
    """Return the prediction of a loss or a measure beside its record."""
    if name == "loss":
        x, measured, label = run.loss_iterations, run.losses, r"loss $L(\theta^t)$"
    elif name in run.measures:
        x, measured, label = run.snapshot_iterations, run.measures[name], called(name)
    else:
        there = ", ".join(["loss", *run.measures])
        raise InputError(f"the theory {theory.kind} predicts {name!r}, which this run has not recorded; it has {there}")
    values = np.asarray(measured, np.float64)
    if predicted.shape != values.shape:
        raise InputError(f"the theory {theory.kind} predicts {name!r} of shape {predicted.shape}, not {values.shape}")
    return Curve(label, np.asarray(x, np.float64), values, predicted)


@styled
def draw_prediction(prediction: Prediction) -> Figure:
    """Draw every curve of a theory beside its measurement, two panels in a row; legends name the deviation."""
    count = len(prediction.curves)
    columns = min(count, 2)
    figure, axes = new_figure(columns, -(-count // columns), aspect=0.85 if count > 1 else 0.72, extra_height=0.2)
    for k, curve in enumerate(prediction.curves.values()):
        _draw(axes[k], curve, "theory, " if not prediction.violated else "theory (assumptions fail),\n")
        if count > 1:
            panel_label(axes[k], k)
    for unused in axes[count:]:
        unused.remove()
    return figure


def _draw(axes: Axes, curve: Curve, name: str) -> None:
    measured, predicted = (np.reshape(v, (len(curve.x), -1))[:, :MANY] for v in (curve.measured, curve.predicted))
    over_time = curve.xlabel == "iteration"
    scale = time_scale(curve.x, measured) if over_time else "linear"
    both = np.concatenate([measured, predicted])
    log = set_value_axis(axes, both, curve.label, log=value_scale(both) == "log")
    handles = []
    for k in range(measured.shape[1]):
        look = {"color": SERIES[k % len(SERIES)], "lw": 2.2, "alpha": 0.75, "label": "measured"}
        handles.append(draw_curve(axes, curve.x, visible(measured[:, k], log=log), log_time=scale == "log", **look))
    text = f"{name}off by {curve.deviation:.2g} of the largest"
    for k in range(measured.shape[1]):
        look = {"color": PALETTE.theory, "lw": 1.0, "ls": (0, (4, 2)), "label": text}
        line = draw_curve(axes, curve.x, visible(predicted[:, k], log=log), log_time=scale == "log", **look)
    if over_time:
        set_time_axis(axes, curve.x, scale)
    else:
        axes.set_xlabel(curve.xlabel)
    count = curve.measured.size // max(len(curve.x), 1)
    if count > MANY:
        note(axes, f"{MANY} of {count} curves")
    place_legend(axes, [handles[0], line], "below", columns=1)
