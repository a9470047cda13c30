"""From a description of a picture to its charts: what is on x and y, in colour, and in panels.

What a description names and is not there is refused. Nothing is summed up in silence: networks that
no channel tells apart differ in what is `over` alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.analysis.networks import (
    FINAL_LOSS,
    LOSS,
    THEORY,
    Network,
    Networks,
    distinct,
    identity,
    is_expression,
)
from dynamics_cli.errors import RunError, UsageError, did_you_mean
from dynamics_cli.kinds.pictures import Description
from dynamics_cli.measures.arrays import Floats
from dynamics_cli.plotting.chart import (
    LOG_RANGE,
    Chart,
    Limits,
    Line,
    look,
    references,
    statistics,
)
from dynamics_cli.plotting.labels import ticks_at
from dynamics_cli.plotting.panels.phase import Phase
from dynamics_cli.plotting.scene import DASHES
from dynamics_cli.plotting.time_axis import TimeScale, scale_of
from dynamics_cli.runs.marks import Mark, marks_of_all
from dynamics_cli.runs.titles import OF_AVERAGE
from dynamics_cli.text import counted

MOST_LINES = 21
MOST_CHARTS = 9
"""Families of curves in a chart, and charts of a description, that are drawn at most."""
TIMES = ("iteration", "time", "epoch")
"""What is on x beside settings and quantities."""
CHANNELS = ("run", "branch", "quantity", "average", "seed")
"""What lines and panels tell apart beside settings."""
LINES = ("color", "dash", "marker")
"""Words whose values are lines of different looks."""
PANELS = ("facet", "columns", "rows")
"""Words whose values are panels."""
FORMS: dict[str, list[str]] = {"dash": [*DASHES], "marker": ["o", "s", "^", "D", "v", "*"]}
"""The looks of lines beside colours, which turn round."""
MOST_ACROSS = 5
"""Rows, and columns, of panels that are drawn at most."""
GREY = {"color": "theory"}
AVERAGED = {False: "last weights", True: "average"}


@dataclass(frozen=True, eq=False)
class NetworkCurve:
    """A curve of a network, or a number of it: a curve of one point."""

    network: Network
    asked: str
    """The quantity that was asked for."""
    quantity: str
    """It, or one number of it; without `_of_average`."""
    average: bool
    x: Floats
    """(k,), or (1,) on an axis of settings or of numbers."""
    y: Floats


Group = tuple[tuple[Any, ...], list[NetworkCurve]]
"""Values of what is told apart, and the records that have them."""
Channel = tuple[str, Any]
"""A setting and its value."""


def unit_of(quantity: str) -> str:
    """Return the word for all quantities that share an axis: `loss` for `test_loss`."""
    if is_expression(quantity):
        return quantity
    if quantity.startswith(THEORY):
        quantity = quantity.split(".", 2)[2]
    plain = quantity.removesuffix(OF_AVERAGE).removesuffix("_by_replaced")
    for unit in (LOSS, "accuracy"):
        if plain in (unit, f"train_{unit}", f"test_{unit}", f"final_{unit}"):
            return unit
    return quantity


class Looks:
    """Colours and dashes of values, the same on all panels of a picture."""

    def __init__(self) -> None:
        self._numbers: dict[str, dict[str, int]] = {}

    def number(self, key: str, value: Any) -> int:
        """Return the number of a value among those of a setting."""
        of_key = self._numbers.setdefault(key, {})
        return of_key.setdefault(identity(value), len(of_key))

    def look(self, told: Mapping[str, Channel]) -> dict[str, Any]:
        """Return the look of a line, by the setting and the value of each channel.

        Raises UsageError: a channel has not so many looks.
        """
        numbers = {word: self.number(*channel) for word, channel in told.items()}
        form = look(numbers.pop("color", 0))
        for word, k in numbers.items():
            if k >= len(FORMS[word]):
                raise UsageError(
                    f"{word} tells {len(FORMS[word])} things apart; take color or facet:"
                    f" {told[word][0]}"
                )
            form[word] = FORMS[word][k]
        return form


class Resolved:
    """A description with all that it leaves out, its charts, and the numbers in them."""

    def __init__(
        self, description: Description, networks: Networks, looks: Looks | None = None
    ) -> None:
        """Resolve a description for some networks.

        Raises:
            UsageError: something that it names is not there, or would be summed up in silence.
            RunError: there is no number to draw.
        """
        self.networks = networks
        self.asked = description
        self.looks = looks or Looks()
        self._choose_axes()
        self._choose_channels()
        self.records = [record for row in networks.rows for record in self._records(row)]
        self._check_numbers()
        self.charts = self._charts()

    # -- what is left out in the description

    def _choose_axes(self) -> None:
        networks = self.networks
        asked = self.asked
        numeric = [key for key in networks.free if networks.numeric(key)]
        main = next(iter(numeric or networks.free or networks.settings), "seed")
        self.up = ""
        """The setting along y of a phase diagram."""
        y = list(asked.y)
        if len(y) == 1 and networks.is_setting(y[0]):
            (self.up,) = y
            main = next((key for key in numeric if key != self.up), "")
            self._check_settings(asked.x or main, self.up)
            y = [asked.color or (networks.columns or [FINAL_LOSS])[0]]
        elif not y:
            over_settings = asked.x is not None and networks.is_setting(asked.x)
            y = [networks.columns[0] if over_settings and networks.columns else LOSS]
        self.quantities = {name: networks.quantities(name) for name in dict.fromkeys(y)}
        every = [name for names in self.quantities.values() for name in names]
        numbers = [name for name in every if not networks.is_curve(name)]
        over_runs = self.up or len(numbers) == len(every)
        self.x = asked.x or (main if over_runs else "iteration")
        self.over_time = self.x in TIMES
        self.over_setting = not self.over_time and networks.is_setting(self.x)
        if not self.over_time and not self.over_setting:
            (self.x, *_) = networks.quantities(self.x)
        if self.over_time and numbers:
            raise UsageError(
                f"{numbers[0]} is one number of each run, without a curve: draw it over a setting,"
                f" such as x {main}"
            )
        self.is_path = (
            not (self.over_time or self.over_setting or numbers)
            and asked.at is None
            and networks.is_curve(self.x)
        )

    def _check_settings(self, *keys: str) -> None:
        for key in keys:
            if not self.networks.is_setting(key) or not self.networks.numeric(key):
                free = ", ".join(self.networks.free) or "none"
                raise UsageError(
                    f"a phase diagram has settings with several numbers on x and y, not {key!r};"
                    f" there are {free}"
                )

    def _choose_channels(self) -> None:
        networks = self.networks
        asked = self.asked
        self._check_channels()
        by_default = [] if "seed" in networks.grid else ["seed"]
        self.over = by_default if asked.over is None else list(asked.over)
        told = {word: getattr(asked, word) for word in LINES}
        if self.up:
            told["color"] = None
        self.laid = asked.rows is not None or asked.columns is not None
        panels = {"columns": asked.facet}
        if self.laid:
            panels = {"columns": asked.columns, "rows": asked.rows}
        # panels of what nothing else tells apart stand where no word says what does
        spare = next((word for word, keys in panels.items() if keys is None), None)
        if asked.stat == "all" and asked.over is None:
            self.over = [*self.over, *networks.free]
        used = {self.x, self.up, *self.over, *told.values()}
        used.update(*(keys or () for keys in panels.values()))
        # settings in which whole configs differ are no axes of a grid
        free = [key for key in networks.free if key in networks.grid] or networks.free
        left = [key for key in free if key not in used]
        by_run = "run" in used
        if told["color"] is None and not self.up and not by_run:
            apart = bool(left) or not networks.free or len(networks.values("seed")) > 1
            if networks.alone and len(networks.rows) > 1 and apart and not self.over_setting:
                told["color"] = "run"
                by_run = True
            elif left:
                main = max(left, key=lambda key: len(networks.values(key)))
                told["color"] = main
                left.remove(main)
        if spare and not by_run and not networks.alone:
            panels[spare] = left
        channels = {*told.values()}.union(*(keys or () for keys in panels.values()))
        if "average" in channels:
            for names in self.quantities.values():
                names += [
                    f"{name}{OF_AVERAGE}"
                    for name in [*names]
                    if networks.is_curve(f"{name}{OF_AVERAGE}")
                ]
        if "quantity" not in channels:
            units = {unit_of(name) for name in self.quantities}
            if len(units) > 1:
                place = spare or [*panels][-1]
                panels[place] = [*(panels[place] or ()), "unit"]
            self._tell_quantities(told, len(self.quantities) > len(units))
        self.told = {word: key for word, key in told.items() if key not in (None, "none")}
        """What each channel of lines tells apart."""
        self.rows, self.columns = (
            [key for key in panels.get(word) or () if key != "none"] for word in ("rows", "columns")
        )

    def _tell_quantities(self, told: dict[str, str | None], several: bool) -> None:
        """Tell quantities apart where there are several in a chart."""
        columns = any(
            len({name.removesuffix(OF_AVERAGE) for name in names}) > 1
            for names in self.quantities.values()
        )
        if several or (columns and told["color"] is None):
            word = next((word for word in LINES if told[word] is None), None)
            if word is None:
                raise UsageError(
                    f"nothing tells {', '.join(self.quantities)} apart: give rows quantity"
                )
            told[word] = "quantity"

    def _check_channels(self) -> None:
        asked = self.asked
        known = [*dict.fromkeys([*self.networks.settings, *CHANNELS])]
        if self.up and (word := next((w for w in ("dash", "marker") if getattr(asked, w)), None)):
            raise UsageError(f"{word} tells curves apart, and a phase diagram has none: take facet")
        if asked.facet is not None and (asked.rows or asked.columns):
            raise UsageError("facet breaks its panels into rows; leave it, or rows and columns")
        for word in (*LINES[bool(self.up) :], *PANELS, "over"):
            keys = getattr(asked, word) or ()
            for key in [keys] if isinstance(keys, str) else keys:
                if key not in (*known, "none") and not self.networks.is_setting(key):
                    raise UsageError(
                        f"{word}: no setting {key!r} here{did_you_mean(key, known)}; there are"
                        f" {', '.join(known)}"
                    )

    @property
    def named(self) -> list[str]:
        """What labels can replace."""
        networks = self.networks
        known = [*networks.settings, *networks.columns, *networks.curves, *self.quantities]
        known += [name for names in self.quantities.values() for name in names]
        known += [LOSS, FINAL_LOSS, *TIMES, *AVERAGED.values(), "accuracy"]
        known += [row.name for row in networks.rows[: 10 * MOST_LINES]]
        for key in networks.free:
            if not networks.numeric(key):
                known += distinct(networks.values(key))
        return known

    # -- numbers

    def _records(self, network: Network) -> list[NetworkCurve]:
        found = []
        for asked, names in self.quantities.items():
            for name in names:
                x, y = self._points(network, name)
                average = name.endswith(OF_AVERAGE) and asked != name
                plain = name.removesuffix(OF_AVERAGE) if average else name
                found.append(NetworkCurve(network, asked, plain, average, x, y))
        return found

    def _points(self, network: Network, name: str) -> tuple[Floats, Floats]:
        at = self.asked.at
        if self.over_time:
            steps, values = network.curve(name)
            kept = steps >= self.networks.leaves.get(network.place, 0)
            return self._times(network, steps[kept]), values[kept]
        if self.is_path:
            steps, values = network.curve(name)
            others, across = network.curve(self.x)
            _, here, there = np.intersect1d(steps, others, return_indices=True)
            return across[there], values[here]
        if self.over_setting:
            x = self.networks.place(network, self.x)
        else:
            x = network.number(self.x, at)
        return np.array([x]), np.array([network.number(name, at)])

    def _times(self, network: Network, steps: Floats) -> Floats:
        """Return times or epochs of iterations.

        Raises UsageError: a network has none that its config says.
        """
        run = network.run
        if self.x == "iteration" or run is None or not len(steps):
            return steps
        if self.x == "time" and run.times is not None:
            return np.interp(steps, run.loss_iterations, run.times)
        lr = network.setting("optimizer.lr")
        size = network.setting("optimizer.batch_size")
        fresh = network.setting("optimizer.samples") == "fresh"
        scheduled = network.setting("optimizer.schedule") is not None
        unknown = lr is None or scheduled if self.x == "time" else fresh
        if unknown or "changes" in network.settings:
            raise UsageError(f"{network.name} keeps no {self.x}: take x iteration")
        if self.x == "time":
            return steps * float(lr)
        return steps if size is None else steps * float(size) / run.dataset().n

    def _check_numbers(self) -> None:
        """Raise RunError where there is nothing to draw."""
        if not self.over_time and not any(np.isfinite(r.y).any() for r in self.records):
            statuses = Counter(str(row.setting("status") or "run") for row in self.networks.rows)
            names = ", ".join(self.quantities)
            raise RunError(f"no run has a number {names} ({counted(statuses)})")

    # -- charts

    def _value(self, record: NetworkCurve, key: str) -> Any:
        match key:
            case "quantity":
                return record.quantity
            case "unit":
                return unit_of(record.asked)
            case "average":
                return record.average
        return self.networks.value(record.network, key)

    def _said(self, key: str, value: Any) -> str:
        labels = self.networks.labels
        match key:
            case "average":
                return labels.get(AVERAGED[value], AVERAGED[value])
            case "unit":
                return self.networks.title(value)
            case "quantity":
                return labels.get(value) or self._column(value) or self.networks.title(value)
        return self.networks.said(key, value)

    def _column(self, quantity: str) -> str:
        """Return the label of a number of a measure, where it is the only one on its axis."""
        asked = next(name for name, names in self.quantities.items() if quantity in names)
        units = [unit_of(name) for name in self.quantities]
        if asked == quantity or units.count(unit_of(asked)) > 1:
            return ""
        return quantity.removeprefix(f"{asked}.").replace("_", " ")

    def _grouped(
        self, records: Sequence[NetworkCurve], keys: Sequence[str]
    ) -> dict[tuple[str, ...], Group]:
        groups: dict[tuple[str, ...], Group] = {}
        for record in records:
            values = tuple(self._value(record, key) for key in keys)
            _, members = groups.setdefault(tuple(map(identity, values)), (values, []))
            members.append(record)
        return groups

    def _panels(self) -> list[Group]:
        """Return the records of each panel, row by row: of a table of panels all of them."""
        panels = self._grouped(self.records, self.facet)
        self.across = 0
        """Panels of a row; 0 where rows are as long as there is room."""
        if not self.laid:
            return _spaced([*panels.values()], MOST_CHARTS)
        rows, columns = (
            _spaced([*self._grouped(self.records, keys).items()], MOST_ACROSS)
            for keys in (self.rows, self.columns)
        )
        self.across = len(columns)
        return [
            panels.get(down + right, (of_row + of_column, []))
            for down, (of_row, _) in rows
            for right, (of_column, _) in columns
        ]

    def _charts(self) -> list[Chart | Phase]:
        charts: list[Chart | Phase] = []
        for values, members in self._panels():
            said = [self._said(key, value) for key, value in zip(self.facet, values, strict=True)]
            title = ", ".join(filter(None, [self.asked.title, *said]))
            made: Chart | Phase = self._phase(members) if self.up else self._chart(members)
            charts.append(replace(made, title=title, headed=bool(self.asked.title)))
        return charts

    @property
    def facet(self) -> list[str]:
        """What has panels of its own."""
        return [*self.rows, *self.columns]

    @property
    def _lines(self) -> list[str]:
        """What lines of a chart are told apart by."""
        return list(dict.fromkeys(self.told.values()))

    @property
    def _split(self) -> list[str]:
        """What has lines of its own: quantities have, whether or not a channel tells them apart."""
        return list(dict.fromkeys([*self._lines, "quantity", "average"]))

    def _check_group(self, records: Sequence[NetworkCurve]) -> None:
        """Raise UsageError where records that are summed up differ in more than what is `over`."""
        networks = self.networks
        if len(records) < 2 or self.asked.stat == "all":
            return
        for key in [*networks.free, "seed"]:
            if key in self.over or (key == "seed" and "run" in self._lines):
                continue
            values = {identity(networks.value(r.network, key)): r for r in records}
            if len(values) > 1:
                raise UsageError(
                    f"{key} differs among curves that nothing tells apart: give color, dash or"
                    f" facet {key}, sum up with over {key}, or choose with where {key}=VALUE"
                )

    def _chart(self, records: Sequence[NetworkCurve]) -> Chart:
        networks = self.networks
        groups = self._grouped(records, self._split)
        shown = _spaced([*groups.values()], MOST_LINES)
        lines, bounds = self._told_apart(shown)
        options: dict[str, Any] = {}
        if len(shown) < len(groups):
            options["note"] = f"{len(shown)} of {len(groups)} curves"
        if not any(np.isfinite(line.columns).any() for line in lines):
            options["note"] = "no finite value is recorded"
        elif self.told.get("color") == "quantity":  # numbers that are never there are no curves
            lines = [line for line in lines if np.isfinite(line.columns).any()]
        options["legend"] = self._legend(shown)
        if self.over_time:
            options["levels"] = references(bounds)
        else:
            options |= self._across(lines)
        if self.over_setting and self.asked.bounds != "none":
            lines += self._bounds(shown)
        if self.x == "iteration":
            options["marks"] = self._marks()
        records = records or self.records  # a panel without any has the axes of others
        linear = any(networks.linear(name) for name in {record.quantity for record in records})
        if {unit_of(record.asked) for record in records} == {"accuracy"}:
            linear = True
            options["reach"] = (0.5, 1.0)
        return Chart(
            lines=lines,
            ylabel=self._ylabel(records),
            xlabel=networks.title(self.x),
            log=self.asked.log,
            linear=linear,
            far=self.asked.bounds == "all",
            limits=self._limits("y"),
            limits_x=self._limits("x"),
            **options,
        )

    def _limits(self, axis: Literal["x", "y"]) -> Limits:
        low, high = self.asked.limits.get(axis, (None, None))
        return low, high

    def _told_apart(
        self, groups: Sequence[Group]
    ) -> tuple[list[Line], list[tuple[tuple[str, float] | None, str]]]:
        """Return the lines of groups, and the bound of each with its colour."""
        lines: list[Line] = []
        bounds: list[tuple[tuple[str, float] | None, str]] = []
        named: set[str] = set()
        keys = self._named_by(groups)
        for values, members in groups:
            if self.over_time:
                self._check_group(members)
            told = self._channels(values)
            form = self._look(told)
            by = dict(told.values())
            name = ", ".join(self._said(key, by[key]) for key in keys)
            if (which := identity([*told.values()])) in named:
                name = ""
            named.add(which)
            lines += self._drawn(members, name, form)
            if self.over_time and self.asked.bounds != "none":
                bounds.append((members[0].network.bound(members[0].quantity), form["color"]))
        return lines, bounds

    def _named_by(self, groups: Sequence[Group]) -> list[str]:
        """Return what names the lines of groups: keys that differ, or else the first."""
        parts = [dict(self._channels(values).values()) for values, _ in groups]
        differ = [key for key in self._lines if len({identity(by[key]) for by in parts}) > 1]
        return differ or self._lines[:1]

    def _channels(self, values: tuple[Any, ...]) -> dict[str, Channel]:
        """Return what each channel tells of a group with these values of `_split`."""
        by = dict(zip(self._split, values, strict=True))
        return {word: (key, by[key]) for word, key in self.told.items()}

    def _look(self, told: Mapping[str, Channel]) -> dict[str, Any]:
        """Return the look of a line; a number that two measures have looks alike."""
        return self.looks.look(
            {
                word: (key, self._column(value) or value if key == "quantity" else value)
                for word, (key, value) in told.items()
            }
        )

    def _legend(self, groups: Sequence[Group]) -> list[Line]:
        """Return an entry for each value, where channels tell several things apart."""
        keys = self._named_by(groups)
        if len(keys) < 2:
            return []
        entries: dict[str, Line] = {}
        for key in keys:
            for values, _ in groups:
                told = {
                    w: channel for w, channel in self._channels(values).items() if channel[0] == key
                }
                form = self._look(told)
                if "color" in {*self.told} - {*told}:
                    form |= GREY
                name = self._said(*next(iter(told.values())))
                entries.setdefault(f"{key} {name}", Line(x=(), y=(), name=name, **form))
        return [*entries.values()]

    def _cells(
        self, records: Sequence[NetworkCurve], *keys: str
    ) -> dict[tuple[float, ...], list[NetworkCurve]]:
        """Return the records that are summed up, by their places on axes of settings, in order."""
        cells: dict[tuple[float, ...], list[NetworkCurve]] = {}
        for record in records:
            place = tuple(self.networks.place(record.network, key) for key in keys)
            if np.isfinite(place).all():
                cells.setdefault(place, []).append(record)
        for members in cells.values():
            self._check_group(members)
        return dict(sorted(cells.items()))

    def _drawn(
        self, members: Sequence[NetworkCurve], name: str, form: dict[str, Any]
    ) -> list[Line]:
        """Return the lines of records with the same look."""
        stat = self.asked.stat
        if self.is_path:
            return [
                Line(x=record.x, y=record.y, name=name * (k == 0), path=True, **form)
                for k, record in enumerate(members)
            ]
        if not self.over_time and not self.over_setting:
            order = np.argsort([record.x[0] for record in members], kind="stable")
            x = np.array([members[k].x[0] for k in order])
            y = np.array([members[k].y[0] for k in order])
            kept = np.isfinite(x)
            return [Line(x=x[kept], y=y[kept], name=name, points=True, **form)]
        if stat == "best":
            finals = [record.network.number(FINAL_LOSS) for record in members]
            members = [members[int(np.nanargmin(finals))]] if np.isfinite(finals).any() else members
        if self.over_setting:
            cells = self._cells(members, self.x)
            x = np.array([place for (place,) in cells])
            y, of = _numbers(cells.values())
        else:
            x, y, of = _over_iterations(members)
        points = self.over_setting and (len(x) < 3 or not self.networks.numeric(self.x))
        several = len(members) > 1 or not self.networks.alone
        if self.over_setting or (several and stat in ("median", "mean")):
            statistic: Any = stat if stat in ("median", "mean") else "median"
            options: dict[str, Any] = {"stat": statistic, "band": self.asked.band, "of": of}
            if stat == "all" and not points:
                options = {}
        else:
            options = {}
        points = points or (self.over_time and bool(options) and len(x) < 3)
        return [Line(x=x, y=y, name=name, points=points, **options, **form)]

    def _ylabel(self, records: Sequence[NetworkCurve]) -> str:
        asked = dict.fromkeys(record.asked for record in records)
        if self.over_time and [*asked] == [FINAL_LOSS]:
            return self.networks.title(LOSS)
        if len(asked) > 1 and len(units := {unit_of(name) for name in asked}) == 1:
            return self.networks.title(units.pop())
        return ", ".join(map(self.networks.title, asked))

    def _across(self, lines: Sequence[Line]) -> dict[str, Any]:
        """Return scale and ticks of an x axis of settings or of numbers."""
        networks = self.networks
        if not self.over_setting:
            every = np.concatenate([np.zeros(0), *(np.asarray(line.x, float) for line in lines)])
            every = every[np.isfinite(every)]
            low = every.min(initial=np.inf)
            log = 0 < low < every.max(initial=0.0) / LOG_RANGE and not networks.linear(self.x)
            return {"scale_x": "log" if log else "linear"}
        at, words = networks.places(self.x)
        values = np.unique(at[np.isfinite(at)])
        log = networks.logarithmic(self.x)
        found: dict[str, Any] = {
            "scale_x": "log" if log else "linear",
            "ticks": ticks_at(values, log=log),
        }
        if words is not None:
            found["ticks"] = dict(zip(values.tolist(), words, strict=False))
            found["words"] = True
        return found

    def _marks(self) -> list[Mark]:
        rows = [
            row
            for row in self.networks.rows
            if row.run is not None and (row.row is None or "changes" in row.settings)
        ]
        marks = marks_of_all([row.run for row in rows if row.run is not None])
        if "branch" in self.networks.settings:  # whose words the legend has
            marks = [mark._replace(words="") for mark in marks]
        return marks

    def _bounds(self, groups: Sequence[Group]) -> list[Line]:
        """Return the bounds of a measure over a setting: of each line, or once where all agree."""
        curves: list[tuple[str, Floats, Floats, str]] = []
        for values, members in groups:
            color = self._look(self._channels(values))
            at = {
                place: bound
                for (place,), (first, *_) in self._cells(members, self.x).items()
                if (bound := first.network.bound(first.quantity))
            }
            if at:
                names, heights = zip(*at.values(), strict=True)
                curves.append((names[0], np.array([*at]), np.array(heights), color["color"]))
        same = all(
            np.array_equal(xs, curves[0][1]) and np.array_equal(ys, curves[0][2])
            for _, xs, ys, _ in curves
        )
        if same:
            curves = [(*curve[:3], "theory") for curve in curves[:1]]
        return [
            Line(x=xs, y=ys, name=name * (k == 0), color=color, dash="dashed", width=0.8)
            for k, (name, xs, ys, color) in enumerate(curves)
        ]

    def _phase(self, records: Sequence[NetworkCurve]) -> Phase:
        networks = self.networks
        cells = self._cells(records, self.x, self.up)
        xs, ys = (np.unique(places) for places in zip(*cells, strict=True))
        if min(len(xs), len(ys)) < 2:
            raise UsageError(f"a phase diagram needs several values of {self.x} and of {self.up}")
        stat: Any = "mean" if self.asked.stat == "mean" else "median"
        numbers, jobs = _numbers(cells.get((x, y), []) for y in ys for x in xs)
        found = statistics(numbers, jobs, stat, "none")
        shape = (len(ys), len(xs))
        scales: list[TimeScale] = []
        for axis, key, values in (("x", self.x, xs), ("y", self.up, ys)):
            scale = scale_of(axis, self.asked.log, networks.logarithmic(key))  # type: ignore[arg-type]
            if scale == "log" and values[0] <= 0:
                raise UsageError(
                    f"{key} has the value {values[0]:g}, which a logarithmic axis cannot show"
                )
            scales.append(scale)
        (name,) = self.quantities
        return Phase(
            x=xs,
            y=ys,
            values=found.middle.reshape(shape),
            xlabel=networks.title(self.x),
            ylabel=networks.title(self.up),
            label=networks.title(name),
            scales=(scales[0], scales[1]),
            log="none" if networks.linear(name) else self.asked.log,
            jobs=(found.counts.reshape(shape), found.of.reshape(shape)),
        )

    @property
    def notes(self) -> list[str]:
        """What the picture sums up, and what it leaves out."""
        networks = self.networks
        told = {self.x, *self._lines, *self.facet, *([self.up] if self.up else ())}
        parts = []
        if "run" not in told and self.asked.stat != "all":
            summed = [
                f"{networks.title(key)} ({len(networks.values(key))})"
                for key in self.over
                if key not in told and key != "seed" and len(networks.values(key)) > 1
            ]
            seeds = len(networks.values("seed"))
            if "seed" in {*self.over} - told and seeds > 1:
                summed.append(f"{seeds} seeds")
            if summed and not self.is_path:
                how = {"best": "least final loss"}.get(self.asked.stat, self.asked.stat)
                parts.append(f"{how} over {', '.join(summed)}")
        parts += [f"where {networks.said(key, networks.values(key)[0])}" for key in networks.where]
        if self.asked.at is not None and not self.over_time:
            parts.append(f"at iteration {self.asked.at}")
        rows = [row.row for row in networks.rows if row.row is not None]
        jobs = sum(source.jobs for source in networks.sources if source.grid or not source.alone)
        if rows and len(rows) < jobs:
            parts.append(f"{len(rows)} of {jobs} jobs")
        if lost := sum(row["status"] in ("diverged", "failed") for row in rows):
            parts.append(f"{lost} jobs diverged or failed")
        for key, text in networks.computed.items():
            if key not in told:
                parts.append(f"{networks.title(key)} = {text}")
        for name in self.quantities:
            without = {
                record.network.place
                for record in self.records
                if record.asked == name and not len(record.y) and record.network.row is None
            }
            if without:
                parts.append(f"{len(without)} of {len(networks.rows)} runs have no {name}")
        if len(self.charts) < (panels := len(self._grouped(self.records, self.facet))):
            parts.append(
                f"{len(self.charts)} of {panels} panels are drawn, where KEY=VALUE chooses"
            )
        return parts


def _over_iterations(records: Sequence[NetworkCurve]) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Return iterations x (k,) of the longest curve, values there or NaN (k, N), and N for each."""
    xs = max((record.x for record in records), key=len)
    if not len(xs):
        # no job has a curve: the legend names them, and the chart says that there is a gap
        xs = np.zeros(1)
    numbers = np.full((len(xs), len(records)), np.nan)
    for k, record in enumerate(records):
        _, here, there = np.intersect1d(xs, record.x, return_indices=True)
        numbers[here, k] = record.y[there]
    return xs, numbers, np.full(len(xs), len(records))


def _numbers(cells: Iterable[Sequence[NetworkCurve]]) -> tuple[Floats, NDArray[np.int64]]:
    """Return the numbers of cells (k, N), NaN after the last, and how many there are (k,)."""
    rows = [[float(record.y[0]) for record in members] for members in cells]
    filled = np.array([*zip_longest(*rows, fillvalue=np.nan)], np.float64)
    return filled.reshape(-1, len(rows)).T, np.array([len(row) for row in rows])


def _spaced(families: Sequence[Any], most: int) -> list[Any]:
    """Return at most `most` of the families, evenly spread, the ends among them."""
    count = len(families)
    return [families[round(k)] for k in np.linspace(0, count - 1, min(count, most))]
