from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from dynamics_cli.errors import RunError
from dynamics_cli.runs import CorruptRunError, NotARunError, is_run
from dynamics_cli.runs.info import read_info, write_info
from dynamics_cli.text import jsonable

INFO = {"format": 1, "status": "complete", "config_sha256": "0", "final_loss": 0.1, "messages": ["ä"]}


def test_round_trip_and_non_finite_numbers(tmp_path: Path) -> None:
    numbers = {"nan": math.nan, "inf": [math.inf, np.float32(2)], "n": np.int64(3), "path": Path("x"), "t": (1,)}
    write_info(tmp_path, INFO | numbers)
    expected = INFO | {"nan": None, "inf": [None, 2.0], "n": 3, "path": "x", "t": [1]}
    assert read_info(tmp_path) == expected
    assert json.loads((tmp_path / "run.json").read_text())["nan"] is None
    assert is_run(tmp_path)
    assert jsonable(np.array([1.0, math.nan])) == [1.0, None]


def test_an_edited_file_and_a_newer_version_say_so(tmp_path: Path) -> None:
    write_info(tmp_path, INFO)
    file = tmp_path / "run.json"
    text = file.read_text()
    file.write_text(text.replace("0.1", "0.2"))
    with pytest.raises(CorruptRunError, match="was it edited"):
        read_info(tmp_path)
    file.write_text(text.replace('"format": 1', '"format": 4'))
    with pytest.raises(CorruptRunError, match="does not fit its checksum, or a newer version of dyn wrote it"):
        read_info(tmp_path)
    write_info(tmp_path, {**INFO, "format": 4})
    told = "newer version of dyn (format 4, where this one reads formats up to 1)"
    with pytest.raises(RunError, match=re.escape(told)):
        read_info(tmp_path)


def test_directories_that_are_not_runs(tmp_path: Path) -> None:
    with pytest.raises(NotARunError, match="does not exist"):
        read_info(tmp_path / "missing")
    with pytest.raises(NotARunError, match="is not a run directory"):
        read_info(tmp_path)
    (tmp_path / "config.yaml").write_text("name: theirs\n")
    assert not is_run(tmp_path)
    (tmp_path / "config.yaml").write_text("# The resolved config of this run directory, written by dyn.\nname: x\n")
    assert is_run(tmp_path)
    with pytest.raises(NotARunError, match="half copied or half deleted"):
        read_info(tmp_path)
    (tmp_path / "run.json").mkdir()
    with pytest.raises(RunError, match="cannot be read"):
        read_info(tmp_path)
    with pytest.raises(NotARunError):
        read_info(tmp_path / "config.yaml")
