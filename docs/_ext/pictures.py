"""Small pictures of kinds, in the style of the project's figures: activations, schedules, data sets of two columns."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from dynamics_cli.errors import DynError
from dynamics_cli.kinds import Kind, Streams
from dynamics_cli.plotting import style
from dynamics_cli.plotting.style import PALETTE, new_figure, save, styled

ITERATIONS = 1000
"""Updates of the run that the pictures of schedules show."""
SAMPLES = 400
"""Samples of a picture of a data set, where their number can be chosen."""
FEWEST = 12
"""A data set of fewer different points has no picture."""

Drawn = tuple[Any, str]
"""A figure and its caption, which is its alternative text too."""


@styled
def activation(kind: Any) -> Drawn | None:
    """Draw an activation and its derivative."""
    z = np.linspace(-3, 3, 601)
    figure, (axes,) = new_figure(aspect=0.6)
    axes.axhline(0, color=PALETTE.faint, zorder=0)
    axes.axvline(0, color=PALETTE.faint, zorder=0)
    axes.plot(z, kind.value(z), label=r"$\sigma(z)$")
    axes.plot(z, kind.derivative(z), "--", label=r"$\sigma'(z)$")
    axes.set_xlabel("z")
    axes.legend()
    settings = kind.model_dump(exclude={"kind"}, exclude_none=True)
    of = "".join(f", {key} = {value:.3g}" for key, value in settings.items())
    return figure, f"The activation and its derivative for z from -3 to 3{of}."


@styled
def schedule(kind: Any) -> Drawn | None:
    """Draw the factor of the step size along a run; of a constant nothing."""
    factor = [kind.factor(i, ITERATIONS) for i in range(ITERATIONS)]
    if min(factor) == max(factor):
        return None
    figure, (axes,) = new_figure(aspect=0.55)
    axes.plot(factor)
    axes.set_ylim(0, 1.05)
    axes.set_xlabel("iteration")
    axes.set_ylabel("factor of the step size")
    settings = kind.model_dump(exclude={"kind"}, exclude_none=True)
    of = ", ".join(f"{key} = {value:g}" for key, value in settings.items())
    return figure, f"The factor of the step size along a run of {ITERATIONS} iterations{', ' if of else ''}{of}."


@styled
def dataset(kind: Any) -> Drawn | None:
    """Draw the samples of a data set in the plane, or labels over inputs of one column; of others nothing."""
    samples = _small_samples(kind)
    if samples is None or samples.input_dim > 2 or samples.y.ndim > 1:
        return None
    x, y = samples.x[:, : samples.input_dim], samples.y
    if len(np.unique(x, axis=0)) < FEWEST:
        return None
    figure, (axes,) = new_figure(width=2.9 if x.shape[1] == 2 else None, aspect=0.9 if x.shape[1] == 2 else 0.6)
    if x.shape[1] == 1:
        axes.plot(x[:, 0], y, ".", color=PALETTE.data)
        axes.set_xlabel("x")
        axes.set_ylabel("label y")
        return figure, f"{samples.n} samples: the label over the input."
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_xlabel("$x_1$")
    axes.set_ylabel("$x_2$")
    if len(np.unique(y)) <= 2:
        for sign, marker in ((1, "o"), (-1, "s")):
            chosen = np.sign(y) == sign
            if chosen.any():
                axes.plot(*x[chosen].T, marker, color=PALETTE.sign(sign), ms=2.5, label=f"y = {sign}")
        figure.legend(loc="outside upper center", ncols=2)
        return figure, f"{samples.n} samples in two dimensions, coloured by their labels."
    points = axes.scatter(*x.T, c=y, s=8, cmap="viridis")
    figure.colorbar(points, label="label y")
    return figure, f"{samples.n} samples in two dimensions, coloured by their labels."


def _small_samples(kind: Any) -> Any:
    """Return samples of a data set, in two dimensions where their number is a key; None where there are none."""
    wanted = {key: value for key, value in (("dim", 2), ("n", SAMPLES)) if key in type(kind).model_fields}
    for update in (wanted, {"dim": 2} if "dim" in wanted else {}, {}):
        try:
            return type(kind)(**{**kind.model_dump(exclude_none=True), **update}).samples(Streams(0))
        except (DynError, ValidationError):
            continue
    return None


DRAWN: dict[str, Callable[[Any], Drawn | None]] = {"activation": activation, "schedule": schedule, "dataset": dataset}


def draw(cls: type[Kind], example: Callable[[], Any], stem: Path) -> str | None:
    """Draw the picture of a kind as `<stem>.png`; return its caption, None where a picture would not help.

    A picture that is newer than the source of the kind and of the style stays as it is, its caption beside it.
    """
    if cls.section not in DRAWN:
        return None
    picture, caption = stem.with_suffix(".png"), stem.with_suffix(".txt")
    sources = (inspect.getfile(cls), __file__, style.__file__)
    if (
        caption.exists()
        and (picture.exists() or not caption.read_text(encoding="utf-8"))
        and caption.stat().st_mtime > max(Path(source).stat().st_mtime for source in sources)
    ):
        return caption.read_text(encoding="utf-8") or None
    kind = example()
    drawn = None if kind is None else DRAWN[cls.section](kind)
    if drawn is None:
        picture.unlink(missing_ok=True)
    else:
        save(drawn[0], stem, ["png"])
    caption.write_text(drawn[1] if drawn else "", encoding="utf-8")
    return drawn[1] if drawn else None
