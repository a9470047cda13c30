"""The same commands in two processes that differ in everything but the machine write the same
bytes.

What may differ is named in `MAY_DIFFER`, and said in docs/how-to/reproducibility.md; all other
bytes are compared.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from dynamics_cli.runs.verify import verify_run
from tests.cases import read

from .conftest import environment

SCRIPT = Path(__file__).with_name("determinism_script.py")

MAY_DIFFER = {
    "run.json": {"provenance", "versions", "threads", "seconds", "config_sha256", "checksum"},
    "figure": {"provenance", "checksum"},
    "sweep.json": {"checksum", "code"},
}
"""Keys of JSON documents that tell when, where and how fast. `config.yaml`, whose SHA-256 is left
out, and `sweep.json` hold absolute paths of data files.
"""
UNCOMPARED = (".lock", ".dyn.jsonl")
"""Manifests have the checksums of files that tell when they were written."""
RC = (
    "font.size: 20\nsvg.hashsalt: other\npdf.fonttype: 3\npdf.compression: 1\nlines.antialiased:"
    " False\n"
)


@dataclass(frozen=True)
class World:
    """Where and under which circumstances commands run."""

    folder: Path
    umask: str
    call_seconds: float
    variables: dict[str, str]

    def make(self, files):
        """Make the working directory, with these files in it."""
        self.folder.mkdir(parents=True)
        for name, text in files.items():
            (self.folder / name).write_text(text, encoding="utf-8")
        return self

    def run(self, commands):
        """Run the commands in a process of their own."""
        home = {"HOME": str(self.folder / "home"), "MPLCONFIGDIR": str(self.folder / "matplotlib")}
        done = subprocess.run(
            [
                sys.executable,
                str(SCRIPT),
                self.umask,
                str(self.call_seconds),
                json.dumps(list(commands)),
            ],
            cwd=self.folder,
            env=environment(**home, **self.variables),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    def files(self):
        """Everything below `outputs` and what of it must be the same elsewhere, by path."""
        root = self.folder / "outputs"
        found = {
            str(path.relative_to(root)): path for path in sorted(root.rglob("*")) if path.is_file()
        }
        return {
            name: self._essence(path) for name, path in found.items() if path.name not in UNCOMPARED
        }

    def _essence(self, path):
        data = path.read_bytes()
        if path.suffix == ".yaml":  # a path with a space in it is quoted
            data = json.dumps(yaml.safe_load(data)).encode()
        if path.suffix in (".json", ".yaml"):
            data = data.replace(json.dumps(str(self.folder)).strip('"').encode(), b"FOLDER")
        if path.name in ("run.json", "sweep.json"):
            return _without(data, MAY_DIFFER[path.name])
        if path.suffix == ".json" and path.parent.name == "figures":
            return _without(data, MAY_DIFFER["figure"])
        return data


def worlds(root, files):
    """Two worlds that have nothing in common but the machine, the program and `files`."""
    plain = {"PYTHONHASHSEED": "1", "TZ": "UTC", "LC_ALL": "C.UTF-8"}
    odd = {
        "PYTHONHASHSEED": "4242",
        "TZ": "Pacific/Apia",
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "COLUMNS": "60",
        "SOURCE_DATE_EPOCH": "86400",
    }
    a = World(root / "a", "022", 0.002, plain).make(files)
    b = World(root / "elsewhere" / "with a space", "077", 10.0, odd).make(
        {**files, "matplotlibrc": RC}
    )
    return a, b


def _without(data, keys):
    document = json.loads(data)
    for key in keys:
        document.pop(key, None)
    return json.dumps(document, indent=1).encode()


def assert_same(a, b):
    """Assert that both worlds hold the same files with the same contents; return their names."""
    first = a.files()
    second = b.files()
    assert list(first) == list(second)
    assert [name for name in first if first[name] != second[name]] == []
    for world in (a, b):
        for path in world.folder.rglob("run.json"):
            assert verify_run(path.parent) == [], path
    return list(first)


BASE = read("""
dataset:
  kind: points
  x: [[-1.5], [-1.0], [0.0], [0.25], [2.0]]
  y: [0.7, -0.3, -0.3, 0.4, 0.2]
  append_bias: true
architecture: {kind: two_layer, width: 20}
initialization: {kind: balanced, scale: 0.1}
loss: {kind: mse}
optimizer: {kind: gd, lr: 0.01, iterations: 200}
record:
  snapshots: {kind: geometric, ratio: 1.2}
""")
RUNS = read("""
compiled:
  loss: {kind: logistic}
  dataset:
    kind: points
    x: [[1.0, 0.2], [0.8, 1.0], [-1.0, 0.1], [-0.9, -1.0]]
    y: [1, 1, -1, -1]
    x_test: [[1, 0.5]]
    y_test: [1]
compiled-sgd:
  optimizer: {kind: sgd, lr: 0.01, batch_size: 2, epochs: 30}
span:
  dataset: {kind: sphere_teacher, n: 3, dim: 6}
