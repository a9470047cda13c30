"""The page of one run, and of several side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from dynamics_cli._bundled import bundled_configs
from dynamics_cli.analysis.curves import time_scale, value_scale
from dynamics_cli.analysis.overlay import curve_of, labels_of
from dynamics_cli.analysis.panels.neurons import layer_title, no_layers, read_spectrum
from dynamics_cli.analysis.panels.training import (
    ACCURACIES,
    ACCURATE,
    MANY_CURVES,
    NOT_FINITE,
    bound_of,
    called,
    drawn_measures,
    labelled_plateaus,
    values_of,
)
from dynamics_cli.analysis.theories import predictions
from dynamics_cli.analysis.view import View
from dynamics_cli.config import ConfigError, RunConfig, load_config
from dynamics_cli.config.dump import flat
from dynamics_cli.config.load import written_config
from dynamics_cli.errors import InputError, RunError, UsageError
from dynamics_cli.measures.arrays import Floats
from dynamics_cli.measures.neurons import norms
from dynamics_cli.pages.document import Html, Page, folded, table, tag
from dynamics_cli.pages.states import SliderStates, outputs_at_data, plain, state_panels
from dynamics_cli.reproduction.settings import origins_in
from dynamics_cli.runs import Run
from dynamics_cli.runs.columns import recorded
from dynamics_cli.runs.run import FEW_NUMBERS, columns_of, file_sizes, final_numbers, measured
from dynamics_cli.text import cell, size

VALUE = 300
"""Characters of a setting that a table shows."""
ACCURACY_AXIS = {"reach": ACCURACIES, "log_y": False}
VALUES = 12
"""Singular values of a matrix whose curves are drawn."""


def add_run(page: Page, run: Run, *, folded_in: str = "") -> None:
    """Add everything that a run can show; `folded_in` is the title of a fold around it.

    Raises CorruptRunError: the run is damaged.
    """
    run.check_all()
    parts = [*_pictures(page, run), *_tables(run)]
    if folded_in:
        page.body.append(folded(folded_in, tag("section", *parts, class_="run")))
    else:
        page.body.append(tag("section", *parts, class_="run", aria_label=run.path.name))


def add_comparison(page: Page, runs: Sequence[Run]) -> None:
    """Add the curves of several runs over one another, and what differs in their configs and final numbers.

    Raises CorruptRunError: a run is damaged.
    """
    for run in runs:
        run.check_all()
    labels = labels_of(runs)
    names = [label if labels.count(label) == 1 else f"{k + 1}: {label}" for k, label in enumerate(labels)]
    common = [name for name in runs[0].measures if all(name in run.measures for run in runs)]
    panels = []
    for what in ["loss", *common]:
        curves = [curve_of(run, what) for run in runs]
        kept = [(name, curve) for name, curve in zip(names, curves, strict=True) if len(curve[0])]
        lines = [page.curve(*curve, name) for name, curve in kept]
        if lines:
            title = "training loss" if what == "loss" else called(what)
            if what != "loss" and len(columns := columns_of(runs[0], what)) > 1:
                title += f": {columns[0]}, the first of {len(columns)} numbers"
            look: dict[str, Any] = ACCURACY_AXIS if what in ACCURATE else {}
            panels.append(_chart(page, title, lines, [curve for _, curve in kept], wide=what == "loss", **look))
    configs = [flat(run.config.model_dump(exclude_none=True)) for run in runs]
    keys = [key for key in dict.fromkeys(key for one in configs for key in one)
            if any(one.get(key) != configs[0].get(key) for one in configs)]  # fmt: skip
    header = ["", *(run.path.name for run in runs)]
    differing = [[key, *(_value(one.get(key)) for one in configs)] for key in keys]
    ends = [final_numbers(run) for run in runs]
    final = [[name.replace("_", " "), *(cell(one.get(name)) for one in ends)]
             for name in dict.fromkeys(name for one in ends for name in one)]  # fmt: skip
    same = tag("p", "The configs are the same.") if not differing else None
    page.body.append(
        tag(
            "section",
            tag("div", *panels, class_="panels"),
            same or table(["setting", *header[1:]], differing, "Settings that differ"),
            table(["final", *header[1:]], final, "Final numbers"),
        )
    )


# pictures -----------------------------------------------------------------------------------------------------------


def _pictures(page: Page, run: Run) -> Iterator[Html]:
    view = View(run)
    states = view.curve_states(1) if view.states else np.zeros(0, np.int64)
    steps = np.asarray(view.iterations[states], np.float64)
    group = len(page.groups)
    numbers = _numbers(view, states) if len(states) else {}
    kept = [{"name": name, "y": page.array(values)} for name, values in numbers.items()]
    page.groups.append({"x": page.array(steps), "numbers": kept})
    loss = "" if np.isnan(run.final_loss) else f", final loss {cell(run.final_loss)}"
    yield tag("p", f"{run.status}, {run.iterations:,} iterations{loss}")
    if len(states):
        yield _slider(group, steps)
    panels = [*_curves(page, view, group)]
    if len(states):
        shown = SliderStates(view, states, group)
        rows = [[name, tag("td", "")] for name in ["iteration", *numbers]]
        in_numbers = table([], rows, "This state in numbers", class_="state", data_group=group)
        panels[1:1] = [*state_panels(page, shown), tag("div", in_numbers, class_="panel")]
        panels += _spectra(page, view, group)
    yield tag("div", *panels, class_="panels")
    if len(states) < view.states:
        yield tag("p", f"The slider goes through {len(states)} of {view.states} recorded states.")
    if view.states < len(view.iterations):
        yield tag("p", f"From iteration {view.iterations[view.states]} on the weights are not finite.")


def _slider(group: int, steps: Floats) -> Html:
    last = len(steps) - 1
    named = {"first": "|<", "back": "<", "play": "play", "on": ">", "last": ">|"}
    said = {"first": "first state", "back": "previous state", "play": "play", "on": "next state", "last": "last state"}
    buttons = [
        tag("button", sign, type="button", class_=name, aria_label=said[name], title=said[name])
        for name, sign in named.items()
    ]
    label = f"State of training {group + 1}" if group else "State of training"
    slider = tag("input", type="range", min=0, max=last, step=1, value=last, aria_label=label, autocomplete="off")
    shown = tag("output", f"iteration {steps[-1]:.0f}")
    return tag("div", *buttons, slider, shown, class_="time", data_group=group, role="group", aria_label=label)


def _numbers(view: View, states: Any) -> dict[str, Floats]:
    """Return what is known of each state by name, (k,): its loss, what was measured, outputs at few data."""
    run, steps = view.run, view.iterations[states]
    at = np.searchsorted(run.loss_iterations, steps).clip(max=max(len(run.losses) - 1, 0))
    numbers: dict[str, Floats] = {}
    if len(run.losses):
        there = run.loss_iterations[at] == steps
        numbers["loss"] = np.where(there, np.asarray(run.losses, np.float64)[at], np.nan)
    for name in run.measures:
        values = values_of(view, name)[states]
        if values.shape[1] <= FEW_NUMBERS:
            numbers |= dict(zip(_curve_names(run, name, name.replace("_", " ")), values.T, strict=True))
    return numbers | outputs_at_data(view, states)


def _curve_names(run: Run, name: str, word: str) -> list[str]:
    """Return the names of the curves of a measure that is called `word`."""
    columns = columns_of(run, name)
    return [word] if len(columns) == 1 else [f"{word} {column}" for column in columns]


Curve = tuple[NDArray[Any], NDArray[Any]]


def _chart(
    page: Page, title: str, lines: list[dict[str, Any]], curves: Sequence[Curve], *, x: str = "iteration",
    wide: bool = False, log_y: bool | None = None, **more: Any,
) -> Html:  # fmt: skip
    """Add a chart with scales that suit its curves, x (k,) and y (k,) each; `log_y` sets the scale of y."""
    every = np.concatenate([np.asarray(y, np.float64).ravel() for _, y in curves])
    finite = every[np.isfinite(every)]
    if not len(finite):
        return tag("figure", tag("figcaption", title), tag("p", f"{NOT_FINITE}."), class_="panel")
    reach = f", from {cell(float(finite.min()))} to {cell(float(finite.max()))}"
    names = ", ".join(line["name"] for line in lines[:6]) + (f" and {len(lines) - 6} more" if len(lines) > 6 else "")
    logs = {"x": time_scale(*curves[0]) == "log", "y": value_scale(every) == "log" if log_y is None else log_y}
    return page.panel(
        "chart", title, f"Chart of {names} over the {x}{reach}.", wide=wide, lines=lines, log=logs, label=x, **more
    )


def _curves(page: Page, view: View, group: int) -> Iterator[Html]:
    run = view.run
    predicted = _theories(view)
    about: dict[str, Any] = {"group": group}
    if len(run.losses):
        curves: list[Curve] = [(run.loss_iterations, run.losses)]
        lines = [page.curve(*curves[0], "training loss")]
        if "test_loss" in run.measures:
            curves.append(curve_of(run, "test_loss"))
            lines.append(page.curve(*curves[1], "held-out loss"))
        beside = [(name, curve) for name, curve in predicted if name.partition(": ")[2] not in run.measures]
        lines += [page.curve(*curve, f"theory, {name}", dash=True) for name, curve in beside]
        marks = [asdict(p) for p in labelled_plateaus(view)]
        yield _chart(page, "Loss", lines, curves, wide=True, plateaus=marks, **about)
        if run.times is not None and np.isfinite(run.times).sum() > 1:
            finite = np.isfinite(run.times)
            over: Curve = (np.asarray(run.times)[finite], np.asarray(run.losses)[finite])
            yield _chart(page, "Loss over time", [page.curve(*over, "training loss")], [over], x="time")
    accuracies = [name for name in ACCURATE if name in run.measures]
    drawn = drawn_measures(run)
    for together in [accuracies, *([name] for name in drawn if name not in (*accuracies, "test_loss"))]:
        lines, curves, cut = [], [], ""
        for name in together:
            steps, values = measured(run, name)
            names = _curve_names(run, name, called(name))
            cut = f", {MANY_CURVES} of {len(names)} numbers" if len(names) > MANY_CURVES else ""
            for word, column in list(zip(names, values.T, strict=True))[:MANY_CURVES]:
                curves.append((steps, column))
                lines.append(page.curve(*curves[-1], word))
        lines += [page.curve(*curve, f"theory, {name}", dash=True)
                  for name, curve in predicted if name.partition(": ")[2] in together]  # fmt: skip
        if lines and len(view.iterations):
            bound = bound_of(view.run, together[0])
            more: dict[str, Any] = {"bound": bound, "reach": [bound[1]] if bound else []}
            if together is accuracies:
                more |= ACCURACY_AXIS
            title = "Accuracy" if together is accuracies else together[0].replace("_", " ") + cut
            yield _chart(page, title, lines, curves, **more, **about)
    for name in (name for name in run.measures if name not in drawn):
        command = f"dyn plot {run.path.name} --panel {recorded(run.config, name, lambda one: one.panel)}"
        yield tag("p", f"{name.replace('_', ' ')}: ", tag("code", command), class_="panel")


def _theories(view: View) -> list[tuple[str, Curve]]:
    """Return the curves that registered theories predict of a run whose assumptions hold, named `kind: curve`."""
    with suppress(UsageError, InputError, RunError):  # no theory speaks of it, or it lacks what one needs
        return [
            (f"{one.name}: {name}", (curve.x, curve.predicted))
            for one in predictions(view.run)
            for name, curve in one.curves.items()
            if curve.predicted.ndim == 1 and (name == "loss" or name in view.run.measures)
        ]
    return []


def _spectra(page: Page, view: View, group: int) -> Iterator[Html]:
    if no_layers(view) is not None:
        return
    if len(view.layers) > 1:
        states = view.curve_states(sum(int(np.prod(view.weight_shape(name))) for name in view.layers))
        steps = view.iterations[states]
        lengths = {name: np.array([norms(view.weights(int(i), name).ravel()) for i in states]) for name in view.layers}
        lines = [page.curve(steps, values, plain(layer_title(name))) for name, values in lengths.items()]
        yield _chart(page, "Norms of the layers", lines, [(steps, v) for v in lengths.values()], group=group)
    for name in view.layers:
        spectrum = read_spectrum(view, name)
        steps, values = spectrum.iterations, spectrum.values[:, :VALUES]
        lines = [page.curve(steps, column, plain(rf"$\sigma_{{{k + 1}}}$")) for k, column in enumerate(values.T)]
        of = plain(layer_title(name))
        title = f"Singular values of {of}" + (f", the largest {VALUES}" if spectrum.values.shape[1] > VALUES else "")
        yield _chart(page, title, lines, [(steps, column) for column in values.T], group=group)
        rank: Curve = (steps, spectrum.rank)
        yield _chart(page, f"Stable rank of {of}", [page.curve(*rank, "stable rank")], [rank], group=group)


# tables -------------------------------------------------------------------------------------------------------------


def _tables(run: Run) -> Iterator[Html]:
    yield table(
        [], [[name.replace("_", " "), cell(value)] for name, value in final_numbers(run).items()], "How it ended"
    )
    messages = run.info.get("messages") or []
    if messages:
        yield tag("ul", *(tag("li", message) for message in messages), class_="messages")
    origins, notes = origins_of(run.config)
    rows = [[key, _value(value), origins.get(key, "")]
            for key, value in flat(run.config.model_dump(exclude_none=True)).items()]  # fmt: skip
    yield folded(
        "Config",
        *(tag("p", note, class_="note") for note in notes),
        table(["setting", "value", "origin"], rows, "Config"),
        printed=True,
    )
    info = {
        key: run.info[key] for key in ("versions", "threads", "provenance", "estimate", "kinds") if run.info.get(key)
    }
    made = [[key.replace("_", " "), _value(value)] for key, value in flat({"hash": run.hash, **info}).items()]
    yield folded("Provenance", table([], made, "Where, when and with what it was made"), printed=True)
    sizes = [[name, size(bytes_)] for name, bytes_ in file_sizes(run.path).items() if not name.startswith("plots/")]
    yield folded("Files", table(["file", "size"], sizes, f"Files of {run.path.name}"))


def _value(value: Any) -> str:
    text = "-" if value is None else f"{value!r}" if isinstance(value, float) else str(value)
    return text if len(text) <= VALUE else f"{text[:VALUE]}… ({len(text):,} characters)"


def origins_of(config: RunConfig) -> tuple[dict[str, str], list[str]]:
    """Return `section.key` -> where its value comes from as far as that is known, and what the bundled config says.

    A run of a bundled config, which is found by its name, has values that the file writes and some that were changed;
    others are defaults of dyn. Of other runs only the defaults are known.
    """
    now = flat(config.model_dump(exclude_none=True))
    origins = {key: "default" for key, value in _defaults(config, "") if key in now and now[key] == value}
    called = {key.replace("/", "-").replace("_", "-"): (key, file) for key, file in bundled_configs().items()}
    name, file = called.get(config.name.replace("_", "-"), ("", None))
    if file is None:
        return origins, []
    with suppress(ConfigError):
        written = written_config(file, ["sweep=null"])
        before = flat(load_config(file, ["sweep=null"], check_files_exist=False).model_dump(exclude_none=True))
        for key, value in now.items():
            path = tuple(key.split("."))
            if before.get(key) != value and key not in ("device", "backend"):
                origins[key] = f"changed, {_value(before.get(key))} in {name}.yaml"
            elif path in written.origins or path[:-1] in written.origins:
                line = written.origin(path).line
                origins[key] = f"{name}.yaml:{line}" if path in written.origins else origins.get(key, "default")
    return origins, [f"{origin}: {settings}" for origin, settings in origins_in(file)]


def _defaults(section: BaseModel, prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield `section.key` and its default, for keys that have one."""
    for key, field in type(section).model_fields.items():
        value = getattr(section, key)
        if isinstance(value, BaseModel):
            yield from _defaults(value, f"{prefix}{key}.")
        elif not field.is_required():
            yield f"{prefix}{key}", _dumped(field.get_default(call_default_factory=True))


def _dumped(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(exclude_none=True)
    return {key: _dumped(one) for key, one in value.items()} if isinstance(value, Mapping) else value
