"""Downloading MNIST: from public mirrors, over TLS, accepted only when the contents are the pinned ones."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import threading
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dynamics_cli.datasets.files import store
from dynamics_cli.datasets.files.mnist import ALL_FILES, IdxFile, missing_files, mnist_directory
from dynamics_cli.errors import DataMissingError, UsageError
from dynamics_cli.version import __version__

MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "https://raw.githubusercontent.com/fgnt/mnist/master/",
)
"""Directories with MNIST's four files, gzipped, tried in this order."""

Progress = Callable[[str, int, int | None], None]
"""Called with the name of a file, the bytes received so far, and all that will come (None: the mirror does not say)."""

_CHUNK = 2**16
_SLOWEST = 2**10
"""Bytes a second that a mirror must give, once it has had the time for which it may be silent."""
_SLACK = 2**20
"""Bytes by which gzip may make a file longer."""
_DIGITS = 20
"""More digits than this are no size."""
_GZIP = 16 + zlib.MAX_WBITS
_BY_HAND = "download the four files elsewhere and give their directory to `dyn data add mnist PATH`"


class MirrorError(Exception):
    """A mirror does not give the file that it should."""


def fetch_mnist(
    *, mirrors: Sequence[str] = MIRRORS, files: Sequence[IdxFile] = ALL_FILES, offline: bool = False,
    progress: Progress | None = None, on_wait: Callable[[str], None] | None = None,
    schemes: Sequence[str] = ("https",), timeout: float = 30.0,
) -> Path:  # fmt: skip
    """Download the files that are not there yet; a second process waits for the first and finds them.

    Args:
        mirrors: addresses of directories with the files, gzipped.
        files: what to download, with the SHA-256 of the contents.
        offline: do not use the network (`DYN_OFFLINE` says the same).
        progress: called with every piece that arrives.
        on_wait: called with a message when another process is writing there.
        schemes: protocols that a mirror, or what it redirects to, may use.
        timeout: seconds that a mirror may stay silent, or give too little.

    Returns:
        The directory that holds the files.

    Raises:
        UsageError: a mirror's address has another protocol, or is none.
        DataMissingError: no mirror gave the right file; the message has each one's reason and another way.
        RunError: the files cannot be written.
    """
    for mirror in mirrors:
        try:
            parts = urlsplit(mirror)
            valid = parts.scheme in schemes and parts.hostname and parts.port != 0
        except ValueError as error:
            raise UsageError(f"{mirror}: it is not an address: {error}") from error
        if not valid:
            raise UsageError(f"{mirror}: a mirror's address must begin with {schemes[0]}:// and the name of a host")
    directory = mnist_directory()
    if not missing_files(directory, files):
        return directory
    if offline or store.is_offline():
        raise DataMissingError(f"MNIST is not in {directory} and the network may not be used (offline); {_BY_HAND}")
    opener = urllib.request.build_opener(_Redirects(schemes))
    with store.locked(directory, on_wait):
        for file in missing_files(directory, files):
            good = _fetch_one(opener, mirrors, file, directory / file.name, progress, timeout)
            mirrors = [good, *(mirror for mirror in mirrors if mirror != good)]  # one that is down is waited for once
    return directory


def _fetch_one(
    opener: urllib.request.OpenerDirector, mirrors: Sequence[str], file: IdxFile, target: Path,
    progress: Progress | None, timeout: float,
) -> str:  # fmt: skip
    """Download one file and return the mirror that gave it."""
    reasons = []
    for mirror in mirrors:
        address = f"{mirror.rstrip('/')}/{file.name}.gz"
        try:
            with store.fresh_file(target) as handle:
                digest = hashlib.sha256()
                for piece in _contents(_received(opener, address, file, progress, timeout), file.size):
                    digest.update(piece)
                    handle.write(piece)
                if digest.hexdigest() != file.sha256:
                    raise MirrorError(f"its contents have SHA-256 {digest.hexdigest()}, not {file.sha256}")
        except MirrorError as error:
            reasons.append(f"  {address}: {error}")
            continue
        return mirror
    tried = "\n".join(reasons) or "  no mirror was named"
    raise DataMissingError(f"MNIST's {file.name} could not be downloaded:\n{tried}\ntry again later, or {_BY_HAND}")


def _received(
    opener: urllib.request.OpenerDirector, address: str, file: IdxFile, progress: Progress | None, timeout: float
) -> Iterator[bytes]:
    """Yield what a mirror sends; all that can go wrong on the way is a `MirrorError`."""
    request = urllib.request.Request(address, headers={"User-Agent": f"dyn/{__version__}"})
    with _opened(opener, request, timeout) as answer:
        length = answer.headers.get("Content-Length", "")
        total = int(length) if length.isdecimal() and len(length) < _DIGITS else None
        done, began = 0, time.monotonic()
        while piece := _piece(answer):
            done += len(piece)
            if time.monotonic() - began > timeout + done / _SLOWEST:
                raise MirrorError(f"it sends less than {_SLOWEST} bytes a second")
            if done > file.size + _SLACK:
                raise MirrorError(f"it sends more than {file.size} bytes")
            if progress is not None:
                progress(file.name, done, total)
            yield piece
        if total is not None and done < total:
            raise MirrorError(f"the connection ended after {done} of {total} bytes")


def _opened(opener: urllib.request.OpenerDirector, request: urllib.request.Request, timeout: float) -> Any:
    """Return the answer of a mirror, whose head may drip no longer than three times the `timeout` of each piece."""
    answer: Future[Any] = Future()

    def ask() -> None:
        try:
            answer.set_result(opener.open(request, timeout=timeout))
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=ask, daemon=True).start()
    with _mirror_errors():
        try:
            return answer.result(3 * timeout)
        except TimeoutError as error:
            raise error if answer.done() else MirrorError("it takes too long to answer") from error


@contextlib.contextmanager
def _mirror_errors() -> Iterator[None]:
    """Turn errors of the network into `MirrorError`; those of the disk do not arise where this is used."""
    try:
        yield
    except urllib.error.HTTPError as error:
        with error:
            raise MirrorError(f"it answers {error.code} {error.reason}") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise MirrorError(str(reason) or type(error).__name__) from error


def _piece(answer: Any) -> bytes:
    with _mirror_errors():
        piece: bytes = answer.read1(_CHUNK)  # at once, be it a byte: who drips is noticed
    return piece


def _contents(pieces: Iterator[bytes], size: int) -> Iterator[bytes]:
    """Yield what is inside a gzip stream, `size` bytes and no more: a bomb is not unpacked."""
    unzip = zlib.decompressobj(_GZIP)
    left = size
    try:
        for piece in pieces:
            rest = piece
            while rest and not unzip.eof:
                out = unzip.decompress(rest, _CHUNK)
                left -= len(out)
                if left < 0:
                    raise MirrorError(f"its contents are longer than {size} bytes")
                yield out
                rest = unzip.unconsumed_tail
            if unzip.eof:
                return  # what may follow is not looked at
    except zlib.error as error:
        raise MirrorError(f"it does not send a gzip file ({error})") from error
    raise MirrorError("the file ends early")


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirections, but not to another protocol than the allowed ones."""

    def __init__(self, schemes: Sequence[str]) -> None:
        self.schemes = schemes

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        """Refuse a redirection that would leave TLS."""
        if urlsplit(newurl).scheme not in self.schemes:
            fp.close()
            raise urllib.error.URLError(f"it redirects to {newurl}, which is not {self.schemes[0]}")
        return super().redirect_request(req, fp, code, msg, headers, newurl)
