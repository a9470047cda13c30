"""Where the settings of a figure come from, as the comments of its configs say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

ORIGINS = ("printed", "released", "inferred", "chosen before", "chosen by outcome")
"""In the paper, as a number or in words; in the authors' code; drawn from either; ours, before any
result was seen; ours, with results of several settings at hand.
"""
_WORD = "|".join(ORIGINS)
_LINE = re.compile(rf"# ((?:{_WORD})(?:, (?:{_WORD}))*)(?: \(([\w, -]+)\))?: (.*)")


def origins_in(config: Path, figure: str = "") -> list[tuple[str, str]]:
    """Return origins and settings from the comment that opens a config: `# released: step`.

    A line `# chosen by outcome (fig2, fig3): step` is about the settings that these figures change;
    of a `figure`, lines about others are left out.
    """
    origins: list[tuple[str, str]] = []
    taken = False
    for line in config.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        if match := _LINE.match(line):
            origin, only, text = match.groups()
            # `fig2` is about the figure `paper-fig2` and its variants, such as `paper-fig2-flow`
            ending = figure.partition("-")[2] + "-"
            starts = tuple(f"{name}-" for name in (only or "").split(", "))
            taken = not (figure and only) or ending.startswith(starts)
            if taken:
                origins.append((origin, text))
        elif taken and origins:  # the line before goes on
            origin, text = origins[-1]
            origins[-1] = origin, f"{text} {line.removeprefix('#').strip()}"
    return origins


def named(config: str) -> str:
    """Return how a config of `Wanted` is called on any machine: below `configs/`, or its package.

    A config outside of packages has the name of its file.
    """
    path = Path(config)
    if not path.is_absolute():
        return config
    inside = [folder for folder in path.parents if (folder / "__init__.py").is_file()]
    return path.relative_to(inside[-1].parent if inside else path.parent).as_posix()


def origins_of(figure: str, configs: Mapping[str, Path]) -> list[list[str]]:
    """Return rows of config, origin and settings that concern a figure; `configs` has files."""
    rows = []
    for name, file in configs.items():
        if file.is_file():
            rows += [[name, *pair] for pair in origins_in(file, figure)]
    return rows


def chosen_by_outcome(rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the settings chosen by outcome among the rows of `origins_of`."""
    return [settings for _, origin, settings in rows if ORIGINS[-1] in origin]
