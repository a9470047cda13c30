"""What is wrong with a config, and where: all of it at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dynamics_cli.errors import InputError

LONGEST = 1000
"""Characters that are told of a name, a key or a message; each may hold a text as long as the file."""

Path = tuple[str | int, ...]
"""Where a value stands in a config: `("dataset", "x", 0)` is `dataset.x[0]`."""


def key_text(path: Path) -> str:
    """Return `path` as people write it: `dataset.x[0]`; empty for the whole config."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: where it was written, which key it concerns, what to do about it."""

    file: str
    """The file as the user named it, or `--set`, `<config>` (a mapping), `<settings>` (keyword arguments)."""
    line: int | None
    """Line in the file, from 1; None where there are no lines."""
    key: str
    """The key, as `section.key`; empty when it concerns the whole file."""
    message: str
    """What is wrong, what is allowed, and what was probably meant."""

    def __str__(self) -> str:
        where = _short(self.file) if self.line is None else f"{_short(self.file)}:{self.line}"
        return ": ".join(part for part in (where, _short(self.key), _short(self.message)) if part)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


class ConfigError(InputError):
    """A config cannot be used; `problems` lists everything that is wrong with it."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = list(problems)
