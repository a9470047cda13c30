"""The page of a sweep: any column of its table over any other, the curves of a job, what failed, what is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dynamics_cli.analysis.curves import value_scale
from dynamics_cli.config.dump import flat
from dynamics_cli.pages.document import Html, Page, folded, table, tag
from dynamics_cli.plotting.time_axis import decimate
from dynamics_cli.sweeps.directory import Sweep
from dynamics_cli.sweeps.pictures import Coordinate, SweepTable
from dynamics_cli.sweeps.summary import describe_sweep

CURVES = 1_500_000
"""Numbers of curves that a page holds at most, all jobs together."""
POINTS = 240
"""Points of the curve of a job at most."""
FEWEST = 24
"""Points of a curve at least; where there is room for fewer, no curves are shown."""
DIRECTORIES = 400
"""Run directories that are opened for curves at most."""
MESSAGES = 50
"""Failures that are listed, each message once."""


def add_sweep(page: Page, directory: Path) -> None:
    """Add a sweep, finished or not.

    Raises RunError: it is not a sweep, or it is damaged.
    """
    told, sweep = describe_sweep(directory), Sweep(directory)
    ended = ", ".join(f"{told[status]} {status}" for status in ("complete", "diverged", "failed") if told[status])
    parts: list[Html | None] = [
        tag("h2", told["name"]),
        tag(
            "p", f"{told['status']}: {told['ended']} of {told['jobs']} jobs have ended{f' ({ended})' if ended else ''}."
        ),
    ]
    settings = [[key, ", ".join(map(str, values))] for key, values in told["settings"].items()]
    settings += [[key, f"= {text}"] for key, text in told["computed"].items()]
    settings += [["seeds", told["seeds"]]]
    if sweep.rows:
        parts.append(_jobs(page, SweepTable(sweep)))
    failures = [[message, count] for message, count in list(told["failures"].items())[:MESSAGES]]
    running = [[name, reached] for name, reached in told["running"].items()]
    parts += [
        table(["message", "jobs"], failures, "Jobs that failed") if failures else None,
        table(["run", "iterations"], running, "Running now") if running else None,
        table(["setting", "values"], settings, "What is swept"),
        folded("Config", table(["setting", "value"], _config(sweep), "Config"), printed=True),
    ]
    page.body.append(tag("section", *parts, class_="sweep"))


def _config(sweep: Sweep) -> list[list[Any]]:
    """Return the settings that all jobs share as far as they are not swept."""
    return [[key, value] for key, value in flat(sweep.described["config"]).items() if value is not None]


def _jobs(page: Page, results: SweepTable) -> Html:
    rows = results.rows
    columns = [_column(page, results, name) for name in ["job", *results.columns]]
    free = [key for key in results.free if results.numeric(key)]
    main = (free or results.free or results.settings or ["seed"])[0]
    measure = (results.measures or ["seed"])[0]
    two = len(free) >= 2
    chosen = {"x": main, "y": free[1] if two else measure, "color": measure if two else (results.free or ["seed"])[-1]}
    failed = [row["job"] for row in rows if row["status"] == "failed"]
    says = f"{len(rows)} jobs over {chosen['x']} and {chosen['y']}, coloured by {chosen['color']}"
    texts = {name: page.array(_bytes([row[name] for row in rows])) for name in ("status", "path", "message")}
    about = {"name": results.sweep.path.name, "jobs": len(rows), "columns": columns}
    described: dict[str, Any] = {**about, **chosen, **texts, **_curves(page, results)}
    says += f"; {len(failed)} of them failed." if failed else "."
    return page.panel("sweep", "Jobs", says, wide=True, **described)


def _column(page: Page, results: SweepTable, name: str) -> dict[str, Any]:
    if name == "job":
        return {"name": name, "at": page.array([int(row["job"]) for row in results.rows]), "setting": False}
    place = Coordinate(results, name)
    log = place.log if place.setting or place.words else value_scale(place.at) == "log"
    return {"name": name, "at": page.array(place.at), "words": place.words, "log": log, "setting": place.setting}


def _bytes(texts: list[str]) -> np.ndarray[Any, Any]:
    """Return texts as bytes with line feeds between them."""
    one = "\n".join(text.replace("\n", " ")[:500] for text in texts)
    return np.frombuffer(one.encode("utf-8", "backslashreplace"), np.uint8)


def _curves(page: Page, results: SweepTable) -> dict[str, Any]:
    """Return losses and measures of all jobs by name, thinned to what all have room for; nothing if there is too much.

    The curves of a name stand one job after another; those of measures are left out first.
    """
    names = ["final_loss", *(name for name in results.measures if name != "final_loss")]
    room = CURVES // max(2 * len(results.rows), 1)
    kept = max(1, min(len(names), room // FEWEST))
    points = min(POINTS, room // kept)
    directories = {row["path"] for row in results.rows}
    if points < FEWEST or len(directories) > DIRECTORIES:
        return {"without": "the curves of so many jobs do not fit into a page; each run has a page of its own"}
    curves: dict[str, Any] = {}
    for name in names[:kept]:
        found = [decimate(*results.curve(k, name), columns=points // 6) for k in range(len(results.rows))]
        if any(len(x) for x, _ in found):
            together: dict[str, Any] = {
                "x": np.concatenate([x for x, _ in found]),
                "y": np.concatenate([y for _, y in found]).astype(np.float32),
                "counts": [len(x) for x, _ in found],
            }
            title = "loss" if name == "final_loss" else name
            curves[title] = {key: page.array(values) for key, values in together.items()}
    first = "loss" if results.measures[:1] == ["final_loss"] else next(iter(results.measures), "loss")
    return {"curves": {key: curves[key] for key in sorted(curves, key=lambda one: one != first)}}
