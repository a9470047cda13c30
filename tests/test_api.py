"""The Python API: each function does what its command does, and gives numbers."""

import inspect
import json
import shutil
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose

import dynamics_cli as dyn
from dynamics_cli import api
from dynamics_cli.cli import main
from dynamics_cli.config import ConfigError
from dynamics_cli.errors import RunError, UsageError
from dynamics_cli.text import Table
from tests.cases import TWO_POINTS, read

TOY = read(
    """
architecture: {kind: two_layer, width: 8, activation: linear}
optimizer: {kind: gd, lr: 0.01, iterations: 2000}
dtype: float64
""",
    TWO_POINTS,
)
"""A linear network that interpolates its two orthogonal samples, (-1/2, 1) and (2, 1)."""


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DYN_OUTPUTS", raising=False)
    return tmp_path


def answer(*arguments):
    """What the command line prints with `--json`."""
    result = CliRunner().invoke(main, [*map(str, arguments), "--json"])
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_every_public_name_is_a_function_with_a_docstring():
    assert dir(dyn) == sorted([*dyn.HOMES, "__version__"])
    own = {
        name
        for name, one in vars(api).items()
        if name.islower() and getattr(one, "__module__", "") == api.__name__
    }
    assert {name for name in own if name[0] != "_"} - {"open_any", "pictures"} <= {*dyn.HOMES}
    for name in dyn.HOMES:
        function = getattr(dyn, name)
        assert (function.__name__, bool(function.__doc__)) == (name, True)
    with pytest.raises(AttributeError, match="has no attribute 'tarin'"):
        _ = dyn.tarin


def test_a_config_comes_by_name_file_mapping_or_as_it_is(place):
    loaded = dyn.load_config(TOY)
    (place / "toy.json").write_text(json.dumps(TOY))
    assert dyn.load_config("toy.json") == dyn.load_config(place / "toy.json") == loaded
    assert dyn.load_config(loaded) is loaded
    orthogonal = dyn.load_config("boursier2022/orthogonal")
    assert (orthogonal.name, orthogonal.optimizer.iterations) == ("boursier2022-orthogonal", 20000)
    assert dyn.load_config("configs/boursier2022/orthogonal.yaml") == orthogonal
    with pytest.raises(ConfigError, match="did you mean 'boursier2022/orthogonal'"):
        dyn.load_config("boursier2022/orthogonl")


def test_overrides_are_a_mapping_or_texts():
    changed = dyn.load_config(
        TOY, {"seed": 3, "optimizer.lr": np.float64(1e-6), "architecture.activation": "relu"}
    )
    assert (changed.seed, changed.optimizer.lr, changed.architecture.activation.kind) == (
        3,
        1e-6,
        "relu",
    )
    assert changed == dyn.load_config(
        TOY, ["seed=3", "optimizer.lr=1e-6", "architecture.activation=relu"]
    )
    assert changed == dyn.load_config(
        dyn.load_config(TOY), {"optimizer.lr": 1e-6, "architecture.activation": "relu"}, seed=3
    )
    assert (
        dyn.load_config(TOY, {"name": "1e5"}).name == "1e5"
    )  # a text stays one, whatever it looks like
    assert dyn.load_config(TOY, {"dataset.x": [[1.0], [2.0]]}).dataset.model_dump()["x"] == [
        [1.0],
        [2.0],
    ]
    with pytest.raises(ConfigError, match="optimizer.rl: unknown key"):
        dyn.load_config(TOY, {"optimizer.rl": 1})
    with pytest.raises(UsageError, match="overrides are a mapping or a list"):
        dyn.load_config(TOY, "seed=3")


def test_training_interpolates_the_samples():
    """Gradient descent on two orthogonal samples ends where h(x_i) = y_i; float64, 2000 steps of
    0.01.
    """
    calls = []
    run = dyn.train(TOY, progress=lambda iteration, loss: calls.append(iteration))
    assert run.status == "complete"
    assert_allclose(run.network(-1)(np.array([[-0.5, 1.0], [2.0, 1.0]])), [-1.0, 1.0], atol=1e-4)
    assert run.final_loss < 1e-8
    assert calls[-1] == 2000
    assert dyn.train(TOY, progress=lambda *_: pytest.fail("it is reused")).path == run.path
    assert dyn.train(TOY, seed=1).path != run.path


def test_runs_are_found_by_directory_name_hash_and_latest(place):
    with pytest.raises(
        RunError, match="there is no run latest, neither as a path nor below outputs/runs"
    ):
        dyn.load_run("latest")
    first, second = (dyn.train(TOY, seed=seed, out=None) for seed in (0, 1))
    assert first.hash is not None
    for which in (
        first,
        first.path,
        str(first.path),
        first.path.name,
        first.path.name[:-3],
    ):
        assert dyn.load_run(which).hash == first.hash, which
    assert dyn.load_run("latest").path == second.path
    with pytest.raises(
        UsageError, match="'toy' can be several runs below outputs/runs: toy-.*, toy-"
    ):
        dyn.load_run("toy")
    with pytest.raises(RunError, match="there is no run ffffffffff"):
        dyn.load_run("ffffffffff")
    (place / "latest").mkdir()  # what is there comes first
    shutil.copytree(first.path, place / "latest", dirs_exist_ok=True)
    assert dyn.load_run("latest").hash == first.hash


