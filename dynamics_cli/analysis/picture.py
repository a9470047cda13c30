"""A picture of several panels: its figure, its long table, and what a notebook shows."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from dynamics_cli.analysis.description import merged, plain_words
from dynamics_cli.analysis.networks import (
    FINAL_LOSS,
    LOSS,
    Networks,
    NetworkSource,
    drawn_measures,
    identity,
    sources_of,
)
from dynamics_cli.analysis.resolve import Looks, Resolved
from dynamics_cli.errors import UsageError, needing
from dynamics_cli.kinds.pictures import Description, Whole
from dynamics_cli.plotting.chart import ROW_WIDTH, Chart, aligned, draw_charts
from dynamics_cli.plotting.panels.phase import Phase
from dynamics_cli.plotting.style import COLUMN_WIDTH, Drawing, rendered
from dynamics_cli.runs.run import Run
from dynamics_cli.runs.store import manifest
from dynamics_cli.runs.titles import OF_AVERAGE, refuse_unknown_labels
from dynamics_cli.sweeps.directory import Sweep, text_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame


WIDTHS = {"column": COLUMN_WIDTH, "page": ROW_WIDTH}
"""Inches of the sizes that have names."""


class Picture:
    """Charts of one or several descriptions; a notebook shows it."""

    def __init__(self, described: Whole, runs: Sequence[Any] = ()) -> None:
        """Resolve a description, or its panels; `runs` are those that it does not name.

        Raises:
            UsageError: something that it names is not there, or would be summed up in silence.
            RunError: a run is damaged or not there, or there is no number to draw.
        """
        self.described = described
        opened: dict[str, NetworkSource] = {}
        looks = Looks()
        self.parts: list[Resolved] = []
        for panel in described.panels or [described]:
            description = merged(described, panel)
            sources = []
            for which in description.runs or runs:
                key = str(getattr(which, "path", which)) + str(getattr(which, "replica", ""))
                if key not in opened:
                    (opened[key],) = sources_of([which])
                sources.append(opened[key])
            if not sources:
                raise UsageError("no runs to draw: name runs or sweeps")
            networks = Networks(sources, description.where, description.labels)
            self.parts.append(Resolved(description, networks, looks))
        across = sorted({part.across for part in self.parts})
        if len(across) > 1:
            raise UsageError(
                f"panels lie in rows of {' and '.join(map(str, across))}: give all of them the same"
                " columns, or facet"
            )
        (self._across,) = across
        known = dict.fromkeys(name for part in self.parts for name in part.named)
        for part in self.parts:
            refuse_unknown_labels(part.asked.labels, known)
        self._runs = [str(getattr(which, "path", which)) for which in runs]

    @cached_property
    def charts(self) -> list[Chart | Phase]:
        """All charts, on common axes."""
        charts = [chart for part in self.parts for chart in part.charts]
        curves = aligned([c for c in charts if isinstance(c, Chart)], self.described.share)
        return [curves.pop(0) if isinstance(chart, Chart) else chart for chart in charts]

    @property
    def curves(self) -> list[Chart]:
        """The charts that are no phase diagrams."""
        return [chart for chart in self.charts if isinstance(chart, Chart)]

    @property
    def notes(self) -> list[str]:
        """What the picture sums up, and what it leaves out."""
        return list(dict.fromkeys(note for part in self.parts for note in part.notes))

    @cached_property
    def figure(self) -> Drawing:
        """The picture as a Matplotlib figure."""
        whole = self.described
        notes = self.notes if whole.note is None else [whole.note]
        width, height = whole.size if isinstance(whole.size, list) else (whole.size, None)
        if isinstance(width, str):
            width = WIDTHS[width]
        return draw_charts(
            self.charts,
            notes=notes,
            size=(width, height),
            legend=whole.legend,
            noted=whole.note != "none",
            columns=self._across,
        )

    @property
    def spec(self) -> str:
        """The YAML that makes the picture again."""
        plain = {"runs": self._runs, **plain_words(self.described)}
        return yaml.safe_dump(
            {key: value for key, value in plain.items() if value or value == 0},
            sort_keys=False,
            allow_unicode=True,
        )

    def save(self, path: str | Path) -> Path:
        """Write the picture as `.png`, `.pdf` or `.svg`, and return its path.

        Raises UsageError: the path ends otherwise, or somebody else's file is there.
        """
        file = Path(path)
        (saved,) = save_figure(self.figure, file.with_suffix(""), [file.suffix.removeprefix(".")])
        return saved

    def columns(self) -> dict[str, list[Any]]:
        """Return the long table of all that is drawn by column: a row for each value."""
        return long_table(self.parts)

    def table(self) -> DataFrame:
        """Return the long table as a `pandas.DataFrame`.

        Raises UsageError: pandas is not installed.
        """
        with needing("Picture.table", "pandas"):
            import pandas
        return pandas.DataFrame(self.columns())

    def to_xarray(self) -> Any:
        """Return an `xarray.Dataset` with a variable for each quantity over runs and x.

        It is NaN where a run has no value. Settings that differ are coordinates of the runs.

        Raises UsageError: xarray or pandas is not installed, or panels have different x.
        """
        with needing("Picture.to_xarray", "xarray", "pandas"):
            import pandas
            import xarray  # noqa: F401 - which pandas asks for
        if len(xs := {part.x for part in self.parts}) > 1:
            raise UsageError(f"panels have {', '.join(sorted(xs))} on x: take them one by one")
        table = pandas.DataFrame(self.columns())
        (x,) = xs
        index = ["quantity", "run", x]
        values = table.drop_duplicates(index).set_index(index)["value"].to_xarray()
        runs = table.drop_duplicates("run").set_index("run")
        settings = runs.drop(columns=["quantity", x, "value"]).to_xarray()
        return values.to_dataset("quantity").merge(settings, join="outer").set_coords([*settings])

    def __repr__(self) -> str:
        return f"<Picture of {', '.join(chart.ylabel for chart in self.charts)}>"

    def _repr_png_(self) -> bytes:
        """Show the picture in a notebook."""
        return self.figure._repr_png_()


def save_figure(figure: Figure, stem: Path, formats: Sequence[str] = ("pdf", "png")) -> list[Path]:
    """Write `figure` as `<stem>.<format>` for every format and return the paths in that order.

    Each file appears whole or not at all.

    Raises:
        UsageError: a format other than pdf, png and svg, or somebody else's file has such a name.
        RunError: a file cannot be written.
    """
    return manifest.write_listed(stem.parent, rendered(figure, stem.name, formats))


def long_table(parts: Sequence[Resolved]) -> dict[str, list[Any]]:
    """Return numbers as columns: run, settings that differ, seed, quantity, x, value."""
    keys = dict.fromkeys(key for part in parts for key in [*part.networks.free, "seed"])
    names = ["run", *keys, "quantity", *dict.fromkeys(part.x for part in parts), "value"]
    columns: dict[str, list[Any]] = {name: [] for name in dict.fromkeys(names)}
    for part in parts:
        for record in part.records:
            count = len(record.y)
            network = record.network
            quantity = record.quantity + OF_AVERAGE * record.average
            fixed: dict[str, Any] = {key: network.setting(key) for key in keys}
            fixed |= {"run": network.name, "quantity": quantity}
            own = {part.x: record.x.tolist(), "value": record.y.tolist()}
            if part.over_setting:
                own[part.x] = [network.setting(part.x)] * count
            for name, column in columns.items():
                column.extend(own.get(name) or [fixed.get(name)] * count)
    return columns


def defaults_of(opened: Any, where: Mapping[str, Any] | None = None) -> dict[str, Whole]:
    """Return the pictures that a sweep, or several runs and sweeps, offer by name."""
    given = opened if isinstance(opened, list) else [opened]
    own = {} if isinstance(opened, list) else pictures_of(opened)
    networks = Networks(sources_of(given), where or {})
    if networks.alone:
        first = networks.rows[0].run
        assert first is not None
        common = [
            name
            for name in [LOSS, *drawn_measures(first)]
            if all(row.has(name) for row in networks.rows)
        ]
        return {name: Whole(y=[name], color="run") for name in common}
    free = networks.free
    numeric = [key for key in free if networks.numeric(key)]
    measure = [*networks.columns, FINAL_LOSS][0]
    offered = {}
    if len(numeric) > 1:
        x, y, *_ = numeric
        rest = [key for key in free if key not in (x, y)]
        over = ["seed" * ("seed" not in free), *rest]
        offered["phase"] = Whole(x=x, y=[y], color=measure, over=[*filter(None, over)])
    if networks.settings:
        main = next(iter([*numeric, *free, *networks.settings]))
        offered["curve"] = Whole(y=[measure], x=main)
    return {**offered, "losses": Whole(y=[LOSS]), **own}


def pictures_of(opened: Run | Sweep) -> Mapping[str, Whole]:
    """Return the pictures that the config of a run or a sweep describes."""
    if isinstance(opened, Sweep):
        written = opened.described.config.get("pictures") or {}
        return {name: Whole(**words) for name, words in written.items()}
    return opened.config.pictures or {}


SHOWN = {
    "phase": "heat map over two settings",
    "curve": "final numbers over a setting, by the others",
    "losses": "losses over iterations by setting",
}
"""What the pictures of a sweep show."""
IN_FILE = 40
"""Characters of a value in the name of a file."""


def options_of(description: Whole) -> str:
    """Return a description as options of `dyn plot`; one that has panels as YAML."""
    words = []
    if description.panels:
        return yaml.safe_dump(
            plain_words(description), default_flow_style=True, width=10_000
        ).strip()
    for key, value in plain_words(description).items():
        for one in value if isinstance(value, list) else [value]:
            words += [f"--{key}", str(one)]
    return shlex.join(words)


def digits_of(opened: Any) -> str:
    """Return what tells pictures of several runs apart that lie in one folder."""
    if not isinstance(opened, list):
        return ""
    places = [f"{run.path.absolute()}{getattr(run, 'replica', '')}" for run in opened]
    digits = hashlib.sha256("\n".join(places).encode()).hexdigest()[:10]
    return f"-{opened[0].path.name}-{digits}"


def stem_of(description: Description, without: str = "picture") -> str:
    """Return a name for the file of a picture, from what it shows; by default `without`."""
    words = [in_file(word) for word in [*description.y, description.x] if word]
    words += [f"{key}={in_file(value)}" for key, value in description.where.items()]
    return "-".join(words) or without


def in_file(value: Any) -> str:
    """Return a value as a part of a file name: of a long one the start, and digits of its own."""
    text = re.sub("[^A-Za-z0-9_.+-]+", "_", text_of(value))
    if len(text) <= IN_FILE:
        return text
    return f"{text[:IN_FILE]}-{hashlib.sha256(identity(value).encode()).hexdigest()[:8]}"
