"""Downloads: over TLS from somebody whose certificate is good, and only what is pinned."""

from __future__ import annotations

import ast
import gc
import gzip
import hashlib
import re
import shutil
import ssl
import subprocess
import urllib.request
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dynamics_cli.datasets.files.catalogue import PUBLISHED
from dynamics_cli.datasets.files.fetch import fetch as fetch_files
from dynamics_cli.datasets.files.mnist import MNIST
from dynamics_cli.datasets.files.store import Original
from dynamics_cli.errors import DataMissingError
from tests.datasets.conftest import header
from tests.datasets.test_fetch import HEAD, Mirror

from .source import parsed

ROOT = Path(__file__).parents[2]
CONTENT = header((5,)) + b"12345"
PINNED = Original("toy", hashlib.sha256(CONTENT).hexdigest(), len(CONTENT), zipped=True)


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    """A server without TLS."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    mirror = Mirror({"toy.gz": gzip.compress(CONTENT)})
    yield mirror
    mirror.close()


@pytest.fixture
def secure(plain: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    """A server with TLS whose certificate this process trusts."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl makes the certificate")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=127.0.0.1", "-days", "2"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    mirror = Mirror({"toy.gz": gzip.compress(CONTENT)})
    mirror.server.socket = context.wrap_socket(mirror.server.socket, server_side=True)
    mirror.server.handle_error = lambda *arguments: None  # type: ignore[method-assign]  # the other side hangs up
    mirror.address = mirror.address.replace("http:", "https:")
    yield mirror
    mirror.close()
    with warnings.catch_warnings():  # a refused handshake leaves its socket, closed, in a cycle of the standard library
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def fetch(mirror: Mirror) -> Path:
    return fetch_files(replace(MNIST, mirrors=[mirror.address], files=[PINNED]), timeout=20)


def naive(mirror: Mirror) -> bytes:
    """What a reader gets that takes whatever comes."""
    with urllib.request.urlopen(f"{mirror.address}toy.gz", timeout=20) as answer:
        return gzip.decompress(answer.read())


def kept(place: Path) -> list[str]:
    """Names of the files below the directory of data; a lock is none."""
    return [path.name for path in (place / "data").rglob("*") if path.is_file() and path.name != ".lock"]


def test_the_right_file_over_tls(secure: Mirror, place: Path) -> None:
    """So that the refusals below are not those of everything."""
    assert naive(secure) == CONTENT
    assert (fetch(secure) / "toy").read_bytes() == CONTENT


def elsewhere(location: str) -> Callable[[bytes], list[bytes]]:
    """Return what a mirror sends that redirects."""
    return lambda page: [f"HTTP/1.0 302 Found\r\nLocation: {location}\r\n\r\n".encode()]


def test_a_redirection_out_of_tls(secure: Mirror, plain: Mirror, place: Path) -> None:
    secure.behave = elsewhere(f"{plain.address}toy.gz")
    assert naive(secure) == CONTENT
    assert plain.asked == ["toy.gz"]
    with pytest.raises(DataMissingError, match="unknown url type: http"):
        fetch(secure)
    assert plain.asked == ["toy.gz"]  # not asked again
    assert kept(place) == []


@pytest.mark.parametrize(
    ("location", "told"),
    [
        ("file:///etc/passwd", "passwd' is not allowed"), ("javascript:1", "'javascript:1' is not allowed"),
        ("data:,x", "'data:,x' is not allowed"), ("ftp://127.0.0.1/x", "unknown url type: ftp"),
        ("//[", "Invalid IPv6 URL"), ("", "infinite loop"),
    ],
)  # fmt: skip
def test_other_redirections(location: str, told: str, secure: Mirror, place: Path) -> None:
    secure.behave = elsewhere(location)
    with pytest.raises(DataMissingError, match=told):
        fetch(secure)
    assert kept(place) == []


def test_a_length_that_is_no_size(secure: Mirror, place: Path) -> None:
    secure.behave = lambda page: [HEAD, b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n", page]
    with pytest.raises(ValueError, match="Exceeds the limit"):
        int("9" * 5000)  # what believing it comes to
    assert (fetch(secure) / "toy").read_bytes() == CONTENT


@pytest.mark.parametrize("of", ["another name", "nobody known"])
def test_a_certificate(of: str, secure: Mirror, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if of == "another name":
        secure.address = secure.address.replace("127.0.0.1", "localhost")
    else:
        monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(DataMissingError, match="CERTIFICATE_VERIFY_FAILED|Hostname mismatch"):
        fetch(secure)
    assert secure.asked == []


def test_everything_is_pinned() -> None:
    sums = [file.sha256 for one in PUBLISHED.values() for file in one.files]
    assert all(re.fullmatch("[0-9a-f]{64}", one) for one in sums)
    assert len(set(sums)) == len(sums) == 5


def test_one_module_uses_the_network() -> None:
    users = set()
    for path in [*(ROOT / "dynamics_cli").rglob("*.py"), *(ROOT / "experiments").rglob("*.py")]:
        for node in ast.walk(parsed(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(name.startswith(("urllib.request", "http", "requests", "ftplib", "httpx")) for name in names):
                users.add(path.name)
    assert users == {"fetch.py"}
