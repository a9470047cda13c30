"""`dyn train --dry-run` of configs that are accepted, whatever numbers stand in them."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
from click.testing import CliRunner

from dynamics_cli._bundled import bundled_configs
from dynamics_cli.cli import main
from dynamics_cli.config import load_config
from dynamics_cli.config.dump import to_plain
from dynamics_cli.errors import DynError
from tests.fuzz import grammar

MACHINE = 128 * 2**20
"""Bytes of memory that the program is told the machine has: what does not fit must be refused, not tried."""
HUGE = [2**63 - 1, 2**62, 2**40, 10**12, 10**9, 10**6]
EXTREME = [1e300, 1e100, 1e18, 1e-18, 1e-300, 5e-324, 1.0000000001, 0.999999999]


@dataclass(frozen=True)
class Case:
    """A config as plain data."""

    data: dict[str, Any]


class Room:
    """Bundled configs, with numbers made large or small and sections replaced by grown ones, and grown configs."""

    memory = 2**30
    seconds = 20.0

    def prepare(self, place: Path) -> None:
        import torch  # noqa: F401 - what a plan may import is in memory before its limits are set

        import dynamics_cli.training.session  # noqa: F401

        self.file = place / "config.yaml"
        self.seeds = [
            to_plain(load_config(path))
            for path in bundled_configs().values()
            if "cats" not in path.name and path.parent.name != "examples"
        ]
        psutil.virtual_memory = lambda: SimpleNamespace(total=MACHINE, available=MACHINE)

    def case(self, seed: int, i: int) -> Case:
        rng = random.Random(f"{seed}-{i}")
        if rng.random() < 0.3:
            return Case(grammar.config(rng, wild=0.0))
        data = copy.deepcopy(rng.choice(self.seeds))
        for _ in range(rng.randint(0, 2)):
            name = rng.choice(["dataset", "architecture", "initialization", "loss", "optimizer", "record"])
            data[name] = grammar.config(rng, wild=0.0).get(name, data.get(name, {}))
        for section, key in rng.sample(places := list(_numbers(data)), min(len(places), rng.randint(1, 3))):
            section[key] = rng.choice(HUGE) if isinstance(section[key], int) else rng.choice([*EXTREME, *HUGE])
        return Case(data)

    def run(self, case: Case) -> str:
        self.file.write_text(json.dumps(case.data))
        try:
            load_config(self.file)
        except DynError:
            return "no config"
        result = CliRunner().invoke(main, ["train", str(self.file), "--dry-run", "--json"])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        if result.exit_code == 0:
            plan = json.loads(result.stdout)
            assert all(
                plan[name] >= 0 for name in ("parameters", "iterations", "snapshots", "memory_bytes", "disk_bytes")
            )
            assert plan["memory_bytes"] <= MACHINE
            return "planned"
        assert result.exit_code in (2, 3, 4, 7), result.exit_code
        assert result.stdout == ""
        assert result.stderr.strip()
        assert "Traceback" not in result.stderr
        return f"refused, exit {result.exit_code}"

    def describe(self, case: Case) -> str:
        return json.dumps(case.data)[:3000]


def _numbers(data: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the place of every number in plain data: what holds it, and its key."""
    for key, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield data, key
        else:
            yield from _numbers(value)
