"""Claims as a text table: statement, what the paper says, what was measured, verdict."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from dynamics_cli.reproduction.claims import Claim, ClaimOverSeeds
from dynamics_cli.text import number, text_table


def claims_table(claims: Sequence[ClaimOverSeeds], *, width: int | None = None) -> str:
    """Return the claims as lines of text, findings last, at most `width` wide where words allow it.

    `width` is that of the terminal by default. With several seeds a last column says how often each claim came out.
    """
    header, rows = claims_cells(claims)
    return text_table(header, rows, width=width or shutil.get_terminal_size((110, 24)).columns, flexible=(0, 1, 2))


def claims_cells(claims: Sequence[ClaimOverSeeds]) -> tuple[list[str], list[list[str]]]:
    """Return header and rows of the table of claims, findings last."""
    ordered = sorted(claims, key=lambda one: one.first.kind == "finding")
    seeds = any(one.count for one in claims)
    header = ["claim", "source", "paper", "measured", "verdict", *(["seeds"] if seeds else [])]
    return header, [_row(one, seeds) for one in ordered]


def summary(claims: Sequence[Claim]) -> str:
    """Return `7 of 8 claims reproduced, 3 findings`."""
    stated = [one for one in claims if one.kind == "claim"]
    came_out = sum(one.verdict == "reproduced" for one in stated)
    findings = len(claims) - len(stated)
    tail = f", {findings} finding{'s' * (findings != 1)}" if findings else ""
    return f"{came_out} of {len(stated)} claim{'s' * (len(stated) != 1)} reproduced{tail}"


def _row(one: ClaimOverSeeds, seeds: bool) -> list[str]:
    claim = one.first
    cells = [claim.statement, claim.source, claim.expected, number(claim.measured), claim.verdict]
    return [*cells, one.count] if seeds else cells
