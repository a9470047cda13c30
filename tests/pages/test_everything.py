"""Every panel and the page of every bundled config, of the example of every kind, and of a grid
of small runs.
"""

from functools import partial
from itertools import combinations, product

import numpy as np
import pytest
import yaml

import dynamics_cli as dyn
from dynamics_cli._bundled import bundled_configs
from dynamics_cli.analysis import draw_panel, panels_of
from dynamics_cli.config.describe import example
from dynamics_cli.errors import DataMissingError, InputError
from dynamics_cli.kinds import all_kinds
from dynamics_cli.kinds.registry import SECTIONS
from dynamics_cli.training.session import plan_run

from .test_page import described, unpacked

FACTORS = {
    "inputs": [1, 2, 3],
    "architecture": list(all_kinds("architecture")),
    "loss": list(all_kinds("loss")),
    "labels": ["scalar", "vector", "classes"],
}
FITTED = {
    "convolutional": lambda d: {"image": [1, 1, d], "convolutions": [[2, 1, 1, 0]], "widths": [3]},
    "linear_attention": lambda d: {"tokens": 1},
    "matrix_product": lambda d: {"rows": 1, "columns": d, "samples": "measurements"},
    "transformer": lambda d: {"tokens": d, "width": 4},
}
"""What suits an architecture to inputs of d numbers, where its example does not."""
CELLS = [dict(zip(FACTORS, values, strict=True)) for values in product(*FACTORS.values())]
FEW = [
    dict(zip(FACTORS, values, strict=True))
    for values in (
        (1, "convolutional", "cross_entropy", "classes"),
        (2, "diagonal_linear", "half_mse", "scalar"),
        (3, "fully_connected", "mse", "vector"),
        (2, "residual", "exponential", "classes"),
        (1, "transformer", "hinge", "classes"),
        (2, "two_layer", "logistic", "classes"),
        (1, "two_layer", "mse", "scalar"),
    )
]
"""Every value of every factor, where there is a network for it."""


def config_of(cell, folder):
    """Return the config of a cell: the example of its architecture on 6 points and 3 held-out
    ones.
    """
    d = cell["inputs"]
    loss = all_kinds("loss")[cell["loss"]]
    architecture = all_kinds("architecture")[cell["architecture"]]
    turn = list(all_kinds("activation").items())
    config = yaml.safe_load(example(architecture))
    rng = np.random.default_rng(d)
    classes = np.arange(9) % (2 if loss.labels == "signs" else 3)
    y = {
        "scalar": rng.standard_normal(9),
        "vector": rng.standard_normal((9, 2)),
        "classes": 2.0 * classes - 1 if loss.labels == "signs" else classes,
    }[cell["labels"]]
    x = rng.standard_normal((9, d))
    file = folder / f"{d}-{cell['labels']}-{loss.labels}.npz"
    np.savez(file, x=x[:6], y=y[:6], x_test=x[6:], y_test=y[6:])
    network = config["architecture"] | FITTED.get(cell["architecture"], lambda d: {})(d)
    if "activation" in architecture.model_fields:  # each in turn
        name, activation = turn[CELLS.index(cell) % len(turn)]
        network["activation"] = yaml.safe_load(activation.example or f"{{kind: {name}}}")
    outputs = {"scalar": None, "vector": 2, "classes": 3 if loss.many_outputs else 1}[
        cell["labels"]
    ]
    network.pop("outputs", None)
    if outputs is not None and "outputs" in architecture.model_fields:
        network["outputs"] = outputs
    config |= {
        "name": "cell",
        "dataset": {"kind": "file", "path": str(file)},
        "architecture": network,
    }
    config |= {
        "loss": {"kind": cell["loss"]},
        "record": {"snapshots": {"kind": "every", "interval": 1}},
    }
    return {**config, "optimizer": {**config["optimizer"], "iterations": 4}}


def shortened(config):
    """Return a config that ends after four iterations and records each of them, its grid left
    out.
    """
    loaded = dyn.load_config(config, {"sweep": None}, check_files_exist=False)
    short = (
        {"points": 4, "until": 0.1}
        if "points" in type(loaded.optimizer).model_fields
        else {"iterations": 4}
    )
    if getattr(loaded.optimizer, "epochs", None):
        short["epochs"] = None
    changes = {f"optimizer.{key}": value for key, value in short.items()}
    return dyn.load_config(
        config, {"sweep": None, "record.snapshots": {"kind": "every", "interval": 1}, **changes}
    )


