"""The commands as functions: after `import dynamics_cli as dyn`, `dyn.train(...)` is `dyn train`.

The docstrings are the help texts of the commands too: an option shows the description of its
argument up to the first semicolon or full stop. Importing this module is light; each function
imports what it needs. Lists of things are tables (see `text.Table`), and results that hold more
than a table have one as `.rows`; `pandas.DataFrame` takes both.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynamics_cli.errors import UsageError, did_you_mean, needing
from dynamics_cli.text import Table, jsonable

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from matplotlib.figure import Figure

    from dynamics_cli.analysis import Prediction
    from dynamics_cli.analysis.picture import Picture
    from dynamics_cli.config import RunConfig
    from dynamics_cli.config.reader import Overrides
    from dynamics_cli.datasets.files.store import Published
    from dynamics_cli.plotting.time_axis import LogAxes
    from dynamics_cli.runs.compare import Comparison
    from dynamics_cli.runs.run import Run
    from dynamics_cli.sweeps.directory import Sweep
    from dynamics_cli.sweeps.jobs import PlannedSweep
    from dynamics_cli.training.loop import Progress
    from dynamics_cli.training.session import Plan

    Config = RunConfig | str | os.PathLike[str] | Mapping[str, Any]
    Which = Run | str | Path
    Drawn = Which | Sweep | Sequence[Which | Sweep]
    Recorded = Sequence[str | Mapping[str, Any] | Callable[[Any], Any]]
    Messages = Callable[[str], None]
    """Called with sentences for the user."""
    Points = str | Path | Iterable[Mapping[str, Any]]
    Counted = Callable[[int, int | None], None]
    """Called with how many of how many (None: not known) are done."""

# --- configs and kinds


def load_config(config: Config, overrides: Overrides = (), **options: Any) -> RunConfig:
    """Check a config without running it, and return it with every default.

    All problems are told at once. The command also builds the network, and checks the weights and
    the measures that the config names; missing data sets of images are no mistake.

    Args:
        config: a YAML or JSON file, or the name of a bundled config such as
            `boursier2022/orthogonal`; in Python also the same content as a mapping, or a loaded
            config.
        overrides: a changed setting, such as `optimizer.lr=0.01`, the value as YAML; in Python a
            mapping `{"seed": 3, "optimizer.lr": 0.1}` or a list of texts.
        options: top-level settings that replace the config's, e.g. `seed=3, device="cpu"` (None: as
            it is), and `check_files_exist=False` where data files need not be there.

    Raises ConfigError: it is not valid; all problems at once, in `problems`.
    """
    from dynamics_cli.config import RunConfig
    from dynamics_cli.config import load_config as load
    from dynamics_cli.config.reader import override_texts

    changes = override_texts(overrides)
    changed = changes or any(value is not None for value in options.values())
    if isinstance(config, RunConfig) and not changed:
        return config
    return load(_source(config), changes, **options)


def _source(config: Config) -> Mapping[str, Any] | Path:
    """Return a config as plain data, or the file that its name stands for."""
    from dynamics_cli.config import RunConfig
    from dynamics_cli.config.dump import to_plain
    from dynamics_cli.config.load import config_file

    if isinstance(config, RunConfig):
        return to_plain(config)
    if isinstance(config, Mapping):
        return config
    return config_file(os.fspath(config))


# --- training


def plan_train(
    config: Config,
    overrides: Overrides = (),
    *,
    at: int | None = None,
    out: str | Path | None = None,
    measures: Recorded | None = None,
    **settings: Any,
) -> Plan:
    """Return the plan of a run, checked, with its needs and its directory.

    Takes the arguments of `train` and raises its errors.
    """
    from dataclasses import replace

    from dynamics_cli.training.session import plan_run

    parent = None
    if at is not None:
        if settings.get("seed") is not None:
            told = "at cannot change the seed, which belongs to the whole run"
            raise UsageError(f"{told}: leave one of them out")
        config, parent = _changed_at(config, overrides, at)
        overrides = ()
    loaded = load_config(config, overrides, **settings)
    if measures is not None:
        from dynamics_cli.recording.measures import measure_of

        given = [measure_of(measure) if callable(measure) else measure for measure in measures]
        record = type(loaded.record).model_validate({**dict(loaded.record), "measures": given})
        loaded = loaded.model_copy(update={"record": record})
    directory = None if out is None else Path(out)
    try:
        plan = plan_run(loaded, directory)
    except UsageError:
        if parent is None or loaded.backend == "auto":
            raise
        # a run names the backend that trained it, which may not be able to train the change
        plan = plan_run(loaded.model_copy(update={"backend": "auto"}), directory)
    return replace(plan, parent=parent)


def _changed_at(config: Config, overrides: Overrides, at: int) -> tuple[RunConfig, Path | None]:
    """Return a config, or the config of a run, with a change; and the run."""
    from dynamics_cli.config.load import with_change
    from dynamics_cli.config.reader import override_texts
    from dynamics_cli.sweeps.find import open_run, stands_for_run

    parent = None
    if isinstance(config, str | Path) and stands_for_run(os.fspath(config)):
        run = open_run(config)
        parent = run.path
        config = run.config
    return with_change(_source(config), at, override_texts(overrides)), parent


def train(
    config: Config | Plan,
    overrides: Overrides = (),
    *,
    at: int | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    force: bool = False,
    wait: bool = True,
    measures: Recorded | None = None,
    live: bool = False,
    progress: Progress | None = None,
    messages: Messages | None = None,
    **settings: Any,
) -> Run:
    """Train the network of a config.

    The same config is the same run: a finished run is shown again, not trained again.

    Args:
        config: as `load_config` takes it; in Python also a plan, which says all of the run.
        overrides: as `load_config` takes them.
        at: the state at which they change the run, instead of its beginning; `config` may then be a
            run too, from whose kept checkpoints training goes on.
        out: the run directory itself (default: named after the config below outputs/runs).
        resume: continue an interrupted run.
        force: train again; a run that is there is moved to `DIRECTORY.before-1`, or the next
            number that is free.
        wait: wait for another process that trains the same run, or raise `RunError`.
        measures: recorded beside the weights, instead of the config's: names, or functions of a
            state (`kinds.State`: parameters, network, start, problem, iteration) that give a number
            or an array.
        live: draw the loss and the measures while they are recorded; Jupyter and marimo do, with
            the extra `notebook`.
        progress: called now and then with the iteration reached and the last loss.
        messages: told that another process is waited for, or that a finished run is shown.
        settings: top-level settings, such as `seed=3, device="cpu", backend="torch",
            dtype="float64"`.

    Raises:
        ConfigError: the config is not valid; all problems at once.
        DynError: any other mistake that a user can mend.
    """
    from dynamics_cli.live import live_curves
    from dynamics_cli.training.session import Plan, obtain_run

    if isinstance(config, Plan):
        plan = config
    else:
        plan = plan_train(config, overrides, at=at, out=out, measures=measures, **settings)
    options = {"resume": resume, "force": force, "wait": wait}
    with live_curves(plan.directory.name, plan.config, live=live) as listener:
        obtained = obtain_run(
            plan, **options, progress=progress, on_wait=messages, listener=listener
        )
    if obtained.reused and messages is not None:
        messages("this run was finished before and is reused; --force trains it again")
    return obtained.run


def sweep(
    config: Config | Callable[..., Any],
    grid: Mapping[str, Any] | Iterable[str] = (),
    *,
    points: Points = (),
    let: Mapping[str, str] | Iterable[str] = (),
    seeds: int | None = None,
    overrides: Overrides = (),
    record: str | None = None,
    workers: int | None = None,
    shard: tuple[int, int] | None = None,
    executor: Executor | None = None,
    stop_at_failure: bool = False,
    max_seconds: float | None = None,
    out: str | Path | None = None,
    progress: Callable[[float, int], object] | None = None,
    messages: Messages | None = None,
    **settings: Any,
) -> Sweep:
    """Train a config over a grid and several seeds.

    The grid is the section `sweep` of the config (keys grid, points, let, seeds, record, labels,
    columns), options, or both; an option replaces the values that the section has for a setting.
    Jobs of equal shape are trained together, the others in processes of their own. The same sweep
    again skips jobs that are done; a job that fails does not stop the others.

    Args:
        config: as `load_config` takes it, or a function `my_loop.py:train` of settings and a
            recorder; in Python also the function itself.
        grid: setting and its values, such as `optimizer.lr=0.1:10:log:25`; in Python a mapping to
            sequences or ranges, or a list of texts.
        points: file of points, CSV or YAML, each combined with the grid; in Python also a list of
            mappings.
        let: setting and the expression that computes it, such as `optimizer.lr=0.1 /
            initialization.scale**2`.
        seeds: seeds per grid point (default: as in the section, or 1).
        overrides: as `load_config` takes them.
        record: how much each job keeps (default: all, unless that exceeds `record.limit_gib`);
            `light` is its ends and about a thousand losses, `ends` its ends, `config` all that the
            config says.
        workers: processes for all jobs, which are divided into at least as many batches (default:
            one per core for jobs that cannot be batched).
        shard: one of N parts to train; the command without it trains the rest and writes the table.
            In Python `(3, 50)` is the third of fifty parts.
        executor: any `concurrent.futures.Executor` instead of local processes, such as one of a
            Dask cluster.
        stop_at_failure: stop at the first job that fails; the same command goes on.
        max_seconds: stop after so many seconds, with all states saved; the same command goes on.
        out: directory of the sweep (default: named after it below outputs/sweeps).
        progress: called with the number of jobs that are done, a half-trained one as 1/2, and of
            all.
        messages: told that no worker is there.
        settings: top-level settings of all jobs; `seed` is the first one.

    Returns:
        The sweep; `rows` has one row a job, those that failed or diverged included.

    Raises:
        ConfigError: a point of the grid is not a valid config.
        UsageError: the grid makes no sense, or the directory holds another sweep.
    """
    from dynamics_cli.sweeps.sweep import run_sweep

    planned = plan_sweep(
        config,
        grid,
        points=points,
        let=let,
        seeds=seeds,
        overrides=overrides,
        record=record,
        messages=messages,
        **settings,
    )
    return run_sweep(
        planned,
        out=None if out is None else Path(out),
        shard=shard,
        executor=executor,
        workers=workers,
        stop_at_failure=stop_at_failure,
        max_seconds=max_seconds,
        report=progress,
        messages=messages,
    )


def plan_sweep(
    config: Config | Callable[..., Any],
    grid: Mapping[str, Any] | Iterable[str] = (),
    *,
    points: Points = (),
    let: Mapping[str, str] | Iterable[str] = (),
    seeds: int | None = None,
    overrides: Overrides = (),
    record: str | None = None,
    messages: Callable[[str], object] | None = None,
    **settings: Any,
) -> PlannedSweep:
    """Return the jobs of a sweep, a list of settings and validated configs.

    Takes the arguments of `sweep` and raises its errors.
    """
    from dynamics_cli.config.reader import override_texts
    from dynamics_cli.sweeps.expressions import parse_let
    from dynamics_cli.sweeps.grid import axis_of, parse_axis, points_of, read_points
    from dynamics_cli.sweeps.jobs import PlannedSweep, read_sweep_section

    texts = override_texts(overrides)
    planning = PlannedSweep
    source: Any = config
    section_of: Any = {}
    if callable(config) or (isinstance(config, str) and ".py:" in config):
        from dynamics_cli.calls import PlannedCalls

        planning = PlannedCalls
        record = "config"
    else:
        section_of = source = _source(config)
    of_section, listed, columns, section = read_sweep_section(section_of, texts)

    axes = []
    if isinstance(grid, Mapping):
        for key, values in grid.items():
            plain = values if isinstance(values, str) else jsonable(list(values))
            axes.append(axis_of(key, plain))
    else:
        axes += map(parse_axis, grid)
    given = {axis.key for axis in axes}
    axes = [*(axis for axis in of_section if axis.key not in given), *axes]

    if isinstance(points, str | Path):
        points = read_points(Path(points))
    else:
        points = points_of([dict(jsonable(point)) for point in points])

    if not isinstance(let, Mapping):
        let = dict(map(parse_let, let))
    if seeds is None:
        seeds = section.seeds
    return planning(
        source,
        texts,
        axes,
        points or listed,
        let={key: str(text) for key, text in {**section.let, **let}.items()},
        seeds=seeds,
        record=record or section.record,
        labels=section.labels,
        columns=columns,
        messages=messages,
        **settings,
    )


# --- runs


def load_run(run: Which) -> Run:
    """Open a run for reading.

    Args:
        run: a directory, the (start of the) name of a run below outputs, `latest`, SWEEP:k for job
            k of a sweep, or DIR:k for replica k of runs trained together.

    Raises:
        UsageError: several runs begin so; the message names them.
        RunError: there is no such run, or it is damaged.
    """
    from dynamics_cli.sweeps.find import open_run

    return open_run(run, together=True)


def describe(run: Which | Sweep) -> dict[str, Any]:
    """Show a run, a sweep or a resolved config.

    Of a sweep: how far it is, and failures by their messages. Of a run: status, final numbers,
    settings and files. Of a config: every key with its value, and the settings that are swept.

    Args:
        run: a directory, `latest`, the (start of the) name of a run or a sweep, or (for the
            command) a config.

    Raises RunError: there is no such run or sweep, or it is damaged.
    """
    from dynamics_cli.runs.run import describe
    from dynamics_cli.sweeps.directory import Sweep
    from dynamics_cli.sweeps.find import open_run, sweep_directory

    if (sweep := sweep_directory(run)) is not None:
        return Sweep(sweep).describe()
    return describe(open_run(run, together=True, whole=True))


def load_sweep(sweep: str | Path) -> Sweep:
    """Open a sweep for reading, finished or not: `rows`, `runs(where)`, `to_pandas()`.

    Args:
        sweep: a directory, the (start of the) name of a sweep below outputs, or `latest`.

    Raises RunError: there is no such sweep, or it is damaged.
    """
    from dynamics_cli.errors import RunError
    from dynamics_cli.sweeps.directory import Sweep
    from dynamics_cli.sweeps.find import list_sweeps, sweep_directory

    if (directory := sweep_directory(sweep, alone=True)) is None:
        names = [row["path"].name for row in list_sweeps()]
        raise RunError(f"there is no sweep {sweep}{did_you_mean(str(sweep), names)}")
    return Sweep(directory)


def compare(a: Which, b: Which) -> Comparison:
    """Compare two runs.

    Settings that differ, final numbers, and how far losses and weights are apart. The relative
    difference is the largest distance over the iterations that both runs recorded, divided by the
    largest absolute value there.

    Raises RunError: there is no such run, or one holds several runs trained together.
    """
    from dynamics_cli.runs.compare import compare_runs
    from dynamics_cli.sweeps.find import open_run

    return compare_runs(open_run(a, whole=True), open_run(b, whole=True))


def export(
    run: Which | Sweep,
    out: str | Path | None = None,
    *,
    to: str | None = None,
    curves: bool = False,
) -> Path:
    """Write the table of a run or a sweep as a CSV or Parquet file, or its curves for another tool.

    A run has a row for every iteration at which a loss or measures were recorded, a sweep has one
    for every job. Parquet needs `pip install "dynamics-cli[export]"`. The arrays of a run are
    `.npy` files already.

    Args:
        run: as `load_run` takes it, or a sweep.
        out: the file, which ends with `.csv` or `.parquet`, or the folder for a tool (default:
            named after the tool and the run below outputs/exports); what is there stays as it is,
            but a pipe or a device is written into.
        to: the tool that reads the losses and measures, `tensorboard`, `wandb` or `trackio`; its
            package is needed, and nothing leaves this machine.
        curves: write the loss and all measures of every job over iterations as one long table, a
            row for each value.

    Returns:
        The file or the folder.

    Raises:
        UsageError: `out` ends otherwise or is there, or Parquet or a tool lacks its packages.
        RunError: there is no such run, it is damaged, or `out` cannot be written.
    """
    from dynamics_cli.runs.store import files
    from dynamics_cli.sweeps.directory import text_of

    if to is not None:
        if curves:
            raise UsageError("curves make a table, .csv or .parquet: leave out to")
        return _export_to(run, to, out)
    if out is None:
        raise UsageError("say the file of the table, which ends with .csv or .parquet")
    path = Path(out)
    if path.suffix not in (".csv", ".parquet"):
        raise UsageError(f"{path}: the table of a run is written as .csv or .parquet")
    if path.is_dir() or path.is_file() or path.is_symlink():
        raise UsageError(f"{path} is there already")
    opened = _open(run)
    columns = _curves_of(opened) if curves else opened.columns()
    if path.suffix == ".csv":
        rows = zip(*(map(text_of, values) for values in columns.values()), strict=True)
        contents = files.csv_of([*columns], rows)
    else:
        with needing("a .parquet file", "pandas", "pyarrow"):
            import pandas

            contents = pandas.DataFrame(columns).to_parquet(engine="pyarrow")
    files.save_as_named(path, contents)
    return path


def _curves_of(opened: Run | Sweep) -> Mapping[str, Any]:
    """Return all curves of a run, or of the jobs of a sweep, as a long table by column."""
    from dynamics_cli.analysis.networks import Networks, sources_of
    from dynamics_cli.analysis.picture import long_table
    from dynamics_cli.analysis.resolve import Resolved
    from dynamics_cli.kinds.pictures import Description

    networks = Networks(sources_of([opened]))
    return long_table([Resolved(Description(y=networks.curves, stat="all"), networks)])


def _export_to(run: Which | Sweep, tool: str, out: str | Path | None) -> Path:
    """Write a run, or all runs of a sweep, for another tool."""
    from dynamics_cli.analysis.networks import sources_of
    from dynamics_cli.runs.store.layout import outputs_root
    from dynamics_cli.runs.trackers import export_to

    opened = _open(run)
    (source,) = sources_of([opened])
    named = {each.name.replace(":", "-"): each.run for each in source.networks}
    runs = {name: each for name, each in named.items() if each is not None}  # that did not fail
    folder = outputs_root() / "exports" / tool / opened.path.name
    if isinstance(run, str) and ":" in run:
        folder = folder.with_name(Path(run).name.replace(":", "-"))
    if out is not None:
        folder = Path(out)
    return export_to(runs, tool, folder.absolute())


def _open(run: Drawn) -> Run | Sweep:
    """Open a run or a sweep; refuse damaged files."""
    from dynamics_cli.sweeps.directory import Sweep
    from dynamics_cli.sweeps.find import open_run, sweep_directory

    directory = sweep_directory(run)
    if directory is not None:
        return run if isinstance(run, Sweep) else Sweep(directory)
    return open_run(run, together=True, whole=True)


# --- pictures


def picture(runs: Drawn | Mapping[str, Any], /, **words: Any) -> Picture:
    """Draw the curves that you choose of runs and sweeps, on common axes.

    Every curve is a quantity of a network: `loss`, a measure, a number of it, or an expression such
    as `sharpness * optimizer.lr / 2`; the final loss, a column of a sweep, or `first(loss < 0.1)`
    is a number of a whole run. Networks that nothing tells apart may differ in what is `over`
    alone.

    Args:
        runs: runs and sweeps as `load_run` takes them, one or a list; or a file `picture.yaml`, or
            the same content as a mapping.
        words: those that follow, by keyword.
        y: quantity along y; a setting makes a phase diagram, whose colour is a quantity.
        x: `iteration`, `time`, `epoch`, a setting, or a quantity (default: iteration, or for
            numbers of whole runs the first setting with several values).
        color: what colours tell apart; a setting, `run`, `branch`, `quantity`, `average` or `none`.
        dash: what dashes tell apart.
        marker: what markers tell apart.
        facet: what has panels of its own, in rows as long as there is room.
        rows: what has a row of panels of its own; quantities of other units stand in columns.
        columns: what has a column of panels of its own; quantities of other units stand in rows.
        over: what is summed up (default: seed).
        stat: how it is summed up; by the median or the mean, not at all, or by the run of the least
            final loss.
        band: what the band shows (default: least to largest, of ten jobs or more the middle 90 %
            and 50 %).
        where: only networks with this setting; in Python `{"optimizer.lr": 0.1}`.
        at: the state whose value stands for a curve over settings (default: the last).
        log: which axes are logarithmic, c the colours of a phase diagram (default: those that this
            suits).
        limits: where an axis ends (default: as the values ask for); in Python `{"y": (0, 1)}`, None
            for an end that the values decide.
        share: the axes that panels have in common (default: xy).
        labels: what a setting, a quantity, a value or a run is called; in Python
            `{"optimizer.lr": "η"}`.
        title: above the picture.
        size: `column` or `page` of a paper, or the width in inches; in Python also `[width,
            height]`.
        legend: where it stands (default: below).
        note: words above the picture instead of those that say what is summed up; `none` leaves
            them out.
        bounds: bounds that measures know, such as 2 / η (default: those near the curves).
        panels: in Python and files, a list of descriptions, each with its own runs.

    Returns:
        The picture, which a notebook shows: `figure`, `charts`, `table()`, `to_xarray()`,
        `save(path)`, and `spec`, the YAML that makes it again.

    Raises:
        UsageError: something is not there, or would be summed up in silence.
        ConfigError: a word is not known.
        RunError: a run is damaged or not there, or there is no number to draw.
    """
    from dynamics_cli.analysis.description import described, plain_words, read_picture
    from dynamics_cli.analysis.picture import Picture

    given: Sequence[Any] = runs if isinstance(runs, list | tuple) else [runs]
    if isinstance(runs, Mapping):
        return Picture(described({**runs, **words}))
    (first, *others) = given or [""]
    if not others and _is_picture(first):
        return Picture(described({**plain_words(read_picture(first)), **words}))
    return Picture(described(words), given)


def _is_picture(which: object) -> bool:
    """Return whether a name is a file which describes a picture."""
    return isinstance(which, str | Path) and Path(which).suffix in (".yaml", ".yml")


def plot(
    run: Drawn,
    panel: str | Sequence[str] | None = None,
    at: int | Sequence[int] | None = None,
    *,
    out: str | Path | None = None,
    formats: Sequence[str] = ("png",),
    **words: Any,
) -> Any:
    """Draw panels of a run or a sweep, several runs together, or the curves that you choose.

    A run offers panels by its kinds; a sweep, and several runs, offer pictures. With `y`, `x`,
    `color`, `dash`, `facet` or `over` the one picture is drawn that these words describe, as
    `dyn.picture` does.

    Args:
        run: as `load_run` takes it, a sweep, several of them, or a file `picture.yaml`.
        panel: a panel or a measure (default: all); in Python also a list of them.
        at: an iteration to show (default: several states in one picture); in Python also a list of
            them.
        out: folder of the pictures, or the file of a single one (default: plots in the run
            directory); in Python nothing is written by default.
        formats: format of the files.
        words: as `picture` takes them.

    Returns:
        The figure where one panel is named and at most one state, and of a picture; otherwise name
        -> figure, as their files are called.

    Raises:
        UsageError: there is no such panel, quantity or format.
        RunError: the run is damaged, or a file cannot be written.
    """
    panels = _listed(panel, str)
    iterations = _listed(at, int)
    drawn = {}
    for stem, figure in pictures(open_any(run), panels, iterations, **words):
        drawn[stem] = figure
        if out is not None:
            from dynamics_cli.analysis.picture import save_figure

            save_figure(figure, Path(out) / stem, formats)
    if (isinstance(panel, str) and (at is None or isinstance(at, int))) or _describes(words):
        return next(iter(drawn.values()))
    return drawn


def _listed(given: Any, single: type) -> list[Any]:
    """Return what was given as a list: nothing, one or several."""
    if given is None:
        return []
    if isinstance(given, single):
        return [given]
    return list(given)


def _describes(words: Mapping[str, Any]) -> bool:
    """Return whether words describe a picture, and not only the looks of those that are offered."""
    names = ("y", "x", "color", "dash", "marker", "facet", "rows", "columns", "over")
    return any(words.get(name) for name in names)


def open_any(run: Drawn) -> Run | Sweep | list[Run | Sweep] | Path:
    """Open what `plot` draws: a run, a sweep, several, or a description; refuse damaged files."""
    from dynamics_cli.runs.run import Run

    if _is_picture(run):
        return Path(run)  # type: ignore[arg-type]
    if isinstance(run, list | tuple):
        return [_open(which) for which in run]
    opened = _open(run)
    together = isinstance(opened, Run) and "replicas" in opened.info
    return [opened] if together else opened  # runs trained together are several


def pictures(
    opened: Run | Sweep | list[Run | Sweep] | Path,
    panels: Sequence[str] = (),
    iterations: Sequence[int] = (),
    *,
    messages: Messages | None = None,
    **words: Any,
) -> Iterator[tuple[str, Figure]]:
    """Draw what `open_any` gives, picture by picture, each with the name of its file; see `plot`.

    `messages` is told of an iteration whose state was not recorded.
    """
    from dynamics_cli.analysis.description import described
    from dynamics_cli.analysis.picture import (
        Picture,
        defaults_of,
        digits_of,
        pictures_of,
        stem_of,
    )
    from dynamics_cli.runs.run import Run

    words = {name: value for name, value in words.items() if value}
    if isinstance(opened, Path):
        yield opened.stem, picture(opened, **words).figure
        return
    if _describes(words):
        if panels:
            raise UsageError(
                "panel draws what is offered, y and its like what you choose: leave one"
            )
        if len(iterations) > 1:
            raise UsageError("a picture of numbers shows them at one state: give at once")
        given = opened if isinstance(opened, list) else [opened]
        if iterations:
            words["at"] = iterations[0]
        whole = described(words)
        yield stem_of(whole) + digits_of(opened), Picture(whole, given).figure
        return
    if isinstance(opened, Run):
        offered = pictures_of(opened)
    elif iterations:
        raise UsageError(
            "at goes with a run: a sweep has no states to show, several runs are drawn over all of"
            " theirs"
        )
    else:
        offered = defaults_of(opened, words.get("where"))
    unknown = [name for name in panels if name not in offered]
    if unknown and not isinstance(opened, Run):
        raise UsageError(
            f"no picture {unknown[0]!r} of these{did_you_mean(unknown[0], offered)}; there are"
            f" {', '.join(offered)}; --y draws any quantity"
        )
    given = opened if isinstance(opened, list) else [opened]
    made = {  # all is resolved before the first is drawn
        name: Picture(described({**offered[name].model_dump(), **words}), given)
        for name in dict.fromkeys(panels) or offered
        if name not in unknown
    }
    if isinstance(opened, Run) and (unknown or not panels):
        yield from _panels(opened, unknown, iterations, messages, **words)
    for name, one in made.items():
        where = stem_of(described({"where": words.get("where", {})}), "")
        yield "-".join(filter(None, [name, where])) + digits_of(opened), one.figure


def _panels(
    run: Run,
    panels: Sequence[str],
    iterations: Sequence[int],
    messages: Messages | None,
    *,
    log: LogAxes | None = None,
    labels: Mapping[str, str] | None = None,
    **others: Any,
) -> Iterator[tuple[str, Figure]]:
    from dynamics_cli.analysis import check_panel, draw_panel, panels_of, states_of
    from dynamics_cli.runs.titles import refuse_unknown_labels

    if others:
        raise UsageError(
            f"{next(iter(others))} goes with a picture: say what is on y, such as y loss; panels of"
            " a run take log and labels"
        )
    refuse_unknown_labels(labels or {}, ["loss", "iteration", "time", *run.measures])
    # all is checked before the first picture, so that there is none of a damaged run
    for name in panels:
        check_panel(run, name, log)
    states = states_of(run, iterations, messages) or [None]
    own = run.config.pictures or {}
    offered = [spec.name for spec in panels_of(run) if spec.name not in own]
    for name in dict.fromkeys(panels) or offered:
        for state in states:
            stem = name
            if state is not None:
                stem = f"{name}-{state}"
            yield stem, draw_panel(run, name, state, log, labels or {})


def predictions(run: Which) -> list[Prediction]:
    """Return the predictions of theories for a run, with the assumptions that it violates.

    Each has `name`, `violated`, `curves` (measured beside predicted) and `deviations`;
    `prediction_charts` of `dynamics_cli.analysis` charts it.

    Raises:
        UsageError: no theory applies to this run.
        RunError: the run is damaged, or has not recorded the weights that a theory needs.
    """
    from dynamics_cli.analysis import predictions as of
    from dynamics_cli.sweeps.find import open_run

    return of(open_run(run, whole=True))


def list_panels(run: Drawn) -> Table:
    """Return name and description of the panels that a run, several runs or a sweep offer.

    Those that `picture` can describe are `written` as options.
    """
    from dynamics_cli.analysis import panels_of
    from dynamics_cli.analysis.picture import SHOWN, defaults_of, options_of, pictures_of
    from dynamics_cli.analysis.view import View
    from dynamics_cli.kinds.pictures import Whole
    from dynamics_cli.runs.run import Run

    opened = open_any(run)
    if isinstance(opened, Path):
        raise UsageError(f"{opened} describes a picture; panels are of runs and sweeps")
    rows: dict[str, dict[str, Any]] = {}
    if isinstance(opened, Run):
        offered = pictures_of(opened)
        for panel in panels_of(opened):
            rows[panel.name] = {"name": panel.name, "description": panel.description}
            if panel.names is not None:
                same = Whole(y=panel.names(View(opened)))
                rows[panel.name]["written"] = options_of(same)
    else:
        offered = defaults_of(opened)
    for name, description in offered.items():
        shown = SHOWN.get(name, f"{name.replace('_', ' ')} of all runs")
        if not isinstance(opened, list) and name in pictures_of(opened):
            shown = description.title or "as the config describes it"
        rows[name] = {"name": name, "description": shown, "written": options_of(description)}
    return Table(rows.values())


def animate(run: Which, out: str | Path | None = None, *, progress: Counted | None = None) -> Path:
    """Write the animation of a run, a GIF, and return its path.

    Args:
        run: as `load_run` takes it.
        out: the folder; by default `plots` in the run directory.
        progress: called with the number of frames that are drawn, and of all.

    Raises:
        UsageError: nothing of the run can be animated, or another file `animation.gif` is there.
        RunError: the run is damaged, or a file cannot be written.
    """
    from dynamics_cli.analysis import animate_run
    from dynamics_cli.runs.store.layout import PLOTS
    from dynamics_cli.runs.store.manifest import refuse_links
    from dynamics_cli.sweeps.find import open_run

    loaded = open_run(run, whole=True)
    plots = loaded.path / PLOTS
    folder = out or plots / str(getattr(loaded, "replica", ""))
    if out is None:
        refuse_links(plots, Path(folder))
    return animate_run(loaded, Path(folder) / "animation.gif", progress)


# --- data files


def fetch_data(name: str, *, bar: bool = False) -> Path:
    """Download a data set (mnist, cifar10), and say where it is.

    A file is used only if its SHA-256 matches the original's; a file that is here is not downloaded
    again.

    Args:
        name: of the data set.
        bar: show the progress on stderr.

    Raises:
        UsageError: there is none of this name that can be downloaded.
        DataMissingError: it could not be downloaded; the message says why, and another way.
    """
    return _published(name).fetch(bar=bar)


def add_data(name: str, path: str | Path, *, progress: Counted | None = None) -> Path:
    """Check files of a data set, use them from now on, and say where.

    The data sets are mnist (a directory with the four IDX files, gzipped or not), cifar10
    (cifar-10-binary.tar.gz or its directory), which are copied, and dogs-vs-cats (Kaggle's
    train.zip or the folder that it unpacks to), whose place is remembered.

    Args:
        name: of the data set.
        path: of the files.
        progress: called with the number of images that were read, and of all.

    Raises:
        UsageError: no data set of this name can be added.
        InputError: the files do not belong to the data set, or are damaged.
    """
    from dynamics_cli.datasets.files.dogs_vs_cats import NAME, add_dogs_vs_cats

    if name == NAME:
        return add_dogs_vs_cats(Path(path), progress)
    return _published(name, NAME).add(Path(path))


def _published(name: str, *others: str) -> Published:
    from dynamics_cli.datasets.files.cifar10 import CIFAR10
    from dynamics_cli.datasets.files.mnist import MNIST

    known = {published.name: published for published in (MNIST, CIFAR10)}
    if name not in known:
        raise UsageError(f"no such data set {name!r}; choose from {', '.join([*known, *others])}")
    return known[name]
