"""Run directories whose files were changed: in their bytes, or in their meaning with checksums that fit."""

from __future__ import annotations

import copy
import hashlib
import json
import random
import shutil
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner

from dynamics_cli.cli import main
from dynamics_cli.config import load_config
from dynamics_cli.errors import DynError
from dynamics_cli.runs import RunWriter, load_run, runs_root
from dynamics_cli.runs.replica import replicas_of
from dynamics_cli.runs.store.arrays import ArrayWriter
from dynamics_cli.runs.store.sealed import seal, unseal
from dynamics_cli.text import jsonable
from tests.fuzz import nasty
from tests.fuzz.arrays import archive
from tests.fuzz.mutate import BYTES, damage
from tests.fuzz.rooms import refused

CODES = (2, 3, 4, 7)
VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 3, 2**31, 2**63, 2**64, 10**30, 1.5, -0.0, 1e308, "", "x", "losses", "../x",
    "/etc/x", "\0", "\ud800", "\u202e", "x" * 5000, [], [1], ["a"], [[]], [None], {}, {"a": 1}, {"../../x": 3},
    {"losses": -1}, {"losses": 2**70}, {"losses": "3"}, {"losses": 1.5}, {"losses": None}, {"trajectory/../../x": 1},
    {"": 1}, {"measures/": 1}, {"\ud800": 1}, "complete", "running", "failed", "interrupted", "diverged",
]  # fmt: skip
"""What an entry of a JSON file becomes."""
ARRAYS = [
    np.zeros(0), np.zeros(3), np.zeros((4, 2)), np.zeros((5, 1)), np.zeros((3, 4, 2), np.float32),
    np.zeros((6, 1, 1, 1)), np.full(6, np.nan), np.full(6, np.inf), np.arange(6, dtype=np.int64),
    np.arange(6, dtype=np.int64)[::-1], np.full(6, -(2**62)), np.arange(6, dtype=np.uint8), np.zeros(6, bool),
    np.zeros((6, 3), np.int16), np.full((6, 4, 2), 1e308), np.zeros((6, 2, 4)), np.zeros((6, 4, 3), np.float32),
    np.full((6, 4), np.nan, np.float32),
]  # fmt: skip
"""What an array becomes."""
COMMANDS = [
    ["show", "RUN"], ["show", "RUN", "--json"], ["list", "runs"], ["list", "runs", "--json"],
    ["plot", "RUN", "--list"], ["plot", "RUN", "--panel", "loss"], ["plot", "RUN", "--panel", "function"],
    ["plot", "RUN", "--panel", "norms"], ["plot", "RUN", "--panel", "measures"], ["plot", "RUN:0", "--list"],
    ["compare", "RUN", "RUN"], ["runs", "prune", "--status", "failed", "--dry-run"],
]  # fmt: skip


@dataclass(frozen=True)
class Case:
    """The template that is changed, what happens to which of its files, and the command that looks at it."""

    template: str
    file: str
    how: str
    random: random.Random
    command: list[str]


