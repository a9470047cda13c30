from __future__ import annotations

import contextlib
import gzip
import http.server
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from dynamics_cli.datasets.files import fetch, store
from dynamics_cli.datasets.files.catalogue import PUBLISHED
from dynamics_cli.datasets.files.fetch import fetch as fetch_files
from dynamics_cli.datasets.files.mnist import MNIST
from dynamics_cli.datasets.files.store import Original
from dynamics_cli.errors import DataMissingError, RunError
from dynamics_cli.runs.store import files

ROOT = Path(__file__).parents[2]
BY_HAND = "download the four files elsewhere and give their directory to `dyn data add mnist PATH`"


HEAD = b"HTTP/1.0 200 OK\r\n"
OK = HEAD + b"\r\n"


def whole(page: bytes) -> list[bytes]:
    return [HEAD, b"Content-Length: %d\r\n\r\n" % len(page), page]


class Mirror:
    """A server on this machine that sends what `behave` makes of its `pages`, and notes the names asked for."""

    def __init__(self, pages: dict[str, bytes]) -> None:
        self.pages, self.asked = pages, list[str]()
        self.behave: Callable[[bytes], Iterable[bytes]] = whole
        mirror = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                name = self.path.rpartition("/")[2]
                mirror.asked.append(name)
                page = mirror.pages.get(name)
                if page is None:
                    self.send_error(404)
                else:
                    with contextlib.suppress(OSError):  # the other side has hung up
                        for piece in mirror.behave(page):
                            self.wfile.write(piece)

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}/mnist/"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def pages(toy_contents: dict[str, bytes]) -> dict[str, bytes]:
    return {f"{name}.gz": gzip.compress(content) for name, content in toy_contents.items()}


