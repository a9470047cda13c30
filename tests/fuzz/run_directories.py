"""Run directories whose files were changed: in their bytes, or in their meaning with checksums that fit."""

from __future__ import annotations

import copy
import hashlib
import json
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import strategies as st

from dynamics_cli.cli import main
from dynamics_cli.config import load_config
from dynamics_cli.errors import DynError
from dynamics_cli.reproduction.document import verify_figure
from dynamics_cli.runs import RunWriter, load_run, runs_root
from dynamics_cli.runs.replica import replicas_of
from dynamics_cli.runs.store.arrays import ArrayWriter
from dynamics_cli.runs.store.sealed import seal, unseal
from dynamics_cli.text import jsonable
from tests.fuzz import nasty
from tests.fuzz.arrays import HEADERS, X, archive, npy
from tests.fuzz.rooms import Room, refused
from tests.fuzz.strategies import BYTES, damaged

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
    ["compare", "RUN", "RUN"],
    ["verify", "RUN"], ["list", "sweeps"], ["plot", "RUN", "--panel", "curve"],
]  # fmt: skip


Files = dict[str, bytes]


class Case(NamedTuple):
    """A run directory of which one file is changed, and the command that looks at it."""

    template: str
    file: str
    change: bytes | np.ndarray | str | None
    """Its bytes, the array that it holds, where a link in its place points to (`folder`: a folder), or None: gone."""
    command: list[str]
    resealed: bool = False
    """Whether `run.json` has the checksum of the changed config."""


@st.composite
def changes(draw: st.DrawFn, templates: dict[str, Files]) -> Case:
    """Draw a case: a file whose bytes are changed, or its meaning with checksums that fit."""
    template = draw(st.sampled_from(["complete", *templates]))
    files = templates[template]
    file, command = draw(st.sampled_from(sorted(files))), draw(st.sampled_from(COMMANDS))
    ways: list[st.SearchStrategy[Any]] = [
        damaged([files[file]], [*BYTES, b"NaN", b"1e999", b"null", b"[", b"{", b'"']),
        st.none() | st.just(b"") | st.sampled_from(["folder", "itself", "/dev/zero", "/nowhere", "/"]),
        st.sampled_from(sorted(files)).map(files.__getitem__),
    ]
    if file.endswith(".json"):
        ways += [_other_meaning(files[file])] * 4
    elif file.endswith(".npy"):
        ways += [st.sampled_from(ARRAYS)] * 3
    elif file == "config.yaml":
        scalars = [f" {text}".encode(errors="surrogatepass") for text in nasty.SCALARS if len(text) < 100]
        ways += [damaged([files[file]], [*BYTES, *scalars])] * 4
    elif file == "checkpoint.npz":
        ways += [_other_checkpoint()] * 4
    return Case(template, file, draw(st.sampled_from(ways).flatmap(lambda way: way)), command, draw(st.booleans()))


def room(place: Path, patch: pytest.MonkeyPatch) -> Room:
    """Complete and unfinished runs, replicas, the directory of a sweep, and that of a figure."""
    import matplotlib.figure  # noqa: F401 - what a command may import is in memory before the limits are set

    import dynamics_cli.analysis
    import dynamics_cli.sweeps.pictures  # noqa: F401

    config, directory = place / "toy.yaml", runs_root() / "toy"
    config.write_text(nasty.WHOLE.replace("width: 8", "width: 4"))
    templates: dict[str, Files] = {}

    def take(name: str) -> None:
        found = {str(p.relative_to(directory)): p.read_bytes() for p in directory.rglob("*") if p.is_file()}
        templates[name] = {name: data for name, data in found.items() if not name.endswith(("lock", "lock.json"))}
        shutil.rmtree(directory)

    for name in ("complete", "unfinished"):
        _write_run(directory, config, finish=name == "complete")
        take(name)
    for name, begin in (
        ("replicas", ["train", str(config), "--replicas", "2"]),
        ("sweep", ["sweep", str(config), "--grid=optimizer.lr=0.1,0.2", "--let=initialization.scale=optimizer.lr"]),
        ("figure", ["reproduce", "boursier2022-fig2", "--format", "png"]),
    ):
        more = ["--set", "optimizer.iterations=5", "--out", str(directory), "--quiet"]
        result = CliRunner().invoke(main, [*begin, *more])
        assert result.exit_code == 0, result.stderr
        take(name)

    def look(case: Case) -> str:
        shutil.rmtree(runs_root(), ignore_errors=True)
        for name, content in templates[case.template].items():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_bytes(content)
        _change(directory, case)
        try:
            LOOKS.get(case.template, _look)(directory)
            answer = "read"
        except DynError as error:
            answer = refused(error, CODES)
        arguments = [text.replace("RUN", str(directory)) for text in case.command]
        result = CliRunner().invoke(main, arguments)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code in (0, *CODES), result.exit_code
        assert result.exit_code == 0 or result.stderr.strip()
        if result.exit_code == 0 and "--json" in arguments:
            json.loads(result.stdout)
        return f"{answer}; {case.command[0]}: exit {result.exit_code}"

    return Room(changes(templates), look, seconds=15.0, memory=2**30)


