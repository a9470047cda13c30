"""Kinds from outside: files, packages, the console; what they share with bundled ones, and what they add to a hash."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dynamics_cli.config import ConfigError, json_schema, load_config, run_hash, to_yaml
from dynamics_cli.errors import InputError
from dynamics_cli.kinds import State, registry
from dynamics_cli.kinds import base as base_module
from dynamics_cli.kinds.base import Unknown, UnknownKindError
from dynamics_cli.recording.snapshots import snapshot_iterations
from dynamics_cli.training.problem import build_problem

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
        return kinds.namespace(z).sin(self.omega * z)

    def derivative(self, z):
        return self.omega * kinds.namespace(z).cos(self.omega * z)


class Ones(kinds.Initialization, kind="ones"):
    def draw(self, problem, streams):
        return {name: np.ones(shape) for name, shape in problem.shapes.items()}


class Quartic(kinds.Loss, kind="quartic"):
    def values(self, h, y):
        return (h - y) ** 4

    def derivatives(self, h, y):
        return 4 * (h - y) ** 3


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
    "dataset": "circle", "architecture": "plain", "activation": "sine", "initialization": "ones", "loss": "quartic",
    "optimizer": "momentum", "schedule": "halves", "measure": "largest", "snapshots": "squares", "theory": "guess",
}  # fmt: skip
CONFIG: dict[str, Any] = {
    "name": "outside", "dtype": "float64", "dataset": {"kind": "circle"},
    "architecture": {"kind": "plain", "width": 3, "activation": "sine"}, "initialization": {"kind": "ones"},
    "loss": {"kind": "quartic"},
    "optimizer": {"kind": "momentum", "lr": 1e-3, "iterations": 10, "schedule": "halves"},
    "record": {"snapshots": {"kind": "squares"}, "measures": ["largest", {"kind": "largest", "power": 2}]},
}  # fmt: skip
MEASURE = """
from dynamics_cli.kinds import Measure

class Number(Measure, kind="number"):
    def measure(self, state):
        return {number}
