"""Data and code that are others than when a run was trained: told before a number or a picture
is made of them.
"""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import dynamics_cli as dyn
from dynamics_cli.errors import ChangedWarning, RunError
from dynamics_cli.runs.info import write_info
from dynamics_cli.runs.run import Run
from tests.cases import read

SECTIONS = read("""
name: changed
architecture: {kind: two_layer, width: 3}
initialization: {kind: balanced, scale: 0.1}
loss: {kind: mse}
optimizer: {kind: gd, lr: 0.1, iterations: 3}
""")
FORMULA = """\
from dynamics_cli.kinds import Activation, formulas


class Bent(Activation, kind="bent"):
    def value(self, z):
        return formulas.tanh(z)
"""


@pytest.fixture
def of_file(tmp_path):
    """A run on a CSV file."""
    data = tmp_path / "d.csv"
    data.write_text("0.1,1\n-0.3,-1\n0.7,1\n")
    config = SECTIONS | {"dataset": {"kind": "file", "path": str(data)}}
    return dyn.train(config, out=tmp_path / "run")


def test_changed_data_are_told_and_never_used(of_file, tmp_path):
    data = tmp_path / "d.csv"
    trained_on = of_file.dataset().y.copy()
    assert dyn.verify(of_file.path)[0]["intact"]
    before = data.read_text()
    data.write_text("0.1,-1\n-0.3,1\n0.7,-1\n")
    told = f"{data} has changed since the run was trained"
    (found,) = dyn.verify(of_file.path)[0]["findings"]
    assert (found["file"], found["problem"][:14]) == (data, "it has changed")
    run = Run(of_file.path)
    with pytest.warns(ChangedWarning, match=told):
        page = dyn.page(run)
    assert told in page.html()
    with pytest.raises(RunError, match=told):
        run.dataset()
    data.write_text(before)
    assert_array_equal(Run(of_file.path).dataset().y, trained_on)
    data.unlink()
    assert dyn.verify(of_file.path)[0]["intact"]  # a run can be read without its data


def test_a_changed_formula_is_told_with_the_way_to_the_kept_one(tmp_path, kinds_as_before):
    source = tmp_path / "bent.py"
    source.write_text(FORMULA)
    dyn.use(source)
    data = {"kind": "points", "x": [[-0.5], [2.0]], "y": [-1.0, 1.0]}
    own = {"kind": "two_layer", "width": 3, "activation": "bent"}
    made = dyn.train(SECTIONS | {"dataset": data, "architecture": own}, out=tmp_path / "run")
    x = np.array([[0.4]])
    value = made.network(-1)(x)
    source.write_text(FORMULA.replace("formulas.tanh", "7.0 * formulas.tanh"))
    dyn.use(source)
    run = Run(made.path)
    with pytest.warns(ChangedWarning, match="bent.py has changed since") as told:
        assert run.network(-1)(x) != value
    kept = str(told[0].message).partition("`--with ")[2].partition("`")[0]
    assert Path(kept).read_text() == FORMULA
    source.write_text(FORMULA)
    dyn.use(source)
    assert Run(made.path).network(-1)(x) == value


def test_a_run_without_digests_is_read(of_file, tmp_path):
    """The version that landed before wrote none."""
    info = {key: value for key, value in of_file.info.items() if key != "files"}
    write_info(of_file.path, info)
    (tmp_path / "d.csv").write_text("0.1,-1\n")
    assert dyn.verify(of_file.path)[0]["intact"]
    assert Run(of_file.path).dataset().n == 1
