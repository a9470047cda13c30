"""Errors of run directories."""

from __future__ import annotations

import contextlib
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from dynamics_cli.errors import RunError

ARCHIVE_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    tokenize.TokenError,
    SyntaxError,
    EOFError,
    OSError,
    RuntimeError,
    ValueError,
    TypeError,
    AttributeError,
    NameError,
    LookupError,
    ArithmeticError,
    MemoryError,
)
"""Exceptions that the standard library and NumPy raise for damaged archives of arrays."""


class CorruptRunError(RunError):
    """A file of a run is damaged, cut short, or missing.

    Attributes:
        file: the file concerned.
        problem: the damage, in words.
        usable: the parts of the run that can still be used, or the way out; perhaps empty.
    """

    def __init__(self, file: Path, problem: str, usable: str = "") -> None:
        self.file = file
        self.problem = problem
        self.usable = usable
        super().__init__(f"{file} is damaged: {self.sentence}")

    @property
    def sentence(self) -> str:
        """The problem, and what can still be used."""
        if not self.usable:
            return self.problem
        return f"{self.problem} ({self.usable})"

    @property
    def unread(self) -> bool:
        """Whether the file is there and could not be read now; perhaps it can be read later."""
        cause = self.__cause__
        return isinstance(cause, OSError) and not isinstance(cause, FileNotFoundError)


class NotARunError(RunError):
    """A directory is not a run directory."""


class LockedRunError(RunError):
    """Another process writes the run."""


@contextlib.contextmanager
def unreadable_as_corrupt(
    path: Path, usable: str = "", *, but: tuple[type[OSError], ...] = ()
) -> Iterator[None]:
    """Turn an `OSError` while reading `path` into a `CorruptRunError`; types `but` pass."""
    try:
        yield
    except OSError as error:
        if isinstance(error, but):
            raise
        raise CorruptRunError(path, f"it cannot be read ({error.strerror})", usable) from error
