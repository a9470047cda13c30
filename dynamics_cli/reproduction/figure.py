"""The declaration of a reproduced figure."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any, SupportsFloat

from dynamics_cli.config.reader import read_value
from dynamics_cli.errors import InputError, UsageError, did_you_mean
from dynamics_cli.reproduction.claims import Claim
from dynamics_cli.reproduction.entries import Reason
from dynamics_cli.runs.store.layout import audits_root

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure as Drawing

    from dynamics_cli.runs.run import Run


@dataclass(frozen=True)
class Wanted:
    """A run that a figure needs: a config, with changes as after `--set`."""

    config: str
    """Path below `configs/`; a figure of another package gives an absolute path."""
    overrides: tuple[str, ...] = ()
    replicas: int = 1
    """Networks with the config's seed and those after it, trained together.

    Several are one run with arrays `(K, R, ...)`.
    """
    null: bool = False
    """Whether an audit trains it under a null: then it is kept below `outputs/audits`."""

    @property
    def root(self) -> Path | None:
        """The folder of the run directory; None for the folder of all runs."""
        if self.null:
            return audits_root()
        return None


NullChanges = tuple[str, ...] | Mapping[str, tuple[str, ...]]
"""Changes of all configs, as after `--set`; or of some, by their names (the key `name`)."""
Runs = Mapping[str, "Run"]
"""Role -> the finished run that plays it."""


def grid(
    config: str,
    settings: Mapping[str, Iterable[Any]],
    role: str,
    *changes: str | Callable[..., str],
    replicas: int = 1,
) -> dict[str, Wanted]:
    """Return a run for every combination of values of the settings, the last changing fastest.

    `role` is the format of a run's role, `N = {:d}, scale {:g}`. Further changes are the same for
    all runs, or functions of the values.
    """
    wanted = {}
    for values in itertools.product(*settings.values()):
        own = [f"{key}={value}" for key, value in zip(settings, values, strict=True)]
        own += [change if isinstance(change, str) else change(*values) for change in changes]
        wanted[role.format(*values)] = Wanted(config, tuple(own), replicas)
    return wanted


def by_values(runs: Runs, role: str) -> dict[Any, Run]:
    """Return the runs whose roles have a format of `grid`, by the values as the roles have them.

    Several values are a tuple.
    """
    pattern = re.sub(r"\\{.*?\\}", "(.+)", re.escape(role))
    found: dict[Any, Run] = {}
    for name, run in runs.items():
        if match := re.fullmatch(pattern, name):
            values = [read_value(word, "a role", role) for word in match.groups()]
            found[tuple(values) if len(values) > 1 else values[0]] = run
    return found


@dataclass(frozen=True)
class Variant:
    """The same figure of other runs, such as runs on gradient flow itself."""

    title: str
    """The difference, in words that go on from the title of the figure: `on gradient flow`."""
    caption: str
    """A sentence that the caption gets."""
    configs: Mapping[str, str | Wanted]
    """Role -> the run that takes the place of the figure's."""
    seed_configs: Mapping[str, str | Wanted] = field(default_factory=dict)
    """As `Figure.seed_configs`, in place of them."""


def _of_module(_: Any) -> Any:
    """Stand for the function of the same name in the figure's module (`Figure.bound`)."""
    raise TypeError("the figure was not bound to its module; `load_figure` does that")


