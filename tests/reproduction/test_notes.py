"""The table of measured claims in notes."""

from __future__ import annotations

from pathlib import Path

import pytest

from dynamics_cli._bundled import ROOT
from dynamics_cli.errors import InputError
from dynamics_cli.reproduction.catalogue import papers
from dynamics_cli.reproduction.claims import (
    HEADER,
    MARKS,
    ClaimOverSeeds,
    claim,
    exactly,
    less_than,
    over_seeds,
    rewrite,
    theory,
)

EMPTY = "".join(MARKS)
NOTES = """# A paper

| not | this |
| --- | --- |

## Measured (one seed)
| foreign | table |
| --- | --- |
| 1 | stays |

{}
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
            ],
            1: [claim("kinks", "Two | kinks", "Figure 2", exactly(2), 2)],
        }
    )


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("notes", [NOTES, "{}", None])
def test_the_table_between_the_marks_is_rewritten_and_nothing_else(
    newline: str, notes: str | None, tmp_path: Path
) -> None:
    file = tmp_path / "NOTES.md"
    if notes is not None:
        file.write_bytes(notes.format(EMPTY).replace("\n", newline).encode())
    rewrite(file, {"paper-fig2": claims()})
    rows = (
        "| fig2 | kinks | Two \\| kinks | 2 | 2 (2/2) | reproduced |\n"
        "| fig2 | law | A law | < 1 | 0.5 (1/2) | not reproduced (theory) |\n"
    )
    if notes is None:
        notes, newline = "{}\n", "\n"
    table = f"{MARKS[0]}{HEADER}{rows}{MARKS[1]}"
    assert file.read_bytes().decode() == notes.format(table).replace("\n", newline)


def test_rows_of_other_figures_stay(tmp_path: Path) -> None:
    file = tmp_path / "NOTES.md"
    rewrite(file, {"paper-fig2": claims(), "paper-fig10": claims()})
    rewrite(file, {"paper-fig2": claims(5), "paper-fig3": claims()})
    names = [line.split("|")[1].strip() for line in file.read_text().splitlines() if line.startswith("| fig")]
    assert names == ["figure"] + ["fig2"] * 2 + ["fig10"] * 2 + ["fig3"] * 2
    assert "| 3.5 (1/2) | not reproduced |" in file.read_text()


@pytest.mark.parametrize(
    "text",
    [
        "## Measured\n", NOTES.format(""), EMPTY * 2, "".join(reversed(MARKS)), MARKS[0] + HEADER,
        f"{MARKS[0]}| foreign | table |\n| --- | --- |\n{MARKS[1]}", f"{MARKS[0]}{HEADER}\nWords.\n{MARKS[1]}",
    ],
)  # fmt: skip
def test_a_file_without_the_marks_or_with_more_between_them_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "NOTES.md"
    file.write_text(text)
    with pytest.raises(InputError, match="dyn writes only between the lines `<!--"):
        rewrite(file, {})
    assert file.read_text() == text


def test_neither_links_nor_what_is_not_text_is_written(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "NOTES.md")
    with pytest.raises(InputError, match="is a link"):
        rewrite(tmp_path / "link", {"paper-fig2": claims()})
    (tmp_path / "NOTES.md").write_bytes(b"\xff")
    with pytest.raises(InputError, match="cannot be read"):
        rewrite(tmp_path / "NOTES.md", {"paper-fig2": claims()})


def test_all_notes_can_be_rewritten() -> None:
    found = [*(ROOT / "experiments").glob("*/NOTES.md"), ROOT / "dynamics_cli/templates/paper/NOTES.md.txt"]
    assert len(found) == len(papers()) + 1
    for file in found:
        rewrite(file, {})