"""


@pytest.fixture
def hash_of(base: dict[str, Any]) -> Callable[..., str]:
    """Return the identity of a run that records a measure, or only what is bundled."""

    def hash_of(*measures: str) -> str:
        config = load_config(base | ({"record": {"measures": list(measures)}} if measures else {}))
        return run_hash(config, device="cpu", backend="torch")

    return hash_of


def number_kind() -> Any:
    return registry.get_kind("measure", "number")


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    importlib.invalidate_caches()
    return path


def test_a_kind_of_each_section_from_a_file(tmp_path: Path) -> None:
    assert set(KINDS) == set(registry.SECTIONS)
    registry.use(write(tmp_path / "mine.py", ALL))
    definitions = json_schema()["$defs"]
    for section, name in KINDS.items():
        assert name in registry.all_kinds(section)
        assert definitions[f"{section}.{name}"]["properties"]["kind"]["const"] == name
    assert "#/$defs/loss.quartic" in definitions["RunConfig"]["properties"]["loss"]["discriminator"]["mapping"].values()
    config: Any = load_config(CONFIG)
    assert config.architecture.activation.omega == 1.0
    file = write(tmp_path / "written.yaml", to_yaml(config))
    assert load_config(file) == config
    assert "- largest\n" in file.read_text()  # the word, where all is as usual
    sources = registry.foreign_sources(config)
    assert {name.partition(".")[0] for name in sources} == set(KINDS) - {"theory"}
    assert {(source.origin, *source.files) for source in sources.values()} == {("mine.py", "mine.py")}


@pytest.mark.parametrize("old", ["base", "bases", "clocks", "registry", "streams", "samples"])
def test_the_addresses_of_the_release_before_work_with_a_warning(old: str, tmp_path: Path) -> None:
    room = "datasets" if old == "samples" else "config"
    text = ALL.replace("dynamics_cli import kinds", f"dynamics_cli.{room} import {old} as kinds")
    with pytest.warns(DeprecationWarning, match=rf"dynamics_cli.{room}.{old}.\w+ is dynamics_cli.kinds.\w+ now"):
        registry.use(write(tmp_path / "mine.py", text))
    assert load_config(CONFIG).loss.values(np.array([3.0]), np.array([1.0])) > 0


def test_what_such_kinds_do(tmp_path: Path) -> None:
    """Two steps of gradient descent with momentum on `sum_j a_j sin(w_j x)`, against the same in NumPy."""
    registry.use(write(tmp_path / "mine.py", ALL))
    problem = build_problem(load_config(CONFIG))
    config: Any = problem.config
    x, y = problem.dataset.x, problem.dataset.y
    weights = problem.initial_parameters()
    parameters = [torch.tensor(value, requires_grad=True) for value in weights.values()]
    state: dict[str, torch.Tensor] = {}
    W, a = weights["inner"], weights["outer"]
    velocity: Any = (0.0, 0.0)
    for i in range(2):
        network, _ = config.architecture.loaded({"inner": W, "outer": a}, 2)
        h = torch.func.functional_call(network, dict(zip(weights, parameters, strict=True)), torch.from_numpy(x))
        loss = problem.loss.total(h, torch.from_numpy(y))
        gradients = torch.autograd.grad(loss, parameters)
        with torch.no_grad():
            config.optimizer.update(
                parameters, gradients, lr=1e-3, names=list(weights), state=state, iteration=i, loss=loss
            )
        z = x @ W.T
        slopes = problem.loss.derivatives(np.sin(z) @ a, y) / len(y)
        gradient = ((slopes[:, None] * config.architecture.activation.derivative(z) * a).T @ x, np.sin(z).T @ slopes)
        velocity = tuple(0.5 * v + g for v, g in zip(velocity, gradient, strict=True))
        W, a = W - 1e-3 * velocity[0], a - 1e-3 * velocity[1]
    for ours, theirs in zip((W, a), parameters, strict=True):
        np.testing.assert_allclose(theirs.detach(), ours, rtol=1e-12)
    now = State(problem, {"inner": W, "outer": a}, problem.initial_parameters, 2)
    np.testing.assert_allclose(now.network(x), np.sin(x @ W.T) @ a, rtol=1e-12)
    assert [one.measure(now) for one in config.record.measures or ()] == [np.abs(W).max(), np.abs(W).max() ** 2]
    assert snapshot_iterations(config.record.snapshots, 10).tolist() == [0, 1, 4, 9, 10]
    assert [config.optimizer.step_size(i, 10) for i in (4, 5)] == [1e-3, 5e-4]


def test_processes_that_are_started_later_know_them_too(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.py", MEASURE.format(number=1.0))
    registry.use(path)
    assert os.environ[registry.WITH] == str(path)
    registry.use(path)
    assert os.environ[registry.WITH] == str(path)
    code = "from dynamics_cli.kinds.registry import find_kind; print(find_kind('measure', 'number').__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "Number\n"


def test_the_file_and_what_it_imports_are_part_of_the_identity(tmp_path: Path, hash_of: Callable[..., str]) -> None:
    """The file, a module beside it, a package's `__init__` and what that imports relatively; nothing else."""
    bundled = hash_of()
    path = write(tmp_path / "mine.py", "import local_a\nfrom local_pkg.sub import two\n" + MEASURE.format(number="two"))
    write(tmp_path / "local_a.py", "one = 1\n")
    write(tmp_path / "local_pkg" / "__init__.py", "from .other import three\n")
    write(tmp_path / "local_pkg" / "other.py", "three = 3\n")
    write(tmp_path / "local_pkg" / "sub.py", "two = 2\n")
    write(tmp_path / "unrelated.py", "")

    def fresh() -> str:
        for name in [name for name in sys.modules if name.startswith("local_")]:
            del sys.modules[name]
        registry.use(path)
        return hash_of("number")

    seen = [fresh()]
    assert fresh() == seen[0]
    for name in ("mine.py", "local_a.py", "local_pkg/__init__.py", "local_pkg/other.py", "local_pkg/sub.py"):
        with (tmp_path / name).open("a") as file:
            file.write("# another line\n")
        seen.append(fresh())
    assert len(set(seen)) == 6
    write(tmp_path / "unrelated.py", "x = 1\n")
    assert fresh() == seen[-1]
    assert hash_of() == bundled


def test_the_newest_version_of_a_file_counts(tmp_path: Path) -> None:
    for number in (1.0, 2.0, 1.0):
        registry.use(write(tmp_path / "mine.py", MEASURE.format(number=number)))
        assert number_kind()().measure(None) == number


