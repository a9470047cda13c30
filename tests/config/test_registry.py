"""Kinds from outside: files, packages, the console; what they share with bundled ones, and what
they add to a hash.
"""

import importlib
import os
import sys
from importlib.metadata import EntryPoint

import pytest

from dynamics_cli.config import ConfigError, load_config, run_hash, to_yaml
from dynamics_cli.errors import InputError
from dynamics_cli.kinds import registry
from dynamics_cli.kinds.base import loaded
from dynamics_cli.runs.titles import title_of
from tests.cases import read

pytestmark = pytest.mark.usefixtures("kinds_as_before")

ALL = """
import math
from typing import Annotated

import numpy as np
import torch
from torch import nn

from dynamics_cli import kinds


class Circle(kinds.Dataset, kind="circle"):
    n: int = 8

    def load(self, streams):
        angles = streams.rng("circle").uniform(0, 2 * np.pi, self.n)
        x = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        return kinds.make_samples(x, np.sign(x[:, 0]))


class Net(nn.Module):
    def __init__(self, section, d):
        super().__init__()
        self.section = section
        self.inner = nn.Parameter(torch.empty(section.width, d))
        self.outer = nn.Parameter(torch.empty(section.width))

    def forward(self, x):
        return self.section.activation.value(x @ self.inner.T) @ self.outer


class Plain(kinds.Architecture, kind="plain"):
    width: int
    activation: Annotated[kinds.Activation, kinds.OneOf("activation", word=True)]

    def build(self, d):
        return Net(self, d)


class Sine(kinds.Activation, kind="sine"):
    omega: float = 1.0

    def value(self, z):
        return kinds.formulas.sin(self.omega * z)


class Ones(kinds.Initialization, kind="ones"):
    def draw(self, problem, streams):
        return {name: np.ones(shape) for name, shape in problem.shapes.items()}


class Quartic(kinds.Loss, kind="quartic"):
    def values(self, h, y):
        return (h - y) ** 4


class Momentum(kinds.Minibatch, kind="momentum"):
    beta: float = 0.5

    def update(self, parameters, gradients, *, lr, names, state, **_):
        for name, parameter, gradient in zip(names, parameters, gradients):
            velocity = state.setdefault(name, torch.zeros_like(parameter))
            velocity.mul_(self.beta).add_(gradient)
            parameter.sub_(lr * velocity)


class Halves(kinds.Schedule, kind="halves"):
    def factor(self, iteration, iterations):
        return 1.0 if 2 * iteration < iterations else 0.5


class Largest(kinds.Measure, kind="largest"):
    power: int = 1

    def measure(self, state):
        return max(float(np.abs(value).max()) for value in state.parameters.values()) ** self.power


class Squares(kinds.Snapshots, kind="squares"):
    def next_after(self, iteration):
        return (math.isqrt(iteration) + 1) ** 2


class Guess(kinds.Theory, kind="guess"):
    def applies(self, run):
        return []

    def predict(self, run):
        return {}
"""
KINDS = {
    "dataset": "circle",
    "architecture": "plain",
    "activation": "sine",
    "initialization": "ones",
    "loss": "quartic",
    "optimizer": "momentum",
    "schedule": "halves",
    "measure": "largest",
    "snapshots": "squares",
    "theory": "guess",
}
CONFIG = read("""
name: outside
dtype: float64
dataset: {kind: circle}
architecture: {kind: plain, width: 3, activation: sine}
initialization: {kind: ones}
loss: {kind: quartic}
optimizer: {kind: momentum, lr: 0.001, iterations: 10, schedule: halves}
record: {snapshots: {kind: squares}, measures: [largest, {kind: largest, power: 2}]}
""")
MEASURE = """
from dynamics_cli.kinds import Measure

class Number(Measure, kind="number"):
    def measure(self, state):
        return {number}
"""


@pytest.fixture
def hash_of(base):
    """Return the identity of a run that records a measure, or only what is bundled."""

    def hash_of(*measures):
        config = load_config(base | ({"record": {"measures": list(measures)}} if measures else {}))
        return run_hash(config, device="cpu", backend="torch")

    return hash_of


def number_kind():
    return registry.get_kind("measure", "number")


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    importlib.invalidate_caches()
    return path


def test_a_kind_of_each_section_from_a_file(tmp_path):
    assert set(KINDS) == set(registry.SECTIONS)
    registry.use(write(tmp_path / "mine.py", ALL))
    for section, name in KINDS.items():
        assert name in registry.all_kinds(section)
    config = load_config(CONFIG)
    assert config.architecture.activation.omega == 1.0
    file = write(tmp_path / "written.yaml", to_yaml(config))
    assert load_config(file) == config
    assert "- largest\n" in file.read_text()  # the word, where all is as usual
    sources = registry.foreign_sources(config)
    assert {name.partition(".")[0] for name in sources} == set(KINDS) - {"theory"}
    assert {(source.origin, *source.files) for source in sources.values()} == {
        ("mine.py", "mine.py")
    }


