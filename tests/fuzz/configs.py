"""Configs and `--set`: bytes on the disk, read as the command line reads them."""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dynamics_cli._bundled import bundled_configs
from dynamics_cli.cli.arguments import read_config
from dynamics_cli.config import RunConfig, to_yaml
from dynamics_cli.errors import DynError
from tests.fuzz import grammar, nasty
from tests.fuzz.mutate import BYTES, damage
from tests.fuzz.rooms import refused

_FIXED = [
    *(("document", name) for name in nasty.DOCUMENTS if name not in nasty.SLOW),
    *(("bytes", name) for name in nasty.BYTES),
    *(("special", name) for name in nasty.SPECIAL),
    *(("scalar", str(k)) for k in range(len(nasty.SCALARS))),
    *(("override", str(k)) for k in range(len(nasty.SCALARS))),
]
FIXED = len(_FIXED)
"""Cases that are the same for every seed, the first ones."""
_LARGE = [("document", name) for name in (*nasty.LARGE, *nasty.SLOW)]


@dataclass(frozen=True)
class Case:
    """A config file and what is set besides."""

    kind: str
    name: str = ""
    data: bytes = b""
    overrides: tuple[str, ...] = ()


class Room:
    """The reader of configs: fixed constructs first, then changed and grown configs without end."""

    memory = 500 * 10**6
    seconds = 2.0

    def prepare(self, place: Path) -> None:
        self.place = place
        self.seeds = [path.read_bytes() for path in bundled_configs().values()]
        self.file = place / "config.yaml"
        self.snippets = [
            *BYTES,
            *(f" {text} ".encode(errors="surrogatepass") for text in nasty.SCALARS if len(text) < 200),
        ]
        self.snippets += [
            b"\n- ", b"{", b"}", b"[", b"]", b": ", b", ", b"&a ", b"*a", b"<<: *a\n", b"---\n", b"|\n", b'"', b"'",
            b"#", b"? ",
        ]  # fmt: skip
        read_config("boursier2022/orthogonal")  # what is imported late is imported now

    def case(self, seed: int, i: int) -> Case:
        if i < len(_FIXED):
            return self._fixed(*_FIXED[i])
        rng = random.Random(f"{seed}-{i}")
        overrides = tuple(grammar.override(rng) for _ in range(rng.choice([0, 0, 0, 1, 2])))
        if rng.random() < 0.5:
            data = damage(rng, rng.choice([*self.seeds, nasty.WHOLE.encode()]), self.snippets)
            return Case("changed", data=data, overrides=overrides)
        text = grammar.written(rng, grammar.config(rng)).encode(errors="surrogatepass")
        if rng.random() < 0.3:
            text = damage(rng, text, self.snippets, most=2)
        return Case("grown", data=text, overrides=overrides)

    def _fixed(self, kind: str, name: str) -> Case:
        match kind:
            case "document":
                return Case(kind, name, {**nasty.DOCUMENTS, **nasty.LARGE}[name]().encode(errors="surrogatepass"))
            case "bytes":
                return Case(kind, name, nasty.BYTES[name]())
            case "scalar":
                return Case(
                    kind, name, nasty.WHOLE.replace("0.01", nasty.SCALARS[int(name)]).encode(errors="surrogatepass")
                )
            case "override":
                keys = (
                    "name", "seed", "optimizer.lr", "dataset.x", "loss", "extends", "architecture.kind",
                    "record.parameters",
                )  # fmt: skip
                value = nasty.SCALARS[int(name)]
                return Case(kind, name, nasty.WHOLE.encode(), tuple(f"{key}={value}" for key in keys))
        return Case(kind, name)

    def run(self, case: Case) -> str:
        path = self._special(case.name) if case.kind == "special" else str(self._written(case.data))
        try:
            config = read_config(path, case.overrides)
        except DynError as error:
            return refused(error)
        self._check(config)
        return "accepted"

    def _written(self, data: bytes) -> Path:
        self.file.write_bytes(data)
        return self.file

    def _check(self, config: object) -> None:
        """Look at an accepted config: it is one, and what a run would write of it reads back as the same."""
        assert isinstance(config, RunConfig)
        self.file.write_text(to_yaml(config))
        assert read_config(str(self.file)) == config

    def _special(self, name: str) -> str:
        """Make something that is no config, and return what stands for it on the command line."""
        path = self.place / "special"
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

    def describe(self, case: Case) -> str:
        shown = repr(case.data if len(case.data) < 3000 else case.data[:1500] + b" ... " + case.data[-500:])
        sets = "".join(f"\n  --set {text[:300]!r}" for text in case.overrides)
        return f"{case.kind} {case.name}: {shown}{sets}"


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(path))


def _sparse(path: Path, size: int) -> None:
    with path.open("wb") as handle:
        handle.truncate(size)


class LargeRoom(Room):
    """Only the largest configs, one after the other, again and again."""

    def case(self, seed: int, i: int) -> Case:
        return self._fixed(*_LARGE[i % len(_LARGE)])
