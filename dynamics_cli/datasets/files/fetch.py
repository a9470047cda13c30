"""Downloading data sets: from public mirrors, over TLS, accepted only with the pinned contents."""

from __future__ import annotations

import http.client
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dynamics_cli.datasets.files import store
from dynamics_cli.errors import DataMissingError, UsageError
from dynamics_cli.runs.store import files as disk
from dynamics_cli.version import __version__

Progress = Callable[[str, int, int | None], None]
"""Called with the name of a file, the bytes received so far, and all that will come (None: the mirror does not say)."""

_CHUNK = 2**16
_SLOWEST = 2**10
"""Bytes a second that a mirror must give, once it has had the time for which it may be silent."""
_HANDLERS = {"https": urllib.request.HTTPSHandler, "http": urllib.request.HTTPHandler}
_DIGITS = 20
"""More digits than this are no size."""


class MirrorError(Exception):
    """A mirror does not give the file that it should."""


def fetch(
    source: store.Published, *, mirrors: Sequence[str] = (), offline: bool = False, progress: Progress | None = None,
    on_wait: Callable[[str], None] | None = None,
    scheme: str = "https", timeout: float = 30.0,
) -> Path:  # fmt: skip
    """Download the files that are not there yet; a second process waits for the first and finds them.

    Args:
        source: the data set.
        mirrors: addresses of directories with the files, tried before those of the source.
        offline: do not use the network (`DYN_OFFLINE` says the same).
        progress: called with every piece that arrives.
        on_wait: called with a message when another process is writing there.
        scheme: protocol of the mirrors, and of the addresses to which they redirect.
        timeout: seconds that a mirror may stay silent, or give too little.

    Returns:
        The directory that holds the files.

    Raises:
        UsageError: a mirror's address has another protocol, or is none.
        DataMissingError: no mirror gave the right file; the message has the reason of each mirror and another way.
        RunError: the files cannot be written.
    """
    mirrors = (*mirrors, *source.mirrors)
    for mirror in mirrors:
        try:
            parts = urlsplit(mirror)
            valid = parts.scheme == scheme and parts.hostname and parts.port != 0
        except ValueError as error:
            raise UsageError(f"{mirror}: it is not an address: {error}") from error
        if not valid:
            raise UsageError(f"{mirror}: a mirror's address must begin with {scheme}:// and the name of a host")
    directory = source.directory
    if not source.missing():
        return directory
    if offline or store.is_offline():
        unused = "and the network may not be used (offline)"
        raise DataMissingError(f"{source.title} is not in {directory} {unused}; {source.by_hand}")
    opener = _opener(scheme)
    with store.locked(directory, on_wait):
        for file in source.missing():
            contents, good = _fetch_one(opener, source, mirrors, file, progress, timeout)
            disk.write_atomic(directory / file.name, contents)
            mirrors = sorted(mirrors, key=lambda mirror: mirror != good)  # a mirror that is down is waited for once
    return directory


def _fetch_one(
    opener: urllib.request.OpenerDirector, source: store.Published, mirrors: Sequence[str], file: store.Original,
    progress: Progress | None, timeout: float,
) -> tuple[bytes, str]:  # fmt: skip
    """Return the contents of a file, and the mirror that gave it."""
    reasons = []
    for mirror in mirrors:
        address, received = f"{mirror.rstrip('/')}/{file.served}", bytearray()
        try:
            for piece, total in _pieces(opener, address, file.size + store.SLACK, timeout):
                received += piece
                if progress is not None:
                    progress(file.name, len(received), total)
            return file.unpacked(bytes(received)), mirror
        except (MirrorError, ValueError) as error:
            reasons.append(f"  {address}: {error}")
    tried = "\n".join(reasons) or "  no mirror was named"
    failed = f"{source.title}'s {file.name} could not be downloaded"
    raise DataMissingError(f"{failed}:\n{tried}\ntry again later, or {source.by_hand}")


def _pieces(
    opener: urllib.request.OpenerDirector, address: str, most: int, timeout: float
) -> Iterator[tuple[bytes, int | None]]:
    """Yield each piece that a mirror sends, and how many bytes it says to send in all.

    Raises MirrorError: it cannot be reached, refuses, sends more than `most` bytes, or too slowly.
    """
    request = urllib.request.Request(address, headers={"User-Agent": f"dyn/{__version__}"})
    try:
        with _opened(opener, request, timeout) as answer:
            length = answer.headers.get("Content-Length", "")
            total = int(length) if length.isdecimal() and len(length) < _DIGITS else None
            done, began = 0, time.monotonic()
            while piece := answer.read1(_CHUNK):  # at once, be it a byte: a mirror that drips is noticed
                done += len(piece)
                if time.monotonic() - began > timeout + done / _SLOWEST:
                    raise MirrorError(f"it sends less than {_SLOWEST} bytes a second")
                if done > most:
                    raise MirrorError(f"it sends more than {most} bytes")
                yield piece, total
            if total is not None and done < total:
                raise MirrorError(f"the connection ended after {done} of {total} bytes")
    except urllib.error.HTTPError as error:
        with error:
            raise MirrorError(f"it answers {error.code} {error.reason}") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise MirrorError(str(reason) or type(error).__name__) from error


def _opened(opener: urllib.request.OpenerDirector, request: urllib.request.Request, timeout: float) -> Any:
    """Return the answer of a mirror, whose head may drip no longer than three times the `timeout` of each piece."""
    answer: Future[Any] = Future()

    def ask() -> None:
        try:
            answer.set_result(opener.open(request, timeout=timeout))
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=ask, daemon=True).start()
    try:
        return answer.result(3 * timeout)
    except TimeoutError as error:
        raise error if answer.done() else MirrorError("it takes too long to answer") from error


def _opener(scheme: str) -> urllib.request.OpenerDirector:
    """Return what opens addresses of one protocol, and follows redirections to this protocol alone."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler, _HANDLERS[scheme], urllib.request.HTTPRedirectHandler,
        urllib.request.HTTPDefaultErrorHandler, urllib.request.HTTPErrorProcessor, urllib.request.UnknownHandler,
    ):  # fmt: skip
        opener.add_handler(handler())
    return opener
