"""Claims as a text table: statement, what the paper says, what was measured, verdict."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence

from dynamics_cli.reproduction.claims import Claim, ClaimOverSeeds

_LEAST_STATEMENT = 28


def claims_table(claims: Sequence[ClaimOverSeeds], *, width: int | None = None) -> str:
    """Return the claims as lines of text, findings last, at most `width` wide where words allow it.

    `width` is that of the terminal by default. With several seeds a last column says how often each claim came out.
    """
    width = width or shutil.get_terminal_size((110, 24)).columns
    ordered = sorted(claims, key=lambda one: one.first.kind == "finding")
    seeds = any(one.count for one in claims)
    header = ["claim", "source", "paper", "measured", "verdict", *(["seeds"] if seeds else [])]
    rows = [_row(one, seeds) for one in ordered]
    return text_table(header, rows, width=width, flexible=(0, 1, 2))


def format_measured(value: float | None) -> str:
    """Return a measured number with up to six digits; `-` for one that is not there."""
    return "-" if value is None else f"{value:.6g}"


def summary(claims: Sequence[Claim]) -> str:
    """Return `7 of 8 claims reproduced, 3 findings`."""
    stated = [one for one in claims if one.kind == "claim"]
    came_out = sum(one.verdict == "reproduced" for one in stated)
    findings = len(claims) - len(stated)
    tail = f", {findings} finding{'s' * (findings != 1)}" if findings else ""
    return f"{came_out} of {len(stated)} claim{'s' * (len(stated) != 1)} reproduced{tail}"


def text_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, width: int, flexible: Sequence[int] = (0,)
) -> str:
    """Return a table with one line of header; the `flexible` columns are broken into lines to fit `width`.

    Raises ValueError for rows of unequal lengths.
    """
    if any(len(row) != len(header) for row in rows):
        raise ValueError(f"every row of a table with {len(header)} columns must have as many cells")
    natural = [max(len(cell) for cell in column) for column in zip(header, *rows, strict=True)]
    widths = _fit(natural, width - 2 * (len(header) - 1), flexible)
    lines = [_line(header, widths), "  ".join("-" * size for size in widths)]
    for row in rows:
        cells = [_wrapped(cell, size) for cell, size in zip(row, widths, strict=True)]
        height = max(len(cell) for cell in cells)
        lines += [_line([cell[k] if k < len(cell) else "" for cell in cells], widths) for k in range(height)]
    return "\n".join(lines)


def _row(one: ClaimOverSeeds, seeds: bool) -> list[str]:
    claim = one.first
    cells = [claim.statement, claim.source, claim.expected, format_measured(claim.measured), claim.verdict]
    return [*cells, one.count] if seeds else cells


def _fit(natural: Sequence[int], room: int, flexible: Sequence[int]) -> list[int]:
    """Return column widths: the widest flexible column gives way until all fit, none below what a word needs."""
    widths = list(natural)
    least = {k: min(natural[k], _LEAST_STATEMENT if k == flexible[0] else 14) for k in flexible}
    while sum(widths) > room:
        able = [k for k in flexible if widths[k] > least[k]]
        if not able:
            break
        widths[max(able, key=lambda k: widths[k])] -= 1
    return widths


def _wrapped(cell: str, size: int) -> list[str]:
    return textwrap.wrap(cell, size, break_on_hyphens=False) or [""] if len(cell) > size else [cell]


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(size) for cell, size in zip(cells, widths, strict=True)).rstrip()
