"""Mistakes in a config, all told at once, each with its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dynamics_cli.errors import InputError
from dynamics_cli.text import one_line

KeyPath = tuple[str | int, ...]
"""Where a value stands in a config: `("dataset", "x", 0)` is `dataset.x[0]`."""


def key_text(path: KeyPath) -> str:
    """Return `path` as people write it: `dataset.x[0]`; empty for the whole config."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


@dataclass(frozen=True)
class Mistake:
    """A mistake in a config: where it was written, the key, the remedy."""

    file: str
    """The file as the user named it, `--set`, `<config>` (a mapping), `<settings>` (keywords)."""
    line: int | None
    """Line in the file, from 1; None where there are no lines."""
    key: str
    """The key, as `section.key`; empty when it concerns the whole file."""
    message: str
    """The mistake, the allowed values, and the value that was probably meant."""

    def __str__(self) -> str:
        where = self.file
        if self.line is not None:
            where = f"{where}:{self.line}"
        return one_line(": ".join(filter(None, (where, self.key, self.message))))


class ConfigError(InputError):
    """A config cannot be used; `problems` lists everything that is wrong with it."""

    def __init__(self, problems: Sequence[Mistake]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = list(problems)
