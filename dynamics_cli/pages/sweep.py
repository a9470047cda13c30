"""The page of a sweep: any column of its table over any other, medians of curves, failed and
missing jobs.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from dynamics_cli.config.dump import flat
from dynamics_cli.pages.document import Html, Page, folded, table, tag
from dynamics_cli.pages.drawn import add_chart
from dynamics_cli.sweeps.directory import Sweep
from dynamics_cli.sweeps.pictures import SweepTable, sweep_charts
from dynamics_cli.text import cell

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
    ended = ", ".join(
        f"{told[status]} {status}" for status in ("complete", "diverged", "failed") if told[status]
    )
    parts: list[Html | None] = [
        tag("h2", told["name"]),
        tag(
            "p",
            f"{told['status']}: {told['ended']} of {told['jobs']} jobs have"
            f" ended{f' ({ended})' if ended else ''}.",
        ),
    ]
    settings = [[key, ", ".join(map(cell, values))] for key, values in told["settings"].items()]
    settings += [[key, f"= {text}"] for key, text in told["computed"].items()]
    settings += [["seeds", told["seeds"]]]
    settings += [[name, f"= {text}"] for name, text in told["columns"].items()]
    if sweep.rows:
        results = SweepTable(sweep)
        others = [key for key in results.free if key != results.main]
        charts = (
            sweep_charts(results, results.main, results.measures[0], others)
            if results.settings
            else []
        )
        curves = [name for name in results.measures if name not in results.derived]
        for name in dict.fromkeys([curves[0], "final_loss"]) if len(results.rows) <= JOBS else ():
            charts += sweep_charts(results, "", name, results.free)
        titled = [
            replace(chart, title=", ".join(filter(None, [chart.ylabel, chart.title])))
            for chart in charts
        ]
        parts += [
            _jobs(page, results),
            tag("div", *(add_chart(page, chart) for chart in titled), class_="panels"),
        ]
    config = [
        [key, value] for key, value in flat(sweep.described["config"]).items() if value is not None
    ]
    messages = [[message, count] for message, count in list(told["messages"].items())[:MESSAGES]]
    parts += [
        table(["message", "jobs"], messages, "Messages of jobs") if messages else None,
        table(["setting", "values"], settings, "What is swept"),
        folded("Config", table(["setting", "value"], config, "Config")),
    ]
    page.body.append(tag("section", *parts, class_="sweep"))


def _jobs(page: Page, results: SweepTable) -> Html:
    free = [key for key in results.free if results.numeric(key)]
    measure = results.measures[0]
    two = len(free) >= 2
    jobs = len(results.rows)
    chosen = {
        "x": free[0] if two else results.main,
        "y": free[1] if two else measure,
        "colour": measure if two else (results.free or ["seed"])[-1],
    }
    counts = results.sweep.counts()
    lost = [f"{counts[end]} {end}" for end in ("diverged", "failed") if counts[end]]
    says = f"{jobs} jobs over {chosen['x']} and {chosen['y']}, coloured by {chosen['colour']}"
    says += f"; {', '.join(lost)}." if lost else "."
    messages = ["message"] if any(results.values("message")) else []
    columns = [
        _column(page, results, name) for name in ["job", *results.columns, "status", *messages]
    ]
    name = results.sweep.path.name
    return page.panel(
        "sweep", "Jobs", says, wide=True, name=name, jobs=jobs, chosen=chosen, columns=columns
    )


def _column(page: Page, results: SweepTable, name: str) -> dict[str, Any]:
    at, words = results.places(name)
    setting = name in (*results.settings, "seed")
    return {
        "name": name,
        "at": page.array(at),
        "words": words,
        "log": results.logarithmic(name),
        "linear": not setting and results.linear(name),
        "setting": setting,
    }
