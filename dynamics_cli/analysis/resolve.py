"""From a description of a picture to its charts: what is on x and y, in colour, and in panels.

What a description names and is not there is refused. Nothing is summed up in silence: networks that
no channel tells apart differ in what is `over` alone.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from dynamics_cli.plotting.labels import format_number, ticks_at
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
"""What colours, dashes and panels tell apart beside settings."""
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

    def look(self, color: Channel | None, dash: Channel | None) -> dict[str, Any]:
        """Return the look of a line, by the setting and the value of each channel."""
        number = 0 if color is None else self.number(*color)
        if dash is None:
            return look(number)
        k = self.number(*dash)
        if k >= len(DASHES):
            raise UsageError(
                f"dash tells {len(DASHES)} things apart; take color or facet: {dash[0]}"
            )
        return {"color": f"series-{number}", "dash": [*DASHES][k]}


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
        color = None if self.up else asked.color
        dash = asked.dash
        facet = asked.facet
        if asked.stat == "all" and asked.over is None:
            self.over = [*self.over, *networks.free]
        used = {self.x, color, dash, *(facet or ()), *self.over}
        used.add(self.up)
        # settings in which whole configs differ are no axes of a grid
        free = [key for key in networks.free if key in networks.grid] or networks.free
        left = [key for key in free if key not in used]
        told = "run" in used
        if color is None and not self.up and not told:
            if networks.alone and len(networks.rows) > 1 and not self.over_setting:
                color = "run"
                told = True
            elif left:
                color = max(left, key=lambda key: len(networks.values(key)))
                left.remove(color)
        if facet is None:
            facet = []
            if not told and not networks.alone:
                facet = left
        channels = [color, dash, *facet]
        if "average" in channels:
            for names in self.quantities.values():
                names += [
                    f"{name}{OF_AVERAGE}"
                    for name in [*names]
                    if networks.is_curve(f"{name}{OF_AVERAGE}")
                ]
        if "quantity" not in channels:
            facet, color, dash = self._tell_quantities(facet, color, dash)
        self.color = None if color == "none" else color
        self.dash = None if dash == "none" else dash
        self.facet = [key for key in facet if key != "none"]

    def _tell_quantities(
        self, facet: list[str], color: str | None, dash: str | None
    ) -> tuple[list[str], str | None, str | None]:
        """Return the channels, among which one tells quantities apart where there are several."""
        units = {unit_of(name) for name in self.quantities}
        if len(units) > 1:
            facet = [*facet, "unit"]
        several = len(self.quantities) > len(units)
        columns = any(
            len({name.removesuffix(OF_AVERAGE) for name in names}) > 1
            for names in self.quantities.values()
        )
        if (several or columns) and color is None:
            color = "quantity"
        elif several and dash is None:
            dash = "quantity"
        return facet, color, dash

    def _check_channels(self) -> None:
        asked = self.asked
        known = [*dict.fromkeys([*self.networks.settings, *CHANNELS])]
        color = [] if self.up or asked.color is None else [asked.color]
        dash = [] if asked.dash is None else [asked.dash]
        for word, keys in (
            ("color", color),
            ("dash", dash),
            ("facet", asked.facet or ()),
            ("over", asked.over or ()),
        ):
            for key in keys:
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
            statuses: dict[str, int] = {}
            for row in self.networks.rows:
                status = str(row.setting("status") or "run")
                statuses[status] = statuses.get(status, 0) + 1
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

    def _grouped(self, records: Sequence[NetworkCurve], keys: Sequence[str]) -> list[Group]:
        groups: dict[tuple[str, ...], tuple[tuple[Any, ...], list[NetworkCurve]]] = {}
        for record in records:
            values = tuple(self._value(record, key) for key in keys)
            _, members = groups.setdefault(tuple(map(identity, values)), (values, []))
            members.append(record)
        return [*groups.values()]

    def _charts(self) -> list[Chart | Phase]:
        panels = self._grouped(self.records, self.facet)
        charts: list[Chart | Phase] = []
        for values, members in _spaced(panels, MOST_CHARTS):
            said = [self._said(key, value) for key, value in zip(self.facet, values, strict=True)]
            title = ", ".join(filter(None, [self.asked.title, *said]))
            made: Chart | Phase = self._phase(members) if self.up else self._chart(members)
            charts.append(replace(made, title=title, headed=bool(self.asked.title)))
        return charts

    @property
    def _lines(self) -> list[str]:
        """What lines of a chart are told apart by."""
        return [key for key in (self.color, self.dash) if key is not None]

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
        shown = _spaced(groups, MOST_LINES)
        lines, bounds = self._told_apart(shown)
        options: dict[str, Any] = {}
        if len(shown) < len(groups):
            options["note"] = f"{len(shown)} of {len(groups)} curves"
        if not any(np.isfinite(line.columns).any() for line in lines):
            options["note"] = "no finite value is recorded"
        elif self.color == "quantity":  # numbers that are never there are no curves
            lines = [line for line in lines if np.isfinite(line.columns).any()]
        lines += self._dashes(shown)
        if self.over_time:
            options["levels"] = references(bounds)
        else:
            options |= self._across(lines)
        if self.over_setting and self.asked.bounds != "none":
            lines += self._bounds(shown)
        if self.x == "iteration":
            options["marks"] = self._marks()
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
        for values, members in groups:
            self._check_places(members)
            color, dash = self._channels(values)
            form = self._look(color, dash)
            name = ""
            key = color or dash
            if key is not None and identity(key) not in named:
                named.add(identity(key))
                name = self._said(*key)
            lines += self._drawn(members, name, form)
            if self.over_time and self.asked.bounds != "none":
                bounds.append((members[0].network.bound(members[0].quantity), form["color"]))
        return lines, bounds

    def _channels(self, values: tuple[Any, ...]) -> tuple[Channel | None, Channel | None]:
        """Return what colour and dash tell of a group with these values of `_split`."""
        by = dict(zip(self._split, values, strict=True))
        color = (self.color, by[self.color]) if self.color else None
        dash = (self.dash, by[self.dash]) if self.dash else None
        return color, dash

    def _look(self, color: Channel | None, dash: Channel | None) -> dict[str, Any]:
        """Return the look of a line; a number that two measures have looks alike."""
        told = [
            (key, self._column(value) or value) if key == "quantity" else (key, value)
            for key, value in filter(None, (color, dash))
        ]
        return self.looks.look(told[0] if color else None, told[-1] if dash else None)

    def _check_places(self, members: Sequence[NetworkCurve]) -> None:
        if self.is_path or not (self.over_time or self.over_setting):
            return
        if self.over_time:
            self._check_group(members)
            return
        for _, at_x in self._grouped(members, [self.x]):
            self._check_group(at_x)

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
            x, y, of = _over_setting(members)
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

    def _dashes(self, groups: Sequence[Group]) -> list[Line]:
        """Return entries of a legend for dashes, which colours do not name."""
        if self.color is None or self.dash in (None, self.color):
            return []
        dashes = {
            identity(dash): dash for dash in (self._channels(v)[1] for v, _ in groups) if dash
        }
        if len(dashes) < 2:
            return []
        x = next((group[0].x[:1] for _, group in groups if len(group[0].x)), np.zeros(1))
        gap = np.full(len(x), np.nan)
        return [
            Line(x=x, y=gap, name=self._said(*dash), **{**self._look(None, dash), **GREY})
            for dash in dashes.values()
        ]

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
        return marks_of_all([row.run for row in rows if row.run is not None])

    def _bounds(self, groups: Sequence[Group]) -> list[Line]:
        """Return the bounds of a measure over a setting: of each line, or once where all agree."""
        curves: list[tuple[str, Floats, Floats, str]] = []
        for values, members in groups:
            color = self._look(self._channels(values)[0], None)
            at: dict[float, tuple[str, float]] = {}
            for record in members:
                place = float(record.x[0])
                if place in at or not np.isfinite(place):
                    continue
                if bound := record.network.bound(record.quantity):
                    at[place] = bound
            if at:
                xs = np.array(sorted(at))
                ys = np.array([at[x][1] for x in xs])
                curves.append((at[xs[0]][0], xs, ys, color["color"]))
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
        places = np.array([networks.place(record.network, self.up) for record in records])
        xs, across = np.unique([record.x[0] for record in records], return_inverse=True)
        ys, up = np.unique(places, return_inverse=True)
        if min(len(xs), len(ys)) < 2:
            raise UsageError(f"a phase diagram needs several values of {self.x} and of {self.up}")
        cell = up * len(xs) + across
        of_cells: list[list[NetworkCurve]] = [[] for _ in range(len(ys) * len(xs))]
        for place, record in zip(cell, records, strict=True):
            of_cells[place].append(record)
        for members in of_cells:
            self._check_group(members)
        stat: Any = "mean" if self.asked.stat == "mean" else "median"
        numbers = [[float(record.y[0]) for record in members] for members in of_cells]
        found = statistics(_filled(numbers), [len(members) for members in of_cells], stat, "none")
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
            if "seed" in self.over and (seeds := len(networks.values("seed"))) > 1:
                summed.append(f"{seeds} seeds")
            if summed and not self.is_path:
                how = {"best": "least final loss"}.get(self.asked.stat, self.asked.stat)
                parts.append(f"{how} over {', '.join(summed)}")
        parts += [
            f"where {networks.title(key)} = {format_number(value)}"
            if isinstance(value, int | float)
            else f"where {networks.title(key)} = {value}"
            for key, value in networks.where.items()
        ]
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


def _over_setting(records: Sequence[NetworkCurve]) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Return places x (k,) of jobs, their numbers or NaN (k, N), and the jobs at each x."""
    at: dict[float, list[float]] = {}
    for record in records:
        if np.isfinite(record.x[0]):
            at.setdefault(float(record.x[0]), []).append(float(record.y[0]))
    xs = sorted(at)
    of_xs = [at[x] for x in xs]
    return np.array(xs), _filled(of_xs), np.array([len(of_x) for of_x in of_xs])


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


def _filled(rows: Sequence[Sequence[float]]) -> Floats:
    """Return rows of unequal lengths as an array, filled with NaN."""
    return np.array([*zip_longest(*rows, fillvalue=np.nan)], np.float64).reshape(-1, len(rows)).T


def _spaced(families: Sequence[Any], most: int) -> list[Any]:
    """Return at most `most` of the families, evenly spread, the ends among them."""
    count = len(families)
    return [families[round(k)] for k in np.linspace(0, count - 1, min(count, most))]
