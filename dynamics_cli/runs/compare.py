"""Two runs side by side: settings, final numbers, and distances of losses and weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from dynamics_cli.config import RunConfig
from dynamics_cli.config.dump import flat
from dynamics_cli.runs.code import part_of
from dynamics_cli.runs.run import Array, Run, final_numbers
from dynamics_cli.text import Table


@dataclass(frozen=True)
class Difference:
    """How far two recorded quantities are apart at the iterations that both runs recorded."""

    common: int
    """Number of these iterations."""
    relative: float | None
    """max |a - b|, divided by max(|a|, |b|), over all of them; None where nothing is compared."""
    iteration: int | None
    """Where they are farthest apart."""
    note: str = ""
    """Why nothing can be compared."""


@dataclass(frozen=True, repr=False)
class Comparison:
    """Two runs side by side."""

    a: Run
    b: Run
    settings: dict[str, tuple[Any, Any]]
    """`section.key` -> (value in a, value in b) of those that differ; None where a key is not."""
    loss: Difference
    parameters: dict[str, Difference]
    code: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    """What differs of the code that made them: name -> (value in a, value in b), None for nothing.
    """

    @property
    def final(self) -> dict[str, tuple[Any, Any]]:
        """Final numbers and measures by name, of a and of b; None where a run has none."""
        return _side_by_side(final_numbers(self.a), final_numbers(self.b))

    @property
    def rows(self) -> Table:
        """Rows of `what`: settings and code that differ, final numbers, and recorded arrays.

        All have `a` and `b` but arrays, which have a `difference`, and the `iteration` of it.
        """
        rows = Table()
        parts = {"setting": self.settings, "code": self.code, "final": self.final}
        for what, sides in parts.items():
            rows += [{"what": what, "name": name, "a": a, "b": b} for name, (a, b) in sides.items()]
        for name, apart in {"loss": self.loss, **self.parameters}.items():
            row = {"what": "recorded", "name": name}
            rows.append({**row, "difference": apart.relative, "iteration": apart.iteration})
        return rows

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison as `--json` prints it."""
        return {
            "runs": [
                {"path": run.path, "hash": run.hash, **final_numbers(run)}
                for run in (self.a, self.b)
            ],
            "settings": self.settings,
            "code": self.code,
            "loss": asdict(self.loss),
            "parameters": {
                name: asdict(difference) for name, difference in self.parameters.items()
            },
        }

    def _repr_html_(self) -> str:
        """Show what differs in a notebook."""
        return self.rows._repr_html_()

    def __repr__(self) -> str:
        return f"<Comparison of {self.a!r} and {self.b!r}>"


def compare_runs(a: Run, b: Run) -> Comparison:
    """Compare two runs: their settings, final numbers, losses and weights."""
    names = dict.fromkeys([*a.parameters, *b.parameters])
    parameters = {name: _difference(a, b, name) for name in names}
    settings = settings_that_differ(a.config, b.config)
    code = _differing(*_codes_of(a.info, b.info))
    return Comparison(a, b, settings, _difference(a, b), parameters, code)


def _codes_of(*infos: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the code that made each run, from `run.json`: the author's, and the version of dyn.

    Script, copies and packages count where both runs keep them: a job leaves them to its sweep.
    """
    provenances = [info.get("provenance", {}) for info in infos]
    entries = [made.get("code", {}) for made in provenances]
    if not all("packages" in entry for entry in entries):
        entries = [part_of(entry) for entry in entries]
    codes = []
    for info, made, entry in zip(infos, provenances, entries, strict=True):
        python = info.get("versions", {}).get("python")
        code = flat({"dyn": made.get("commit"), "python": python, **entry})
        codes.append({k: value for k, value in code.items() if not k.endswith((".from", ".copy"))})
    return codes


def settings_that_differ(a: RunConfig, b: RunConfig) -> dict[str, tuple[Any, Any]]:
    """Return `section.key -> (value in a, value in b)`; None where a config has no such key."""
    left = flat(a.model_dump(exclude_none=True))
    right = flat(b.model_dump(exclude_none=True))
    return _differing(left, right)


def _differing(left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    return {key: (x, y) for key, (x, y) in _side_by_side(left, right).items() if x != y}


def _difference(a: Run, b: Run, parameter: str | None = None) -> Difference:
    """Compare a parameter, or the losses, where both runs recorded it, in blocks."""
    for run in (a, b):
        if parameter is not None and parameter not in run.parameters:
            return Difference(0, None, None, f"{run.path} has not recorded it")
    (at_a, left), (at_b, right) = (_recorded(run, parameter) for run in (a, b))
    if left.shape[1:] != right.shape[1:]:
        return Difference(0, None, None, f"shapes {left.shape[1:]} and {right.shape[1:]}")
    steps, i, j = np.intersect1d(at_a, at_b, return_indices=True)
    if len(steps) == 0:
        return Difference(0, None, None, "no iteration was recorded by both")
    block = max(1, 2**22 // max(1, int(np.prod(left.shape[1:]))))  # rows a block: 32 MiB
    apart = np.empty(len(steps))
    scale = 0.0
    for first in range(0, len(steps), block):
        part = slice(first, first + block)
        # (k, ...)
        x = np.asarray(left[i[part]], np.float64)
        y = np.asarray(right[j[part]], np.float64)
        same = (x == y) | (np.isnan(x) & np.isnan(y))
        with np.errstate(invalid="ignore", over="ignore"):
            distances = np.where(same, 0.0, np.abs(x - y))
        distances[np.isnan(distances)] = np.inf  # only one of the two is finite
        apart[part] = distances.reshape(len(x), -1).max(axis=1)
        both = np.abs(np.stack([x, y]))
        scale = max(scale, float(np.max(both, where=np.isfinite(both), initial=0.0)))
    k = int(np.argmax(apart))
    relative = 0.0
    if apart[k] > 0:
        with np.errstate(divide="ignore"):  # where only one of the two is finite, perhaps x / 0
            relative = float(apart[k] / scale)
    return Difference(len(steps), relative, int(steps[k]))


def _recorded(run: Run, parameter: str | None) -> tuple[Array, Array]:
    """Return iterations and values of a parameter, or of the losses."""
    if parameter is None:
        return run.loss_iterations, run.losses
    return run.snapshot_iterations, run.parameters[parameter]


def _side_by_side(left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    return {key: (left.get(key), right.get(key)) for key in dict.fromkeys([*left, *right])}
