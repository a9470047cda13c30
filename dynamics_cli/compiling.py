"""The place of compiled code, and what is said of it: private parts of numba stand here."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numba.core.ccallback
import numba.core.dispatcher
import numba.np.linalg
from numba.core.caching import FunctionCache, NullCache
from numba.core.event import Listener, register

# this module of numba, which every kernel needs, imports all of SciPy's linear algebra only to learn that it is there
_ensure_blas, numba.np.linalg.ensure_blas = numba.np.linalg.ensure_blas, lambda: None
import numba.np.arraymath  # noqa: E402

numba.np.linalg.ensure_blas = _ensure_blas


class Kept(FunctionCache):
    """Numba's cache of a function; a disk that is full or cannot be written costs time, never the run."""

    @contextmanager
    def _guard_against_spurious_io_errors(self) -> Iterator[None]:
        """Load or save compiled code; where that fails, it is made for this process alone."""
        try:
            yield
        except OSError as error:
            say_not_kept(error.strerror)


def _cache_of(function: Any) -> Kept | NullCache:
    try:
        return Kept(function)  # type: ignore[no-untyped-call] # of numba
    except RuntimeError:  # no place of all that numba knows can be written
        say_not_kept()
        return NullCache()


numba.core.dispatcher.FunctionCache = numba.core.ccallback.FunctionCache = _cache_of  # type: ignore[attr-defined] # of numba


@cache
def cache_folder() -> Path | None:
    """Return where numba keeps the compiled code of a module in this folder; None where nothing can be kept."""
    kept = _cache_of(cache_folder.__wrapped__)
    return None if kept.cache_path is None else Path(kept.cache_path)


_SAID: list[str] = []


def say_not_kept(why: str | None = None) -> None:
    """Say on stderr, once a process, that compiled kernels cannot be kept for other processes."""
    if not _SAID:
        reason = f" ({why})" if why else ""
        _SAID.append(
            f"compiled kernels cannot be kept{reason}, so that every process compiles them anew: "
            "NUMBA_CACHE_DIR can name a directory that can be written"
        )
        print(_SAID[0], file=sys.stderr)


class FirstCompilation(Listener):
    """Says on a terminal, once a process, that compilation takes seconds before a first run begins."""

    said = False

    def on_start(self, event: Any) -> None:
        """Say that kernels are being compiled: those that come from the cache go through no pass."""
        if not self.said and sys.stderr.isatty():
            print(
                "compiling kernels for this machine, which takes some seconds once",
                file=sys.stderr,
                flush=True,
            )
        self.said = True

    def on_end(self, event: Any) -> None:
        """Say nothing."""


register("numba:run_pass", FirstCompilation())  # type: ignore[no-untyped-call] # of numba