@pytest.fixture
def mirrors(pages: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Mirror]]:
    """Two mirrors that are well."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    found = [Mirror(dict(pages)), Mirror(dict(pages))]
    yield found
    for mirror in found:
        mirror.close()


def get(mirrors: list[Mirror], files: list[Original], **more: Any) -> Path:
    addresses = [mirror.address for mirror in mirrors]
    return fetch_files(replace(MNIST, mirrors=addresses, files=files), scheme="http", **{"timeout": 5, **more})


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()} - {".lock"}


def test_all_files_are_downloaded_once(
    mirrors: list[Mirror], toy_files: list[Original], toy_contents: dict[str, bytes], data_home: Path
) -> None:
    seen: list[tuple[str, int, int | None]] = []
    directory = get(mirrors, toy_files, progress=lambda *news: seen.append(news))
    assert directory == data_home / "mnist"
    assert {name: (directory / name).read_bytes() for name in names(directory)} == toy_contents
    assert mirrors[0].asked == [f"{file.name}.gz" for file in toy_files]
    assert mirrors[1].asked == []
    for file in toy_files:
        sizes = [(done, total) for name, done, total in seen if name == file.name]
        assert sizes == sorted(sizes)
        assert sizes[-1][0] == sizes[-1][1] == len(mirrors[0].pages[f"{file.name}.gz"])
    get(mirrors, toy_files)  # all there
    assert len(mirrors[0].asked) == 4
    (directory / toy_files[2].name).unlink()
    get(mirrors, toy_files)  # what is missing only
    assert mirrors[0].asked[4:] == [f"{toy_files[2].name}.gz"]


EMPTY_BLOCKS = b"\0\0\0\xff\xff" * 2**15
"""Well-formed gzip out of which nothing comes."""
BOMB = gzip.compress(bytes(2**24))


def flipped(page: bytes) -> bytes:
    content = gzip.decompress(page)
    return gzip.compress(content[:-1] + bytes([content[-1] ^ 1]))


def slowly(pieces: Iterable[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        yield piece
        time.sleep(0.1)


def bytes_of(data: bytes) -> list[bytes]:
    return [data[k : k + 1] for k in range(len(data))]


def endless() -> Iterator[bytes]:
    yield gzip.compress(b"", mtime=0)[:10]
    while True:
        yield EMPTY_BLOCKS


FAULTS: dict[str, tuple[Callable[[bytes], Iterable[bytes]], str]] = {  # what is sent for a page, and what is told
    "half of it": (lambda page: [*whole(page)[:2], page[: len(page) // 2]], "the connection ended after"),
    "half of it, no length": (lambda page: [OK, page[: len(page) // 2]], "it is a damaged gzip file"),
    "a web page": (lambda page: [OK, b"<html>please log in</html>"], "its contents have 26 bytes and SHA-256 "),
    "an error": (lambda page: [b"HTTP/1.0 503 Service Unavailable\r\n\r\n"], "it answers 503 Service Unavailable"),
    "nonsense": (lambda page: [b"what?\r\n\r\n"], "what?"),
    "silence": (lambda page: chain([OK], slowly([b""] * 10)), "timed out"),
    "drops": (lambda page: chain([OK], slowly(bytes_of(page))), "it sends less than 1024 bytes a second"),
    "a head in drops": (lambda page: slowly(bytes_of(HEAD + b"X: " + b"x" * 20)), "it takes too long to answer"),
    "no end": (lambda page: chain([OK], endless()), "it sends more than"),
    "a bomb": (lambda page: [OK, BOMB], "its contents have 47057 bytes"),
    "another file": (lambda page: [OK, flipped(page)], "its contents have 47056 bytes"),
    "elsewhere": (lambda page: [b"HTTP/1.0 302 Found\r\nLocation: ftp://127.0.0.1/file\r\n\r\n"],
                  "unknown url type: ftp"),
}  # fmt: skip


@pytest.mark.parametrize(("fault", "message"), FAULTS.values(), ids=FAULTS)
def test_a_bad_mirror_is_passed_over(
    fault: Any, message: str, mirrors: list[Mirror], toy_files: list[Original], toy_contents: dict[str, bytes]
) -> None:
    mirrors[0].behave = fault
    directory = get(mirrors, toy_files, timeout=0.5)
    assert {name: (directory / name).read_bytes() for name in names(directory)} == toy_contents
    assert mirrors[1].asked == [f"{file.name}.gz" for file in toy_files]
    assert len(mirrors[0].asked) == 1  # not asked again after its failure
    shutil.rmtree(directory)
    with pytest.raises(DataMissingError) as caught:
        get(mirrors[:1], toy_files, timeout=0.5)
    assert f"  {mirrors[0].address}{toy_files[0].name}.gz: " in str(caught.value)
    assert message in str(caught.value)
    assert str(caught.value).endswith(f"try again later, or {BY_HAND}")
    assert names(directory) == set()


def test_mirrors_that_are_down_or_lack_the_file(mirrors: list[Mirror], toy_files: list[Original]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        down = f"http://127.0.0.1:{free.getsockname()[1]}/"
    del mirrors[0].pages[f"{toy_files[3].name}.gz"]
    with pytest.raises(DataMissingError) as caught:
        fetch_files(replace(MNIST, mirrors=[down, mirrors[0].address], files=toy_files), scheme="http")
    assert f"MNIST's {toy_files[3].name} could not be downloaded:\n" in str(caught.value)
    assert f"  {down}{toy_files[3].name}.gz: " in str(caught.value)
    assert "Connection refused" in str(caught.value)
    assert "it answers 404 Not Found" in str(caught.value)
    assert names(store.data_root() / "mnist") == {file.name for file in toy_files[:3]}  # kept for the next try


def test_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)

    def unreachable(*arguments: Any, **keywords: Any) -> Any:
        raise socket.gaierror(-3, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", unreachable)
    with pytest.raises(DataMissingError) as caught:
        fetch_files(MNIST)
    for mirror in MNIST.mirrors:
        assert f"  {mirror}train-images-idx3-ubyte.gz: [Errno -3] Temporary failure" in str(caught.value)
    assert BY_HAND in str(caught.value)
    assert caught.value.exit_code == 4


@pytest.mark.parametrize("by_environment", [True, False])
def test_offline_asks_nobody(
    by_environment: bool, mirrors: list[Mirror], toy_files: list[Original], monkeypatch: pytest.MonkeyPatch
) -> None:
    if by_environment:
        monkeypatch.setenv("DYN_OFFLINE", "1")
    with pytest.raises(DataMissingError, match=r"the network may not be used \(offline\); download the four files"):
        get(mirrors, toy_files, offline=not by_environment)
    assert mirrors[0].asked == []
    monkeypatch.delenv("DYN_OFFLINE", raising=False)
    directory = get(mirrors, toy_files)
    assert get(mirrors, toy_files, offline=True) == directory  # what is there needs no network


def test_real_mirrors_are_several_and_over_tls() -> None:
    assert len({mirror.split("/")[2] for mirror in MNIST.mirrors}) >= 3
    assert all(mirror.startswith("https://") and mirror.endswith("/") for mirror in MNIST.mirrors)


def test_an_interruption_leaves_nothing_torn(mirrors: list[Mirror], toy_files: list[Original]) -> None:
    def interrupt(name: str, done: int, total: int | None) -> None:
        if name == toy_files[2].name:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        get(mirrors, toy_files, progress=interrupt)
    directory = store.data_root() / "mnist"
    assert names(directory) == {file.name for file in toy_files[:2]}
    get(mirrors, toy_files)
    assert names(directory) == {file.name for file in toy_files}
    assert mirrors[0].asked.count(f"{toy_files[0].name}.gz") == 1


def test_a_full_disk_is_not_taken_for_a_bad_mirror(
    mirrors: list[Mirror], toy_files: list[Original], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "sync", full)
    with pytest.raises(RunError, match="disk full while writing"):
        get(mirrors, toy_files)
    assert names(store.data_root() / "mnist") == set()
    assert mirrors[1].asked == []


TWO = """
import sys
from dataclasses import replace
from dynamics_cli.datasets.files.fetch import fetch
from dynamics_cli.datasets.files.mnist import MNIST
from dynamics_cli.datasets.files.store import Original
files = eval(sys.argv[2], {"Original": Original})
source = replace(MNIST, mirrors=[sys.argv[1]], files=files)
fetch(source, scheme="http", on_wait=lambda message: print(message))
"""


def test_two_processes_at_once_download_once(
    mirrors: list[Mirror], toy_files: list[Original], toy_contents: dict[str, bytes], data_home: Path
) -> None:
    mirrors[0].behave = lambda page: slowly([OK, b"", b"", page])
    command = [sys.executable, "-c", TWO, mirrors[0].address, repr(toy_files)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    both = [subprocess.Popen(command, env=environment, stdout=-1, text=True) for _ in range(2)]
    said = [process.communicate(timeout=60)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sorted(mirrors[0].asked) == sorted(f"{file.name}.gz" for file in toy_files)
    assert sum("in use by another process; waiting" in text for text in said) <= 1
    directory = data_home / "mnist"
    assert {name: (directory / name).read_bytes() for name in names(directory)} == toy_contents


def test_nothing_but_a_mirror_is_asked() -> None:
    """What is downloaded is data: the modules have no other address in them."""
    modules = [Path(fetch.__file__).with_stem(name) for name in ("fetch", "store", *PUBLISHED)]
    text = "".join(module.read_text(encoding="utf-8") for module in modules)
    assert text.count("https://") == sum(len(source.mirrors) for source in PUBLISHED.values())