class Room:
    """Complete and unfinished runs, replicas, and the directory of a sweep."""

    memory = 2**30
    seconds = 15.0

    def prepare(self, place: Path) -> None:
        import matplotlib.figure  # noqa: F401 - what a command may import is in memory before the limits are set

        import dynamics_cli.analysis
        import dynamics_cli.sweeps.pictures  # noqa: F401

        config = place / "toy.yaml"
        config.write_text(nasty.WHOLE.replace("width: 8", "width: 4"))
        self.root = runs_root()
        self.directory = self.root / "toy"
        shutil.rmtree(self.root, ignore_errors=True)
        self.templates: dict[str, dict[str, bytes]] = {}
        for name, make in (("complete", True), ("unfinished", False)):
            _write_run(self.directory, config, finish=make)
            self.templates[name] = self._taken()
        base = ["--set", "optimizer.iterations=5", "--out", str(self.directory), "--quiet"]
        for name, options in (
            ("replicas", ["train", str(config), "--replicas", "2"]),
            ("sweep", ["sweep", str(config), "--grid", "seed=0,1"]),
        ):
            result = CliRunner().invoke(main, [*options, *base])
            assert result.exit_code == 0, result.stderr
            self.templates[name] = self._taken()

    def _taken(self) -> dict[str, bytes]:
        found = {
            p.relative_to(self.directory).as_posix(): p.read_bytes() for p in self.directory.rglob("*") if p.is_file()
        }
        shutil.rmtree(self.directory)
        return {name: content for name, content in found.items() if not name.endswith(("lock", "lock.json"))}

    def case(self, seed: int, i: int) -> Case:
        rng = random.Random(f"{seed}-{i}")
        template = rng.choice(["complete", "complete", "unfinished", "replicas", "sweep"])
        file = rng.choice(sorted(self.templates[template]))
        ways = ["bytes", "bytes", "gone", "empty", "folder", "link", "another"]
        if file.endswith(".json"):
            ways += ["meaning"] * 12
        elif file.endswith(".npy"):
            ways += ["array"] * 6
        elif file.endswith((".yaml", "checkpoint.npz")):
            ways += ["resealed"] * 8
        return Case(template, file, rng.choice(ways), rng, rng.choice(COMMANDS))

    def run(self, case: Case) -> str:
        shutil.rmtree(self.root, ignore_errors=True)
        files = self.templates[case.template]
        for name, content in files.items():
            path = self.directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        rng = random.Random()
        rng.setstate(case.random.getstate())
        self._change(case, self.directory / case.file, files, rng)
        look = _look_at_replicas if case.template == "replicas" else _look
        try:
            look(self.directory)
            outcome = "read"
        except DynError as error:
            outcome = refused(error, CODES)
        arguments = [text.replace("RUN", str(self.directory)) for text in case.command]
        result = CliRunner().invoke(main, arguments)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code in (0, *CODES), result.exit_code
        assert result.exit_code == 0 or result.stderr.strip()
        if result.exit_code == 0 and "--json" in arguments:
            json.loads(result.stdout)
        return f"{outcome}; {case.command[0]}: exit {result.exit_code}"

    def _change(self, case: Case, path: Path, files: dict[str, bytes], rng: random.Random) -> None:
        content = files[case.file]
        match case.how:
            case "bytes":
                path.write_bytes(damage(rng, content, [*BYTES, b"NaN", b"1e999", b"null", b"[", b"{", b'"']))
            case "gone":
                path.unlink()
            case "empty":
                path.write_bytes(b"")
            case "folder" | "link":
                path.unlink()
                if case.how == "folder":
                    path.mkdir()
                else:
                    path.symlink_to(rng.choice([path, "/dev/zero", "/nowhere", "/"]))
            case "another":
                path.write_bytes(files[rng.choice(sorted(files))])
            case "meaning":
                path.write_bytes(_other_meaning(rng, content))
            case "array":
                self._other_array(rng, path)
            case "resealed":
                path.write_bytes(_resealed(rng, case.file, content))
                self._seal_config()

    def _seal_config(self) -> None:
        info = self.directory / "run.json"
        if info.is_file() and (self.directory / "config.yaml").is_file():
            content, _ = unseal(info.read_bytes())
            digest = hashlib.sha256((self.directory / "config.yaml").read_bytes()).hexdigest()
            info.write_bytes(seal({**content, "config_sha256": digest}))

    def _other_array(self, rng: random.Random, path: Path) -> None:
        array, info = rng.choice(ARRAYS), self.directory / "run.json"
        name = path.relative_to(self.directory).with_suffix("").as_posix()
        writer = ArrayWriter(path, array.shape[1:], array.dtype, f"{'ab' * 32} {name}")
        writer.append(array)
        writer.close()
        if not info.is_file():
            return
        content, _ = unseal(info.read_bytes())
        if isinstance(content.get("rows"), dict):
            content["rows"][name] = len(array)
            content.pop("crc32", None)
            info.write_bytes(seal(content))

    def describe(self, case: Case) -> str:
        changed = self.directory / case.file
        now = changed.read_bytes()[:3000] if changed.is_file() and not changed.is_symlink() else b""
        return f"{case.template} {case.file} {case.how}; {' '.join(case.command)}\n{now!r}"