wide:
  architecture: {kind: two_layer, width: 20000}
  initialization: {kind: balanced, scale: 0.1, divide_by: sqrt_width}
flow:
  optimizer: {kind: gradient_flow, until: 5.0, points: 50}
  dtype: float64
file:
  dataset: {kind: file, path: data.csv, test_fraction: 0.25}
  optimizer: {kind: gd, lr: 0.0001, iterations: 200}
autograd:
  backend: torch
  optimizer: {kind: gd, lr: 0.001, iterations: 40, loss_scaled: true}
autograd-sgd:
  backend: torch
  optimizer: {kind: sgd, lr: 0.01, batch_size: 2, epochs: 30}
adam:
  initialization: {kind: default_scaled}
  record: {snapshots: {kind: every, interval: 10}}
  architecture: {kind: fully_connected, widths: [8, 8]}
  optimizer: {kind: adam, lr: 0.001, iterations: 40, batch_size: 3}
deep-flow:
  initialization: {kind: default_scaled}
  record: {snapshots: {kind: every, interval: 10}}
  architecture: {kind: fully_connected, widths: [4], activation: linear}
  optimizer: {kind: gradient_flow, until: 1.0, points: 20}
  dtype: float64
convolutional:
  initialization: {kind: default_scaled}
  record: {snapshots: {kind: every, interval: 10}}
  dataset: {kind: mnist_pair, digits: [1, 0], source: subset, per_class: 20, test_per_class: 10}
  architecture: {kind: convolutional, convolutions: [[4, 3, 1, 1], [4, 4, 2, 1]], widths: [8]}
  loss: {kind: logistic}
  optimizer: {kind: adam, lr: 0.001, iterations: 40, batch_size: 7}
gan:
  initialization: {kind: default_scaled}
  record: {snapshots: {kind: every, interval: 10}}
  dataset: {kind: mixture, n: 60}
  architecture: {kind: gan, noise_dim: 2, generator_widths: [8], discriminator_widths: [8]}
  loss: {kind: hinge}
  optimizer: {kind: adam, lr: 0.001, iterations: 40, batch_size: 7}
""")
"""A run for every stepper, with every kind of optimizer and network."""
DATA = "x1,x2,y\n" + "".join(f"{k},{k * k % 7},{k % 3}\n" for k in range(12))
FILES = {
    f"{name}.json": json.dumps({"name": name, **BASE, **run}) for name, run in RUNS.items()
} | {"data.csv": DATA}


def trained(name):
    return ["train", f"{name}.json", "--quiet", "--out", f"outputs/runs/{name}"]


def pictures(name, *options, formats=("png", "pdf", "svg")):
    chosen = [part for kind in formats for part in ("--format", kind)]
    return [
        "plot",
        f"outputs/runs/{name}",
        *options,
        "--out",
        f"outputs/pictures/{name}",
        "--quiet",
        *chosen,
    ]


def sweep(name, *options):
    return ["sweep", f"{name}.json", "--quiet", "--out", f"outputs/sweeps/{name}", *options]


def reproduced(figure, formats=("png", "pdf")):
    return [
        "reproduce",
        figure,
        "--quiet",
        *(part for kind in formats for part in ("--format", kind)),
    ]


GRID = (
    "--grid",
    "initialization.scale=0.1,0.3",
    "--grid",
    "architecture.width=4,8",
    "--seeds",
    "2",
)


def counts(names):
    endings = [Path(name).suffix for name in names]
    return {ending: endings.count(ending) for ending in sorted(set(endings))}


@pytest.mark.parametrize(
    "names", [("compiled", "file"), pytest.param(tuple(RUNS), marks=pytest.mark.long)]
)
def test_runs_their_pictures_and_figures(names, tmp_path):
    a, b = worlds(tmp_path, FILES)
    runs = [trained(name) for name in names]
    others = [
        pictures("compiled", "--panel", "loss", "--panel", "rays"),
        sweep("compiled", *GRID),
        reproduced("tachet2018-table1"),
    ]
    a.run([*runs, *others])
    b.run([*reversed(runs), *reversed(others)])
    found = counts(assert_same(a, b))
    assert (found[".pdf"], found[".png"], found[".svg"], found[".csv"]) == (3, 3, 2, 2)


@pytest.mark.long
def test_threads_do_not_change_what_the_compiled_kernels_compute(tmp_path):
    names = ["compiled", "compiled-sgd", "chunks", "span", "wide", "flow"]
    chunks = read(
        """
name: chunks
backend: compiled
loss: {kind: logistic}
dataset: {kind: mnist_pair, digits: [1, 0], source: subset, per_class: 300, test: false}
""",
        BASE,
    )
    a, b = worlds(tmp_path, {**FILES, "chunks.json": json.dumps(chunks)})
    commands = [*map(trained, names), sweep("compiled", *GRID)]
    for world, threads in ((a, "1"), (b, "2")):
        world.variables.update(OMP_NUM_THREADS=threads, NUMBA_NUM_THREADS=threads)
        world.run(commands)
    assert_same(a, b)
