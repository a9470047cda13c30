"""The long table behind pictures: networks that were trained, their settings, their quantities.

A quantity is a curve (`loss`, a measure, a number of it, an expression of these) or a number of a
whole run (`final_loss`, a column of a sweep, an expression that reduces curves).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from dynamics_cli.analysis.theories import Prediction, predictions
from dynamics_cli.config import ConfigError
from dynamics_cli.config.dump import flat
from dynamics_cli.config.reader import read_value
from dynamics_cli.errors import RunError, UsageError, did_you_mean
from dynamics_cli.kinds import Measure
from dynamics_cli.measures.arrays import Floats
from dynamics_cli.plotting.chart import LOG_RANGE
from dynamics_cli.plotting.labels import format_number
from dynamics_cli.runs.marks import branch_of
from dynamics_cli.runs.replica import replicas_of
from dynamics_cli.runs.run import (
    Run,
    columns_of,
    curve_of,
    final_measures,
    last_settings,
    of_measure,
)
from dynamics_cli.runs.titles import called, title_of
from dynamics_cli.sweeps.directory import FIXED, Sweep, is_same, text_of
from dynamics_cli.sweeps.expressions import names_in, value_of
from dynamics_cli.sweeps.find import open_run, sweep_directory
from dynamics_cli.sweeps.grid import is_number
from dynamics_cli.text import shorten

T = TypeVar("T")
LOSS = "loss"
FINAL_LOSS = "final_loss"
UNTOLD = ("name", "seed", "device", "backend", "record", "recorded", "changes")
"""Sections and keys of a config that tell no networks apart in a legend; branches have words."""
THEORY = "theory."
"""Begins the names of curves that a theory predicts."""
MANY_SETTINGS = 3
"""Differing settings that name a run; runs that differ in more have the names of their folders."""
SHORT = 24
LONG = 60
"""Characters of a word in a legend; and where that does not tell words apart."""


def drawn_measures(run: Run) -> list[str]:
    """Return the names of the measures that are curves; others have panels of their own."""
    return [
        name
        for name in run.measures
        if of_measure(run.config, name, lambda measure: measure.panel) in (None, "measures")
    ]


@dataclass(eq=False)
class Network:
    """A network that was trained, and what is known of it before its arrays are read."""

    name: str
    place: str
    """Its directory, and its number where several were trained together."""
    settings: dict[str, Any]
    """By `section.key`; those that a sweep varies are whole sections where it varies sections."""
    opened: Callable[[], Run]
    row: Mapping[str, Any] | None = None
    """Its row in the table of its sweep."""

    @cached_property
    def run(self) -> Run | None:
        """Its run; None where its job failed."""
        if self.row is not None and self.row["status"] == "failed":
            return None
        return self.opened()

    @cached_property
    def branch(self) -> str:
        """What was changed on the way, in words."""
        changed = branch_of(self.run) if self.run is not None and "changes" in self.settings else ""
        return changed or "no change"

    @property
    def curves(self) -> list[str]:
        """Names of the curves that it has recorded."""
        return [LOSS, *self.run.measures] if self.run is not None else []

    def setting(self, key: str) -> Any:
        """Return a setting; of a section the mapping of its keys, None where there is none."""
        if key == "branch":
            return self.branch
        if key in self.settings:
            return self.settings[key]
        if self.row is not None and key in self.row:
            return self.row[key]
        inside = f"{key}."
        parts = {
            name.removeprefix(inside): value
            for name, value in self.settings.items()
            if name.startswith(inside)
        }
        return parts or None

    def curve(self, quantity: str) -> tuple[Floats, Floats]:
        """Return iterations and values (k,) of a quantity; both are empty where it has none."""
        nothing = np.zeros(0), np.zeros(0)
        if self.run is None:
            return nothing
        if not is_expression(quantity):
            if quantity.startswith(THEORY) and not self.has(quantity):
                return nothing
            return self.recorded(quantity)
        parts = {name: self.recorded(name) for name in self.curves_in(quantity)}
        if not parts or not all(len(steps) for steps, _ in parts.values()):
            return nothing
        common = np.array(sorted(set.intersection(*(set(at.tolist()) for at, _ in parts.values()))))
        there = {
            name: np.asarray(curve, np.float64)[np.searchsorted(at, common)]
            for name, (at, curve) in parts.items()
        }
        return common.astype(float), np.asarray(self._evaluated(quantity, there), np.float64)

    def curves_in(self, expression: str) -> list[str]:
        """Return the curves of an expression that no reduction makes a number of."""
        return [name for name in names_in(expression) if self.has(name)]

    @cached_property
    def predictions(self) -> list[Prediction]:
        """The predictions of theories for it."""
        return [] if self.run is None else predictions(self.run)

    @cached_property
    def predicted(self) -> dict[str, tuple[Floats, Floats]]:
        """Curves over iterations that theories predict, as `theory.NAME.CURVE`."""
        found: dict[str, tuple[Floats, Floats]] = {}
        for prediction in self.predictions:
            for name, curve in prediction.curves.items():
                columns = np.reshape(curve.predicted, (len(curve.x), -1)).T
                for k, column in enumerate(columns):
                    number = f".{k + 1}" * (len(columns) > 1)
                    if curve.xlabel == "iteration":
                        found[f"{THEORY}{prediction.name}.{name}{number}"] = (curve.x, column)
        return found

    def recorded(self, name: str) -> tuple[Floats, Floats]:
        """Return iterations and values (k,) of what it has recorded, or a theory predicts."""
        if name.startswith(THEORY):
            return self.predicted[name]
        assert self.run is not None
        steps, values = curve_of(self.run, name)
        return np.asarray(steps, float), np.asarray(values, float)

    def has(self, name: str) -> bool:
        """Whether it has recorded a curve of this name, or a theory predicts it.

        Raises UsageError: its assumptions fail.
        """
        if name.startswith(THEORY):
            for prediction in self.predictions:
                if prediction.violated and name.startswith(f"{THEORY}{prediction.name}."):
                    told = "; ".join(prediction.violated)
                    raise UsageError(f"{prediction.name} does not predict {self.name}: {told}")
            return name in self.predicted
        measure = next((known for known in self.curves if name.startswith(f"{known}.")), name)
        return measure in self.curves and (measure != LOSS or name == LOSS)

    def _evaluated(self, expression: str, curves: Mapping[str, Floats]) -> Any:
        run = self.run
        assert run is not None
        return value_of(
            expression,
            {**self.settings, **curves},
            run.config.model_dump(exclude_none=True),
            lambda name, reduction: curve_of(run, name),
        )

    def number(self, quantity: str, at: int | None = None) -> float:
        """Return a quantity of the whole run, or its value at the recorded state nearest to `at`.

        NaN where it has none.
        """
        if is_expression(quantity) and self.run is not None and not self.curves_in(quantity):
            return float(self._evaluated(quantity, {}))
        if at is None and not is_expression(quantity):
            return self._final(FINAL_LOSS if quantity == LOSS else quantity)
        steps, values = self.curve(quantity)
        if not len(steps):
            return np.nan
        return float(values[-1] if at is None else values[np.argmin(np.abs(steps - at))])

    def _final(self, name: str) -> float:
        """Return a column of the table of its sweep, or what a table would have of its run."""
        if self.row is not None and name in self.row:
            return _as_number(self.row[name])
        if self.run is None or (self.run.status == "diverged" and name != FINAL_LOSS):
            return np.nan
        return _as_number({FINAL_LOSS: self.run.final_loss, **final_measures(self.run)}.get(name))

    def asked(self, quantity: str, ask: Callable[[Measure], T]) -> T | None:
        """Return the answer of the measure of a quantity; None where there is none."""
        if self.run is None:
            return None
        names = (quantity, quantity.partition(".")[0])
        answers = (of_measure(self.run.config, name, ask) for name in names)
        return next((answer for answer in answers if answer is not None), None)

    def bound(self, quantity: str) -> tuple[str, float] | None:
        """Return name and value of the line beside a measure."""
        if self.run is None:
            return None
        sections = last_settings(self.run.config)
        return self.asked(quantity, lambda measure: measure.bound(sections))


def is_expression(quantity: str) -> bool:
    """Whether a quantity is computed from others."""
    return re.search(r"[^\w.\- ]| - ", quantity) is not None


def _as_number(value: Any) -> float:
    return float(value) if is_number(value) else np.nan


class NetworkSource(NamedTuple):
    """A run, runs trained together, or a sweep, of which networks are."""

    networks: list[Network]
    config: Mapping[str, Any]
    """Of one of them; where a setting is varied, networks differ."""
    grid: Mapping[str, bool] = {}
    """Settings that a sweep varies, and whether they are spaced by ratios."""
    computed: Mapping[str, str] = {}
    """Settings computed from these, and how."""
    labels: Mapping[str, str] = {}
    derived: Mapping[str, str] = {}
    """Columns of the table that are one number of each job, without a curve, and how."""
    jobs: int = 1
    alone: bool = False
    """Whether it is a single run."""


def sources_of(runs: Iterable[Any]) -> list[NetworkSource]:
    """Open runs, runs trained together, and sweeps.

    Raises RunError: something is damaged or not there, or no job of a sweep has ended.
    """
    return [_source(which) for which in runs]


def _source(which: Any) -> NetworkSource:
    directory = sweep_directory(which)
    if directory is not None:
        return _of_sweep(which if isinstance(which, Sweep) else Sweep(directory))
    run = open_run(which, together=True, whole=True)
    together = "replicas" in run.info
    networks = []
    for each in replicas_of(run) if together else [run]:
        replica = getattr(each, "replica", None)  # one may be opened alone
        end = "" if replica is None else f":{replica}"
        config = each.config.model_dump(exclude_none=True)
        place = f"{run.path.absolute()}{end}"
        opened = partial(lambda run: run, each)
        networks.append(Network(f"{run.path.name}{end}", place, flat(config), opened))
    return NetworkSource(networks, config, jobs=len(networks), alone=not together)


def _of_sweep(sweep: Sweep) -> NetworkSource:
    if not sweep.rows:
        raise RunError(f"no job of {sweep.path} has ended yet")
    described = sweep.described
    grid = {axis.key: axis.log for axis in described.axes}
    keys = described.settings
    begun = next((row for row in sweep.rows if row["status"] != "failed"), None)
    config = described.config
    if begun is not None:
        config = sweep.run(begun).config.model_dump(exclude_none=True)
    base = {
        key: value
        for key, value in flat(config).items()
        if not any(f"{key}.".startswith(f"{swept}.") for swept in keys)
    }
    networks = []
    for row in sweep.rows:
        settings = base | {key: row[key] for key in [*keys, "seed"]}
        end = f":{row['job']}"
        place = f"{sweep.path.absolute()}{end}"
        opened = partial(sweep.run, row)
        networks.append(Network(f"{sweep.path.name}{end}", place, settings, opened, row))
    return NetworkSource(
        networks,
        config,
        grid,
        described.computed,
        described.labels,
        described.columns,
        described.jobs,
    )


@dataclass(eq=False)
class Networks:
    """The networks of a picture, what tells them apart, and what they are called."""

    sources: Sequence[NetworkSource]
    where: Mapping[str, Any] = field(default_factory=dict)
    """Settings and the values that networks need."""
    labels: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Choose the networks of `where`.

        Raises UsageError: there is no such setting, or no network has the value.
        """
        self.labels = {**self._of_sources("labels"), **self.labels}
        self.grid: dict[str, bool] = self._of_sources("grid")
        """Settings that sweeps vary, and whether they are spaced by ratios."""
        self.computed: dict[str, str] = self._of_sources("computed")
        """Settings computed from these, and how."""
        self.derived: dict[str, str] = self._of_sources("derived")
        """Columns of tables without a curve, and how they are computed."""
        self.where = {key: _from_text(value) for key, value in self.where.items()}
        every = [network for source in self.sources for network in source.networks]
        self.all = [*{network.place: network for network in every}.values()]
        self.rows = self.all
        for key, value in self.where.items():
            self.rows = self._having(key, value)
        self._values: dict[str, list[Any]] = {}
        self._places: dict[str, dict[str, float]] = {}

    def _having(self, key: str, value: Any) -> list[Network]:
        known = list(dict.fromkeys([*self.settings, *self.columns, "job", "status"]))
        if key not in known and all(row.setting(key) is None for row in self.rows):
            raise UsageError(
                f"no setting {key!r} here{did_you_mean(key, known)}; there are {', '.join(known)}"
            )
        texts = {row: text_of(row.setting(key)) for row in self.rows}
        rows = [row for row in self.rows if is_same(texts[row], text_of(value))]
        if not rows:
            raise UsageError(
                f"no run has {key} {text_of(value)}; there are"
                f" {', '.join(dict.fromkeys(texts.values()))}"
            )
        return rows

    def _of_sources(self, name: str) -> dict[str, Any]:
        return {key: value for each in self.sources for key, value in getattr(each, name).items()}

    @property
    def alone(self) -> bool:
        """Whether all are single runs, which a user named one by one."""
        return all(source.alone for source in self.sources)

    @cached_property
    def settings(self) -> list[str]:
        """Settings of sweeps, and others with several values: those of sweeps come first."""
        varied = [*self.grid, *self.computed]
        firsts = [source.networks[0].settings for source in self.sources]
        if not varied and len(self.all) > len(firsts):  # replicas
            firsts = [network.settings for network in self.all]
        if len(firsts) > 1:
            keys = dict.fromkeys(key for settings in firsts for key in settings)
            for key in keys:
                told = key not in UNTOLD and key.partition(".")[0] not in UNTOLD
                inside = any(key.startswith(f"{swept}.") for swept in varied)
                if told and not inside and len({identity(one.get(key)) for one in firsts}) > 1:
                    varied.append(key)
            if len({identity(one.get("changes")) for one in firsts}) > 1:
                varied.append("branch")
        return list(dict.fromkeys(varied))

    @cached_property
    def free(self) -> list[str]:
        """Settings with several values that are not computed from others."""
        return [
            key for key in self.settings if key not in self.computed and len(self.values(key)) > 1
        ]

    @cached_property
    def columns(self) -> list[str]:
        """Names of final numbers in tables of sweeps: measures first, where any is asked for."""
        hidden = (*FIXED, *self.settings, "iterations")
        names = dict.fromkeys(
            name for row in self.all[:1] for name in row.row or () if name not in hidden
        )
        asked = bool(self.derived) or "record.measures" in self.all[0].settings
        return sorted(names, key=lambda name: (name == FINAL_LOSS) == asked)

    @cached_property
    def curves(self) -> list[str]:
        """Names of the curves that some network has recorded; sweeps ask their first jobs."""
        found: dict[str, None] = {}
        for source in self.sources:
            begun = [network for network in source.networks if network.run is not None]
            for network in begun[:1] if source.grid else begun:
                found |= dict.fromkeys(network.curves)
        return [*found]

    def quantities(self, asked: str) -> list[str]:
        """Return a quantity, or the numbers of a measure that has several.

        Raises UsageError: there is none of this name; the message has the nearest.
        """
        if is_expression(asked):
            names = names_in(asked)
            unknown = [name for name in names if not self._known(name)]
            if unknown:
                self._refuse(unknown[0])
            return [asked]
        for network in self.rows:
            if network.run is not None and asked in network.run.measures:
                return [column.name for column in columns_of(network.run, asked)]
            if network.has(asked) or asked in (network.row or ()):
                return [asked]
            if asked.startswith(THEORY):
                names = [name for name in network.predicted if name.startswith(f"{asked}.")]
                if names:
                    return names
        if asked != FINAL_LOSS:
            self._refuse(asked)
        return [asked]

    def _known(self, name: str) -> bool:
        return any(network.has(name) or is_number(network.setting(name)) for network in self.rows)

    def _refuse(self, name: str) -> None:
        known = list(dict.fromkeys([*self.curves, *self.columns, FINAL_LOSS, *self.free]))
        if name.startswith(THEORY):
            known = [*self.rows[0].predicted] or known
        raise UsageError(
            f"no quantity {name!r} here{did_you_mean(name, known)}; there are {', '.join(known)}"
        )

    def is_curve(self, quantity: str) -> bool:
        """Whether a quantity has values over iterations in some network."""
        if is_expression(quantity):
            return any(network.curves_in(quantity) for network in self.rows)
        return any(network.has(quantity) for network in self.rows)

    def is_setting(self, key: str) -> bool:
        """Whether a name is that of a setting."""
        if key in (*self.settings, "seed"):
            return True
        return "." in key and any(network.setting(key) is not None for network in self.rows)

    def value(self, network: Network, key: str) -> Any:
        """Return what a channel tells apart: a setting, or `run`."""
        if key == "run":
            return network.place
        return network.setting(key)

    def values(self, key: str) -> list[Any]:
        """Return the different values of a setting, in their order."""
        if key not in self._values:
            different: dict[str, Any] = {}
            for row in self.rows:
                value = self.value(row, key)
                different.setdefault(identity(value), value)
            self._values[key] = [*different.values()]
        return self._values[key]

    def words(self, key: str) -> dict[str, str]:
        """Return different names for the values of a setting, by their identity."""
        values = self.values(key)
        if key == "run":
            names = self.run_names()
        else:
            words = distinct(values)
            names = [self.labels.get(word, word) for word in words]
            if len(set(names)) < len(names):
                names = words
        return dict(zip(map(identity, values), names, strict=True))

    @cached_property
    def leaves(self) -> dict[str, int]:
        """Directories of branches, and the states at which they leave a run that is drawn too.

        What they share belongs to the run with fewer changes.
        """
        if not self.alone or "branch" not in self.settings:
            return {}
        found: dict[str, int] = {}
        rows = sorted(self.rows, key=lambda row: len(row.setting("changes") or ()))
        for k, row in enumerate(rows):
            own = row.setting("changes") or []
            for other in rows[:k]:
                if _before_changes(other) != _before_changes(row):
                    continue
                theirs = other.setting("changes") or []
                same = 0
                while theirs[same : same + 1] == own[same : same + 1] != []:
                    same += 1
                ends = [changes[same]["at"] for changes in (own, theirs) if len(changes) > same]
                if ends:
                    found[row.place] = max(min(ends), found.get(row.place, 0))
        return found

    def run_names(self) -> list[str]:
        """Return different names: settings that differ where these are few, or those of folders."""
        keys = [key for key in [*self.free, "seed"] if len(self.values(key)) > 1]
        names = [row.name for row in self.rows]
        if 0 < len(keys) <= MANY_SETTINGS:
            names = [
                ", ".join(self.said(key, row.setting(key)) for key in keys) for row in self.rows
            ]
        names = [
            self.labels.get(row.name, name) for row, name in zip(self.rows, names, strict=True)
        ]
        counts = Counter(names)
        return [f"{k + 1}: " * (counts[name] > 1) + name for k, name in enumerate(names)]

    def said(self, key: str, value: Any) -> str:
        """Return what a legend calls a value of a setting."""
        word = self.words(key)[identity(value)]
        if key in ("run", "branch") or (not is_number(value) and word in self.labels.values()):
            return word
        between = " = " if is_number(value) else " "
        return f"{self.title(key)}{between}{word}"

    def title(self, name: str) -> str:
        """Return what pictures call a setting or a quantity."""
        if name in self.labels:
            return self.labels[name]
        if "." in name and self.is_setting(name):
            return title_of(name, self.sources[0].config)
        return called(name)

    def numeric(self, key: str) -> bool:
        """Whether a setting, or a column without the jobs that failed, holds numbers only."""
        values = [value for value in self.values(key) if value is not None or self.is_setting(key)]
        return bool(values) and all(map(is_number, values))

    def place(self, network: Network, key: str) -> float:
        """Return where a network stands on an axis."""
        if key not in self._places:
            numbers, _ = self.places(key)
            names = (row.place for row in self.rows)
            self._places[key] = dict(zip(names, numbers.tolist(), strict=True))
        return self._places[key][network.place]

    def places(self, key: str) -> tuple[Floats, list[str] | None]:
        """Return where networks stand on an axis: at numbers, or at those of words, and these."""
        if self.numeric(key):
            numbers = [_as_number(self.value(row, key)) for row in self.rows]
            return np.array(numbers), None
        words = self.words(key)
        place = {value: float(k) for k, value in enumerate(words)}
        numbers = [place[identity(self.value(row, key))] for row in self.rows]
        return np.array(numbers), [*words.values()]

    def logarithmic(self, key: str) -> bool:
        """Whether a column is spaced by ratios, or needs a logarithmic axis to be seen."""
        values, words = self.places(key)
        values = values[np.isfinite(values)]
        if words is not None or not len(values) or values.min() <= 0:
            return False
        if not self.is_setting(key) and self.linear(key):
            return False
        return bool(self.grid.get(key) or values.max() > LOG_RANGE * values.min())

    def linear(self, quantity: str) -> bool:
        """Whether an axis is never logarithmic, as of an accuracy or a number computed from it."""
        expression = self.derived.get(quantity, quantity)
        if "first(" in expression:  # an iteration
            return False
        names = [quantity, *re.findall(r"[A-Za-z_]\w*", expression)]
        begun = next((network for network in self.rows if network.run is not None), None)
        return begun is not None and any(
            begun.asked(name, lambda measure: measure.linear) for name in names
        )


