"""The place of compiled code, and what is said of it: private parts of numba stand here."""

from __future__ import annotations

import hashlib
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numba.core.ccallback
import numba.core.dispatcher
import numba.np.linalg
from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache
from numba.core.event import Listener, register

# this module of numba, which every kernel needs, imports all of SciPy's linear algebra only to
# learn that it is there
_ensure_blas = numba.np.linalg.ensure_blas
numba.np.linalg.ensure_blas = lambda: None
import numba.np.arraymath  # noqa: E402

numba.np.linalg.ensure_blas = _ensure_blas


class CheckedFiles(IndexDataCacheFile):
    """Numba's files of compiled code, each with the SHA-256 of its contents behind them.

    Numba itself unpickles, and runs, whatever a file holds after a power cut or with a flipped bit.
    """

    @contextmanager
    def _open_for_write(self, path: str) -> Iterator[io.BytesIO]:
        contents = io.BytesIO()
        yield contents
        with super()._open_for_write(path) as file:
            file.write(contents.getvalue() + hashlib.sha256(contents.getvalue()).digest())

    def _load_index(self) -> Any:
        if not _is_whole(Path(self._index_path)):
            return {}
        return super()._load_index()  # type: ignore[no-untyped-call] # of numba

    def _load_data(self, name: str) -> Any:
        path = Path(self._cache_path) / name
        if not _is_whole(path):
            # which numba takes for a function that was never compiled
            raise FileNotFoundError(path)
        return super()._load_data(name)  # type: ignore[no-untyped-call] # of numba


def _is_whole(path: Path) -> bool:
    """Return whether a file is not there, or fits the checksum at its end.

    It says once a process that a file does not.
    """
    try:
        contents = path.read_bytes()
    except FileNotFoundError:
        return True
    size = hashlib.sha256().digest_size
    if hashlib.sha256(contents[:-size]).digest() == contents[-size:]:
        return True
    _say_once("damaged", f"compiled code in {path.parent} is damaged: it is compiled again")
    return False


class Kept(FunctionCache):
    """Numba's cache of a function.

    Damage, a full disk and one that cannot be written cost time, never the run.
    """

    def __init__(self, function: Any) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call] # of numba
        self._cache_file = CheckedFiles(
            cache_path=self._cache_path,
            filename_base=f"{self._impl.filename_base}.checked",  # others have no checksum
            source_stamp=self._impl.locator.get_source_stamp(),
        )  # type: ignore[no-untyped-call] # of numba

    @contextmanager
    def _guard_against_spurious_io_errors(self) -> Iterator[None]:
        """Load or save compiled code; where that fails, it is made for this process alone."""
        try:
            yield
        except OSError as error:
            say_not_kept(error.strerror)


def _cache_of(function: Any) -> Kept | NullCache:
    try:
        return Kept(function)
    except RuntimeError:  # no place of all that numba knows can be written
        say_not_kept()
        return NullCache()


numba.core.dispatcher.FunctionCache = numba.core.ccallback.FunctionCache = _cache_of  # type: ignore[attr-defined] # of numba


@cache
def cache_folder() -> Path | None:
    """Return where numba keeps the compiled code of a module in this folder.

    None where nothing can be kept.
    """
    folder = _cache_of(cache_folder.__wrapped__).cache_path
    return folder and Path(folder)


_SAID: set[str] = set()


def _say_once(subject: str, text: str) -> None:
    if subject not in _SAID:
        _SAID.add(subject)
        print(text, file=sys.stderr)


def say_not_kept(why: str | None = None) -> None:
    """Say on stderr, once a process, that compiled kernels cannot be kept for other processes."""
    reason = f" ({why})" if why else ""
    _say_once(
        "not kept",
        f"compiled kernels cannot be kept{reason}, so that every process compiles them anew: "
        "NUMBA_CACHE_DIR can name a directory that can be written",
    )


class FirstCompilation(Listener):
    """Says on a terminal, once a process, that compiling takes seconds before a run begins."""

    said = False

    def on_start(self, event: Any) -> None:
        """Say that kernels are being compiled; kernels from the cache go through no pass."""
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