def look_at(run, seen=None):
    """Draw every panel and the page of a run. Nothing may raise or be empty.

    To save time, panels in `seen` are not laid out again, nor drawn for one state.
    """
    assert panels_of(run)
    for panel in panels_of(run):
        name = panel.name
        for iteration in (None, run.iterations) if seen is None else (None,):
            figure = draw_panel(run, name, iteration)
            if seen is None or name not in seen:
                figure.draw_without_rendering()
            assert figure.axes
            assert all(axes.has_data() or axes.texts or not axes.axison for axes in figure.axes), (
                name
            )
        if seen is not None:
            seen.add(name)
    html = dyn.page(run).html()
    assert len(described(html)["panels"]) > 1 or not run.parameters
    for panel in described(html)["panels"]:
        lines = panel.get("lines", ())
        assert not lines or any(np.isfinite(unpacked(line["y"])).any() for line in lines), lines


def pairs(cell):
    return set(combinations(cell.items(), 2))


def cover(cells):
    """Return cells that hold every pair of values that any of them holds."""
    missing = set().union(*map(pairs, cells))
    chosen = []
    while missing:
        chosen.append(max(cells, key=lambda cell: len(pairs(cell) & missing)))
        missing -= pairs(chosen[-1])
    return chosen


def looked_at(configs, folder, seen=None):
    """Train every config for a few iterations and look at it; return how many there were, and
    how many are refused.
    """
    refused = 0
    for k, (name, config) in enumerate(configs.items()):
        try:
            run = dyn.train(config(), out=folder / str(k))
        except (
            InputError,
            DataMissingError,
        ):  # such labels have no such loss; some data must be got first
            refused += 1
            continue
        try:
            look_at(run, seen)
        except Exception as error:
            raise AssertionError(f"{name}: {error}") from error
    return len(configs) - refused, refused


def cells(folder, chosen):
    return {" ".join(map(str, cell.values())): partial(config_of, cell, folder) for cell in chosen}


def accepted(cell, folder):
    try:
        plan_run(dyn.load_config(config_of(cell, folder)))
    except InputError:
        return False
    return True


def examples(folder):
    """Return the example of every kind, with the files that some read."""
    (folder / "data.csv").write_text("1.0,2.0,0.5\n0.3,-1.0,0.2\n-0.5,0.1,-0.7\n", encoding="utf-8")
    np.savez(folder / "weights.npz", hidden_weight=np.eye(60, 2), output_weight=np.ones(60))
    found = {}
    for section in SECTIONS:
        for name, kind in all_kinds(section).items():
            file = folder / f"{section}-{name}.yaml"
            file.write_text(example(kind), encoding="utf-8")
            found[file.stem] = partial(shortened, file)
    return found


def test_few_cells_of_the_grid_and_what_it_found_have_panels_and_pages(tmp_path):
    """Inputs that are no points of a plane, and one output that is asked for by its number, too."""
    (tmp_path / "e.yaml").write_text(
        example(all_kinds("dataset")["matrix_completion"]), encoding="utf-8"
    )
    one = config_of(FEW[-1] | {"inputs": 2}, tmp_path)
    one["architecture"]["outputs"] = 1
    found = {"entries": partial(shortened, tmp_path / "e.yaml"), "one": lambda: one}
    configs = found | cells(tmp_path, FEW)
    assert looked_at(configs, tmp_path, set()) == (len(configs), 0)


@pytest.mark.long
def test_pairs_of_the_grid_have_panels_and_pages(tmp_path):
    """Every two of inputs, architecture, loss and labels that go together, with one cell at
    least.
    """
    chosen = cover([cell for cell in CELLS if accepted(cell, tmp_path)])
    drawn, refused = looked_at(cells(tmp_path, chosen), tmp_path)
    assert (drawn, refused) == (len(chosen), 0)
    assert drawn >= 30


@pytest.mark.long
def test_every_example_has_panels_and_a_page(tmp_path):
    found = examples(tmp_path)
    drawn, refused = looked_at(found, tmp_path)
    print(f"{drawn} examples of kinds drawn, {refused} without their data")
    assert (drawn + refused, refused <= 2) == (len(found), True)


@pytest.mark.long
def test_every_bundled_config_has_panels_and_a_page(tmp_path):
    drawn, refused = looked_at(
        {name: partial(shortened, file) for name, file in bundled_configs().items()}, tmp_path
    )
    print(f"{drawn} bundled configs drawn, {refused} without their data")
    assert (drawn + refused, refused <= 8) == (len(bundled_configs()), True)