def test_files_named_by_any_kind_are_part_of_the_identity(tmp_path: Path, base: dict[str, Any]) -> None:
    text = (
        "from typing import ClassVar\n"
        + MEASURE.format(number=0.0)
        + "    file_keys: ClassVar = ('path',)\n    path: str\n"
    )
    registry.use(write(tmp_path / "mine.py", text))
    record = {"measures": ["weight_norm", {"kind": "number", "path": "a.txt"}]}
    file = write(tmp_path / "run.yaml", to_yaml(load_config(base)) + "")
    child = write(tmp_path / "deep" / "child.yaml", f"extends: ../{file.name}\nrecord: {record}\n")
    with pytest.raises(ConfigError, match=r"child.yaml:2: record.measures\[1\].path: there is no file .*/deep/a.txt"):
        load_config(child)
    hashes = []
    for contents in ("one", "two"):
        write(tmp_path / "deep" / "a.txt", contents)
        config: Any = load_config(child)
        assert config.record.measures[1].path == str(tmp_path / "deep" / "a.txt")
        hashes.append(run_hash(config, device="cpu", backend="torch"))
    assert hashes[0] != hashes[1]


def test_a_nested_kind_is_checked(tmp_path: Path, base: dict[str, Any], problems: Callable[..., list[str]]) -> None:
    check = (
        "    def check(self, sections):\n        yield ('record', 'measures', 0), sections['loss'].kind + ' is odd'\n"
    )
    registry.use(write(tmp_path / "mine.py", MEASURE.format(number=0.0) + check))
    assert problems(base | {"record": {"measures": ["number"]}}) == ["<config>: record.measures[0]: mse is odd"]


BROKEN = {
    "a bundled name": (
        MEASURE.format(number=1).replace('"number"', '"weight_norm"'),
        "measure.kind 'weight_norm' is taken: dynamics_cli.recording.measures.WeightNorm has this name; "
        "give the kind of Number another$",
    ),
    "an incomplete kind": (
        "from dynamics_cli.kinds import Activation\n"
        "class Half(Activation, kind='half'):\n    def derivative(self, z):\n        return z\n",
        "TypeError: activation.kind 'half' does not say value$",
    ),
    "a kind of no section": ("from dynamics_cli.kinds import Kind\nclass Lost(Kind, kind='lost'): ...\n",
     "TypeError: Lost belongs to no section"),
    "an error": ("1 / 0\n", "it cannot be imported: ZeroDivisionError: division by zero$"),
    "an exit": ("import sys\nsys.exit(3)\n", "it cannot be imported: SystemExit: 3$"),
    "no Python": ("class\n", r"it is not Python: SyntaxError: .*\(mine.py, line \d+\)$"),
    "a null character": ("\0", "it is not Python"),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_files_that_cannot_be_used(what: str, tmp_path: Path) -> None:
    """Nothing of them stays, also not in later processes, and a corrected file can be loaded."""
    text, message = BROKEN[what]
    path = write(tmp_path / "mine.py", MEASURE.format(number=1).replace("number", "first") + text)
    with pytest.raises(InputError, match=rf"^--with {path}: .*{message}"):
        registry.use(path)
    assert "first" not in registry.all_kinds("measure")
    assert not os.environ[registry.WITH]
    assert not [name for name in sys.modules if name.startswith("dyn_parts_")]
    registry.use(write(path, MEASURE.format(number=1)))
    assert "number" in registry.all_kinds("measure")


@pytest.mark.parametrize(
    ("name", "message"), [("absent.py", "cannot be read .No such file"), ("kinds.txt", "a Python file .* is needed")]
)
def test_what_is_no_file_of_kinds(name: str, message: str, tmp_path: Path) -> None:
    write(tmp_path / "kinds.txt", "")
    with pytest.raises(InputError, match=message):
        registry.use(tmp_path / name)


def test_another_module_of_the_same_name_is_refused(tmp_path: Path) -> None:
    for folder, number in (("one", 1), ("two", 2)):
        write(tmp_path / folder / "local_a.py", f"number = {number}\n")
    text = "import local_a\n" + MEASURE
    registry.use(write(tmp_path / "one" / "first.py", text.format(number="local_a.number")))
    second = write(tmp_path / "two" / "second.py", text.format(number="local_a.number").replace('"number"', '"other"'))
    with pytest.raises(InputError, match=r"it imports local_a, which is .*one/local_a.py here, not .*two/local_a.py"):
        registry.use(second)
    assert "other" not in registry.all_kinds("measure")


def test_a_kind_without_a_source_has_no_identity(hash_of: Callable[..., str]) -> None:
    exec(MEASURE.format(number=1.0), {"__name__": "typed_into_a_console"})
    with pytest.raises(InputError, match="Number has no source that can be read.*write it to a file"):
        hash_of("number")


def test_the_source_of_a_kind_in_a_package_is_the_whole_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "local_pkg" / "__init__.py", MEASURE.format(number=1.0))
    write(tmp_path / "local_pkg" / "deep" / "module.py", "")
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("local_pkg")
    source = registry.source_of(module.Number)
    assert source is not None
    assert (source.origin, sorted(source.files)) == ("local_pkg", ["local_pkg/__init__.py", "local_pkg/deep/module.py"])


