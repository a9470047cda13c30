"""The repository of a paper as it is released: the table of its README, and its checklist.

Begin with `refresh`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from dynamics_cli.pages.papers import Reproduced, seeds_in
from dynamics_cli.reproduction import catalogue
from dynamics_cli.reproduction.claims import summary
from dynamics_cli.reproduction.document import run_path
from dynamics_cli.runs.run import Run
from dynamics_cli.runs.store import files
from dynamics_cli.text import cell

PLACES = {"figures": "README.md", "checklist": "CHECKLIST.md"}
"""Mark -> file of the repository that has a text between `<!-- MARK` and `<!-- end of MARK`."""


class _Made(Reproduced):
    """A figure that was reproduced, with its runs and what they took."""

    @cached_property
    def runs(self) -> dict[Path, Run]:
        """Its runs that are still there, by their directories."""
        paths = dict.fromkeys(run_path(self.file, run.path) for run in self.document.runs)
        return {path: Run(path, any_config=True) for path in paths if path.is_dir()}

    @property
    def seconds(self) -> float:
        """Seconds of its command, had it trained all of its runs."""
        made = self.document.provenance
        ways = zip(self.document.runs, made.obtained, strict=False)
        reused = {run_path(self.file, run.path) for run, way in ways if way.reused}
        return (made.seconds or 0.0) + _seconds(
            {path: run for path, run in self.runs.items() if path in reused}
        )

    @property
    def machine(self) -> str:
        made = self.document.provenance
        devices = dict.fromkeys(run.device or "cpu" for run in self.document.runs)
        threads = f"{made.threads} threads" if made.threads else "threads not known"
        return ", ".join([made.platform or "machine not known", threads, *devices])


def _seconds(runs: dict[Path, Run]) -> float:
    """Return the seconds of training of runs."""
    return sum(float(run.info.get("seconds") or 0) for run in runs.values())


def refresh(key: str) -> list[Path]:
    """Write the tables of a paper into the files of its repository, the working directory.

    In each file the text between two marks is replaced, which `dyn new paper` wrote; a file
    without them stays as it is. Elsewhere than in the repository nothing is written.

    Returns:
        The files that were written.

    Raises RunError: a file or a run is damaged, or cannot be written.
    """
    if (here := catalogue.paper_here()) is None or here.name != key:
        return []
    made = _Made.of_paper(key)
    texts = {"figures": _figures(made), "checklist": _checklist(key, made)}
    written = []
    for mark, name in PLACES.items():
        path = here.parent / name
        if not files.exists(path):
            continue
        between = re.compile(rf"(<!-- {mark}\b.*?-->\n).*?(<!-- end of {mark} -->)".encode(), re.S)
        before = files.read(path)
        text = f"\n{texts[mark]}\n\n".encode()
        after = between.sub(lambda marks, text=text: marks[1] + text + marks[2], before)  # type: ignore[misc]
        if after != before:
            files.save(path, after)
            written.append(path)
    return written


def _figures(made: Sequence[_Made]) -> str:
    rows = [
        [
            each.name,
            f"`{each.document.command}`",
            f"{each.seconds:.1f}",
            each.machine,
            summary(each.claims),
        ]
        for each in made
    ]
    return markdown(["figure", "command", "seconds", "machine", "claims"], rows)


def _checklist(key: str, made: Sequence[_Made]) -> str:
    """Return what a checklist for reproducibility asks for, as Markdown."""
    origins = []
    claims = []
    compute = []
    data: dict[tuple[str, ...], None] = {}
    there = {each.name for each in made}
    missed = [
        f"`{figure.id}`: not made" for figure in catalogue.figures(key) if figure.id not in there
    ]
    for each in made:
        name = each.name
        origins += [[name, Path(config).stem, *row] for config, *row in each.origins]
        for claim in each.claims:
            seeds = claim.count or f"seed {seeds_in(each.document.runs)}"
            first = claim.first
            row = [name, first.statement, first.expected, claim.shown, claim.verdict, seeds]
            claims.append(row)
            if claim.verdict != "reproduced":
                missed.append(
                    "; ".join([f"`{name}`: {first.statement}", claim.verdict, *claim.why])
                )
        compute.append([name, len(each.runs), f"{_seconds(each.runs):.1f}", each.machine])
        data |= dict.fromkeys(row for run in each.runs.values() for row in _data(run))
    every = {path: run for each in made for path, run in each.runs.items()}
    compute.append(["total", len(every), f"{_seconds(every):.1f}", ""])
    header = ["figure", "statement", "expected", "measured", "verdict", "seeds"]
    parts = {
        "Settings and their origin": markdown(["figure", "config", "origin", "settings"], origins),
        "Claims, seeds and 95 % intervals": markdown(header, claims),
        "Compute": markdown(["figure", "runs", "seconds of training", "machine"], compute),
        "Data": markdown(["data", "licence", "SHA-256"], data),
        "What was not reproduced": "\n".join(f"- {line}" for line in missed) or "Nothing.",
    }
    return "\n\n".join(f"## {title}\n\n{text}" for title, text in parts.items())


def _data(run: Run) -> list[tuple[str, ...]]:
    """Return rows of the data of a run: files with their checksums, or its kind alone."""
    dataset: Any = run.config.dataset  # a mapping where its kind is not loaded
    kind = dict(dataset)["kind"]
    if named := run.info.get("files"):
        return [(f"{kind} {Path(file).name}", "say it here", sha) for file, sha in named.items()]
    return [(kind, getattr(dataset, "licence", "say it here"), "-")]


def markdown(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table of Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    cells = ([re.sub(r"(?<!\\)\|", r"\|", cell(value)) for value in row] for row in lines)
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)
