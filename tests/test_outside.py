"""Kinds and papers of others, as the handbook tells a stranger to bring them: files, folders,
installed packages.
"""

import errno
import json
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from pydantic import ValidationError

from dynamics_cli import load_run
from dynamics_cli.cli import main
from dynamics_cli.config import RunConfig, load_config
from dynamics_cli.errors import InputError, RunError
from dynamics_cli.kinds.registry import SECTIONS
from dynamics_cli.losses.squared import Mse
from dynamics_cli.recording.measures import measure_of
from dynamics_cli.templates import new_paper
from dynamics_cli.training import loop
from tests.cases import read
from tests.runs.damage import arrays_of

from .conftest import stranger_to_kinds

ROOT = Path(__file__).parents[1]
SHOWN = dict(
    re.findall(
        r"```\{code-block\} \w+\n:caption: (\S+)\n\n(.*?)```",
        (ROOT / "docs/how-to/own-kinds.md").read_text(encoding="utf-8"),
        re.DOTALL,
    )
)
PARTS = SHOWN["my_parts.py"]
CONFIG = SHOWN["my.yaml"]


def dyn(*arguments, cwd, code=0, python=""):
    """Call `dyn` as if in a process of its own: nothing is known of earlier calls; really in one
    of `python`.
    """
    with stranger_to_kinds() as patch:
        for name in ("DYN_WITH", "DYN_OUTPUTS"):
            patch.delenv(name, raising=False)
        if python:
            command = [python, "-m", "dynamics_cli", *arguments]
            done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)
            assert done.returncode == code, done.stderr
            return done
        patch.chdir(cwd)
        try:
            called = CliRunner().invoke(main, arguments)
        except Killed:
            return None
    if called.exception is not None and not isinstance(called.exception, SystemExit):
        raise called.exception
    assert called.exit_code == code, called.stderr
    return called


@pytest.fixture
def stranger(tmp_path):
    """A folder with the two files that the handbook shows."""
    (tmp_path / "my_parts.py").write_text(PARTS)
    (tmp_path / "my.yaml").write_text(CONFIG)
    return tmp_path


class Killed(BaseException):
    """Ends a training as SIGKILL does: nothing is written after it."""


def kill(self, chunk):
    if self.stepper.iteration >= 1000:
        raise Killed
    return ADVANCE(self, chunk)


ADVANCE = loop.TrainingLoop._advance


def test_a_strangers_file(stranger, monkeypatch):
    train = ["--with", "my_parts.py", "train", "my.yaml", "--set", "optimizer.iterations=3000"]
    dyn(*train, "--out", "whole", "-q", cwd=stranger)
    with monkeypatch.context() as patch:
        patch.setattr(loop, "_next_chunk", lambda *_: 70)
        patch.setattr(loop, "CHECKPOINT_SECONDS", -1.0)
        patch.setattr(loop.TrainingLoop, "_advance", kill)
        assert dyn(*train, "--out", "cut", "-q", cwd=stranger) is None
    assert json.loads((stranger / "cut" / "run.json").read_text())["status"] == "running"
    # gone: the run is shown, drawn and verified, but not gone on with
    assert "circle" in dyn("show", "cut", cwd=stranger).stdout
    dyn("plot", "whole", "--panel", "loss", cwd=stranger)
    dyn("verify", "cut", cwd=stranger)
    gone = dyn("train", "cut/config.yaml", "--out", "cut", "--resume", code=3, cwd=stranger).stderr
    assert "unknown kind 'huber'" in gone
    assert "--with" in gone
    # changed: refused; the same code goes on, bit for bit
    (stranger / "my_parts.py").write_text(PARTS.replace("self.delta / 2", "self.delta / 2.0"))
    changed = dyn(*train, "--out", "cut", "--resume", code=2, cwd=stranger)
    assert "holds a run of another config" in changed.stderr
    (stranger / "my_parts.py").write_text(PARTS)
    dyn(*train, "--out", "cut", "--resume", "-q", cwd=stranger)
    assert arrays_of(stranger / "cut") == arrays_of(stranger / "whole")
    assert np.load(stranger / "cut" / "measures" / "travel.npy")[-1] > 0
    # a copy that was touched is found
    copy = next((stranger / "cut" / "parts").rglob("my_parts.py"))
    copy.write_text(copy.read_text() + "\n")
    assert "copied source" in dyn("verify", "cut", code=7, cwd=stranger).stdout


