"""The page of a sweep: any column of its table over any other, the curves of a job, failed and missing jobs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dynamics_cli.config.dump import flat
from dynamics_cli.pages.document import Html, Page, folded, table, tag
from dynamics_cli.pages.drawn import add_chart
from dynamics_cli.plotting.time_axis import decimate
from dynamics_cli.sweeps.directory import Sweep
from dynamics_cli.sweeps.pictures import SweepTable, sweep_charts
from dynamics_cli.text import cell

CURVES = 1_500_000
"""Numbers of curves that a page holds at most, all jobs together."""
POINTS = 240
"""Points of the curve of a job at most."""
FEWEST = 24
"""Points of a curve at least; where there is no room for them, no curves are shown."""
DIRECTORIES = 400
"""Run directories that are opened for curves at most."""
MESSAGES = 50
"""Failures that are listed, each message once."""


def add_sweep(page: Page, directory: Path) -> None:
    """Add a sweep, finished or not.

    Raises RunError: it is not a sweep, or it is damaged.
    """
    sweep = Sweep(directory)
    told = sweep.describe()
    ended = ", ".join(f"{told[status]} {status}" for status in ("complete", "diverged", "failed") if told[status])
    parts: list[Html | None] = [
        tag("h2", told["name"]),
        tag(
            "p", f"{told['status']}: {told['ended']} of {told['jobs']} jobs have ended{f' ({ended})' if ended else ''}."
        ),
    ]
    settings = [[key, ", ".join(map(cell, values))] for key, values in told["settings"].items()]
    settings += [[key, f"= {text}"] for key, text in told["computed"].items()]
    settings += [["seeds", told["seeds"]]]
    if sweep.rows:
        results = SweepTable(sweep)
        others = [key for key in results.free if key != results.main]
        charts = sweep_charts(results, results.main, results.measures[0], others) if results.settings else []
        charts += [one for name in _charted(results) for one in sweep_charts(results, "", name, results.free)]
        titled = [replace(one, title=", ".join(filter(None, [one.ylabel, one.title]))) for one in charts]
        parts += [_jobs(page, results), tag("div", *(add_chart(page, chart) for chart in titled), class_="panels")]
    failures = [[message, count] for message, count in list(told["failures"].items())[:MESSAGES]]
    parts += [
        table(["message", "jobs"], failures, "Jobs that failed") if failures else None,
        table(["setting", "values"], settings, "What is swept"),
        folded("Config", table(["setting", "value"], _config(sweep), "Config")),
    ]
    page.body.append(tag("section", *parts, class_="sweep"))


def _config(sweep: Sweep) -> list[list[Any]]:
    """Return the settings that all jobs share as far as they are not swept."""
    return [[key, value] for key, value in flat(sweep.described["config"]).items() if value is not None]


def _jobs(page: Page, results: SweepTable) -> Html:
    rows = results.rows
    free = [key for key in results.free if results.numeric(key)]
    measure, two = results.measures[0], len(free) >= 2
    chosen = {"x": free[0] if two else results.main, "y": free[1] if two else measure}
    chosen["color"] = measure if two else (results.free or ["seed"])[-1]
    failed = sum(row["status"] == "failed" for row in rows)
    says = f"{len(rows)} jobs over {chosen['x']} and {chosen['y']}, coloured by {chosen['color']}"
    texts = {name: page.array(_bytes([row[name] for row in rows])) for name in ("status", "path", "message")}
    about = {"name": results.sweep.path.name, "jobs": len(rows)}
    about["columns"] = [_column(page, results, name) for name in ["job", *results.columns]]
    says += f"; {failed} of them failed." if failed else "."
    return page.panel("sweep", "Jobs", says, wide=True, **about, **chosen, **texts, **_curves(page, results))


def _column(page: Page, results: SweepTable, name: str) -> dict[str, Any]:
    at, words = results.places(name)
    setting = name in (*results.settings, "seed")
    return {"name": name, "at": page.array(at), "words": words, "log": results.logarithmic(name), "setting": setting}


def _bytes(texts: list[str]) -> np.ndarray[Any, Any]:
    """Return texts as bytes with line feeds between them."""
    one = "\n".join(text.replace("\n", " ")[:500] for text in texts)
    return np.frombuffer(one.encode("utf-8", "backslashreplace"), np.uint8)


def _charted(results: SweepTable) -> list[str]:
    """Return the numbers whose curves a page has: the first that the config asks for and the loss, if there is room."""
    if len({row["path"] for row in results.rows}) > DIRECTORIES or len(results.rows) > CURVES // (4 * FEWEST):
        return []
    return list(dict.fromkeys([results.measures[0], "final_loss"]))


def _curves(page: Page, results: SweepTable) -> dict[str, Any]:
    """Return the curves of all jobs by name, one job after another, thinned; nothing if there is too much."""
    names = _charted(results)
    if not names:
        return {"without": "the curves of so many jobs do not fit into a page; each run has a page of its own"}
    points = min(POINTS, CURVES // (2 * len(results.rows) * len(names)))
    curves: dict[str, Any] = {}
    for name in names:
        found = [decimate(*results.curve(k, name), columns=points // 6) for k in range(len(results.rows))]
        if any(len(x) for x, _ in found):
            together: dict[str, Any] = {
                "x": np.concatenate([x for x, _ in found]),
                "y": np.concatenate([y for _, y in found]).astype(np.float32),
                "counts": [len(x) for x, _ in found],
            }
            title = "loss" if name == "final_loss" else name
            curves[title] = {key: page.array(values) for key, values in together.items()}
    return {"curves": curves}
