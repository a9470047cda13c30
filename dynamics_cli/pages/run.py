"""The page of one run, of several side by side, and of a sweep: its jobs, and medians of curves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from dynamics_cli.analysis.description import described
from dynamics_cli.analysis.networks import Networks, sources_of
from dynamics_cli.analysis.panels import PANELS
from dynamics_cli.analysis.picture import Picture, defaults_of, pictures_of
from dynamics_cli.analysis.theories import prediction_charts, predictions
from dynamics_cli.analysis.view import View
from dynamics_cli.config.dump import flat
from dynamics_cli.measures.arrays import Floats
from dynamics_cli.pages.document import Html, Page, folded, items, table, tag
from dynamics_cli.pages.drawn import PIXELS, add_chart, add_charts, add_scene
from dynamics_cli.plotting.chart import Chart
from dynamics_cli.plotting.panels.phase import cell_edges
from dynamics_cli.runs.changes import changes_of
from dynamics_cli.runs.compare import settings_that_differ
from dynamics_cli.runs.run import FEW_NUMBERS, Run, columns_of, file_sizes, final_numbers
from dynamics_cli.sweeps.directory import ENDINGS, Sweep
from dynamics_cli.text import Table, cell, counted, size

JOBS = 2000
"""Jobs of a sweep whose curves over training are read at most."""
MESSAGES = 50
"""Messages of jobs that are listed, each once."""


def add_run(page: Page, run: Run, *, theory: bool = False) -> None:
    """Add everything that a run can show, where asked for with predictions of theories.

    Raises CorruptRunError: the run is damaged.
    """
    run.check_all()
    parts = [_changes([run]), *_pictures(page, run, theory=theory), *_tables(run)]
    page.body.append(tag("section", *parts, class_="run", aria_label=run.path.name))


def add_comparison(page: Page, runs: Sequence[Run]) -> None:
    """Add the curves of several runs over one another, and what differs between them.

    Raises CorruptRunError: a run is damaged.
    """
    for run in runs:
        run.check_all()
    panels = []
    for name, description in defaults_of([*runs]).items():
        if all(_has_recorded(run, name) for run in runs):
            picture = Picture(description, runs)
            panels += [add_chart(page, chart, wide=name == "loss") for chart in picture.curves]
    configs = [flat(run.config.model_dump(exclude_none=True)) for run in runs]
    keys: dict[str, Any] = {}
    for run in runs:
        keys |= settings_that_differ(runs[0].config, run.config)
    names = [run.path.name for run in runs]
    if len(set(names)) < len(names):  # as of jobs trained together, whose folders are numbered
        names = Networks(sources_of(runs)).run_names()
    differing = [[key, *(config.get(key, "-") for config in configs)] for key in keys]
    ends = Table(final_numbers(run) for run in runs)
    final = [[name.replace("_", " "), *map(cell, ends.column(name))] for name in ends.columns]
    settings = tag("p", "The configs are the same.")
    if differing:
        settings = table(["setting", *names], differing, "Settings that differ")
    page.body.append(
        tag(
            "section",
            _changes(runs),
            tag("div", *panels, class_="panels"),
            settings,
            table(["final", *names], final, "Final numbers"),
        )
    )


def _has_recorded(run: Run, name: str) -> bool:
    if name == "loss":
        return len(run.losses) > 0
    return len(run.measures[name]) > 0


def _changes(runs: Sequence[Run]) -> Html | None:
    """Return what has changed since the runs were trained; panels of changed data are left out."""
    changes: dict[str, str] = {}
    for run in runs:
        changes |= changes_of(run.path, run.info, run.config)
    return items(changes.values(), class_="messages")


# -- pictures


def _pictures(page: Page, run: Run, *, theory: bool) -> Iterator[Html]:
    view = View(run)
    states = view.curve_states(1) if view.states else np.zeros(0, np.int64)
    end = f"{run.status}, {run.iterations:,} iterations"
    if not np.isnan(run.final_loss):
        end += f", final loss {cell(run.final_loss)}"
    if parent := run.info.get("parent"):
        end += f"; from iteration {parent['iteration']} of {parent['run']} on"
    yield tag("p", end)
    numbers: dict[str, Floats] = {}
    if len(states):
        steps = np.asarray(view.iterations[states], np.float64)
        numbers = _numbers(view, states)
        kept = [{"name": name, "y": page.array(values)} for name, values in numbers.items()]
        page.states = {"x": page.array(steps), "numbers": kept}
        yield tag("div", class_="time", role="group", aria_label="State of training")
    first: list[Html] = []
    scenes: list[Html] = []
    later: list[Html] = []
    for name, panel in PANELS.items():
        if panel.missing(view) is not None:
            continue
        if panel.charts is not None:
            charts = enumerate(panel.charts_of(view))
            drawn = first if name == "loss" else later
            drawn += [add_chart(page, chart, wide=name == "loss" and k == 0) for k, chart in charts]
        elif panel.scene is not None and len(states):
            scene = panel.scene(view, states.tolist(), PIXELS)
            scenes.append(add_scene(page, states, name, scene))
    if len(states):
        rows = [[name, tag("td", "")] for name in ["iteration", *numbers]]
        scenes.append(
            tag("div", table([], rows, "This state in numbers", class_="state"), class_="panel")
        )
    for description in pictures_of(run).values():
        later += add_charts(page, Picture(description, [run]).charts)
    for made in predictions(run) if theory else ():
        later += [add_chart(page, chart) for chart in prediction_charts(made)]
    yield tag("div", *first, *scenes, *later, class_="panels")
    if len(states) < view.states:
        yield tag("p", f"The slider goes through {len(states)} of {view.states} recorded states.")
    if view.states < len(view.iterations):
        yield tag(
            "p", f"From iteration {view.iterations[view.states]} on the weights are not finite."
        )


def _numbers(view: View, states: Any) -> dict[str, Floats]:
    """Return numbers of each state by name, (k,): its loss and what was measured."""
    run = view.run
    steps = view.iterations[states]
    at = np.searchsorted(run.loss_iterations, steps).clip(max=max(len(run.losses) - 1, 0))
    numbers: dict[str, Floats] = {}
    if len(run.losses):
        recorded = run.loss_iterations[at] == steps
        numbers["loss"] = np.where(recorded, np.asarray(run.losses, np.float64)[at], np.nan)
    for name in run.measures:
        values = np.asarray(run.measures[name], np.float64).reshape(len(view.iterations), -1)[
            states
        ]
        if values.shape[1] <= FEW_NUMBERS:
            word = name.replace("_", " ")
            columns = columns_of(run, name)
            names = [word]
            if len(columns) > 1:
                names = [f"{word} {column.label}" for column in columns]
            numbers |= dict(zip(names, values.T, strict=True))
    return numbers


# -- tables


def _tables(run: Run) -> Iterator[Html | None]:
    yield table(
        [],
        [[name.replace("_", " "), cell(value)] for name, value in final_numbers(run).items()],
        "How it ended",
    )
    yield items(run.info.get("messages") or [], class_="messages")
    settings = flat(run.config.model_dump(exclude_none=True)).items()
    yield folded("Config", table(["setting", "value"], settings, "Config"))
    about = {"hash": run.hash}
    for key in ("versions", "threads", "provenance", "estimate", "kinds"):
        if run.info.get(key):
            about[key] = run.info[key]
    made = [[key.replace("_", " "), value] for key, value in flat(about).items()]
    yield folded("Provenance", table([], made, "Where, when and with what it was made"))
    sizes = [
        [name, size(bytes_)]
        for name, bytes_ in file_sizes(run.path).items()
        if not name.startswith("plots/")
    ]
    yield folded("Files", table(["file", "size"], sizes, f"Files of {run.path.name}"))


# -- sweeps


def add_sweep(page: Page, directory: Path) -> None:
    """Add a sweep, finished or not.

    Raises RunError: it is not a sweep, or it is damaged.
    """
    sweep = Sweep(directory)
    told = sweep.describe()
    end = f"{told['status']}: {told['ended']} of {told['jobs']} jobs have ended"
    if ended := counted({status: told[status] for status in ENDINGS}):
        end += f" ({ended})"
    parts: list[Html | None] = [tag("h2", told["name"]), tag("p", f"{end}.")]
    settings = [[key, ", ".join(map(cell, values))] for key, values in told["settings"].items()]
    settings += [[key, f"= {text}"] for key, text in told["computed"].items()]
    settings += [["seeds", told["seeds"]]]
    settings += [[name, f"= {text}"] for name, text in told["columns"].items()]
    if sweep.rows:
        results = Networks(sources_of([sweep]))
        offered = defaults_of(sweep)
        offered.pop("phase", None)  # the table of jobs is one, of any columns
        if len(results.rows) > JOBS:
            offered.pop("losses")
        else:
            for name in results.curves:
                if name in results.columns:
                    offered[name] = described({"y": [name]})
        parts.append(_jobs(page, results))
        panels: list[Html] = []
        for description in offered.values():
            charts = Picture(description, [sweep]).charts
            for k, chart in enumerate(charts):
                if isinstance(chart, Chart):
                    title = ", ".join(filter(None, [chart.ylabel, chart.title]))
                    charts[k] = replace(chart, title=title)
            panels += add_charts(page, charts)
        parts.append(tag("div", *panels, class_="panels"))
    config = [
        [key, value] for key, value in flat(sweep.described.config).items() if value is not None
    ]
    messages = [[message, count] for message, count in list(told["messages"].items())[:MESSAGES]]
    parts += [
        table(["message", "jobs"], messages, "Messages of jobs") if messages else None,
        table(["setting", "values"], settings, "What is swept"),
        folded("Config", table(["setting", "value"], config, "Config")),
        folded("Code", table([], flat(sweep.described.code.model_dump()).items(), "Code")),
    ]
    page.body.append(tag("section", *parts, class_="sweep"))


def _jobs(page: Page, results: Networks) -> Html:
    free = [key for key in results.free if results.numeric(key)]
    measure = results.columns[0]
    jobs = len(results.rows)
    main = next(iter([*free, *results.free, *results.settings, "seed"]))
    chosen = {"x": main, "y": measure, "colour": ["seed", *results.free][-1]}
    if len(free) >= 2:
        chosen = {"x": free[0], "y": free[1], "colour": measure}
    counts = Counter(str(row.setting("status")) for row in results.rows)
    del counts["complete"]
    settings = list(dict.fromkeys([*results.settings, "seed"]))
    names = ["job", *settings, *results.columns, "status"]
    if any(results.values("message")):
        names.append("message")
    counted_titles = Counter(map(results.title, names))
    titles = {  # menus choose by them
        name: title if counted_titles[title := results.title(name)] == 1 else name for name in names
    }
    said = {place: titles[name] for place, name in chosen.items()}
    over = f"{jobs} jobs over {said['x']} and {said['y']}, coloured by {said['colour']}"
    says = "; ".join(filter(None, [over, counted(counts)])) + "."
    columns = [
        {"name": titles[name], **_column(page, results, name, setting=name in settings)}
        for name in names
    ]
    return page.panel(
        "sweep",
        "Jobs",
        says,
        wide=True,
        name=results.rows[0].name.rpartition(":")[0],
        jobs=jobs,
        chosen=said,
        columns=columns,
        shades=page.array(matplotlib.colormaps["viridis"](np.arange(256), bytes=True)[:, :3]),
    )


def _column(page: Page, results: Networks, name: str, *, setting: bool) -> dict[str, Any]:
    at, words = results.places(name)
    log = results.logarithmic(name)
    column = {
        "at": page.array(at),
        "words": words,
        "log": log,
        "linear": not setting and results.linear(name),
        "setting": setting,
    }
    if setting:
        places = np.unique(at[np.isfinite(at)])
        column["places"] = page.array(places)
        column["edges"] = page.array(cell_edges(places, log=log))
    return column