def test_the_newest_version_of_a_file_counts(tmp_path):
    for number in (1.0, 2.0, 1.0):
        registry.use(write(tmp_path / "mine.py", MEASURE.format(number=number)))
        assert number_kind()().measure(None) == number


def test_files_named_by_any_kind_are_part_of_the_identity(tmp_path, base):
    text = (
        "from typing import ClassVar\n"
        + MEASURE.format(number=0.0)
        + "    file_keys: ClassVar = ('path',)\n    path: str\n"
    )
    registry.use(write(tmp_path / "mine.py", text))
    record = {"measures": ["weight_norm", {"kind": "number", "path": "a.txt"}]}
    file = write(tmp_path / "run.yaml", to_yaml(load_config(base)) + "")
    child = write(tmp_path / "deep" / "child.yaml", f"extends: ../{file.name}\nrecord: {record}\n")
    with pytest.raises(
        ConfigError,
        match=r"child.yaml:2: record.measures\[1\].path: there is no file .*/deep/a.txt",
    ):
        load_config(child)
    hashes = []
    for contents in ("one", "two"):
        write(tmp_path / "deep" / "a.txt", contents)
        config = load_config(child)
        assert config.record.measures[1].path == str(tmp_path / "deep" / "a.txt")
        hashes.append(run_hash(config, device="cpu", backend="torch"))
    assert hashes[0] != hashes[1]


def test_a_nested_kind_is_checked(tmp_path, base, problems):
    check = (
        "    def check(self, sections):\n        yield ('record', 'measures', 0),"
        " sections['loss'].kind + ' is odd'\n"
    )
    registry.use(write(tmp_path / "mine.py", MEASURE.format(number=0.0) + check))
    assert problems(base | {"record": {"measures": ["number"]}}) == [
        "<config>: record.measures[0]: mse is odd"
    ]


