import os
from pathlib import Path

import pytest


@pytest.fixture
def shared():
    """The directory of real data; tests that need it are skipped where it is absent."""
    root = Path(os.environ.get("DYN_SHARED", Path(__file__).parents[3] / "shared"))
    if not (root / "data").is_dir():
        pytest.skip("the shared data are not here")
    return root / "data"


@pytest.fixture(autouse=True)
def data_home(tmp_path, monkeypatch):
    """An empty place for data files."""
    monkeypatch.setenv("DYN_DATA", str(tmp_path / "data-home"))
    return tmp_path / "data-home"