def test_jobs_of_a_sweep_are_read_without_their_code(stranger, monkeypatch):
    """Shown, drawn, compared; what needs the code says how it is loaded."""
    short = ("--set", "optimizer.iterations=20", "--grid", "loss.delta=0.1,1", "--seeds", "2", "-q")
    dyn("--with", "my_parts.py", "sweep", "my.yaml", *short, "--workers", "1", cwd=stranger)
    assert "rademacher" in dyn("show", "latest:0", cwd=stranger).stdout
    dyn("plot", "latest:0", "--panel", "measures", cwd=stranger)
    assert "travel" in dyn("compare", "latest:0", "latest:1", cwd=stranger).stdout
    told = dyn("plot", "latest:0", "--theory", code=3, cwd=stranger).stderr
    assert "is not loaded" in told
    assert "`dyn.use(PATH)` in Python" in told
    monkeypatch.chdir(stranger)
    monkeypatch.delenv("DYN_OUTPUTS", raising=False)
    run = load_run("latest:0")
    assert run.config.loss == {"kind": "huber", "reduction": "mean", "delta": 0.1}
    with pytest.raises(InputError, match="architecture.kind 'wide' is not loaded"):
        run.network(0)


BROKEN = {
    "activation": ("formulas.tanh(z)", "z if z > 0 else -z", "it_is_a_formula"),
    "loss": ("formulas.where(", "(lambda this, a, b: a if this else b)(", "it_is_a_formula"),
    "optimizer": (
        "return w",
        "_kept.append(w)\n        return len(_kept) * w",
        "it_goes_on_from_a_checkpoint",
    ),
}


def test_all_templates_run_as_they_are_and_their_tests_find_what_can_go_wrong(tmp_path):
    for section in SECTIONS:
        dyn("new", "kind", section, f"my_{section}", cwd=tmp_path)
    told = dyn("new", "kind", "measure", "my_measure", code=2, cwd=tmp_path).stderr
    assert "there is no" not in told
    dyn("new", "paper", "mine2026", cwd=tmp_path)
    (tmp_path / "stranger").mkdir()
    (tmp_path / "stranger" / "__init__.py").touch()
    dyn("new", "paper", "inner2026", cwd=tmp_path / "stranger")
    for section, (right, wrong, _) in BROKEN.items():
        dyn("new", "kind", section, f"broken_{section}", cwd=tmp_path)
        file = tmp_path / f"broken_{section}.py"
        file.write_text(file.read_text().replace(right, wrong) + "\n\n_kept = []\n")

    tests = sorted(map(str, tmp_path.rglob("test_*.py")))
    assert len(tests) == len(SECTIONS) + 2 + len(BROKEN)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "--rootdir", str(tmp_path), *tests],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    failed = re.findall(r"^FAILED (\S+)", done.stdout, re.MULTILINE)
    assert {name.partition("_")[2][:6] for name in failed} == {"broken"}, done.stdout
    for section, (*_, test) in BROKEN.items():
        name = f"test_broken_{section}.py::test_{test}"
        assert any(one.startswith(name) for one in failed)
    assert " error" not in done.stdout.splitlines()[-1]
    assert "mine2026-fig1" in dyn("--with", "mine2026", "list", "figures", cwd=tmp_path).stdout


@pytest.mark.parametrize("name", ["a" * 300, "Upper", "1st", "class", "über"])
def test_a_name_that_no_kind_can_have(name, tmp_path):
    assert (
        "must be a name in at most 60"
        in dyn("new", "kind", "measure", name, code=2, cwd=tmp_path).stderr
    )
    assert "must be a name in at most 60" in dyn("new", "paper", name, code=2, cwd=tmp_path).stderr


