"""The table of measured claims in the notes of a paper, rewritten from results."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from dynamics_cli.errors import InputError
from dynamics_cli.reproduction.claims import ClaimOverSeeds
from dynamics_cli.runs.store import files
from dynamics_cli.text import number

HEADING = "## Measured"
HEADER = "| figure | id | claim | paper or theory | measured | verdict |\n| --- | --- | --- | --- | --- | --- |\n"
_SECTION = re.compile(rf"^{HEADING}.*?$(?P<body>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_TABLE = re.compile(r"(?:^\|.*\n?)+", re.MULTILINE)


def rewrite(path: str | Path, results: Mapping[str, Sequence[ClaimOverSeeds]]) -> None:
    """Put claims into the first table of the section `## Measured` of a Markdown file.

    Rows of figures that are not among `results` (figure id -> claims) stay; all else in the file does.

    Raises:
        InputError: the file is missing, or has no such section.
        RunError: it cannot be written.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    section = _SECTION.search(text)
    if section is None:
        raise InputError(f"{path} has no section `{HEADING}` whose table could be rewritten")
    table = _TABLE.search(section["body"])
    rows: dict[str, list[str]] = {}
    for line in table[0].splitlines()[2:] if table is not None and table[0].startswith(HEADER) else ():
        rows.setdefault(line.split("|")[1].strip(), []).append(line)
    for figure, claims in results.items():
        name = figure.partition("-")[2]
        rows[name] = [_row(name, one) for one in claims]
    new = HEADER + "".join(f"{line}\n" for lines in rows.values() for line in lines)
    first = section.start("body")
    begin, end = (first + table.start(), first + table.end()) if table is not None else (first + 1, first + 1)
    files.save(path, (text[:begin] + new + text[end:]).encode())


def _row(figure: str, one: ClaimOverSeeds) -> str:
    claim = one.first
    measured = number(one.measured) + (f" ({one.count})" if one.count else "")
    verdict = f"{one.verdict} (theory)" if claim.kind == "theory" else one.verdict
    cells = [figure, claim.id, claim.statement, claim.expected, measured, verdict]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
