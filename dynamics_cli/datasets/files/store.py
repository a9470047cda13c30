"""Published files of data sets: where they are kept, pinned contents, copies and downloads."""

from __future__ import annotations

import gzip
import hashlib
import os
import tempfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dynamics_cli.errors import DataMissingError, InputError, UsageError
from dynamics_cli.runs.store import files

ROOT_VARIABLE = "DYN_DATA"
ADVICE = f"set {ROOT_VARIABLE} to a directory that can be written"
TIMEOUT = 30.0
"""Seconds that a server may stay silent."""


def data_root() -> Path:
    """Return the directory of data files: `DYN_DATA`, or `dyn` in the user's data directory (XDG).

    Raises UsageError: the user has no home directory and `DYN_DATA` is not set.
    """
    if named := os.environ.get(ROOT_VARIABLE):
        return Path(named).absolute()
    shared = os.environ.get("XDG_DATA_HOME", "")
    if Path(shared).is_absolute():  # the XDG specification has relative paths ignored
        return Path(shared) / "dyn"
    try:
        return Path.home() / ".local/share/dyn"
    except RuntimeError as error:
        raise UsageError(
            f"there is no home directory for data files; set {ROOT_VARIABLE} to a directory"
        ) from error


@dataclass(frozen=True)
class Original:
    """A file of a data set as it is published; its contents are pinned."""

    name: str
    sha256: str
    size: int
    gzipped: bool = False
    """Whether it is published as a gzip file."""

    @property
    def served(self) -> str:
        """Name of the published file."""
        if self.gzipped:
            return f"{self.name}.gz"
        return self.name

    def read(self, path: Path) -> bytes:
        """Return the contents of a file, gzipped or not; InputError for another or unreadable."""
        try:
            files.check_regular(path)
            with path.open("rb") as handle:
                zipped = self.gzipped and handle.peek(2).startswith(b"\x1f\x8b")
                stream = gzip.GzipFile(fileobj=handle) if zipped else handle
                data = stream.read(self.size + 1)  # no more is unpacked
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
        if hashlib.sha256(data).hexdigest() != self.sha256:
            raise InputError(f"{path}: its contents do not match {self.name} (another SHA-256)")
        return data

    def is_here(self, place: Path) -> bool:
        """Whether a place holds this file, unpacked."""
        return place.is_file() and hashlib.sha256(place.read_bytes()).hexdigest() == self.sha256


@dataclass(frozen=True)
class Published:
    """A data set of published files, which are downloaded, or copied from a place of the user."""

    name: str
    title: str
    files: Sequence[Original]
    url: str
    """Address of the directory with the files."""
    how: str
    """How to get it, where it is not here."""

    @property
    def directory(self) -> Path:
        """Where the files are or would be."""
        return data_root() / self.name

    def missing(self) -> list[Original]:
        """Return the files that are not there."""
        return [file for file in self.files if not (self.directory / file.name).is_file()]

    def read(self, names: Sequence[str]) -> list[bytes]:
        """Return the contents of some files.

        Raises:
            DataMissingError: some are not there; the message says how to get them.
            InputError: a file is damaged.
        """
        wanted = {file.name: file for file in self.files if file.name in names}
        if any(file.name in wanted for file in self.missing()):
            raise DataMissingError(f"{self.title} is not in {self.directory}: {self.how}")
        return [wanted[name].read(self.directory / name) for name in names]

    def find(self, file: Original, path: Path) -> Path:
        """Return where a file is in a user's directory, gzipped or not; `path` may be the file.

        Raises InputError: it is not there.
        """
        if len(self.files) == 1 and not path.is_dir():
            return path
        names = dict.fromkeys((file.name, file.served))
        for name in names:
            if (path / name).is_file():
                return path / name
        raise InputError(
            f"{path}: holds no {' or '.join(names)}; all files of {self.title} are needed"
        )

    def add(self, path: Path) -> Path:
        """Copy the files from a user's directory, or a single file; return where the copies are.

        Raises:
            InputError: a file is missing, damaged or another; then nothing changes.
            UsageError: another file is in its place already; then nothing changes either.
            RunError: the files cannot be written.
        """
        contents = {file.name: file.read(self.find(file, path)) for file in self.files}
        for file in self.files:
            place = self.directory / file.name
            if files.exists(place) and not file.is_here(place):
                raise UsageError(f"{place} is another file, or damaged: move it away")
        with files.os_errors_as_run_errors(self.directory, ADVICE):
            files.make_directory(self.directory)
            for file in self.missing():
                files.write_atomic(self.directory / file.name, contents[file.name])
        return self.directory

    def fetch(self, *, bar: bool = False) -> Path:
        """Download the files that are not there yet; return their directory.

        Raises:
            DataMissingError: a file could not be downloaded; the message says why, and another way.
            RunError: the files cannot be written.
        """
        import pooch
        import requests

        download = pooch.HTTPDownloader(progressbar=bar, chunk_size=2**16, timeout=TIMEOUT)
        with files.os_errors_as_run_errors(self.directory, ADVICE):
            for file in self.missing():
                files.make_directory(self.directory)
                url = f"{self.url}/{file.served}"
                with tempfile.TemporaryDirectory(dir=self.directory) as folder:
                    page = Path(folder) / file.served
                    try:
                        download(url, str(page), None)
                        contents = file.read(page)
                    except (requests.RequestException, InputError) as error:
                        told = f"{url} could not be downloaded: {error}; try again, or: {self.how}"
                        raise DataMissingError(told) from error
                files.write_atomic(self.directory / file.name, contents)
        return self.directory