def _change(directory: Path, case: Case) -> None:
    path, info = directory / case.file, directory / "run.json"
    match case.change:
        case bytes(data):
            path.write_bytes(data)
        case np.ndarray() as array:
            name = path.relative_to(directory).with_suffix("").as_posix()
            writer = ArrayWriter(path, array.shape[1:], array.dtype, f"{'ab' * 32} {name}")
            writer.append(array)
            writer.close()
            if info.is_file() and isinstance((content := unseal(info.read_bytes())[0]).get("rows"), dict):
                content["rows"][name] = len(array)
                content.pop("crc32", None)
                info.write_bytes(seal(content))
        case target:
            path.unlink()
            if target == "folder":
                path.mkdir()
            elif target is not None:
                path.symlink_to(path if target == "itself" else target)
    if case.resealed and case.file == "config.yaml" and path.is_file() and info.is_file():
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        info.write_bytes(seal({**unseal(info.read_bytes())[0], "config_sha256": digest}))


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


def _look_at_figure(directory: Path) -> None:
    for file in directory.glob("*.json"):
        verify_figure(file)


LOOKS = {"replicas": _look_at_replicas, "figure": _look_at_figure}


def places(data: Any) -> Iterator[tuple[Any, Any]]:
    for key, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield data, key
        yield from places(value)


@st.composite
def _other_meaning(draw: st.DrawFn, content: bytes) -> bytes:
    """Draw a JSON file with some entries changed, sealed as the program seals it."""
    data, _ = unseal(content)
    names = ["rows", "replicas", "messages", "checksum", "format", "x", "../x", "crc32"]
    for _ in range(draw(st.integers(1, 3))):
        holder, key = draw(st.sampled_from(list(places(data)) or [(data, "x")]))
        way, value = draw(st.sampled_from(["gone", "more", "other", "other"])), draw(st.sampled_from(VALUES))
        if way == "gone":
            holder.pop(key, None) if isinstance(holder, dict) else holder.pop(key)
        else:
            name = draw(st.sampled_from(names)) if way == "more" and isinstance(holder, dict) else key
            holder[name] = copy.deepcopy(value)
    return seal(jsonable(data), indent=draw(st.sampled_from([2, None])))


@st.composite
def _other_checkpoint(draw: st.DrawFn) -> bytes:
    """Draw a checkpoint of another meaning, or with odd arrays, under a checksum that fits."""
    meta: dict[str, Any] = {"meta": {"iteration": 4}, "rows": {"losses": 4}, "owner": None}
    holder, key = draw(st.sampled_from(list(places(meta))))
    holder[key] = copy.deepcopy(draw(st.sampled_from(VALUES)))
    arrays = [X, b"", b"{}", *(npy(header, bytes(72)) for header in HEADERS)]
    parts: Files = {"meta.json": json.dumps(meta).encode(), "w.npy": draw(st.sampled_from(arrays))}
    parts.pop(draw(st.sampled_from(["meta.json", "w.npy", ""])), None)
    body = archive(parts)[:-2] + b"\x08\0"  # the length of the comment, which is the checksum
    return body + f"{zlib.crc32(body):08x}".encode()
