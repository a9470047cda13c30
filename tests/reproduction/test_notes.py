"""The table of measured claims in notes."""

from __future__ import annotations

from pathlib import Path

import pytest

from dynamics_cli.errors import InputError
from dynamics_cli.reproduction.claims import (
    HEADER,
    ClaimOverSeeds,
    claim,
    exactly,
    finding,
    less_than,
    over_seeds,
    rewrite,
    theory,
)

NOTES = """# A paper

| not | this |
| --- | --- |

## Measured (one seed)
| old | table |
| --- | --- |
| 1 | gone |

Words after it.

## Next
| a | table |
"""


def claims(kinks: float = 2) -> list[ClaimOverSeeds]:
    return over_seeds(
        {
            0: [
                claim("kinks", "Two | kinks", "Figure 2", exactly(2), kinks),
                theory("law", "A law", "Eq. 1", less_than(1), 0.5),
                finding("angle", "Angle", "Figure 2", 3),
            ],
            1: [claim("kinks", "Two | kinks", "Figure 2", exactly(2), 2)],
        }
    )


def test_the_first_table_of_the_section_is_rewritten_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "NOTES.md"
    file.write_text(NOTES)
    rewrite(file, {"paper-fig2": claims()})
    rows = (
        "| fig2 | kinks | Two \\| kinks | 2 | 2 (2/2) | reproduced |\n"
        "| fig2 | law | A law | < 1 | 0.5 (1/2) | not reproduced (theory) |\n"
        "| fig2 | angle | Angle |  | 3 | shown |\n"
    )
    old = "| old | table |\n| --- | --- |\n| 1 | gone |\n"
    assert file.read_text() == NOTES.replace(old, HEADER + rows)


def test_rows_of_other_figures_stay(tmp_path: Path) -> None:
    file = tmp_path / "NOTES.md"
    file.write_text(NOTES)
    rewrite(file, {"paper-fig2": claims(), "paper-fig10": claims()})
    rewrite(file, {"paper-fig2": claims(5), "paper-fig3": claims()})
    names = [line.split("|")[1].strip() for line in file.read_text().splitlines() if line.startswith("| fig")]
    assert names == ["figure"] + ["fig2"] * 3 + ["fig10"] * 3 + ["fig3"] * 3
    assert "| 3.5 (1/2) | not reproduced |" in file.read_text()


def test_a_section_without_a_table_gets_one(tmp_path: Path) -> None:
    file = tmp_path / "NOTES.md"
    file.write_text("## Measured\n\nWords.\n")
    rewrite(file, {"paper-fig2": claims()})
    assert file.read_text().startswith(f"## Measured\n{HEADER}| fig2 |")
    assert file.read_text().endswith("|\n\nWords.\n")


def test_what_cannot_be_rewritten_is_said(tmp_path: Path) -> None:
    file = tmp_path / "NOTES.md"
    with pytest.raises(InputError, match="cannot be read"):
        rewrite(file, {})
    file.write_text("## Settings\n")
    with pytest.raises(InputError, match="no section `## Measured`"):
        rewrite(file, {})
    assert file.read_text() == "## Settings\n"
