"""Kernels compiled in this very process, against the same kernels loaded from the cache: the same
bits.

A run may begin in the process that compiles its kernel and be resumed in one that loads it.
"""

import errno
import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba.core.caching import IndexDataCacheFile

from dynamics_cli.formulas import compiling, native, units
from tests.cases import read
from tests.runs.damage import DAMAGES, arrays_of

BASE = read("""
architecture: {kind: two_layer, width: 20}
initialization: {kind: balanced, scale: 0.1}
loss: {kind: logistic}
optimizer: {kind: gd, lr: 0.01, iterations: 100}
backend: compiled
""")
RUNS = read("""
few:
  dataset: {kind: mnist_pair, digits: [1, 0], source: subset, test: false, per_class: 50}
dense:
  dataset: {kind: points, x: [[1.0, 0.5], [-0.5, 1.0], [0.3, -2.0]], y: [1.0, -1.0, 1.0]}
leaky:
  dataset: {kind: mnist_pair, digits: [1, 0], source: subset, test: false, per_class: 50}
  architecture: {kind: two_layer, width: 20, activation: leaky_relu, slope: 0.3}
loss-scaled:
  dataset: {kind: mnist_pair, digits: [1, 0], source: subset, test: false, per_class: 50}
  optimizer: {kind: gd, lr: 0.001, iterations: 100, loss_scaled: true}
double:
  dataset: {kind: mnist_pair, digits: [1, 0], source: subset, test: false, per_class: 50}
  dtype: float64
sgd:
  dataset: {kind: mnist_pair, digits: [1, 0], source: subset, test: false, per_class: 50}
  optimizer: {kind: sgd, lr: 0.01, batch_size: 7, epochs: 20}
single-sample:
  dataset: {kind: mnist_pair, digits: [1, 0], source: subset, test: false, per_class: 50}
  optimizer: {kind: sgd, lr: 0.01, batch_size: 1, epochs: 3}
fresh:
  dataset: {kind: teacher, n: 20, dim: 30, architecture: {kind: two_layer, width: 2}}
  architecture: {kind: two_layer, width: 5, activation: erf}
  loss: {kind: mse}
  optimizer: {kind: sgd, lr: 0.01, iterations: 5000, samples: fresh}
deep:
  dataset: {kind: mnist_pair, digits: [1, 0], source: subset, test: false, per_class: 50}
  architecture: {kind: fully_connected, widths: [40, 30], activation: gelu}
  initialization: {kind: default_scaled}
  optimizer: {kind: adam, lr: 0.01, iterations: 30}
""")
REPLICAS = ("dense", "few", "sgd", "deep")
CASES = [*((name, 1) for name in RUNS), *((name, 5) for name in REPLICAS)]


def trained(folder, name, replicas, threads, cache):
    """Return the arrays that several seeds record in a process of its own, by path."""
    config = folder / f"{name}.json"
    out = folder / f"{threads}"
    config.write_text(json.dumps({"name": name, "seed": 0, **BASE, **RUNS[name]}))
    counts = dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), str(threads))
    command = [sys.executable, "-m", "dynamics_cli", "sweep", str(config), "--out", str(out)]
    subprocess.run(
        [*command, f"--seeds={replicas}", "--record=config", "--quiet"],
        env={**os.environ, **counts, "NUMBA_CACHE_DIR": str(cache)},
        check=True,
        capture_output=True,
    )
    return arrays_of(out)


@pytest.mark.parametrize(
    ("name", "replicas"),
    [
        case if case == ("single-sample", 1) else pytest.param(*case, marks=pytest.mark.long)
        for case in CASES
    ],
)
def test_a_fresh_kernel_has_the_bits_of_the_one_in_the_cache(name, replicas, tmp_path):
    cache = tmp_path / "cache"
    fresh = trained(tmp_path, name, replicas, 1, cache)
    assert list(cache.rglob("*.nbc"))
    loaded = trained(tmp_path, name, replicas, 2, cache)
    assert fresh.keys() == loaded.keys()
    assert [path for path in fresh if fresh[path] != loaded[path]] == []
    assert len(fresh) >= 4


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo terminals")
def test_a_terminal_is_told_of_compilation_once(tmp_path):
    import pty

    def said():
        ours, theirs = pty.openpty()
        code = "from dynamics_cli.gradients.engine.products import dots; dots('float64')"
        env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
        subprocess.run([sys.executable, "-c", code], env=env, check=True, stderr=theirs)
        os.write(theirs, b"end")
        text = ""
        while not text.endswith("end"):
            text += os.read(ours, 10_000).decode()
        os.close(ours)
        os.close(theirs)
        return text

    assert said() == "compiling kernels for this machine, which takes some seconds once\r\nend"
    assert said() == "end"


SMALL = "import numba\n\n@numba.njit(cache=True)\ndef f(x):\n    return x + 1.5\n"


@pytest.mark.parametrize("file", ["*.nbi", "*.nbc"], ids=["index", "code"])
@pytest.mark.parametrize("damage", ["empty", "a bit of the contents", "cut in half"])
def test_damaged_compiled_code_is_compiled_again(file, damage, tmp_path, monkeypatch, capsys):
    source = tmp_path / "small.py"
    source.write_text(SMALL)
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path / "cache"))

    def value():
        """Return f(2), how many functions came from the cache, and what was said, as a process
        of its own would.
        """
        monkeypatch.setattr(compiling, "_SAID", set())
        f = runpy.run_path(str(source))["f"]
        result = f(2.0)
        return result, sum(f.stats.cache_hits.values()), capsys.readouterr().err

    assert value() == (3.5, 0, "")
    assert value() == (3.5, 1, "")
    (kept,) = (tmp_path / "cache").rglob(file)
    kept.write_bytes(DAMAGES[damage](kept.read_bytes(), kept) or b"")
    result, hits, said = value()
    assert (result, hits) == (3.5, 0)
    assert said == f"compiled code in {kept.parent} is damaged: it is compiled again\n"
    assert value() == (3.5, 1, "")


@pytest.mark.parametrize("why", ["", " (No space left on device)"])
def test_compiled_code_that_cannot_be_kept_costs_time_alone(why, tmp_path, monkeypatch, capsys):
    """Neither the code of a function nor the source and the code of a unit."""

    def full(*arguments, **options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    source = tmp_path / "small.py"
    source.write_text(SMALL)
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(compiling, "_SAID", set())
    monkeypatch.setattr(units, "cache_folder", compiling.cache_folder.__wrapped__)
    if why:
        monkeypatch.setattr(IndexDataCacheFile, "save", full)
        monkeypatch.setattr(Path, "write_text", full)
    else:  # no directory can be made below a file, not even by an administrator
        (tmp_path / "cache").touch()
        monkeypatch.setattr("numba.core.config.CACHE_LOCATOR_CLASSES", "UserProvidedCacheLocator")
    assert runpy.run_path(str(source))["f"](2.0) == 3.5
    text = "def first(z: Reals) -> float:\n    return z[0]\n"
    unit = units._compiled.__wrapped__(np.dtype("float64"), text, 0)
    assert unit.call(native.address_of(np.array([2.5]))) == 2.5
    assert capsys.readouterr().err.count(f"compiled kernels cannot be kept{why}, so") == 1