def _write_run(directory: Path, config_file: Path, *, finish: bool) -> None:
    """Write a run of six states and losses as training does."""
    config = load_config(config_file)
    with RunWriter.create(directory, config, {"hash": "ab" * 32, "device": "cpu", "backend": "compiled"}) as writer:
        for i in range(6):
            weights = np.sin(np.arange(8.0) + i).reshape(4, 2).astype(np.float32)
            writer.append_losses([i], [1 / (i + 1)])
            parameters = {"hidden_weight": weights[None], "output_weight": weights[None, :, 0]}
            writer.append_snapshots([i], parameters, {"weight_norm": np.array([float(i)])})
            if i in (3, 4):
                writer.checkpoint({"w": weights}, {"iteration": i})
        if finish:
            writer.finish("complete", iterations=5, final_loss=1 / 6, seconds=0.1)


def _look(directory: Path) -> None:
    """Use everything that a run has."""
    run = load_run(directory)
    _ = (repr(run), run.config, run.hash, run.finished, run.iterations, run.final_loss, run.times)
    for array in (
        run.losses,
        run.loss_iterations,
        run.snapshot_iterations,
        *run.parameters.values(),
        *run.measures.values(),
    ):
        _ = float(np.nansum(np.asarray(array, dtype=np.float64)[:1]))
    for k in range(min(len(run.snapshot_iterations), 2)):
        run.state(k)
    if len(run.snapshot_iterations):
        run.index_of(3)


def _look_at_replicas(directory: Path) -> None:
    for run in replicas_of(load_run(directory)):
        _ = (repr(run), run.config, run.iterations, run.final_loss, run.status)
        _ = [
            len(array) for array in (run.losses, run.loss_iterations, *run.parameters.values(), *run.measures.values())
        ]


def _places(data: Any) -> Iterator[tuple[Any, Any]]:
    for key, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield data, key
        yield from _places(value)


def _other_meaning(rng: random.Random, content: bytes) -> bytes:
    """Return a JSON file with some entries changed, sealed as the program seals it."""
    data, _ = unseal(content)
    for _ in range(rng.randint(1, 3)):
        holder, key = rng.choice(list(_places(data)) or [(data, "x")])
        match rng.randrange(4):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[rng.choice(["rows", "replicas", "messages", "checksum", "format", "x", "../x", "crc32"])] = (
                    copy.deepcopy(rng.choice(VALUES))
                )
            case _:
                holder[key] = copy.deepcopy(rng.choice(VALUES))
    return seal(jsonable(data), indent=rng.choice([2, None]))


def _resealed(rng: random.Random, file: str, content: bytes) -> bytes:
    if file == "config.yaml":
        return damage(
            rng,
            content,
            [*BYTES, *(f" {text}".encode(errors="surrogatepass") for text in nasty.SCALARS if len(text) < 100)],
        )
    meta: dict[str, Any] = {"meta": {"iteration": 4}, "rows": {"losses": 4}, "owner": None}
    holder, key = rng.choice(list(_places(meta)))
    holder[key] = copy.deepcopy(rng.choice(VALUES))
    parts: dict[str, bytes] = {"meta.json": json.dumps(meta).encode(), "w.npy": rng.choice(_members())}
    parts.pop(rng.choice(["meta.json", "w.npy", ""]), None)
    body = archive(parts)[:-2] + b"\x08\0"  # the length of the comment, which is the checksum
    return body + f"{zlib.crc32(body):08x}".encode()


def _members() -> list[bytes]:
    from tests.fuzz.arrays import HEADERS, X, npy

    return [X, b"", b"{}", *(npy(header, bytes(72)) for header in HEADERS)]
