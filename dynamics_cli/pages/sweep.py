"""The page of a sweep: columns of its table over others, medians of curves, and lost jobs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from dynamics_cli.analysis.description import described
from dynamics_cli.analysis.networks import Networks, sources_of
from dynamics_cli.analysis.picture import Picture, defaults_of
from dynamics_cli.config.dump import flat
from dynamics_cli.pages.document import Html, Page, folded, table, tag
from dynamics_cli.pages.drawn import add_charts
from dynamics_cli.plotting.chart import Chart
from dynamics_cli.plotting.panels.phase import cell_edges
from dynamics_cli.sweeps.directory import ENDINGS, Sweep
from dynamics_cli.text import cell, counted

JOBS = 2000
"""Jobs whose curves over training are read at most."""
MESSAGES = 50
"""Messages of jobs that are listed, each once."""


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