@dataclass(frozen=True)
class Figure:
    """A figure or table of a paper: its runs, its numbers, its claims and its picture.

    Data flows one way: `evidence` computes everything once from the runs, `claims` and `draw` only
    read it. Functions that are not given are looked up in the module: for `<paper>-fig2`, its
    `evidence_fig2`, or else its `evidence`.
    """

    id: str
    """`<paper>-<figure>`, e.g. `boursier2022-fig2`."""
    caption: str
    """The paper's caption in our words."""
    evidence: Callable[[Runs], Any] = _of_module
    """Runs by role -> everything that claims and drawing need."""
    claims: Callable[[Any], list[Claim]] = _of_module
    draw: Callable[[Any], Drawing] = _of_module
    configs: Mapping[str, str | Wanted] = field(default_factory=dict)
    """Role -> config below `configs/`, or a config with changes; empty for pure theory."""
    presets: Mapping[str, Mapping[str, str | Wanted]] = field(default_factory=dict)
    """Preset name, such as `full` -> runs that replace runs of the same role, or are added."""
    variants: Mapping[str, Variant] = field(default_factory=dict)
    """Variant name -> other runs for the same evidence, claims and drawing."""
    seed_configs: Mapping[str, str | Wanted] = field(default_factory=dict)
    """Role -> config of all seeds but the first, where the first reads weights from a file."""
    table: Callable[[Any], tuple[list[str], list[list[str]]]] | None = None
    """For tables: evidence -> header and rows, printed and written as CSV."""
    numbers: Callable[[Any], Mapping[str, SupportsFloat]] | None = None
    """Evidence -> numbers by name that the caption or NOTES.md quotes; they have no verdict."""
    nulls: Mapping[str, NullChanges] = field(default_factory=dict)
    """Nulls of the paper for `dyn audit` by name; `data` has data that break the premise of a
    theorem.
    """
    passes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Null -> patterns of ids of claims, such as `norms rate-*` -> why these hold under it."""
    module: str = ""
    """Module with the code of the figure; `load_figure` fills it in."""
    title: str = ""
    """Title in the index of the paper; `load_figure` fills it in."""
    missed: Mapping[str, Reason] = field(default_factory=dict)
    """Reasons in the index, as `FigureEntry.missed`; `load_figure` fills them in."""

    @property
    def paper(self) -> str:
        """Key of the paper."""
        return self.id.split("-", 1)[0]

    def bound(self, module: ModuleType) -> Figure:
        """Return the figure with the module's functions wherever none is given.

        Raises InputError: the module lacks a function that every figure has; the message names it.
        """
        ending = self.id.split("-", 1)[-1].replace("-", "_")
        functions = dict[str, Any]()
        for name in ("evidence", "claims", "draw", "table", "numbers"):
            if (given := getattr(self, name)) in (_of_module, None):
                functions[name] = getattr(module, f"{name}_{ending}", getattr(module, name, None))
                if functions[name] is None and given is _of_module:
                    raise InputError(
                        f"{module.__name__} has no {name}_{ending} and no {name} for {self.id}"
                    )
        return replace(self, module=module.__name__, **functions)

    def wanted(self, preset: str = "default", *, first_seed: bool = True) -> dict[str, Wanted]:
        """Return the runs by role that a preset needs; an unknown preset is the default."""
        chosen = {**self.configs, **self.presets.get(preset, {})}
        of_seeds = {} if first_seed else self.seed_configs
        wanted = {}
        for role, config in chosen.items():
            run = of_seeds.get(role, config)
            wanted[role] = Wanted(run) if isinstance(run, str) else run
        return wanted

    def as_variant(self, name: str) -> Figure:
        """Return a variant as a figure `<id>-<name>` of its own, without presets.

        Raises UsageError: there is no such variant.
        """
        if name not in self.variants:
            known = ", ".join(self.variants) or "none"
            raise UsageError(
                f"{self.id} has no variant {name!r}{did_you_mean(name, self.variants)}; it has"
                f" {known}"
            )
        variant = self.variants[name]
        return replace(
            self,
            id=f"{self.id}-{name}",
            title=f"{self.title}, {variant.title}",
            caption=f"{self.caption} {variant.caption}",
            configs={**self.configs, **variant.configs},
            seed_configs=variant.seed_configs,
            presets={},
            variants={},
        )


def by_id(*figures: Figure) -> dict[str, Figure]:
    """Return the figures of a module that holds several, as its `FIGURES`."""
    return {figure.id: figure for figure in figures}
