"""What the command line tells OpenMP before anything loads it."""

from __future__ import annotations

import pytest

from .conftest import Dyn

SEEN = """
import os, sys
from dynamics_cli.cli import main
main(["list", "papers", "--json"], standalone_mode=False)
print([os.environ.get("GOMP_SPINCOUNT"), os.environ.get("OMP_WAIT_POLICY"), "torch" in sys.modules])
"""


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ({}, ["10000", None, False]),
        ({"GOMP_SPINCOUNT": "7"}, ["7", None, False]),
        ({"OMP_WAIT_POLICY": "active"}, [None, "active", False]),
    ],
    ids=["nothing given", "spin count given", "policy given"],
)
def test_waiting_threads_spin_briefly_unless_the_user_says_otherwise(
    given: dict[str, str], seen: list[object], shell: Dyn, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.delenv(name, raising=False)
    assert shell(code=SEEN, env=given).out.splitlines()[-1] == str(seen)
