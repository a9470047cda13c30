"""The mistakes that a user can make, each with the exit code that the command line gives it.

Everything else that escapes is a bug of ours (exit code 1, with a traceback).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class DynError(Exception):
    """A problem that is told to the user in one message, without a traceback."""

    exit_code = 1


class UsageError(DynError):
    """The command was called in a way that makes no sense."""

    exit_code = 2


class InputError(DynError):
    """A config or an input file holds something that cannot be used."""

    exit_code = 3


class DataMissingError(DynError):
    """A data set is not there; the message says how to get it."""

    exit_code = 4


class PartialFailure(DynError):  # noqa: N818 - what did not fail is done
    """Some jobs of a sweep failed, the others are done."""

    exit_code = 6


class RunError(DynError):
    """A run cannot go on: diverged, disk full, corrupt or locked."""

    exit_code = 7


class RunWarning(UserWarning):
    """Something about a run that is read; the command line says it in one line."""


class ChangedWarning(RunWarning):
    """A data file, or the source of a kind, is not the one with which a run was trained."""


class DamageWarning(RunWarning):
    """A file is damaged, and another took its place."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `" (did you mean 'x'?)"` for the known word closest to `word`, or an empty string."""
    words = list(known)
    close = [other for other in words if other.lower() == word.lower()]
    close = close[:1] or difflib.get_close_matches(word, words, n=1, cutoff=0.6)
    return "".join(f" (did you mean {word!r}?)" for word in close)


def alternatives(words: list[str]) -> str:
    """Return `a, b or c`."""
    *first, last = words
    return " or ".join(filter(None, [", ".join(first), last]))


@contextmanager
def needing(what: str, *packages: str) -> Iterator[None]:
    """Say which packages a form needs.

    Raises UsageError: an import inside the block fails.
    """
    try:
        yield
    except ImportError as error:
        raise UsageError(
            f"{what} needs {' and '.join(packages)}: pip install {' '.join(packages)}"
        ) from error