def test_copies_that_a_run_keeps_are_loaded_from_its_directory(tmp_path: Path, hash_of: Callable[..., str]) -> None:
    write(tmp_path / "local_a.py", "")
    registry.use(write(tmp_path / "my kinds.py", "import local_a\n" + MEASURE.format(number=1.0)))
    usual = hash_of("number")
    (source,) = registry.foreign_sources(number_kind()()).values()
    folder = tmp_path / "run" / registry.PARTS / source.folder
    for name, contents in source.files.items():
        write(folder / name, contents.decode())
    base_module.forget(number_kind().__module__)
    registry._SOURCES.clear()
    with pytest.raises(ConfigError, match="unknown kind 'number'"):
        hash_of("number")
    registry.use(tmp_path / "run")
    assert hash_of("number") == usual


def test_unknown_kinds_of_a_saved_config_are_kept(tmp_path: Path) -> None:
    strange = CONFIG | {"loss": {"kind": "quartic", "reduction": "sum", "more": {"a": [1.5, None]}}}
    with pytest.raises(ConfigError, match="unknown kind 'circle'"):
        load_config(strange)
    config = load_config(strange, keep_unknown=True)
    loss: Any = config.loss
    assert isinstance(loss, Unknown)
    assert (loss.kind, loss.reduction, loss.more) == ("quartic", "sum", {"a": [1.5, None]})
    assert getattr(loss, "labels", None) is None
    assert not hasattr(loss, "__array__")
    with pytest.raises(UnknownKindError, match="loss.kind 'quartic' is not there.*`dyn --with FILE"):
        loss.values(0.0, 1.0)
    file = write(tmp_path / "saved.yaml", to_yaml(config))
    assert load_config(file, keep_unknown=True) == config
    with pytest.raises(ConfigError, match="expected|must be|unknown|is missing"):
        load_config(CONFIG | {"seed": "x"}, keep_unknown=True)


def test_a_broken_package_is_reported_once_and_hides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "local_broken.py", "print('hello')\nraise RuntimeError('no luck')\n")
    write(tmp_path / "local_good.py", "print('hello')\n" + MEASURE.format(number=1.0))
    monkeypatch.syspath_prepend(str(tmp_path))
    points = [EntryPoint(name, f"local_{name}", registry.GROUP) for name in ("broken", "good")]
    monkeypatch.setattr(registry, "entry_points", lambda group: points if group == registry.GROUP else [])
    registry._load_packages.cache_clear()
    for _ in range(2):
        assert registry.find_kind("measure", "number") is not None
        assert registry.find_kind("measure", "none") is None
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.replace("hello\n", "") == (
        "dyn: the entry point local_broken is left out, local_broken cannot be used: RuntimeError: no luck\n"
    )


def test_a_package_that_takes_a_bundled_name_is_told_and_hides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "taking" / "__init__.py", MEASURE.format(number=1.0).replace('"number"', '"weight_norm"'))
    monkeypatch.syspath_prepend(str(tmp_path))
    points = [EntryPoint("taking", "taking", registry.GROUP)]
    monkeypatch.setattr(registry, "entry_points", lambda group: points if group == registry.GROUP else [])
    registry._load_packages.cache_clear()
    assert registry.find_kind("measure", "none") is None
    assert "cannot be used: InputError: measure.kind 'weight_norm' is taken: " in capsys.readouterr().err
    assert registry.get_kind("measure", "weight_norm").__module__ == "dynamics_cli.recording.measures"
    with pytest.raises(InputError, match=r"taking: measure.kind 'weight_norm' is taken: .*WeightNorm has this name"):
        registry.use(tmp_path / "taking")


def test_what_a_file_prints_does_not_reach_our_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    registry.use(write(tmp_path / "mine.py", "print('hello')\n"))
    assert capsys.readouterr() == ("", "hello\n")
