"""The commands as functions: `import dynamics_cli as dyn`, then `dyn.train(...)` is `dyn train ...`.

Importing this module is light; each function imports what it needs. Lists of things are tables (see `text.Table`), and
results that hold more than a table have one as `.rows`; `pandas.DataFrame` takes both as they are.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from dynamics_cli.errors import UsageError, did_you_mean
from dynamics_cli.text import Table, jsonable

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from matplotlib.figure import Figure

    from dynamics_cli.analysis import Prediction
    from dynamics_cli.config import RunConfig
    from dynamics_cli.config.reader import Overrides
    from dynamics_cli.datasets.files.store import Published
    from dynamics_cli.plotting.time_axis import LogAxes
    from dynamics_cli.runs import Run
    from dynamics_cli.sweeps.directory import Sweep
    from dynamics_cli.sweeps.grid import Axis
    from dynamics_cli.sweeps.jobs import PlannedSweep
    from dynamics_cli.sweeps.sweep import SweepProspect
    from dynamics_cli.training.loop import Progress
    from dynamics_cli.training.prospect import Prospect

    Config = RunConfig | str | os.PathLike[str] | Mapping[str, Any]
    Which = Run | str | Path
    Drawn = Which | Sweep | Sequence[Which]
    Messages = Callable[[str], None]
    """Called with sentences for the user."""
    Counted = Callable[[int, int | None], None]
    """Called with how many of how many (None: not known) are done."""

# --- configs


def load_config(config: Config, overrides: Overrides = (), **options: Any) -> RunConfig:
    """Read and validate a config.

    Args:
        config: the path of a YAML or JSON file, the name of a bundled config such as `boursier2022/orthogonal`, the
            same content as a mapping, or a loaded config.
        overrides: settings to change, `{"seed": 3, "optimizer.lr": 0.1}` or `["seed=3", "optimizer.lr=0.1"]`.
        options: top-level settings that replace those of the config, e.g. `seed=3, device="cpu"` (None: as it is), and
            `check_files_exist=False` where data files need not be there.

    Raises ConfigError: it is not valid; all problems at once, in `problems`.
    """
    from dynamics_cli.config import RunConfig
    from dynamics_cli.config import load_config as load
    from dynamics_cli.config.dump import to_plain
    from dynamics_cli.config.reader import override_texts
    from dynamics_cli.reproduction.catalogue import config_file

    changes = override_texts(overrides)
    if isinstance(config, RunConfig):
        unchanged = not changes and all(value is None for value in options.values())
        return config if unchanged else load(to_plain(config), changes, **options)
    return load(config if isinstance(config, Mapping) else config_file(os.fspath(config)), changes, **options)


# --- training


def train(
    config: Config,
    overrides: Overrides = (),
    *,
    out: str | Path | None = None,
    resume: bool = False,
    force: bool = False,
    wait: bool = True,
    measures: Sequence[str | Mapping[str, Any] | Callable[[Any], Any]] | None = None,
    progress: Progress | None = None,
    messages: Messages | None = None,
    **settings: Any,
) -> Run:
    """Train a config, or return its run when it is finished already: `dyn train`.

    Args:
        config: as `load_config` takes it.
        overrides: as `load_config` takes them.
        out: the run directory itself; by default one named after the config below `outputs/runs`.
        resume: continue an interrupted run.
        force: train again even when the run is there.
        wait: wait for another process that trains the same run, or raise `RunError`.
        measures: recorded beside the weights, in place of those of the config: names, or functions of a state
            (`kinds.State`: parameters, network, start, problem, iteration) that give a number or an array.
        progress: called now and then with the iteration reached and the last loss.
        messages: told that another process is waited for.
        settings: top-level settings, such as `seed=3, device="cpu", backend="torch", dtype="float64"`.

    Raises:
        ConfigError: the config is not valid; all problems at once.
        DynError: any other mistake that a user can mend.
    """
    from dynamics_cli.training.session import obtain_run, plan_run

    loaded = load_config(config, overrides, **settings)
    if measures is not None:
        from dynamics_cli.recording.measures import measure_of

        given = [measure_of(measure) if callable(measure) else measure for measure in measures]
        record = type(loaded.record).model_validate({**dict(loaded.record), "measures": given})
        loaded = loaded.model_copy(update={"record": record})
    plan = plan_run(loaded, None if out is None else Path(out))
    return obtain_run(plan, resume=resume, force=force, wait=wait, progress=progress, on_wait=messages).run


def plan(
    config: Config,
    overrides: Overrides = (),
    *,
    out: str | Path | None = None,
    resume: bool = False,
    force: bool = False,
    **settings: Any,
) -> Prospect:
    """Return the plan of `train` for the same arguments, and its needs: `dyn train --dry-run`.

    Raises as `train`; RunError too where the disk has less room than the run needs.
    """
    from dynamics_cli.training.prospect import prospect
    from dynamics_cli.training.session import plan_run

    config = load_config(config, overrides, **settings)
    plan = plan_run(config, None if out is None else Path(out), drawn=False)
    return prospect(plan, resume=resume, force=force)


def sweep(
    config: Config,
    grid: Mapping[str, Any] | Iterable[str] = (),
    *,
    together: Mapping[str, Any] | Iterable[str] = (),
    let: Mapping[str, str] | Iterable[str] = (),
    seeds: int | None = None,
    overrides: Overrides = (),
    record: str | None = None,
    workers: int | None = None,
    shard: tuple[int, int] | None = None,
    executor: Executor | None = None,
    dask: str | None = None,
    out: str | Path | None = None,
    progress: Counted | None = None,
    messages: Messages | None = None,
    **settings: Any,
) -> Sweep:
    """Train a config over a grid of settings and several seeds: `dyn sweep`.

    Args:
        config: as `load_config` takes it; its section `sweep` comes first.
        grid: setting -> its values, a sequence or a range such as `"0.1:10:log:25"`; or texts as `--grid` takes them.
            A setting that the section sweeps too takes these values instead.
        together: settings that run together, value by value, with as many values each: `--zip`.
        let: setting -> the expression that computes it, such as `"0.1 / initialization.scale**2"`.
        seeds: seeds per grid point, by default those of the section, or 1.
        overrides: for all jobs, as `load_config` takes them.
        record: how much each job keeps: `light`, the `ends` only, or all that the `config` says; by default that,
            unless it is too much (see `record.limit_gib`).
        workers: processes that train; by default one per core, and none where all is done in seconds.
        shard: `(3, 50)` trains the third of fifty parts; the same call without it trains the rest and writes the table.
        executor: any `concurrent.futures.Executor` in place of processes here, such as that of a cluster.
        dask: the address of a Dask scheduler, such as `tcp://host:8786`, whose workers train.
        out: directory of the sweep; by default one named after it below `outputs/sweeps`.
        progress: called with the number of jobs that are done, and of all.
        messages: told that no worker is there.
        settings: top-level settings of all jobs; `seed` is the first one.

    Returns:
        The sweep; `rows` has one row a job, those that failed or diverged included.

    Raises:
        ConfigError: a point of the grid is not a valid config.
        UsageError: the grid makes no sense, or the directory holds another sweep.
    """
    from dynamics_cli.sweeps.sweep import by_dask, by_executor, run_sweep

    planned = plan_sweep(
        config, grid, together=together, let=let, seeds=seeds, overrides=overrides, record=record, messages=messages,
        **settings,
    )  # fmt: skip
    total = len(planned) if shard is None else None
    return run_sweep(
        planned,
        out=None if out is None else Path(out),
        shard=shard,
        engine=by_executor(executor) if executor is not None else by_dask(dask, messages) if dask else None,
        workers=workers,
        report=None if progress is None else lambda done: progress(done, total),
        messages=messages,
    )


def plan_sweep_needs(
    config: Config, grid: Mapping[str, Any] | Iterable[str] = (), *, out: str | Path | None = None, **plan: Any
) -> SweepProspect:
    """Return the plan of `sweep`, and its needs: `dyn sweep --dry-run`; the arguments are those of `sweep`.

    Raises as `sweep`.
    """
    from dynamics_cli.sweeps.sweep import prospect

    return prospect(plan_sweep(config, grid, **plan), None if out is None else Path(out))


def plan_sweep(
    config: Config,
    grid: Mapping[str, Any] | Iterable[str] = (),
    *,
    together: Mapping[str, Any] | Iterable[str] = (),
    let: Mapping[str, str] | Iterable[str] = (),
    seeds: int | None = None,
    overrides: Overrides = (),
    record: str | None = None,
    messages: Callable[[str], object] | None = None,
    **settings: Any,
) -> PlannedSweep:
    """Return the jobs of a sweep, a list of settings and validated configs.

    The arguments are those of `sweep`. Raises as `sweep`.
    """
    from dynamics_cli.config import RunConfig
    from dynamics_cli.config.dump import to_plain
    from dynamics_cli.config.reader import override_texts
    from dynamics_cli.reproduction.catalogue import config_file
    from dynamics_cli.sweeps.expressions import parse_let
    from dynamics_cli.sweeps.grid import zipped
    from dynamics_cli.sweeps.jobs import PlannedSweep, read_sweep_section

    source: Any = to_plain(config) if isinstance(config, RunConfig) else config
    source = source if isinstance(source, Mapping) else config_file(os.fspath(source))
    texts = override_texts(overrides)
    axes, lets, section = read_sweep_section(source, texts)
    given = [*_axes(grid), *zipped(_axes(together, "--zip"))]
    leaders = {axis.leader for axis in axes}
    replaced = {axis.key for axis in given if axis.key not in leaders}
    axes = [*(axis for axis in axes if axis.key not in replaced or axis.leader), *given]
    pairs = let.items() if isinstance(let, Mapping) else ()
    parsed = [parse_let(text) for text in ([f"{key}={text}" for key, text in pairs] or let)]
    lets = [*(one for one in lets if one.key not in {new.key for new in parsed}), *parsed]
    return PlannedSweep(
        source, texts, axes, lets=lets, seeds=section.seeds if seeds is None else seeds,
        record=record or section.record, messages=messages, **settings,
    )  # fmt: skip


def _axes(grid: Mapping[str, Any] | Iterable[str], option: str = "--grid") -> list[Axis]:
    from dynamics_cli.sweeps.grid import parse_axis
    from dynamics_cli.sweeps.jobs import axis_of

    if not isinstance(grid, Mapping):
        return [parse_axis(text, option) for text in grid]
    given = {key: values if isinstance(values, str) else jsonable(list(values)) for key, values in grid.items()}
    return [axis_of(key, values, distinct=option == "--grid") for key, values in given.items()]


# --- runs


def export(which: Which | Sweep, out: str | Path, *, to: str, at: int | None = None) -> None:
    """Write a run or a sweep in the form of another tool: `dyn export`.

    Args:
        which: the run, or for parquet a sweep.
        out: the file, or the directory for TensorBoard; what is there is not overwritten.
        to: `parquet`, `tensorboard` or `safetensors`.
        at: of safetensors the iteration; by default the last recorded state is written.

    Raises:
        UsageError: there is no such form, its package is not installed, `out` is there, or `at` makes no sense.
        RunError: there is no such run, it is damaged, it recorded no parameters, or `out` cannot be written.
    """
    from dynamics_cli.runs import export
    from dynamics_cli.sweeps.find import open_run, sweep_directory

    path = Path(out)
    if to not in export.FORMATS:
        raise UsageError(f"there is no form {to!r}; there are {', '.join(export.FORMATS)}")
    if at is not None and to != "safetensors":
        raise UsageError(f"at is of safetensors alone, {to} holds all states")
    if (sweep := sweep_directory(which)) is None:
        run = open_run(which)
        if to == "safetensors":
            export.write_safetensors(run, path, at)
        elif to == "tensorboard":
            export.write_tensorboard(run, path)
        else:
            export.write_parquet(run.to_pandas, path)
        return
    if to != "parquet":
        raise UsageError(f"a sweep is exported to parquet; take one of its runs for {to}, {sweep.name}:0")
    from dynamics_cli.sweeps.directory import Sweep

    export.write_parquet(Sweep(sweep).to_pandas, path)


# --- pictures


@overload
def plot(
    run: Drawn, panel: str, at: int | None = None, *, measure: str | None = None,
    columns: Mapping[str, str] | None = None, where: Mapping[str, Any] | None = None,
    log: LogAxes | None = None, out: str | Path | None = None,
    formats: Sequence[str] = ("png",),
) -> Figure: ...  # fmt: skip


@overload
def plot(
    run: Drawn, panel: str | Sequence[str] | None = None, at: int | Sequence[int] | None = None, *,
    measure: str | None = None, columns: Mapping[str, str] | None = None, where: Mapping[str, Any] | None = None,
    log: LogAxes | None = None, out: str | Path | None = None,
    formats: Sequence[str] = ("png",),
) -> Figure | dict[str, Figure]: ...  # fmt: skip


def plot(
    run: Drawn,
    panel: str | Sequence[str] | None = None,
    at: int | Sequence[int] | None = None,
    *,
    measure: str | None = None,
    columns: Mapping[str, str] | None = None,
    where: Mapping[str, Any] | None = None,
    log: LogAxes | None = None,
    out: str | Path | None = None,
    formats: Sequence[str] = ("png",),
) -> Figure | dict[str, Figure]:
    """Draw panels of a run or of a sweep, or several runs in one picture: `dyn plot`.

    Args:
        run: as `load_run` takes it, or a list of several; a sweep or its directory.
        panel: the name of a panel or of a measure, or several (see `list_panels`); by default all.
        at: the iteration whose state is shown, or marked; or several. By default several states in one picture.
        measure: of a sweep, the final number to draw; by default the first that the config asks for, or the final loss.
        columns: of a sweep, a setting, a final number and another setting, as `{"x": ..., "y": ..., "color": ...}`.
        where: of a sweep, the jobs that are drawn, by their settings: `{"optimizer.lr": 0.1}`.
        log: which axes are logarithmic: `x`, `y`, `xy` or `none`; by default those that this suits.
        out: folder to write the pictures to; by default nothing is written.
        formats: of the files: `png`, `pdf`, `svg`.

    Returns:
        The figure where one panel is named and at most one state; otherwise name -> figure, as their files are called.

    Raises:
        UsageError: there is no such panel, measure or format.
        RunError: the run is damaged, or a file cannot be written.
    """
    panels = [panel] if isinstance(panel, str) else list(panel or ())
    iterations = [] if at is None else [at] if isinstance(at, int) else list(at)
    asked = Drawing(panels, iterations, measure, columns or {}, where or {}, log)
    drawn = {}
    for stem, figure in pictures(run, asked):
        drawn[stem] = figure
        if out is not None:
            from dynamics_cli.plotting.style import save

            save(figure, Path(out) / stem, formats)
    one = (columns or isinstance(panel, str)) and (at is None or isinstance(at, int))
    return next(iter(drawn.values())) if one else drawn


@dataclass(frozen=True)
class Drawing:
    """Which pictures are drawn, and how: the arguments of `plot`, `panel` and `at` as sequences."""

    panels: Sequence[str] = ()
    iterations: Sequence[int] = ()
    measure: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    where: Mapping[str, Any] = field(default_factory=dict)
    log: LogAxes | None = None


def pictures(run: Drawn, asked: Drawing, messages: Messages | None = None) -> Iterator[tuple[str, Figure]]:
    """Draw panels of a run, several runs or a sweep one after the other, each with the name of its file; see `plot`.

    Nothing is drawn of a damaged run. `messages` is told of an iteration whose state was not recorded.
    """
    from dynamics_cli.sweeps.find import open_run, sweep_directory

    of_table = asked.columns or asked.where
    if isinstance(run, list | tuple):
        if asked.iterations or of_table:
            raise UsageError("at goes with one run; x, y, color and where go with one sweep")
        yield from _overlays(run, asked)
    elif (directory := sweep_directory(run)) is not None:
        if asked.iterations:
            raise UsageError("a sweep has no states to show")
        from dynamics_cli.sweeps.directory import Sweep
        from dynamics_cli.sweeps.pictures import SweepTable, draw_named

        table = SweepTable(Sweep(directory), asked.log, where=asked.where)
        yield from draw_named(table, asked.panels, asked.columns, asked.measure)
    elif of_table:
        raise UsageError("x, y, color and where go with the table of a sweep; a run has none")
    else:
        from dynamics_cli.analysis import check_panel, draw_panel, panels_of, states_of

        # all is checked before the first picture, so that there is none of a damaged run
        loaded = open_run(run, whole=True)
        for name in asked.panels:
            check_panel(loaded, name, asked.log)
        states = states_of(loaded, asked.iterations, messages) or [None]
        for name in dict.fromkeys(asked.panels) or [spec.name for spec in panels_of(loaded)]:
            for state in states:
                yield (name if state is None else f"{name}-{state}"), draw_panel(loaded, name, state, asked.log)


def _overlaid_run(which: Any) -> Run:
    """Return one of several runs that are drawn together.

    Raises UsageError: it is a sweep.
    """
    from dynamics_cli.sweeps.find import open_run, sweep_directory

    if (directory := sweep_directory(which)) is not None:
        raise UsageError(f"{directory} is a sweep; runs are drawn together, a sweep is drawn alone")
    return open_run(which)


def _overlays(which: Sequence[Any], asked: Drawing) -> Iterator[tuple[str, Figure]]:
    from dynamics_cli.analysis.overlay import draw_overlay, overlaid

    runs = [_overlaid_run(one) for one in which]
    for run in runs:
        run.check_all()
    known = overlaid(runs)
    for name in asked.panels:
        if name not in known:
            raise UsageError(
                f"no panel {name!r} of all these runs{did_you_mean(name, known)}; they have {', '.join(known)}"
            )
    places = [f"{run.path.absolute()}{getattr(run, 'replica', '')}" for run in runs]
    digits = hashlib.sha256("\n".join(places).encode()).hexdigest()[:10]
    for name in dict.fromkeys(asked.panels) or known:
        picture = draw_overlay(runs, name, asked.log)
        yield f"{runs[0].config.name}-{name}-{digits}", picture


def predictions(run: Which, anyway: Sequence[str] = ()) -> list[Prediction]:
    """Return the predictions of theories for a run, with the assumptions that it violates: `dyn plot --theory`.

    Each has `name`, `violated`, `curves` (measured beside predicted) and `deviations`; `draw_prediction` of
    `dynamics_cli.analysis` draws it. Theories named in `anyway` predict although their assumptions fail.

    Raises:
        UsageError: no theory speaks of this run, or none of a name in `anyway`.
        RunError: the run is damaged, or has not recorded the weights that a theory needs.
    """
    from dynamics_cli.analysis import predictions as of
    from dynamics_cli.sweeps.find import open_run

    return of(open_run(run, whole=True), anyway)


def list_panels(run: Drawn) -> Table:
    """Return name and description of the panels that a run, several runs or a sweep offer: `dyn plot --list`."""
    if isinstance(run, list | tuple):
        from dynamics_cli.analysis.overlay import overlaid

        names = overlaid([_overlaid_run(one) for one in run])
        return Table({"name": name, "description": f"{name.replace('_', ' ')} of all runs"} for name in names)
    from dynamics_cli.sweeps.find import open_run, sweep_directory

    directory = sweep_directory(run)
    if directory is not None:
        from dynamics_cli.sweeps.directory import Sweep
        from dynamics_cli.sweeps.pictures import SweepTable, pictures_of

        offered = pictures_of(SweepTable(Sweep(directory))).items()
        return Table({"name": name, "description": picture.description} for name, picture in offered)
    from dynamics_cli.analysis import panels_of

    loaded = open_run(run, whole=True)
    return Table({"name": panel.name, "description": panel.description} for panel in panels_of(loaded))


def animate(run: Which, out: str | Path | None = None, *, progress: Counted | None = None) -> list[Path]:
    """Write the animation of a run, a GIF, and an MP4 where ffmpeg is installed: `dyn plot --animate`.

    `out` is the folder, by default `plots` in the run directory. `progress` is called with the number of frames that
    are drawn, and of all. Returns the files.

    Raises:
        UsageError: nothing of the run can be animated.
        RunError: the run is damaged, or a file cannot be written.
    """
    from dynamics_cli.analysis import animate_run
    from dynamics_cli.runs.store.layout import plots_folder
    from dynamics_cli.sweeps.find import open_run

    loaded = open_run(run, whole=True)
    folder = out or plots_folder(loaded.path) / str(getattr(loaded, "replica", ""))
    return animate_run(loaded, Path(folder) / "animation", progress)


# --- data files


def fetch_data(name: str, *, bar: bool = False) -> Path:
    """Download a data set (mnist, cifar10) and return where it is; a file that is here is not downloaded again.

    Args:
        name: of the data set.
        bar: show the progress on stderr.

    Raises:
        UsageError: there is none of this name that can be downloaded.
        DataMissingError: it could not be downloaded; the message says why, and another way.
    """
    return _published(name).fetch(bar=bar)


def add_data(name: str, path: str | Path, *, progress: Counted | None = None) -> Path:
    """Check the files of a data set (mnist, cifar10, dogs-vs-cats), use them from now on, and return where they are.

    Args:
        name: of the data set.
        path: of mnist a directory with the four IDX files, of cifar10 the archive or its directory, which are copied;
            of dogs-vs-cats train.zip or the folder that it unpacks to, whose place is remembered.
        progress: called with the number of images that were read, and of all.

    Raises:
        UsageError: there is none of this name that can be added.
        InputError: the files are not those of the data set, or damaged.
    """
    from dynamics_cli.datasets.files.dogs_vs_cats import NAME, add_dogs_vs_cats

    if name == NAME:
        return Path(add_dogs_vs_cats(Path(path), progress).path)
    return _published(name, NAME).add(Path(path))


def _published(name: str, *others: str) -> Published:
    from dynamics_cli.datasets.files.cifar10 import CIFAR10
    from dynamics_cli.datasets.files.mnist import MNIST

    known = {one.name: one for one in (MNIST, CIFAR10)}
    if name not in known:
        raise UsageError(f"no such data set {name!r}; choose from {', '.join([*known, *others])}")
    return known[name]