def test_a_sweep_has_a_row_for_each_job():
    done = []
    found = dyn.sweep(
        TOY,
        {"optimizer.lr": [0.01, 0.02], "architecture.width": np.array([2, 4])},
        seeds=2,
        overrides={"optimizer.iterations": 10},
        progress=lambda k, total: done.append((k, total)),
    )
    assert (done[0], done[-1]) == ((0, 8), (8, 8))
    assert done == sorted(done)
    assert any(k % 1 for k, _ in done)  # the training inside of a batch
    rows = found.rows
    assert [(row["optimizer.lr"], row["architecture.width"], row["seed"]) for row in rows[:4]] == [
        (0.01, 2, 0),
        (0.01, 2, 1),
        (0.01, 4, 0),
        (0.01, 4, 1),
    ]
    alone = dyn.train(
        TOY, {"optimizer.iterations": 10, "optimizer.lr": 0.02, "architecture.width": 4, "seed": 1}
    )
    assert rows[-1]["final_loss"] == pytest.approx(alone.final_loss, rel=1e-12)
    replica = dyn.load_run(f"{found.path}/{rows[-1]['path']}:{rows[-1]['replica']}")
    assert replica.final_loss == rows[-1]["final_loss"]
    together = dyn.load_run(found.path / rows[-1]["path"])
    assert together.losses.shape == (11, len(together.info["replicas"]))
    with pytest.raises(RunError, match="holds several runs trained together: name one"):
        dyn.compare(together.path, alone)
    spaced = dyn.sweep(TOY, ["optimizer.lr=0.01:0.1:log:3"], overrides={"optimizer.iterations": 1})
    assert [row["optimizer.lr"] for row in spaced.rows] == pytest.approx(
        [0.01, 0.01 * 10**0.5, 0.1]
    )
    with pytest.raises(UsageError, match="names a value twice"):
        dyn.sweep(TOY, {"seed": [1, 1]})


def test_from_a_sweep_to_its_runs(monkeypatch):
    keywords = inspect.signature(dyn.sweep).parameters
    assert {"let", "seeds", "overrides", "record", "settings"} <= set(keywords)
    # the widths differ in shape: jobs 0 to 3 are trained in one batch, 4 to 7 in another
    found = dyn.sweep(
        TOY,
        {"architecture.width": [2, 4], "optimizer.lr": [0.01, 1e9]},
        seeds=2,
        overrides={"optimizer.iterations": 10},
    )
    chosen = found.runs(where={"optimizer.lr": 0.01, "architecture.width": 4})
    assert [
        (run.config.optimizer.lr, run.config.architecture.width, run.config.seed) for run in chosen
    ] == [
        (0.01, 4, 0),
        (0.01, 4, 1),
    ]
    assert len(found.runs()) == 8
    row = found.rows[5]
    for which in (
        found.run(5),
        found.run(row),
        dyn.load_run(f"{found.path}:5"),
        dyn.load_run(f"{found.path.name}:5"),
    ):
        assert (which.config.seed, which.final_loss) == (1, row["final_loss"])
    with pytest.raises(UsageError, match="no job has optimizer.lr 3; there are 0.01, "):
        found.runs({"optimizer.lr": 3})
    with pytest.raises(RunError, match="no job 8 of .* has ended; there are 8, from 0"):
        found.run(8)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match="needs pandas: pip install pandas"):
        found.to_pandas()
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=list))
    assert [row["seed"] for row in found.to_pandas()] == [row["seed"] for row in found.rows]


def test_sweeps_go_by_the_starts_of_their_names_and_latest():
    short = {"overrides": {"optimizer.iterations": 5}}
    run = dyn.train(TOY, **short)
    found = dyn.sweep(TOY, {"optimizer.lr": [0.01, 0.02]}, **short)
    name = found.path.name
    path = str(found.path.absolute())
    for which in ("latest", name, name[:-2], str(found.path)):
        assert answer("show", which)["path"] == path
        assert answer("verify", which)[0]["path"] == path
        assert answer("plot", which, "--panel", "curve")["files"] == [f"{path}/plots/curve.png"]
        assert answer("show", f"{which}:1")["config"]["optimizer"]["lr"] == 0.02
    drawn = answer("plot", "latest:1", "--panel", "loss")["files"]
    assert drawn != answer("plot", "latest:0", "--panel", "loss")["files"]
    assert name in answer("page", "latest")["file"]
    dyn.train(TOY, seed=1, **short)
    assert answer("show", "latest")["config"]["seed"] == 1  # what was written last, run or sweep
    for which in ("toy", "toy-"):
        failed = CliRunner().invoke(main, ["show", which])
        assert (failed.exit_code, failed.stderr.count("/toy-")) == (2, 3)
    assert dyn.load_run(run.path.name).hash == run.hash


@pytest.mark.parametrize("what", ["figures", "papers", "configs", "kinds", "runs"])
def test_lists_are_those_of_the_commands(what):
    dyn.train(TOY)
    found = getattr(dyn, f"list_{what}")()
    assert isinstance(found, Table)
    assert found
    assert json.loads(json.dumps(found, default=lambda path: str(path.absolute()))) == answer(
        "list", what
    )
