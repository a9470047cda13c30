"""`dyn train --dry-run` of configs that are accepted, whatever numbers stand in them."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from click.testing import CliRunner
from hypothesis import strategies as st

from dynamics_cli._bundled import bundled_configs
from dynamics_cli.cli import main
from dynamics_cli.config import load_config
from dynamics_cli.config.dump import to_plain
from dynamics_cli.errors import DynError
from tests.fuzz.rooms import Room
from tests.fuzz.strategies import grown

MACHINE = 128 * 2**20
"""Bytes of memory that the program is told the machine has: what does not fit must be refused, not tried."""
HUGE = [2**63 - 1, 2**62, 2**40, 10**12, 10**9, 10**6]
EXTREME = [1e300, 1e100, 1e18, 1e-18, 1e-300, 5e-324, 1.0000000001, 0.999999999]
SECTIONS = ["dataset", "architecture", "initialization", "loss", "optimizer", "record"]


@st.composite
def changed(draw: st.DrawFn, configs: list[dict[str, Any]]) -> dict[str, Any]:
    """Draw a bundled config, a section of which may be another, with some numbers made large or small."""
    data = copy.deepcopy(draw(st.sampled_from(configs)))
    for name in draw(st.lists(st.sampled_from(SECTIONS), max_size=1)):
        data[name] = draw(grown(wild=False)).get(name, data.get(name, {}))
    for _ in range(draw(st.integers(1, 3))):
        section, key = draw(st.sampled_from(list(_numbers(data))))
        section[key] = draw(st.sampled_from(HUGE if isinstance(section[key], int) else [*EXTREME, *HUGE]))
    return data


def _numbers(data: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the place of every number in plain data: what holds it, and its key."""
    for key, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield data, key
        else:
            yield from _numbers(value)


def room(place: Path, patch: pytest.MonkeyPatch) -> Room:
    """Bundled configs with numbers made large or small and sections replaced, and grown configs."""
    import torch  # noqa: F401 - what a plan may import is in memory before its limits are set

    import dynamics_cli.training.session  # noqa: F401

    file = place / "config.yaml"
    names = [path for path in bundled_configs().values() if "cats" not in path.name and path.parent.name != "examples"]
    patch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=MACHINE, available=MACHINE))

    def look(case: dict[str, Any]) -> str:
        file.write_text(json.dumps(case))
        try:
            load_config(file)
        except DynError:
            return "no config"
        result = CliRunner().invoke(main, ["train", str(file), "--dry-run", "--json"])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        if result.exit_code == 0:
            plan = json.loads(result.stdout)
            assert min(plan[name] for name in ("parameters", "iterations", "snapshots", "disk_bytes")) >= 0
            assert 0 <= plan["memory_bytes"] <= MACHINE
            return "planned"
        assert result.exit_code in (2, 3, 4, 7), result.exit_code
        assert (result.stdout, bool(result.stderr.strip()), "Traceback" in result.stderr) == ("", True, False)
        return f"refused, exit {result.exit_code}"

    cases = changed([to_plain(load_config(path)) for path in names])
    return Room(cases | cases | grown(wild=False), look, seconds=20.0, memory=2**30)
