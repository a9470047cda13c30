"""The section of a config file that is no part of any run."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from dynamics_cli.kinds import PositiveInt, Section


class SweepSection(Section):
    """What `dyn sweep` varies: a section of a config file that is no part of any of its runs."""

    example = """\
sweep:
  grid: {optimizer.lr: "1e-3:1e-2:log:3", architecture.width: [20, 60]}
  let: {initialization.scale: 0.06 / architecture.width}
  seeds: 2
"""
    grid: dict[str, Any] = Field(default_factory=dict)
    """Settings, each with its values: every combination is trained.

    Values are a list, or a text: `1e-6:10:log:25` (first, last, count), `1:5:5`, `8:512:logint:7` (whole numbers)."""
    zip: list[dict[str, Any]] = Field(default_factory=list)
    """Settings that run together, value by value, each with as many values."""
    let: dict[str, Any] = Field(default_factory=dict)
    """Settings that are computed: `optimizer.lr: min(10, 0.1 / initialization.scale**2)`."""
    seeds: PositiveInt = 1
    """Seeds per point of the grid: that of the config and those after it."""
    record: Literal["light", "ends", "config"] | None = None
    """Kept of each job: its ends and about a thousand losses; its ends; what `record` says.

    By default what `record` says, as long as that is estimated below `record.limit_gib` for all jobs together."""
