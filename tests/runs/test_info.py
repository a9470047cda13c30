import json
import math
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from dynamics_cli import __version__
from dynamics_cli.errors import RunError
from dynamics_cli.runs.errors import CorruptRunError, NotARunError
from dynamics_cli.runs.info import provenance, read_info, threads, write_info
from dynamics_cli.runs.store.layout import is_run

INFO = {"status": "complete", "config_sha256": "0", "final_loss": 0.1, "messages": ["ä"]}


def test_round_trip_and_non_finite_numbers(tmp_path):
    numbers = {
        "nan": math.nan,
        "inf": [math.inf, np.float32(2)],
        "n": np.int64(3),
        "path": Path("x"),
        "t": (1,),
    }
    write_info(tmp_path, INFO | numbers)
    expected = INFO | {"format": 1, "nan": None, "inf": [None, 2.0], "n": 3, "path": "x", "t": [1]}
    assert read_info(tmp_path) == expected
    assert json.loads((tmp_path / "run.json").read_text())["nan"] is None
    assert is_run(tmp_path)


def test_an_edited_file_and_another_version_say_so(tmp_path):
    write_info(tmp_path, INFO)
    file = tmp_path / "run.json"
    file.write_text(file.read_text().replace("0.1", "0.2"))
    with pytest.raises(CorruptRunError, match="was it edited"):
        read_info(tmp_path)
    write_info(tmp_path, {**INFO, "format": 4})
    with pytest.raises(RunError, match=r"was written by a later version of dyn \(format 4"):
        read_info(tmp_path)


@pytest.mark.parametrize(
    "entries",
    [
        {"status": "x"},
        {"iterations": "many"},
        {"final_loss": "small"},
        {"messages": "all well"},
        {"rows": {"losses": 1}, "crc32": {}},
        {"rows": {"../losses": 1}, "crc32": {"../losses": 1}},
        {"kinds": {"activation.zed": "zed.py"}},
        {"files": ["d.csv"]},
        {"replicas": [{}, {}], "replica_losses": [1.0]},
    ],
    ids=str,
)
def test_a_wrong_form_is_damage_whatever_its_checksum(entries, tmp_path):
    write_info(tmp_path, INFO | entries)
    with pytest.raises(CorruptRunError, match="it is not one that dyn writes"):
        read_info(tmp_path)


def test_directories_that_are_not_runs(tmp_path):
    with pytest.raises(NotARunError, match="does not exist"):
        read_info(tmp_path / "missing")
    with pytest.raises(NotARunError, match="is not a run directory"):
        read_info(tmp_path)
    (tmp_path / "config.yaml").write_text("name: theirs\n")
    assert not is_run(tmp_path)
    (tmp_path / "config.yaml").write_text(
        "# The resolved config of this run directory, written by dyn.\nname: x\n"
    )
    assert not is_run(tmp_path)
    with pytest.raises(NotARunError, match="half copied, or half deleted"):
        read_info(tmp_path)
    with pytest.raises(NotARunError):
        read_info(tmp_path / "config.yaml")


def test_what_is_described(monkeypatch):
    found = provenance()
    assert (found["versions"]["dyn"], found["versions"]["numpy"]) == (__version__, np.__version__)
    assert datetime.now(UTC) - datetime.fromisoformat(found["started"]) < timedelta(minutes=1)
    assert found["platform"]
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert threads() == 3
    monkeypatch.setenv("OMP_NUM_THREADS", "all")
    assert threads() is None


def test_runs_import_nothing_heavy():
    code = (
        "import sys, dynamics_cli.runs; sys.exit(any(m in sys.modules for m in ('torch', 'scipy',"
        " 'matplotlib')))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