RELATIVES = """\
from dynamics_cli._bundled.experiments.tachet2018.architectures.gan import Gan
from dynamics_cli.architectures.two_layer import TwoLayer
from dynamics_cli.datasets.algorithmic import ModularArithmetic
from dynamics_cli.kinds import Activation, Loss
from dynamics_cli.optimizers.descent import GradientDescent

class MyGan(Gan, kind="my_gan"):
    pass
class Same(Activation, kind="same"):
    def value(self, z): return z
class MyModular(ModularArithmetic, kind="my_modular"):
    pass
class MyTwo(TwoLayer, kind="my_two"):
    pass
class MyGd(GradientDescent, kind="my_gd"):
    pass
class MyLoss(Loss, kind="my_loss"):
    vector_labels = True
    def values(self, h, y):
        squares = 0.5 * (h - y) ** 2
        return squares.sum(-1) if y.ndim == 2 else squares
"""
GD = {"kind": "gd", "lr": 0.01, "iterations": 20}
MODES = read("""
dataset: {kind: linear_map, inputs: 4, outputs: 4, singular_values: [2.0, 1.0], n: 8}
architecture: {kind: fully_connected, widths: [4], outputs: 4, activation: linear, bias: false}
initialization: {kind: decoupled, scale: 0.1}
""")
GAN = read("""
dataset: {kind: mixture, modes: 4, radius: 1.0, deviation: 0.1, n: 50}
architecture: {kind: my_gan, noise_dim: 3, generator_widths: [5], discriminator_widths: [6]}
initialization: {kind: default_scaled}
loss: {kind: logistic}
optimizer: {kind: adam, lr: 0.01, batch_size: 8, iterations: 20}
""")
SAME = """
architecture: {kind: fully_connected, widths: [4], outputs: 4, activation: same, bias: false}
record: {measures: [{kind: singular_values, layer: end_to_end, top: 2}]}
"""
MODULAR = read("""
dataset: {kind: my_modular, p: 5}
architecture: {kind: two_layer, width: 8, activation: quadratic, outputs: 5}
initialization: {kind: default_scaled}
record: {measures: [fourier_concentration]}
""")
TWO = read("""
dataset: {kind: points, x: [[1.0, 0.5], [0.2, -1.0]], y: [1.0, -1.0]}
architecture: {kind: my_two, width: 6}
initialization: {kind: balanced, scale: 0.1}
""")
DESCENT = """
architecture: {kind: two_layer, width: 2, activation: tanh}
initialization: {kind: unbalanced, scale: 0.5}
optimizer: {kind: my_gd, lr: 0.01, iterations: 20}
record: {measures: [sharpness]}
"""
AS_BUNDLED = {
    "my_gan": ("gan", GAN),
    "same": ("linear", read(SAME, MODES)),
    "my_modular": ("modular_arithmetic", MODULAR),
    "my_two": ("two_layer", TWO),
    "my_loss": ("half_mse", read("loss: {kind: my_loss}", MODES)),
    "my_gd": ("gd", read(DESCENT, TWO)),
}
"""A kind from outside -> the bundled kind whose rights it has, and a config."""
PREDICTED = {"same": "deep_modes", "my_loss": "deep_modes", "my_gd": "central_flow"}
"""A kind from outside -> a theory that predicts its run."""


@pytest.mark.parametrize("own", AS_BUNDLED)
def test_a_relative_of_a_bundled_kind_has_its_rights(own, tmp_path):
    """Trained by itself and in a sweep, with the measures and the initialisation of the other."""
    bundled, sections = AS_BUNDLED[own]
    (tmp_path / "relatives.py").write_text(RELATIVES)
    config = {"name": "own", "backend": "torch", "loss": {"kind": "mse"}, "optimizer": GD}
    text = json.dumps({**config, **sections})
    (tmp_path / "own.json").write_text(text)
    (tmp_path / "other.json").write_text(text.replace(f'"{own}"', f'"{bundled}"'))
    for name in ("own", "other"):
        dyn("--with", "relatives.py", "train", f"{name}.json", "--out", name, cwd=tmp_path)
    grid = ("--grid", "optimizer.lr=0.01,0.02", "--out", "sweep")
    dyn("--with", "relatives.py", "sweep", "own.json", *grid, cwd=tmp_path)
    arrays = arrays_of(tmp_path / "own")
    assert arrays
    for name, array in arrays_of(tmp_path / "other").items():
        np.testing.assert_array_equal(arrays[name], array)
    if theory := PREDICTED.get(own):
        plot = ("plot", "--theory", "--json", "--out", "drawn")
        told = [
            dyn("--with", "relatives.py", *plot, name, cwd=tmp_path).stdout
            for name in ("own", "other")
        ]
        assert theory in told[0]
        assert told[0].replace("own", "other") == told[1]


def test_a_kind_of_another_section_is_refused():
    with pytest.raises(ValidationError, match="must be a section"):
        RunConfig.model_validate(
            {**dict(load_config(ROOT / "configs/boursier2022/orthogonal.yaml")), "dataset": Mse()}
        )


def test_new_on_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    opened = Path.open

    class Full:
        def __init__(self, file):
            self.file = file

        def __enter__(self):
            return self

        def __exit__(self, *error):
            self.file.close()

        def write(self, text):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def open_full(path, *arguments, **options):
        file = opened(path, *arguments, **options)
        return Full(file) if path.name == "NOTES.md" else file

    monkeypatch.setattr(Path, "open", open_full)
    with pytest.raises(RunError, match=r"nothing was written \(No space left on device\)"):
        new_paper("mine2031", tmp_path)
    monkeypatch.undo()
    assert len(new_paper("mine2031", tmp_path)) == 13


@pytest.mark.parametrize("name", ["a/b", "", "a" * 300, ".hidden"])
def test_a_kind_needs_the_name_of_a_file(name):
    with pytest.raises(InputError, match="a name has at most 60 letters, digits"):
        measure_of(types.FunctionType((lambda state: 1.0).__code__, {}, name))