BROKEN = {
    "a bundled name": (
        MEASURE.format(number=1).replace('"number"', '"weight_norm"'),
        (
            "measure.kind 'weight_norm' is taken: dynamics_cli.recording.measures.WeightNorm has"
            " this name; give the kind of Number another$"
        ),
    ),
    "an incomplete kind": (
        "from dynamics_cli.kinds import Activation\nclass Half(Activation, kind='half'): ...\n",
        r"mine.py, line \d+: TypeError: activation.kind 'half' does not say value$",
    ),
    "a derivative by hand": (
        (
            "from dynamics_cli.kinds import Activation\nclass Half(Activation, kind='half'):\n   "
            " def value(self, z):\n        return z\n    def derivative(self, z):\n       "
            " return 2\n"
        ),
        "TypeError: activation.kind 'half' defines derivative, which dyn derives from the formula$",
    ),
    "a kind of no section": (
        "from dynamics_cli.kinds import Kind\nclass Lost(Kind, kind='lost'): ...\n",
        r"mine.py, line \d+: TypeError: Lost belongs to no section",
    ),
    "an error": (
        "1 / 0\n",
        r"it cannot be imported: mine.py, line \d+: ZeroDivisionError: division by zero$",
    ),
    "an exit": (
        "import sys\nsys.exit(3)\n",
        r"it cannot be imported: mine.py, line \d+: SystemExit: 3$",
    ),
    "no Python": ("class\n", r"it cannot be imported: SyntaxError: .*\(mine.py, line \d+\)$"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_files_that_cannot_be_used(what, tmp_path):
    """Nothing of them stays, also not in later processes, and a corrected file can be loaded."""
    text, message = BROKEN[what]
    path = write(tmp_path / "mine.py", MEASURE.format(number=1).replace("number", "first") + text)
    with pytest.raises(InputError, match=rf"^--with {path}: .*{message}"):
        registry.use(path)
    assert "first" not in registry.all_kinds("measure")
    assert not os.environ[registry.WITH]
    assert "mine" not in sys.modules
    registry.use(write(path, MEASURE.format(number=1)))
    assert "number" in registry.all_kinds("measure")


def test_a_kind_without_a_source_has_no_identity(hash_of):
    exec(MEASURE.format(number=1.0), {"__name__": "typed_into_a_console"})
    with pytest.raises(
        InputError, match="Number has no source that can be read.*write it to a file"
    ):
        hash_of("number")


PACKAGE = {
    "__init__.py": "print('hello')\nfrom .main import x\n",
    "main.py": "x = 1\n",
    "figure.py": "1 / 0\n",
    "kinds.py": "from local_pkg import deep\nimport numpy\n" + MEASURE.format(number=1.0),
    "deep/__init__.py": "",
}


@pytest.mark.parametrize("way", ["folder", "entry point"])
def test_a_package_brings_its_module_of_kinds(way, tmp_path, monkeypatch, hash_of):
    """All its files are the source of its kinds; an edited package is imported anew."""
    for name, text in PACKAGE.items():
        write(tmp_path / "local_pkg" / name, text)
    if way == "folder":
        registry.use(tmp_path / "local_pkg")
    else:
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.setattr(
            registry, "entry_points", lambda group: [EntryPoint("mine", "local_pkg", group)]
        )
        registry.installed_packages.cache_clear()
    assert number_kind().__module__ == "local_pkg.kinds"
    (source,) = registry.foreign_sources(number_kind()()).values()
    assert (source.origin, sorted(source.files)) == (
        "local_pkg",
        sorted(f"local_pkg/{name}" for name in PACKAGE),
    )
    if way == "folder":
        usual = hash_of("number")
        write(tmp_path / "local_pkg" / "main.py", "x = 2\n")
        write(
            tmp_path / "local_pkg" / "kinds.py",
            PACKAGE["kinds.py"]
            .replace("1.0", "x")
            .replace("numpy", "numpy\nfrom local_pkg import x"),
        )
        registry.use(tmp_path / "local_pkg")
        assert number_kind()().measure(None) == 2
        assert hash_of("number") != usual


def test_a_recorded_config_is_read_without_its_kinds(tmp_path):
    strange = CONFIG | {"loss": {"kind": "quartic", "reduction": "sum", "more": {"a": [1.5, None]}}}
    with pytest.raises(
        ConfigError,
        match=r"unknown kind 'circle'.*`dyn --with PATH`, or `dyn.use\(PATH\)` in Python",
    ):
        load_config(strange)
    config = load_config(strange, lenient=True)
    assert (config.loss, config.record.loss_every) == (strange["loss"], None)
    with pytest.raises(InputError, match=r"loss.kind 'quartic' is not loaded.*`dyn.use\(PATH\)`"):
        loaded(config.loss, "loss")
    inner = CONFIG | {"architecture": {"kind": "two_layer", "width": 3, "activation": "bent"}}
    architecture = load_config(inner, lenient=True).architecture
    with pytest.raises(InputError, match="architecture.activation.kind 'bent' is not loaded"):
        loaded(architecture, "architecture")
    file = write(tmp_path / "saved.yaml", to_yaml(config))
    assert to_yaml(load_config(file, lenient=True)) == file.read_text()
    with pytest.raises(ConfigError, match="expected|must be|unknown|is missing"):
        load_config(CONFIG | {"seed": "x"}, lenient=True)


def test_a_broken_package_is_reported_once_and_hides_nothing(tmp_path, monkeypatch, capsys):
    taking = MEASURE.format(number=1.0).replace('"number"', '"weight_norm"')
    texts = {
        "broken": "\nraise RuntimeError('no luck')\n",
        "taking": taking,
        "good": MEASURE.format(number=1.0),
    }
    for name, text in texts.items():
        write(tmp_path / f"local_{name}.py", f"print('hello'){text}")
    monkeypatch.syspath_prepend(str(tmp_path))
    points = [EntryPoint(name, f"local_{name}", registry.GROUP) for name in texts]
    monkeypatch.setattr(
        registry, "entry_points", lambda group: points if group == registry.GROUP else []
    )
    registry.installed_packages.cache_clear()
    for _ in range(2):
        assert registry.find_kind("measure", "number") is not None
        assert registry.find_kind("measure", "none") is None
    told = capsys.readouterr()
    assert told.out == ""
    broken, taken = told.err.replace("hello\n", "").splitlines()
    why = "it cannot be imported: local_broken.py, line 2: RuntimeError: no luck"
    assert broken == f"dyn: the package local_broken is left out: {why}"
    assert taken.startswith(
        "dyn: the package local_taking is left out: measure.kind 'weight_norm' is taken: "
    )
    assert (
        registry.get_kind("measure", "weight_norm").__module__ == "dynamics_cli.recording.measures"
    )


def test_titles_are_of_keys_that_kinds_have():
    """A title of a key that was renamed would be used by nothing."""
    for section in registry.SECTIONS:
        kinds = list(registry.all_kinds(section).values())
        for base in {base for kind in kinds for base in kind.__mro__}:
            for key in vars(base).get("titles", {}):
                of_base = [kind for kind in kinds if issubclass(kind, base)]
                assert any(key in kind.model_fields for kind in of_base), (base, key)


@pytest.mark.parametrize(
    ("key", "title"),
    [
        ("initialization.scale", "scale λ"),
        ("optimizer.weight_decay", "weight decay λ"),
        ("optimizer.iterations", "iterations"),
        ("loss.kind", "loss"),
        ("record.measures.0.top", "top"),
        ("architecture.widths.1", "widths 1"),
        ("optimizer.layer_lr.weight_1", "layer lr weight 1"),
        ("initialization.scales.weight_1", "scales weight 1"),
        ("seed", "seed"),
    ],
)
def test_a_setting_has_the_title_of_its_kind_or_its_last_word(key, title):
    config = {
        "architecture": {"kind": "fully_connected", "widths": [4, 4]},
        "initialization": {"kind": "balanced", "scale": 0.1},
        "loss": "mse",
        "optimizer": {"kind": "adamw", "lr": 0.1, "iterations": 3},
        "record": {"measures": ["sharpness"]},
    }
    assert title_of(key, config) == title
