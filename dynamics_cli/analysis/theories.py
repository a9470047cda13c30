"""Predictions of theories for a run, drawn beside its measurements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dynamics_cli.errors import DynError, InputError, UsageError
from dynamics_cli.kinds import Curve, Theory, all_kinds
from dynamics_cli.kinds.base import loaded
from dynamics_cli.plotting.chart import Chart, Line
from dynamics_cli.runs.errors import CorruptRunError
from dynamics_cli.runs.run import Run
from dynamics_cli.runs.titles import called

MANY = 12
"""Numbers of one curve that are drawn at most."""


@dataclass(frozen=True)
class Prediction:
    """A theory that speaks of a run."""

    theory: Theory
    violated: list[str]
    """Assumptions that the run violates."""
    curves: Mapping[str, Curve]
    """What it predicts; nothing where assumptions fail."""

    @property
    def name(self) -> str:
        """The kind of the theory."""
        return self.theory.kind

    @property
    def deviations(self) -> dict[str, float]:
        """Largest deviation of each curve over the largest measured value."""
        return {name: curve.deviation for name, curve in self.curves.items()}


def predictions(run: Run) -> list[Prediction]:
    """Return the predictions of all theories for `run`.

    Raises:
        InputError: a theory cannot predict this run.
        UsageError: no theory applies to it.
    """
    for section, part in run.config:
        loaded(part, section)
    if changes := run.config.changes:
        raise InputError(
            f"the run changes on the way, at iteration {changes[0].at}; theories predict runs that"
            " keep their settings: take one without `changes`"
        )
    missing = _missing(run)
    predicted = []
    for cls in all_kinds("theory").values():
        theory = cls()
        assert isinstance(theory, Theory)
        try:
            violated = theory.applies(run)
            if violated is None:
                continue
            if not len(run.losses):
                raise LookupError(missing)
            curves = {} if violated else _curves(run, theory)
            predicted.append(Prediction(theory, violated, curves))
        except ValueError as error:
            raise InputError(
                f"the theory {theory.kind} does not apply to this run: {error}"
            ) from error
        except (DynError, LookupError) as error:
            if not missing or isinstance(error, CorruptRunError):
                raise
            predicted.append(Prediction(theory, [missing], {}))
    if not predicted:
        raise UsageError(
            "no theory applies to this run; `dyn list kinds` has all of them, `dyn explain` an"
            " example"
        )
    return predicted


def _missing(run: Run) -> str:
    """Return what theories need, and this run has not recorded; empty if there is nothing."""
    if not len(run.losses):
        return "recorded losses: the run broke off before the first"
    for name in run.config.architecture.shapes(run.dataset().d):
        if name not in run.parameters:
            return (
                f"all weights recorded: record.parameters is {run.config.record.parameters},"
                f" without {name}"
            )
    return ""


def _curves(run: Run, theory: Theory) -> dict[str, Curve]:
    curves = {}
    for name, curve in theory.predict(run).items():
        if not isinstance(curve, Curve):
            curve = _beside(run, theory, name, np.asarray(curve, np.float64))  # noqa: PLW2901
        curves[name] = curve
    return curves


def _beside(run: Run, theory: Theory, name: str, predicted: np.ndarray) -> Curve:
    """Return the prediction of a loss or a measure beside its record."""
    if name == "loss":
        x = run.loss_iterations
        measured = run.losses
        label = called("loss")
    elif name in run.measures:
        x = run.snapshot_iterations
        measured = run.measures[name]
        label = called(name)
    else:
        known = ", ".join(["loss", *run.measures])
        raise InputError(
            f"the theory {theory.kind} predicts {name!r}, which this run has not recorded; it has"
            f" {known}"
        )
    values = np.asarray(measured, np.float64)
    if predicted.shape != values.shape:
        raise InputError(
            f"the theory {theory.kind} predicts {name!r} of shape {predicted.shape}, not"
            f" {values.shape}"
        )
    return Curve(label, np.asarray(x, np.float64), values, predicted)


def prediction_charts(prediction: Prediction) -> list[Chart]:
    """Chart every curve of a theory beside its measurement; legends name the deviation."""
    return [_chart(prediction.name, curve) for curve in prediction.curves.values()]


def _chart(name: str, curve: Curve) -> Chart:
    x = np.asarray(curve.x, np.float64)
    order = np.argsort(x, kind="stable")
    measured, predicted = (
        np.reshape(values, (len(x), -1))[order, :MANY]
        for values in (curve.measured, curve.predicted)
    )
    x = x[order]
    said = f"theory, off by {curve.deviation:.2g} of the largest"
    names = ["measured", *[""] * (MANY - 1)]
    lines = [
        Line(x=x, y=column, name=names[k], color=f"series-{k}", width=2.2)
        for k, column in enumerate(measured.T)
    ]
    lines.append(Line(x=x, y=predicted, name=said, color="theory", dash="dashed", width=1.0))
    note = ""
    if (every := curve.measured.size // max(len(x), 1)) > MANY:
        note = f"{MANY} of {every} curves"
    return Chart(
        title=f"Theory {name}: {curve.label}",
        lines=lines,
        ylabel=curve.label,
        xlabel=curve.xlabel,
        note=note,
    )
