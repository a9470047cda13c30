from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One folder of runs for all tests of this room: what is trained once is reused."""
    folder = tmp_path_factory.mktemp("outputs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DYN_OUTPUTS", str(folder))
        yield folder