def _before_changes(network: Network) -> dict[str, Any]:
    """Return the settings with which a network began."""
    skipped = {*UNTOLD} - {"seed"}
    return {
        key: value
        for key, value in network.settings.items()
        if key not in skipped and key.partition(".")[0] not in skipped
    }


def identity(value: Any) -> str:
    """Return a text that two values share exactly where they are the same."""
    return json.dumps(value, sort_keys=True, default=str)


def _short(value: Any, digits: int = 3, most: int = SHORT) -> str:
    if is_number(value):
        return format_number(value, digits)
    return shorten(_readable(value), most)


def _readable(value: Any) -> str:
    """Return a value as a legend shows it: a kind with its settings as `leaky_relu, slope 0.1`."""
    if value is None:
        return "none"
    if not isinstance(value, dict):
        return text_of(value)
    parts = [f"{key} {_readable(setting)}" for key, setting in value.items() if key != "kind"]
    if "kind" in value:
        parts.insert(0, _readable(value["kind"]))
    return ", ".join(parts)


def distinct(values: Sequence[Any]) -> list[str]:
    """Return different names for different values, which are short where these differ."""
    for digits, most in ((3, SHORT), (17, LONG)):
        names = [_short(value, digits, most) for value in values]
        if len(set(names)) == len(names):
            return names
    return [f"{k + 1}: {name}" for k, name in enumerate(names)]


def _from_text(value: Any) -> Any:
    """Return the value that a text after `--where KEY=` stands for, read as in a config."""
    if not isinstance(value, str):
        return value
    try:
        return read_value(value, "--where", "")
    except ConfigError:  # a word of the table that is no YAML
        return value
