"""Configs and `--set`: bytes on the disk, read as the command line reads them."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import strategies as st

from dynamics_cli._bundled import bundled_configs
from dynamics_cli.cli.arguments import read_config
from dynamics_cli.config import to_yaml
from dynamics_cli.errors import DynError
from tests.fuzz import nasty
from tests.fuzz.rooms import Room, refused
from tests.fuzz.strategies import BYTES, damaged, overrides, written

SNIPPETS = [
    *BYTES, *(f" {text} ".encode(errors="surrogatepass") for text in nasty.SCALARS if len(text) < 200),
    b"\n- ", b"{", b"}", b"[", b"]", b": ", b", ", b"&a ", b"*a", b"<<: *a\n", b"---\n", b"|\n", b'"', b"'", b"#",
    b"? ",
]  # fmt: skip
KEYS = (
    "name", "seed", "optimizer.lr", "dataset.x", "loss", "extends", "architecture.kind", "record.parameters",
)  # fmt: skip
"""Keys that are set to each of the odd scalars."""


@dataclass(frozen=True)
class Case:
    """A config file, or the name of something that is none, and changes."""

    data: bytes
    overrides: tuple[str, ...] = ()
    special: str = ""


def _text(text: str, *changes: str) -> Case:
    return Case(text.encode(errors="surrogatepass"), changes)


def fixed() -> list[Case]:
    """Return the constructs that readers of configs stumble over."""
    return [
        *(_text(make()) for name, make in nasty.DOCUMENTS.items() if name not in nasty.SLOW),
        *(Case(make()) for make in nasty.BYTES.values()),
        *(Case(b"", special=name) for name in nasty.SPECIAL),
        *(_text(nasty.WHOLE.replace("0.01", text)) for text in nasty.SCALARS),
        *(_text(nasty.WHOLE, *(f"{key}={text}" for key in KEYS)) for text in nasty.SCALARS),
    ]


def room(place: Path, patch: pytest.MonkeyPatch) -> Room:
    """The reader of configs: changed configs, and configs grown from the schema, well-formed and damaged."""
    read_config("boursier2022/orthogonal")  # what is imported late is imported now
    whole = [path.read_bytes() for path in bundled_configs().values()]
    data = damaged([*whole, nasty.WHOLE.encode()], SNIPPETS) | written() | damaged(written(), SNIPPETS, most=2)
    changes = st.just(()) | st.lists(overrides(), min_size=1, max_size=2).map(tuple)
    return Room(st.builds(Case, data, changes), lambda case: _look(case, place), fixed())


def large_room(place: Path, patch: pytest.MonkeyPatch) -> Room:
    """The largest and slowest configs alone."""
    read_config("boursier2022/orthogonal")
    cases = [_text({**nasty.DOCUMENTS, **nasty.LARGE}[name]()) for name in (*nasty.LARGE, *nasty.SLOW)]
    return Room(st.nothing(), lambda case: _look(case, place), cases)


def _look(case: Case, place: Path) -> str:
    file = place / "config.yaml"
    file.write_bytes(case.data)
    try:
        config = read_config(_special(case.special, place / "special") if case.special else str(file), case.overrides)
    except DynError as error:
        return refused(error)
    file.write_text(to_yaml(config))  # what a run writes of it reads back as the same
    assert read_config(str(file)) == config
    return "accepted"


def _special(name: str, path: Path) -> str:
    """Make something that is no config, and return what stands for it on the command line."""
    if path.is_dir():
        path.rmdir()
    path.unlink(missing_ok=True)
    make: dict[str, Callable[[], object]] = {
        "directory": path.mkdir, "fifo": lambda: os.mkfifo(path), "socket": lambda: _socket(path),
        "link to zero": lambda: path.symlink_to("/dev/zero"), "dangling link": lambda: path.symlink_to("nowhere"),
        "link to itself": lambda: path.symlink_to(path), "sparse 100 MiB": lambda: _sparse(path, 100 * 2**20),
        "sparse 1 TiB": lambda: _sparse(path, 2**40), "below a file": path.touch,
    }  # fmt: skip
    named = {
        "zero": "/dev/zero", "null": "/dev/null", "full": "/dev/full", "below a file": str(path / "config.yaml"),
        "long name": "x" * 5000 + ".yaml", "long path": "x/" * 5000 + "a.yaml", "name with null": "a\0b.yaml",
        "name with half a character": "a\ud800b.yaml", "empty name": "",
    }  # fmt: skip
    make.get(name, lambda: None)()
    return named.get(name, str(path))


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(path))


def _sparse(path: Path, size: int) -> None:
    with path.open("wb") as handle:
        handle.truncate(size)
